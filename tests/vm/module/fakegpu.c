// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fake NVIDIA GPUs: PCI functions whose configuration space is an array.
 *
 * The module registers host bridges in a PCI domain of their own.  Each GPU
 * sits behind a root port and has the BARs and capabilities that a GeForce
 * RTX 4090 has; the kernel sizes, places and resizes them as it does on a real
 * bus.  There is no device behind the BARs: no DMA, no interrupts.  BAR0 may
 * lie over RAM that mem= took from the kernel, so that the two registers by
 * which a driver knows the chip read back.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#define MAX_GPUS	16
#define CONFIG_SIZE	4096

static int domain = 0x10;
module_param(domain, int, 0444);
MODULE_PARM_DESC(domain, "PCI domain of the fake bus (default: 0x10)");

static int ngpu = 2;
module_param(ngpu, int, 0444);
MODULE_PARM_DESC(ngpu, "number of GPUs, 1 to 16 (default: 2)");

static int bridges = 1;
module_param(bridges, int, 0444);
MODULE_PARM_DESC(bridges,
		 "number of host bridges over which the GPUs are spread (default: 1)");

static unsigned int window_mb[MAX_GPUS] = { [0 ... MAX_GPUS - 1] = 128 << 10 };
module_param_array(window_mb, uint, NULL, 0444);
MODULE_PARM_DESC(window_mb,
		 "64-bit memory window of each host bridge in MiB (default: 131072)");

static ushort devid = 0x2684;
module_param(devid, ushort, 0444);
MODULE_PARM_DESC(devid, "PCI device id of the GPUs (default: 0x2684, GeForce RTX 4090)");

static unsigned int bar1_mb = 256;
module_param(bar1_mb, uint, 0444);
MODULE_PARM_DESC(bar1_mb, "size of BAR1 in MiB before anyone resizes it (default: 256)");

static unsigned int rebar_sizes[MAX_GPUS] = { [0 ... MAX_GPUS - 1] = 0xffc0 };
module_param_array(rebar_sizes, uint, NULL, 0444);
MODULE_PARM_DESC(rebar_sizes,
		 "per GPU, sizes that BAR1 may take: bit n stands for 2^n MiB, 0: no Resizable BAR capability (default: 0xffc0, 64 MiB to 32 GiB)");

static bool vf_rebar;
module_param(vf_rebar, bool, 0444);
MODULE_PARM_DESC(vf_rebar,
		 "add a VF Resizable BAR capability, which says nothing of BAR1 (default: no)");

static int acs = -1;
module_param(acs, int, 0444);
MODULE_PARM_DESC(acs,
		 "ACS control register of the root ports, -1: no capability (default: -1)");

static int speed[MAX_GPUS] = { [0 ... MAX_GPUS - 1] = 4 };
module_param_array(speed, int, NULL, 0444);
MODULE_PARM_DESC(speed, "per GPU, PCIe generation at which the link runs; it can do 4 (default: 4)");

static int width[MAX_GPUS] = { [0 ... MAX_GPUS - 1] = 16 };
module_param_array(width, int, NULL, 0444);
MODULE_PARM_DESC(width, "per GPU, lanes over which the link runs; it can do 16 (default: 16)");

static ulong mem32 = 0x50000000;
module_param(mem32, ulong, 0444);
MODULE_PARM_DESC(mem32, "address of the 32-bit windows, 32 MiB for each GPU (default: 0x50000000)");

static ulong mem64 = 0x8000000000;
module_param(mem64, ulong, 0444);
MODULE_PARM_DESC(mem64, "address of the first 64-bit window (default: 0x8000000000)");

static bool backed = true;
module_param(backed, bool, 0444);
MODULE_PARM_DESC(backed, "the 32-bit windows lie over reserved RAM: write the chip's id there (default: yes)");

static unsigned int boot0 = 0x192000a1;
module_param(boot0, uint, 0444);
MODULE_PARM_DESC(boot0, "register PMC_BOOT_0 (default: 0x192000a1, AD102 A1)");

static unsigned int boot42 = 0x192a1000;
module_param(boot42, uint, 0444);
MODULE_PARM_DESC(boot42, "register PMC_BOOT_42 (default: 0x192a1000)");

/* Where the capabilities lie; the first four as on the real card. */
#define GPU_PM		0x60
#define GPU_MSI		0x68
#define GPU_EXP		0x78
#define GPU_REBAR	0xbb0
#define GPU_VF_REBAR	0xc40
#define GPU_DSN		0x100
#define PORT_EXP	0x40
#define PORT_ACS	0x100

