/* SPDX-License-Identifier: MIT */
/*
 * As much of the resource manager as driver/src/rm/nvp2p_bar1.c touches, so that
 * the very file that goes into the driver runs in a unit test.  Names, types and
 * values are those of the releases; tree_test.cc checks the values against the
 * headers of a real one.  NVP2P_DRIVER_MAJOR picks the release being imitated.
 */
#ifndef RM_STUB_H
#define RM_STUB_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint8_t NvU8;
typedef uint32_t NvU32;
typedef unsigned long long NvU64;
typedef NvU8 NvBool;
typedef NvU32 NV_STATUS;
#define NV_TRUE ((NvBool)1)
#define NV_FALSE ((NvBool)0)
#define NV_U64_MAX (~0ULL)
#define NVBIT64(n) (1ULL << (n))

#define NV_OK 0x00u
#define NV_ERR_INVALID_ADDRESS 0x1eu
#define NV_ERR_INVALID_ARGUMENT 0x1fu
#define NV_ERR_INVALID_STATE 0x40u
#define NV_ERR_NOT_SUPPORTED 0x56u
#define NV_ERR_GENERIC 0xffffu

#define LEVEL_ERROR 0
#define LEVEL_NOTICE 1
void stubPrint(int level, const char* format, ...) __attribute__((format(printf, 2, 3)));
#define NV_PRINTF(level, ...) stubPrint(level, __VA_ARGS__)

/* ---- registry keys ---- */
#define NV_REG_STR_CL_FORCE_P2P_READ 1 : 0
#define NV_REG_STR_CL_FORCE_P2P_READ_ENABLE 0x1u
#define NV_REG_STR_CL_FORCE_P2P_WRITE 5 : 4
#define NV_REG_STR_CL_FORCE_P2P_WRITE_ENABLE 0x1u
// A range is `high : low`, which parentheses would break.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define STUB_FIELD(range, value) \
    (((value) >> (0 ? range)) & ((2u << ((1 ? range) - (0 ? range))) - 1u))
// NOLINTEND(bugprone-macro-parentheses)
#define FLD_TEST_DRF(d, r, f, c, v) (STUB_FIELD(NV##d##r##f, v) == NV##d##r##f##c)

#if NVP2P_DRIVER_MAJOR >= 575
#define NV_REG_STR_RM_PCIEP2P_TYPE "RMPcieP2PType"
#define NV_REG_STR_RM_PCIEP2P_TYPE_BAR1 0x1u
#else
#define NV_REG_STR_RM_FORCE_P2P_TYPE_BAR1P2P 0x2u
#endif
#if NVP2P_DRIVER_MAJOR >= 565
#define NV_REG_STR_RM_FORCE_STATIC_BAR1 "RMForceStaticBar1"
#define NV_REG_STR_RM_FORCE_STATIC_BAR1_AUTO 0x2u
#endif

/* ---- objects ---- */
typedef enum {
    ADDR_UNKNOWN = 0,
    ADDR_SYSMEM = 1,
    ADDR_FBMEM = 2,
    ADDR_FABRIC_V2 = 6,
    ADDR_EGM = 8
} NV_ADDRESS_SPACE;
typedef enum {
    GMMU_APERTURE_INVALID,
    GMMU_APERTURE_VIDEO,
    GMMU_APERTURE_PEER,
    GMMU_APERTURE_SYS_NONCOH,
    GMMU_APERTURE_SYS_COH
} GMMU_APERTURE;
typedef enum {
    P2P_CONNECTIVITY_UNKNOWN = 0,
    P2P_CONNECTIVITY_PCIE_PROPRIETARY,
    P2P_CONNECTIVITY_PCIE_BAR1,
    P2P_CONNECTIVITY_NVLINK,
    P2P_CONNECTIVITY_NVLINK_INDIRECT,
    P2P_CONNECTIVITY_C2C
} P2P_CONNECTIVITY;

#define NV0000_P2P_CAPS_STATUS_OK 0x0u
#define NV0000_P2P_CAPS_STATUS_CHIPSET_NOT_SUPPORTED 0x1u
#define NV0000_P2P_CAPS_STATUS_DISABLED_BY_REGKEY 0x4u
#define NV0000_P2P_CAPS_STATUS_NOT_SUPPORTED 0x5u
#define NV0000_CTRL_SYSTEM_CPU_TYPE_UNKNOWN 0x0u
#define NV0000_CTRL_SYSTEM_CPU_TYPE_XEON_SPR 0x14u
#define NV0000_CTRL_SYSTEM_CPU_TYPE_RYZEN 0x38u
#define BIF_P2P_NOT_OVERRIDEN ((NvU32)~0)

