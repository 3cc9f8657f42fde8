// SPDX-License-Identifier: MIT
// A machine of stub GPUs around the driver's own nvp2p_bar1.c.
#ifndef P2P_TESTS_DRIVER_RIG_H
#define P2P_TESTS_DRIVER_RIG_H

#include "rm_stub.h"

#include <cstring>

extern "C" {
#include "gpu/bus/nvp2p_bar1.h"
}

#if NVP2P_DRIVER_MAJOR < 580
#define RIG_HIDES(bus) nvp2pHidesWindow(bus)
#else
#define RIG_HIDES(bus) NV_FALSE
#endif

namespace rig {

constexpr NvU64 GiB = 1ULL << 30;
constexpr NvU64 kWindowBase = 0x28800000000ULL;

struct Gpu {
    OBJGPU gpu;
    KernelBus bus;
    KernelBif bif;
    KernelGmmu gmmu;
    MemoryManager mm;
    MEMORY_DESCRIPTOR dma, console;

    // An RTX 4090 with a large BAR1 as the stock driver starts it, in slot `instance`.
    void reset(NvU32 instance) {
        std::memset(this, 0, sizeof *this);
        gpu.instance = instance;
        gpu.bAda = NV_TRUE;
        gpu.chipArch = 0x190;
        gpu.chipImpl = 2;
        gpu.width = 47;
        gpu.pBus = &bus;
        gpu.pBif = &bif;
        gpu.pGmmu = &gmmu;
        gpu.pMm = &mm;
        bif.getProperty = stubBifProperty;
        bif.p2pOverride = BIF_P2P_NOT_OVERRIDEN;
        mm.Ram.fbUsableMemSize = 24 * GiB;
        mm.Ram.fbAddrSpaceSizeMb = (24 * GiB) >> 20;
        bus.bar1Size = 32 * GiB;
        bus.bar1[0].mappableLength = 32 * GiB - 4096;
        bus.__kbusCreateP2PMapping__ = kbusStockVoid;
        bus.__kbusRemoveP2PMapping__ = kbusStockVoid;
        bus.__kbusCreateP2PMappingForBar1P2P__ = kbusStockVoid;
        bus.__kbusRemoveP2PMappingForBar1P2P__ = kbusStockVoid;
        bus.__kbusHasPcieBar1P2PMapping__ = kbusStockPair;
        bus.__kbusGetBar1P2PDmaInfo__ = kbusStockDmaInfo;
        bus.__kbusIsPcieBar1P2PMappingSupported__ = kbusStockPair;
#if NVP2P_DRIVER_MAJOR <= 560
        bus.__kbusIsBar1P2PCapable__ = kbusStockCapable;
        bus.__kbusEnableStaticBar1Mapping__ = kbusStockGfid;
        bus.__kbusDisableStaticBar1Mapping__ = kbusStockVoid;
#else
        bus.staticBar1ForceType = 0x77;  // whatever stock chose
#endif
        bif.forceP2PType = 0x66;
#if NVP2P_DRIVER_MAJOR >= 575
        bif.pcieP2PType = 0x55;
#endif
        dma = {&gpu, ADDR_SYSMEM, kWindowBase + instance * (64 * GiB), NV_FALSE};
    }
    void key(NvU32 value) {
        gpu.bKeySet = NV_TRUE;
        gpu.key = value;
    }
    // What BAR1 initialisation leaves behind when it made a window.
    void window() {
        bus.bar1[0].bStaticBar1Enabled = NV_TRUE;
        bus.bar1[0].staticBar1.pDmaMemDesc = &dma;
        bus.bar1[0].staticBar1.size = 24 * GiB;
    }
    void attach() {
        nvp2pAttach(&gpu, &bus);
    }
};

// Up to four GPUs; the stub globals are back at their defaults for each test.
struct Machine {
    Gpu g[STUB_GPUS];

    explicit Machine(int count = 2) {
        for (NvU32 i = 0; i < STUB_GPUS; i++) {
            g[i].reset(i);
            stubGpu[i] = static_cast<int>(i) < count ? &g[i].gpu : nullptr;
        }
        stubSys.cpuInfo.type = NV0000_CTRL_SYSTEM_CPU_TYPE_RYZEN;
        stubSys.bNvswitch = NV_FALSE;
        stubCommonSwitch = NV_FALSE;
        stubCapable = NV_TRUE;
        stubEnable = stubDmaStatus = NV_OK;
        stubDmaBase = kWindowBase;
        stubDmaSize = 24 * GiB;
    }
    ~Machine() {
        for (auto& gpu : stubGpu) gpu = nullptr;
    }
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;
};

// All GPUs opted in, with windows.
struct Ready : Machine {
    explicit Ready(int count = 2) : Machine(count) {
        for (int i = 0; i < count; i++) {
            g[i].key(1);
            g[i].attach();
            g[i].window();
        }
    }
};

// A pair whose P2P object exists: what the builder sees when CUDA maps a peer.
struct Mapped : Ready {
    Mapped() { g[0].bus.bar1PeerRefcount[1] = g[1].bus.bar1PeerRefcount[0] = 1; }
};

// Sentinels: a decision that is not ours must leave them in place.
struct Caps {
    NvU8 write = 0xaa, read = 0xbb;
    P2P_CONNECTIVITY connectivity = P2P_CONNECTIVITY_C2C;
    NvBool final;  // after the members that the call writes

    explicit Caps(NvU32 mask) : final(nvp2pDecideCaps(mask, &write, &read, &connectivity)) {}
    bool untouched() const {
        return !final && write == 0xaa && read == 0xbb && connectivity == P2P_CONNECTIVITY_C2C;
    }
    bool yes() const {
        return final && write == NV0000_P2P_CAPS_STATUS_OK && read == NV0000_P2P_CAPS_STATUS_OK &&
               connectivity == P2P_CONNECTIVITY_PCIE_BAR1;
    }
    // A final no with this status; connectivity is left to the caller's default.
    bool no(NvU8 status) const {
        return final && write == status && read == status && connectivity == P2P_CONNECTIVITY_C2C;
    }
};

}  // namespace rig
#endif
