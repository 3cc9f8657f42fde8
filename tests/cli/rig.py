#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes a folder laid out like / that p2p-verify --root reads: a machine with N RTX 4090.

Every default is a machine on which nothing stands in the way; each option breaks one thing.
GPUs are at 0000:01:00.0, 0000:02:00.0 ..., as the fake libcuda has them, each below a root port.
"""
import argparse
import os
import struct
import subprocess
import sys

VERSION = "555.58.02"
KERNEL = "6.1.0-28-amd64"
BUILD_ID = "00112233445566778899aabbccddeeff00112233"


def write(root, path, data):
    full = root + path
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def link(root, path, target):
    full = root + path
    os.makedirs(os.path.dirname(full), exist_ok=True)
    os.symlink(target, full)


class Config:
    """Configuration space of a function (PCIe 6.0, chapter 7)."""

    def __init__(self, vendor, device, cls, header):
        self.b = bytearray(4096)
        self.put("<HH", 0, vendor, device)
        self.put("<HH", 4, 0x0007, 0x0010)  # decoding on; has capabilities
        self.put("<I", 8, (cls << 8) | 0xA1)
        self.b[0x0E] = header

    def put(self, fmt, at, *values):
        struct.pack_into(fmt, self.b, at, *values)

    def express(self, port_type, width, speed=4, payload=1):
        self.b[0x34] = 0x78
        self.put("<BBH", 0x78, 0x10, 0, 2 | (port_type << 4))
        self.put("<I", 0x7C, 1)  # Device Capabilities: payload of 256
        self.put("<H", 0x80, payload << 5)
        self.put("<I", 0x84, speed | (16 << 4))
        self.put("<H", 0x8A, speed | (width << 4))

    def extended(self, at, cap, nxt):
        self.put("<I", at, cap | (1 << 16) | (nxt << 20))


def gpu_config(a, index):
    c = Config(0x10DE, 0x2684, 0x030000, 0)
    c.put("<III", 0x10, 0xC0000000 + (index << 24), 0xC, 0x40 + index)
    c.put("<HH", 0x2C, 0x10DE, 0x16F3)
    c.express(0, a.width)
    c.extended(0x100, 0x01, 0xBB0)
    c.extended(0xBB0, 0x15, 0)
    top = a.rebar_max.bit_length() - 1
    sizes = sum(1 << n for n in range(6, top + 1))
    c.put("<II", 0xBB4, (sizes << 4) & 0xFFFFFFFF, 1 | (1 << 5) | ((a.bar1.bit_length() - 1) << 8))
    return bytes(c.b)


def port_config(a, bus):
    c = Config(0x1022, 0x1483, 0x060400, 1)
    c.put("<BBB", 0x18, 0, bus, bus)
    c.put("<HH", 0x20, 0xC000, 0xC0F0)
    c.put("<HH", 0x24, 0x0001, 0xFFF1)
    c.put("<II", 0x28, 0x40 + (bus << 4), 0x4F + (bus << 4))
    c.express(4, a.width)
    c.extended(0x100, 0x0D, 0)
    c.put("<HH", 0x104, 0x5F, 0x1D if a.acs else 0)
    return bytes(c.b)


def function(root, way, bdf, vendor, device, cls, config, resource):
    d = way + "/" + bdf
    write(root, d + "/vendor", f"0x{vendor:04x}\n")
    write(root, d + "/device", f"0x{device:04x}\n")
    write(root, d + "/class", f"0x{cls:06x}\n")
    write(root, d + "/revision", "0xa1\n")
    write(root, d + "/irq", "0\n")
    write(root, d + "/subsystem_vendor", f"0x{vendor:04x}\n")
    write(root, d + "/subsystem_device", "0x16f3\n")
    write(root, d + "/resource", resource)
    write(root, d + "/config", config)
    write(root, d + "/numa_node", "0\n")
    link(root, "/sys/bus/pci/devices/" + bdf, "../../../" + d[len("/sys/"):])
    return d


def pci(root, a):
    none = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
    function(root, "/sys/devices/pci0000:00", "0000:00:00.0", 0x1022, 0x1480, 0x060000,
             bytes(Config(0x1022, 0x1480, 0x060000, 0).b), none * 7)
    for i in range(1, a.gpus + 1):
        way = function(root, "/sys/devices/pci0000:00", f"0000:00:{i:02x}.0", 0x1022, 0x1483, 0x060400,
                       port_config(a, i), none * 17)
        bar0 = 0xC0000000 + (i << 24)
        bar1 = (0x40 + (i << 4)) << 32
        size = a.bar1 << 20
        resource = (f"0x{bar0:016x} 0x{bar0 + 0xFFFFFF:016x} 0x0000000000040200\n"
                    f"0x{bar1:016x} 0x{bar1 + size - 1:016x} 0x000000000014220c\n" + none * 11)
        bdf = f"0000:{i:02x}:00.0"
        d = function(root, way, bdf, 0x10DE, 0x2684, 0x030000, gpu_config(a, i), resource)
        for name, value in (("current_link_speed", "16.0 GT/s PCIe"), ("max_link_speed", "16.0 GT/s PCIe"),
                            ("current_link_width", a.width), ("max_link_width", 16), ("boot_vga", 0)):
            write(root, f"{d}/{name}", f"{value}\n")
        if a.driver:
            os.makedirs(f"{root}/sys/bus/pci/drivers/{a.driver}", exist_ok=True)
            link(root, d + "/driver", "../../../../bus/pci/drivers/" + a.driver)
        if a.iommu:
            write(root, f"/sys/kernel/iommu_groups/{i}/type", a.iommu + "\n")
            link(root, d + "/iommu_group", f"../../../../kernel/iommu_groups/{i}")
        if a.driver == "nvidia":
            write(root, f"/proc/driver/nvidia/gpus/{bdf}/information", f"Model: \t\t {a.name}\n")
    if a.iommu:
        os.makedirs(root + "/sys/class/iommu/ivhd0")


def module(root, path, build_id, marker):
    fields = [f"version={VERSION}", "license=Dual MIT/GPL", f"vermagic={KERNEL} SMP preempt mod_unload "]
    if marker:
        fields.append(f"nvidia_p2p={VERSION}+p2p1")
    source = '.section .modinfo,"a"\n' + "".join(f'.asciz "{f}"\n' for f in fields)
    source += '.section .note.gnu.build-id,"a",@note\n.long 4, 20, 3\n.asciz "GNU"\n'
    source += ".byte " + ", ".join("0x" + build_id[i:i + 2] for i in range(0, 40, 2)) + "\n"
    source += '.section .gnu.linkonce.this_module,"aw"\n.zero 64\n'
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    subprocess.run(["as", "-o", root + path, "-"], input=source.encode(), check=True)


def host(root, a):
    write(root, "/proc/sys/kernel/osrelease", KERNEL + "\n")
    write(root, "/proc/version", f"Linux version {KERNEL} (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld) #1 SMP\n")
    write(root, "/proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz ro quiet\n")
    write(root, "/proc/mounts", "tmpfs /dev/shm tmpfs rw,nosuid,nodev 0 0\n")
    write(root, "/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse2\n")
    write(root, "/proc/iomem", "".join(f"{(0x40 + (i << 4)) << 32:x}-{((0x50 + (i << 4)) << 32) - 1:x} : PCI Bus 0000:00\n"
                                       for i in range(1, a.gpus + 1)))
    write(root, f"/boot/vmlinuz-{KERNEL}", "")
    write(root, f"/lib/modules/{KERNEL}/modules.dep", "updates/dkms/nvidia.ko:\n")
    write(root, f"/lib/modules/{KERNEL}/build/Makefile", "")
    module(root, f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko", BUILD_ID, not a.stock)
    write(root, f"/usr/lib/x86_64-linux-gnu/libcuda.so.{VERSION}", "")
    link(root, "/usr/lib/x86_64-linux-gnu/libcuda.so.1", f"libcuda.so.{VERSION}")
    write(root, f"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.{VERSION}", "")
    link(root, "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", f"libnvidia-ml.so.{VERSION}")
    write(root, "/etc/modprobe.d/nvidia-p2p.conf",
          'options nvidia NVreg_EnableResizableBar=1 NVreg_RegistryDwords="NvP2pBar1=1"\n')
    if a.driver != "nvidia":
        return
    loaded = "ff" * 20 if a.old_loaded else BUILD_ID
    write(root, "/sys/module/nvidia/version", VERSION + "\n")
    write(root, "/sys/module/nvidia/taint", "OE\n")
    write(root, "/sys/module/nvidia/notes/.note.gnu.build-id",
          struct.pack("<III", 4, 20, 3) + b"GNU\0" + bytes.fromhex(loaded))
    write(root, "/proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {VERSION}\n")
    write(root, "/proc/driver/nvidia/params", 'EnableResizableBar: 1\nRegistryDwords: "NvP2pBar1=1"\n')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir")
    p.add_argument("--gpus", type=int, default=2)
    p.add_argument("--bar1", type=int, default=32768, help="MiB")
    p.add_argument("--rebar-max", type=int, default=32768, help="MiB that the capability offers")
    p.add_argument("--width", type=int, default=16, help="lanes of every link")
    p.add_argument("--iommu", default="", help="type of every IOMMU group: identity, DMA, DMA-FQ")
    p.add_argument("--acs", action="store_true", help="root ports redirect peer requests")
    p.add_argument("--driver", default="nvidia", help="bound kernel driver; empty for none")
    p.add_argument("--stock", action="store_true", help="the module on disk is not ours")
    p.add_argument("--old-loaded", action="store_true", help="the loaded module is not the one on disk")
    p.add_argument("--name", default="NVIDIA GeForce RTX 4090")
    a = p.parse_args()
    if os.path.exists(a.dir):
        sys.exit(f"rig.py: {a.dir} exists")
    pci(a.dir, a)
    host(a.dir, a)


main()