#define STUB_GPUS 4
#define GPU_GFID_PF 0

typedef struct OBJGPU OBJGPU;
typedef struct KernelBus KernelBus;
typedef struct KernelBif KernelBif;
typedef struct KernelGmmu KernelGmmu;
typedef struct MemoryManager MemoryManager;

typedef struct MEMORY_DESCRIPTOR {
    OBJGPU* pGpu;
    NV_ADDRESS_SPACE space;
    NvU64 address;
    NvBool bEgm;
} MEMORY_DESCRIPTOR;
#define AT_GPU 0
#define AT_CPU 1
#define memdescGetAddressSpace(p) ((p)->space)
#define memdescGetPhysAddr(p, at, offset) ((p)->address + (offset))
#define memdescIsEgm(p) ((p)->bEgm)

typedef NvBool (*StubPairFn)(OBJGPU*, KernelBus*, OBJGPU*, KernelBus*);
typedef NV_STATUS (*StubDmaInfoFn)(OBJGPU*, OBJGPU*, KernelBus*, NvU64*, NvU64*);
typedef NV_STATUS (*StubGfidFn)(OBJGPU*, KernelBus*, NvU32);
typedef NvBool (*StubCapableFn)(OBJGPU*, KernelBus*, NvU32);
typedef void (*StubFn)(void);

// The names that NVIDIA's generator gives.
// NOLINTBEGIN(bugprone-reserved-identifier)
struct KernelBus {
    StubFn __kbusCreateP2PMapping__;
    StubFn __kbusRemoveP2PMapping__;
    StubFn __kbusCreateP2PMappingForBar1P2P__;
    StubFn __kbusRemoveP2PMappingForBar1P2P__;
    StubPairFn __kbusHasPcieBar1P2PMapping__;
    StubDmaInfoFn __kbusGetBar1P2PDmaInfo__;
    StubPairFn __kbusIsPcieBar1P2PMappingSupported__;
#if NVP2P_DRIVER_MAJOR <= 560
    StubCapableFn __kbusIsBar1P2PCapable__;
    StubGfidFn __kbusEnableStaticBar1Mapping__;
    StubFn __kbusDisableStaticBar1Mapping__;
#else
    NvU32 staticBar1ForceType;
#endif
    struct {
        NvBool bStaticBar1Enabled;
        NvU64 mappableLength;
        struct {
            MEMORY_DESCRIPTOR* pDmaMemDesc;
            NvU64 size;
        } staticBar1;
    } bar1[1];
    struct {
        NvU32 peerNumberMask[STUB_GPUS];
    } p2pPcie;
    NvU32 bar1PeerRefcount[STUB_GPUS];
    NvU64 bar1Size;
    NvBool bPreserveConsole;
};
// NOLINTEND(bugprone-reserved-identifier)

#define PDB_PROP_KBIF_P2P_READS_DISABLED 0
#define PDB_PROP_KBIF_P2P_WRITES_DISABLED 1
struct KernelBif {
    NvBool (*getProperty)(KernelBif*, int);
    NvBool bDisabled[2];
    NvU32 p2pOverride;
    NvU32 forceP2PType;
#if NVP2P_DRIVER_MAJOR >= 575
    NvU32 pcieP2PType;
#endif
};

struct KernelGmmu {
    NvU64 sysmemBaseAddress;
};

struct MemoryManager {
    struct {
        NvU64 fbUsableMemSize;
        NvU64 fbAddrSpaceSizeMb;
    } Ram;
    MEMORY_DESCRIPTOR* pConsole;
};

struct OBJGPU {
    NvU32 instance;
    NvBool bAda, bAmpere, bGa100, bVirtual, bSriov, bSli, bMobile;
    NvU32 chipArch, chipImpl;
    NvU32 width; /* bits of a system address */
    KernelBus* pBus;
    KernelBif* pBif;
    KernelGmmu* pGmmu;
    MemoryManager* pMm;
    NvBool bKeySet, bStaticKeySet;
    NvU32 key, staticKey;
    NvBool bMig, bNvlink, bDiscoveredLinks, bNvswitch; /* for p2pGetCapsStatus */
};