#define PMC_BOOT_0	0x000
#define PMC_BOOT_42	0xa00

/**
 * struct fake_function - one PCI function
 * @config: configuration space, little endian
 * @writable: the bits of it that a write changes
 * @rebar: offset of the Resizable BAR capability, 0: none
 * @sizes: sizes that BAR1 may take, bit n stands for 2^n MiB
 */
struct fake_function {
	u8 config[CONFIG_SIZE];
	u8 writable[CONFIG_SIZE];
	u16 rebar;
	u32 sizes;
};

struct fake_slot {
	struct fake_function port, gpu, audio;
};

/**
 * struct fake_bridge - one host bridge
 * @sysdata: by which x86 knows the domain, and we the bridge
 * @root: its root bus
 * @name: name of its windows in /proc/iomem, as firmware's host bridges have it
 * @bus: bus numbers
 * @mem32: window of the 32-bit BARs
 * @mem64: window of the 64-bit BARs
 * @first: number of its first GPU
 * @count: number of its GPUs
 */
struct fake_bridge {
	struct pci_sysdata sysdata;
	struct pci_bus *root;
	char name[sizeof("PCI Bus 0000:00")];
	struct resource bus, mem32, mem64;
	int first, count;
};

static struct fake_slot *slots;
static struct fake_bridge *hosts;

static u32 get(const struct fake_function *f, int at, int size)
{
	u32 value = 0;

	while (size--)
		value = value << 8 | f->config[at + size];
	return value;
}

static void set(struct fake_function *f, int at, int size, u32 value, u32 writable)
{
	int i;

	for (i = 0; i < size; i++) {
		f->config[at + i] = value >> 8 * i;
		f->writable[at + i] = writable >> 8 * i;
	}
}

/* BAR1 keeps those address bits that its size leaves to it. */
static void size_bar1(struct fake_function *f, u64 size)
{
	u64 mask = ~(size - 1);
	u32 low = (u32)mask & PCI_BASE_ADDRESS_MEM_MASK;

	set(f, PCI_BASE_ADDRESS_1, 4,
	    (get(f, PCI_BASE_ADDRESS_1, 4) & low) |
	    PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH, low);
	set(f, PCI_BASE_ADDRESS_2, 4,
	    get(f, PCI_BASE_ADDRESS_2, 4) & upper_32_bits(mask), upper_32_bits(mask));
}

static void add_express(struct fake_function *f, int at, int type, int gpu)
{
	/* A port that leads somewhere says so: DL Active, slot implemented. */
	bool port = type == PCI_EXP_TYPE_ROOT_PORT;

	set(f, at, 2, PCI_CAP_ID_EXP, 0);
	set(f, at + PCI_EXP_FLAGS, 2, 2 | type << 4 | (port ? PCI_EXP_FLAGS_SLOT : 0), 0);
	set(f, at + PCI_EXP_DEVCAP, 4, PCI_EXP_DEVCAP_RBER | 1, 0);
	set(f, at + PCI_EXP_DEVCTL, 2, 0x0810, 0x7fff);
	set(f, at + PCI_EXP_LNKCAP, 4,
	    PCI_EXP_LNKCAP_SLS_16_0GB | 16 << 4 | (port ? PCI_EXP_LNKCAP_DLLLARC : 0), 0);
	set(f, at + PCI_EXP_LNKCTL, 2, 0, 0x0fff);
	set(f, at + PCI_EXP_LNKSTA, 2,
	    speed[gpu] | width[gpu] << 4 | (port ? PCI_EXP_LNKSTA_DLLLA : 0), 0);
	set(f, at + PCI_EXP_LNKCAP2, 4, 0x1e, 0);
	set(f, at + PCI_EXP_LNKCTL2, 2, PCI_EXP_LNKCTL2_TLS_16_0GT, PCI_EXP_LNKCTL2_TLS);
}

