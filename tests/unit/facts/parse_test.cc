// SPDX-License-Identifier: MIT
#include "lib/facts/parse.h"

#include <boost/test/unit_test.hpp>

using namespace p2p;

BOOST_AUTO_TEST_CASE(command_line_keeps_quoted_spaces) {
    const auto w = parse::cmdline("a=1  b=\"x y\" c");
    BOOST_REQUIRE_EQUAL(w.size(), 3U);
    BOOST_TEST(w[1] == "b=\"x y\"");
    BOOST_TEST(*parse::cmdlineValue("iommu=off iommu=pt", "iommu") == "pt");
    BOOST_TEST(!parse::cmdlineValue("intel_iommu=on", "iommu").has_value());
}

BOOST_AUTO_TEST_CASE(modprobe_files) {
    std::vector<ModprobeOption> o;
    std::vector<ModprobeRule> r;
    parse::modprobe(
        "# options nvidia NVreg_A=0\n"
        "options nvidia NVreg_A=1 \\\n  NVreg_B=\"x;y z\"\n"
        "blacklist nouveau\n\n"
        "options nvidia-drm modeset=1\n"
        "nonsense\n"
        "options nvidia NVreg_C=2 \\",
        "/f", o, r);
    BOOST_REQUIRE_EQUAL(o.size(), 4U);
    BOOST_TEST(o[0].value == "1");
    BOOST_TEST(o[1].value == "x;y z");
    BOOST_TEST(o[1].line == 2);
    BOOST_TEST(o[2].module == "nvidia_drm");
    BOOST_TEST(o[2].line == 6);
    BOOST_TEST(o[3].name == "NVreg_C");
    BOOST_REQUIRE_EQUAL(r.size(), 1U);
    BOOST_TEST(r[0].module == "nouveau");
}

BOOST_AUTO_TEST_CASE(quotes_around_all_of_an_option) {
    std::vector<ModprobeOption> o;
    std::vector<ModprobeRule> r;
    parse::modprobe("options nvidia \"NVreg_RegistryDwords=A=1;B=2 3\" c=\"d e\" \"f\" g=\"h\n",
                    "x", o, r);
    BOOST_REQUIRE(o.size() == 4U);
    BOOST_TEST(o[0].name == "NVreg_RegistryDwords");
    BOOST_TEST(o[0].value == "A=1;B=2 3");
    BOOST_TEST(o[1].value == "d e");
    BOOST_TEST(o[2].name == "f");
    BOOST_TEST(o[3].value == "h");
    BOOST_TEST(*parse::cmdlineValue("x \"a=b c\"", "a") == "b c");
}

BOOST_AUTO_TEST_CASE(a_device_that_cannot_be_read_is_kept_apart) {
    const auto d = parse::deviceDwords("A=1;pci=zz;B=2;pci=01:00;C=3");
    BOOST_REQUIRE(d.size() == 3U);
    BOOST_TEST(d[0].address == "");
    BOOST_TEST(d[1].address == "zz");
    BOOST_TEST(d[1].bdf == "");
    BOOST_TEST(d[1].dwords.size() == 1U);
    BOOST_TEST(d[2].bdf == "0000:01:00.0");
}

BOOST_AUTO_TEST_CASE(options_of_the_kernel_command_line) {
    std::vector<ModprobeOption> o;
    std::vector<ModprobeRule> r;
    parse::modprobeCmdline(
        "nvidia.NVreg_A=1 nvidia-drm.modeset=0 usbcore.x=1 modprobe.blacklist=nouveau,nova-core", o,
        r);
    BOOST_REQUIRE_EQUAL(o.size(), 2U);
    BOOST_TEST(o[0].name == "NVreg_A");
    BOOST_TEST(o[0].path == "/proc/cmdline");
    BOOST_REQUIRE_EQUAL(r.size(), 2U);
    BOOST_TEST(r[1].module == "nova_core");
}

BOOST_AUTO_TEST_CASE(driver_parameters) {
    const auto p =
        parse::params("EnableResizableBar: 1\nRegistryDwords: \"RMIntrLockingMode=1\"\nbad line\n");
    BOOST_TEST(p.at("EnableResizableBar") == "1");
    BOOST_TEST(p.at("RegistryDwords") == "RMIntrLockingMode=1");
    BOOST_TEST(p.size() == 2U);
}