#define GPU_GET_KERNEL_BUS(p) ((p)->pBus)
#define GPU_GET_KERNEL_BIF(p) ((p)->pBif)
#define GPU_GET_KERNEL_GMMU(p) ((p)->pGmmu)
#define GPU_GET_MEMORY_MANAGER(p) ((p)->pMm)
#define gpuGetInstance(p) ((p)->instance)
#define IsADA(p) ((p)->bAda)
#define IsAMPERE(p) ((p)->bAmpere)
#define IsGA100(p) ((p)->bGa100)
#define IsMobile(p) ((p)->bMobile)
#define gpuGetChipArch(p) ((p)->chipArch)
#define gpuGetChipImpl(p) ((p)->chipImpl)
#define IS_VIRTUAL(p) ((p)->bVirtual)
#define gpuIsSriovEnabled(p) ((p)->bSriov)
#define IsSLIEnabled(p) ((p)->bSli)
#if NVP2P_DRIVER_MAJOR < 580
#define gpuGetPhysAddrWidth_HAL(p, space) ((p)->width)
#else
#define gpuGetArch(p) (p)
#define gpuarchGetSystemPhysAddrWidth_HAL(p) ((p)->width)
#endif
#define kbusGetPciBarSize(p, bar) ((p)->bar1Size)
#define kbusIsPreserveBar1ConsoleEnabled(p) ((p)->bPreserveConsole)
#define memmgrGetReservedConsoleMemDesc(pGpu, pMm) ((pMm)->pConsole)
#define kbusHasPcieBar1P2PMapping_HAL(g0, b0, g1, b1) \
    ((b0)->__kbusHasPcieBar1P2PMapping__(g0, b0, g1, b1))
#define kbusGetBar1P2PDmaInfo_HAL(src, peer, bus, pAddr, pSize) \
    ((bus)->__kbusGetBar1P2PDmaInfo__(src, peer, bus, pAddr, pSize))

typedef struct OBJSYS {
    struct {
        NvU32 type;
    } cpuInfo;
    NvBool (*getProperty)(struct OBJSYS*, int);
    NvBool bNvswitch;
} OBJSYS;
#define PDB_PROP_SYS_NVSWITCH_IS_PRESENT 1
NvBool stubBifProperty(KernelBif* pKernelBif, int property);
extern OBJSYS stubSys;
extern OBJGPU* stubGpu[STUB_GPUS];
extern NvBool stubCommonSwitch; /* is there a switch above every pair? */
#define SYS_GET_INSTANCE() (&stubSys)
#define SYS_GET_CL(pSys) NULL

OBJGPU* gpumgrGetNextGpu(NvU32 gpuMask, NvU32* pInstance);
NV_STATUS osReadRegistryDword(OBJGPU* pGpu, const char* name, NvU32* pValue);
void clFindCommonDownstreamBR(OBJGPU* pGpu0, OBJGPU* pGpu1, void* pCl, NvU8* pBus);

/* The stock functions that can stand in a slot; only their identity and effect matter. */
void kbusCreateP2PMapping_GH100(void);
void kbusRemoveP2PMapping_GH100(void);
void kbusCreateP2PMappingForBar1P2P_GH100(void);
void kbusRemoveP2PMappingForBar1P2P_GH100(void);
void kbusDisableStaticBar1Mapping_GH100(void);
void kbusStockVoid(void);
NvBool kbusHasPcieBar1P2PMapping_GH100(OBJGPU*, KernelBus*, OBJGPU*, KernelBus*);
NvBool kbusStockPair(OBJGPU*, KernelBus*, OBJGPU*, KernelBus*);
NV_STATUS kbusGetBar1P2PDmaInfo_GH100(OBJGPU*, OBJGPU*, KernelBus*, NvU64*, NvU64*);
NV_STATUS kbusStockDmaInfo(OBJGPU*, OBJGPU*, KernelBus*, NvU64*, NvU64*);
NV_STATUS kbusEnableStaticBar1Mapping_GH100(OBJGPU*, KernelBus*, NvU32);
NV_STATUS kbusStockGfid(OBJGPU*, KernelBus*, NvU32);
NvBool kbusIsBar1P2PCapable_GH100(OBJGPU*, KernelBus*, NvU32);
NvBool kbusStockCapable(OBJGPU*, KernelBus*, NvU32);
extern NvBool stubCapable;      /* what kbusIsBar1P2PCapable_GH100 answers */
extern NV_STATUS stubEnable;    /* what kbusEnableStaticBar1Mapping_GH100 answers */
extern NV_STATUS stubDmaStatus; /* what kbusGetBar1P2PDmaInfo_GH100 answers */
extern NvU64 stubDmaBase, stubDmaSize;

#ifdef __cplusplus
}
#endif
#endif