/* What the GPU and its audio function have in common. */
static void make_endpoint(struct fake_function *f, u16 device, u32 class, int pin, int gpu)
{
	set(f, PCI_VENDOR_ID, 2, PCI_VENDOR_ID_NVIDIA, 0);
	set(f, PCI_DEVICE_ID, 2, device, 0);
	set(f, PCI_COMMAND, 2, 0, PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
	    PCI_COMMAND_PARITY | PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	set(f, PCI_STATUS, 2, PCI_STATUS_CAP_LIST, 0);
	set(f, PCI_CLASS_REVISION, 4, class << 8 | 0xa1, 0);
	set(f, PCI_HEADER_TYPE, 1, 0x80, 0);
	set(f, PCI_SUBSYSTEM_VENDOR_ID, 4, 0x16f3 << 16 | PCI_VENDOR_ID_NVIDIA, 0);
	set(f, PCI_CAPABILITY_LIST, 1, GPU_PM, 0);
	/* Drivers ask for a line; nothing ever raises it. */
	set(f, PCI_INTERRUPT_LINE, 1, 11, 0xff);
	set(f, PCI_INTERRUPT_PIN, 1, pin, 0);

	set(f, GPU_PM, 4, PCI_CAP_ID_PM | GPU_MSI << 8 | 3 << 16, 0);
	set(f, GPU_PM + PCI_PM_CTRL, 2, PCI_PM_CTRL_NO_SOFT_RESET,
	    PCI_PM_CTRL_STATE_MASK | PCI_PM_CTRL_PME_ENABLE);
	set(f, GPU_MSI, 2, PCI_CAP_ID_MSI | GPU_EXP << 8, 0);
	set(f, GPU_MSI + PCI_MSI_FLAGS, 2, PCI_MSI_FLAGS_64BIT,
	    PCI_MSI_FLAGS_ENABLE | PCI_MSI_FLAGS_QSIZE);
	set(f, GPU_MSI + PCI_MSI_ADDRESS_LO, 4, 0, ~3u);
	set(f, GPU_MSI + PCI_MSI_ADDRESS_HI, 4, 0, ~0u);
	set(f, GPU_MSI + PCI_MSI_DATA_64, 2, 0, 0xffff);
	add_express(f, GPU_EXP, PCI_EXP_TYPE_ENDPOINT, gpu);
}

/* An entry of a Resizable BAR capability, physical or VF: the layout is one. */
static void add_rebar(struct fake_function *f, int at, int id, int next, int bar, u32 sizes, int now)
{
	set(f, at, 4, id | 1 << 16 | next << 20, 0);
	set(f, at + PCI_REBAR_CAP, 4, sizes << 4, 0);
	set(f, at + PCI_REBAR_CTRL, 4, bar | 1 << PCI_REBAR_CTRL_NBAR_SHIFT |
	    now << PCI_REBAR_CTRL_BAR_SHIFT, PCI_REBAR_CTRL_BAR_SIZE);
}

static void make_gpu(struct fake_function *f, int gpu)
{
	u32 sizes = rebar_sizes[gpu];
	int next = sizes ? GPU_REBAR : vf_rebar ? GPU_VF_REBAR : 0;

	make_endpoint(f, devid, PCI_CLASS_DISPLAY_VGA << 8, 1, gpu);
	set(f, PCI_BASE_ADDRESS_0, 4, 0, ~(u32)(SZ_16M - 1));
	size_bar1(f, (u64)bar1_mb << 20);
	set(f, PCI_BASE_ADDRESS_3, 4,
	    PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH, ~(u32)(SZ_32M - 1));
	set(f, PCI_BASE_ADDRESS_4, 4, 0, ~0u);
	set(f, PCI_ROM_ADDRESS, 4, 0, ~(u32)(SZ_512K - 1) | PCI_ROM_ADDRESS_ENABLE);

	set(f, GPU_DSN, 4, PCI_EXT_CAP_ID_DSN | 1 << 16 | next << 20, 0);
	set(f, GPU_DSN + 4, 4, gpu + 1, 0);
	if (sizes) {
		add_rebar(f, GPU_REBAR, PCI_EXT_CAP_ID_REBAR, vf_rebar ? GPU_VF_REBAR : 0,
			  1, sizes, ilog2(bar1_mb));
		f->rebar = GPU_REBAR;
		f->sizes = sizes;
	}
	if (vf_rebar)	/* sizes that BAR1 itself does not offer: 128 GiB */
		add_rebar(f, GPU_VF_REBAR, 0x24, 0, 1, 1 << 17, 17);
}

static void make_audio(struct fake_function *f, int gpu)
{
	make_endpoint(f, 0x22ba, PCI_CLASS_MULTIMEDIA_HD_AUDIO << 8, 2, gpu);
	set(f, PCI_BASE_ADDRESS_0, 4, 0, ~(u32)(SZ_16K - 1));
}

static void make_port(struct fake_function *f, int gpu)
{
	set(f, PCI_VENDOR_ID, 2, PCI_VENDOR_ID_REDHAT, 0);
	set(f, PCI_DEVICE_ID, 2, 0x000c, 0);	/* QEMU's PCIe root port */
	set(f, PCI_COMMAND, 2, 0, PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER |
	    PCI_COMMAND_PARITY | PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	set(f, PCI_STATUS, 2, PCI_STATUS_CAP_LIST, 0);
	set(f, PCI_CLASS_REVISION, 4, PCI_CLASS_BRIDGE_PCI << 16, 0);
	set(f, PCI_HEADER_TYPE, 1, PCI_HEADER_TYPE_BRIDGE, 0);
	set(f, PCI_PRIMARY_BUS, 4, 0, 0xffffff);
	/* Windows start closed: base above limit.  There is none for I/O ports. */
	set(f, PCI_IO_BASE, 2, 0x00f0, 0);
	set(f, PCI_MEMORY_BASE, 4, 0xfff0, 0xfff0fff0);
	set(f, PCI_PREF_MEMORY_BASE, 4,
	    PCI_PREF_RANGE_TYPE_64 << 16 | 0xfff0 | PCI_PREF_RANGE_TYPE_64, 0xfff0fff0);
	set(f, PCI_PREF_BASE_UPPER32, 4, 0, ~0u);
	set(f, PCI_PREF_LIMIT_UPPER32, 4, 0, ~0u);
	set(f, PCI_CAPABILITY_LIST, 1, PORT_EXP, 0);
	set(f, PCI_BRIDGE_CONTROL, 2, 0, 0x1f);
	add_express(f, PORT_EXP, PCI_EXP_TYPE_ROOT_PORT, gpu);
	if (acs >= 0) {
		set(f, PORT_ACS, 4, PCI_EXT_CAP_ID_ACS | 1 << 16, 0);
		set(f, PORT_ACS + PCI_ACS_CAP, 2, 0x5f, 0);
		set(f, PORT_ACS + PCI_ACS_CTRL, 2, acs, 0x5f);
	}
}

static struct fake_function *find(struct pci_bus *bus, unsigned int devfn)
{
	struct fake_bridge *host = container_of(bus->sysdata, struct fake_bridge, sysdata);
	struct fake_slot *slot = slots + host->first;
	int i, dev = PCI_SLOT(devfn), func = PCI_FUNC(devfn);

	if (pci_is_root_bus(bus))
		return dev < 1 || dev > host->count || func ? NULL : &slot[dev - 1].port;
	if (dev || func > 1)
		return NULL;
	for (i = 0; i < host->count; i++)
		if (slot[i].port.config[PCI_SECONDARY_BUS] == bus->number)
			return func ? &slot[i].audio : &slot[i].gpu;
	return NULL;
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	struct fake_function *f = find(bus, devfn);

	if (!f) {
		*value = ~0u;
		return PCIBIOS_DEVICE_NOT_FOUND;
	}
	*value = get(f, where, size);
	return PCIBIOS_SUCCESSFUL;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct fake_function *f = find(bus, devfn);
	int i, ctrl, n;

	if (!f)
		return PCIBIOS_DEVICE_NOT_FOUND;
	for (i = 0; i < size; i++) {
		u8 mask = f->writable[where + i];

		f->config[where + i] = (f->config[where + i] & ~mask) | (value >> 8 * i & mask);
	}
	ctrl = f->rebar + PCI_REBAR_CTRL;
	if (f->rebar && where < ctrl + 4 && where + size > ctrl) {
		n = (get(f, ctrl, 4) & PCI_REBAR_CTRL_BAR_SIZE) >> PCI_REBAR_CTRL_BAR_SHIFT;
		if (n < 32 && f->sizes & BIT(n))
			size_bar1(f, 1ull << (20 + n));
	}
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops fake_ops = {
	.read = config_read,
	.write = config_write,
};

/* What a driver reads to learn which chip it has. */
static void write_chip_id(struct fake_bridge *host)
{
	struct pci_bus *bus;

	list_for_each_entry(bus, &host->root->children, node) {
		struct pci_dev *gpu = pci_get_slot(bus, 0);
		void __iomem *regs;

		if (!gpu)
			continue;
		regs = pci_resource_len(gpu, 0) ? ioremap(pci_resource_start(gpu, 0), SZ_4K) : NULL;
		if (regs) {
			writel(boot0, regs + PMC_BOOT_0);
			writel(boot42, regs + PMC_BOOT_42);
			iounmap(regs);
		} else {
			pci_warn(gpu, "BAR0 has no place, nothing to write the chip's id to\n");
		}
		pci_dev_put(gpu);
	}
}

static void remove_bridge(struct fake_bridge *host)
{
	if (host->root) {
		pci_lock_rescan_remove();
		pci_stop_root_bus(host->root);
		pci_remove_root_bus(host->root);
		pci_unlock_rescan_remove();
	}
	if (host->mem64.parent)
		remove_resource(&host->mem64);
	if (host->mem32.parent)
		remove_resource(&host->mem32);
}

static int add_bridge(struct fake_bridge *host)
{
	struct pci_host_bridge *bridge;
	int rc;

	rc = insert_resource(&iomem_resource, &host->mem32);
	if (rc) {
		pr_err("%pR is taken, choose another mem32\n", &host->mem32);
		return rc;
	}
	rc = insert_resource(&iomem_resource, &host->mem64);
	if (rc) {
		pr_err("%pR is taken, choose another mem64\n", &host->mem64);
		return rc;
	}
	bridge = pci_alloc_host_bridge(0);
	if (!bridge)
		return -ENOMEM;
	pci_add_resource(&bridge->windows, &host->mem32);
	pci_add_resource(&bridge->windows, &host->mem64);
	pci_add_resource(&bridge->windows, &host->bus);
	bridge->ops = &fake_ops;
	bridge->sysdata = &host->sysdata;
	bridge->busnr = host->bus.start;
	rc = pci_scan_root_bus_bridge(bridge);
	if (rc) {
		pci_free_host_bridge(bridge);
		return rc;
	}
	host->root = bridge->bus;
	pci_lock_rescan_remove();
	pci_bus_size_bridges(host->root);
	pci_bus_assign_resources(host->root);
	if (backed)
		write_chip_id(host);
	pci_bus_add_devices(host->root);
	pci_unlock_rescan_remove();
	return 0;
}

static void remove_all(void)
{
	int i;

	for (i = hosts ? bridges : 0; i--;)
		remove_bridge(&hosts[i]);
	kvfree(hosts);
	kvfree(slots);
}

static int __init fakegpu_init(void)
{
	u64 at32 = mem32, at64 = mem64;
	int i, rc = 0;

	if (ngpu < 1 || ngpu > MAX_GPUS || bridges < 1 || bridges > ngpu) {
		pr_err("ngpu=%d bridges=%d: 1 to %d GPUs, 1 to ngpu bridges\n",
		       ngpu, bridges, MAX_GPUS);
		return -EINVAL;
	}
	if (!is_power_of_2(bar1_mb)) {
		pr_err("bar1_mb=%u: not a power of two\n", bar1_mb);
		return -EINVAL;
	}
	slots = kvcalloc(ngpu, sizeof(*slots), GFP_KERNEL);
	hosts = kvcalloc(bridges, sizeof(*hosts), GFP_KERNEL);
	if (!slots || !hosts)
		rc = -ENOMEM;
	for (i = 0; !rc && i < ngpu; i++) {
		make_port(&slots[i].port, i);
		make_gpu(&slots[i].gpu, i);
		make_audio(&slots[i].audio, i);
	}
	for (i = 0; !rc && i < bridges; i++) {
		struct fake_bridge *host = &hosts[i];
		u64 size32, size64 = (u64)window_mb[i] << 20;
		int step = 256 / bridges;

		host->first = ngpu * i / bridges;
		host->count = ngpu * (i + 1) / bridges - host->first;
		size32 = (u64)host->count * SZ_32M;
		at64 = ALIGN(at64, 32ull << 30);
		host->sysdata.domain = domain;
		host->sysdata.node = NUMA_NO_NODE;
		snprintf(host->name, sizeof(host->name), "PCI Bus %04x:%02x", domain & 0xffff,
			 step * i);
		host->bus = (struct resource){ .name = host->name, .start = step * i,
			.end = step * (i + 1) - 1, .flags = IORESOURCE_BUS };
		host->mem32 = (struct resource){ .name = host->name, .start = at32,
			.end = at32 + size32 - 1, .flags = IORESOURCE_MEM };
		host->mem64 = (struct resource){ .name = host->name, .start = at64,
			.end = at64 + size64 - 1,
			.flags = IORESOURCE_MEM | IORESOURCE_PREFETCH | IORESOURCE_MEM_64 };
		at32 += size32;
		at64 += size64;
		rc = add_bridge(host);
	}
	if (rc)
		remove_all();
	return rc;
}

static void __exit fakegpu_exit(void)
{
	remove_all();
}

module_init(fakegpu_init);
module_exit(fakegpu_exit);
MODULE_DESCRIPTION("Fake NVIDIA GPUs on a PCI bus of their own");
MODULE_LICENSE("GPL");