BOOST_AUTO_TEST_CASE(registry_strings) {
    const auto d = parse::registryDwords("NvP2pBar1=1; A = 0x2;;B");
    BOOST_REQUIRE_EQUAL(d.size(), 3U);
    BOOST_TEST(d[1].first == "A");
    BOOST_TEST(d[1].second == "0x2");
    const auto p = parse::registryDwordsPerDevice(
        "X=0;pci=01:00;A=1;pci=0002:03:04.1;B=2;pci=zz;C=3;pci=0000:05:00;D=4");
    BOOST_REQUIRE_EQUAL(p.size(), 3U);
    BOOST_TEST(p.at("0000:01:00.0")[0].first == "A");
    BOOST_TEST(p.at("0002:03:04.1")[0].second == "2");
    BOOST_TEST(p.count("0000:05:00.0") == 1U);
    BOOST_TEST(*parse::dword("0x10") == 16U);
    BOOST_TEST(!parse::dword("").has_value());
    BOOST_TEST(!parse::dword("-1").has_value());
    BOOST_TEST(!parse::dword("0x100000000").has_value());
    BOOST_TEST(!parse::dword("1x").has_value());
}

BOOST_AUTO_TEST_CASE(kernel_log_in_every_spelling) {
    const auto l = parse::kernelLog(
        "6,339,5140900,-;NVRM: loading\n SUBSYSTEM=pci\n"
        "[    2.078028] kernel: pci 0000:84:00.0: BAR 1: no space\n"
        "               NVRM: continued\n"
        "6,1,2,-;something else\n"
        "nvidia: plain\n");
    BOOST_REQUIRE_EQUAL(l.size(), 4U);
    BOOST_TEST(l[0] == "NVRM: loading");
    BOOST_TEST(l[1] == "pci 0000:84:00.0: BAR 1: no space");
    BOOST_TEST(l[2] == "NVRM: continued");
    BOOST_TEST(l[3] == "nvidia: plain");
}

BOOST_AUTO_TEST_CASE(iomem) {
    const std::string text =
        "b8000000-b9ffffff : PCI Bus 0000:40\n"
        "20000000000-20fffffffff : PCI Bus 0000:40\n"
        "  20000000000-207ffffffff : 0000:41:00.0\n"
        "    20000000000-200007effff : BOOTFB\n"
        "  20800000000-20fffffffff : 0000:42:00.0\n";
    BOOST_TEST(parse::hostWindows(text).size() == 2U);
    BOOST_TEST(parse::hostWindows(text)[1].bytes == 0x1000000000ULL);
    const auto c = parse::consoleRegions(text);
    BOOST_REQUIRE_EQUAL(c.size(), 1U);
    BOOST_TEST(c.at("0000:41:00.0") == "BOOTFB");
    BOOST_TEST(parse::hostWindows("00000000-00000000 : PCI Bus 0000:40\n").empty());
}

BOOST_AUTO_TEST_CASE(small_ones) {
    BOOST_TEST(parse::hypervisorFlag("flags\t\t: fpu hypervisor\n"));
    BOOST_TEST(!parse::hypervisorFlag("flags\t\t: fpu\nbugs: hypervisor\n"));

    const auto cpu = parse::processor(
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 97\n"
        "model name\t: AMD Ryzen 9 7950X\n\nprocessor\t: 1\nvendor_id\t: Other\n");
    BOOST_REQUIRE(cpu.has_value());
    BOOST_TEST(cpu->vendor == "AuthenticAMD");
    BOOST_TEST(cpu->family == 25);
    BOOST_TEST(cpu->model == 97);
    BOOST_TEST(!parse::processor("processor\t: 0\nflags\t\t: fpu\n").has_value());
    BOOST_TEST(!parse::processor("vendor_id : X\ncpu family : -1\nmodel : 9\n").has_value());
    BOOST_TEST(*parse::shmLimit("shm /dev/shm tmpfs rw,size=65536k 0 0\n") == 64U << 20);
    BOOST_TEST(!parse::shmLimit("tmpfs /dev/shm tmpfs rw 0 0\n").has_value());
    BOOST_TEST(parse::selected("none [integrity] confidentiality") == "integrity");
    BOOST_TEST(
        parse::driverVersion(
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release Build") ==
        "565.57.01");
    BOOST_TEST(parse::libraryVersion("libcuda.so.565.77", "libcuda.so") == "565.77");
    BOOST_TEST(parse::libraryVersion("libcuda.so.1", "libcuda.so").empty());
    BOOST_TEST(parse::libraryVersion("libcuda.so.1.2", "libcuda.so").empty());
    BOOST_TEST(parse::libraryVersion("libcudart.so.565.77", "libcuda.so").empty());
}
