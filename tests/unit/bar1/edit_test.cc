// SPDX-License-Identifier: MIT
#include "p2p-bar1/edit.h"

#include <boost/test/unit_test.hpp>

#include "lib/facts/parse.h"

using namespace p2p;
using bar1::edit;

namespace {
const std::string kOn =
    "options nvidia NVreg_EnableResizableBar=1 NVreg_RegistryDwords=\"NvP2pBar1=1;\"\n";

std::vector<ModprobeOption> read(const std::string& path, const std::string& text) {
    std::vector<ModprobeOption> o;
    std::vector<ModprobeRule> r;
    parse::modprobe(text, path, o, r);
    return o;
}
}  // namespace

BOOST_AUTO_TEST_CASE(enable_in_an_empty_file_and_again) {
    const auto e = edit("", {true, ""}, {});
    BOOST_TEST(e.text == kOn);
    BOOST_TEST(edit(kOn, {true, ""}, read(bar1::kFile, kOn)).text == kOn);
}

BOOST_AUTO_TEST_CASE(other_lines_stay_as_they_are) {
    const std::string old =
        "# mine\noptions nvidia NVreg_UsePageAttributeTable=1 \\\n  "
        "NVreg_RegistryDwords=\"A=1\"\nblacklist nouveau\n";
    const auto e = edit(old, {true, ""}, {});
    BOOST_TEST(e.text ==
               "# mine\noptions nvidia NVreg_UsePageAttributeTable=1\noptions nvidia "
               "NVreg_EnableResizableBar=1 "
               "NVreg_RegistryDwords=\"A=1;NvP2pBar1=1;\"\nblacklist nouveau\n");
    const auto off = edit(e.text, {false, ""}, {});
    BOOST_TEST(off.text ==
               "# mine\noptions nvidia NVreg_UsePageAttributeTable=1\noptions nvidia "
               "NVreg_RegistryDwords=\"A=1;\"\nblacklist nouveau\n");
}

BOOST_AUTO_TEST_CASE(disable_what_enable_wrote_leaves_nothing) {
    BOOST_TEST(edit(kOn, {false, ""}, {}).text.empty());
    BOOST_TEST(edit("", {false, ""}, {}).text.empty());
}

BOOST_AUTO_TEST_CASE(one_gpu) {
    const std::string gpu = "0000:41:00.0";
    const auto e = edit("", {true, gpu}, {});
    BOOST_TEST(e.text ==
               "options nvidia NVreg_EnableResizableBar=1 "
               "NVreg_RegistryDwordsPerDevice=\"pci=0000:41:00.0;NvP2pBar1=1;\"\n");
    BOOST_TEST(edit(e.text, {false, gpu}, {}).text.empty());
    // All but one: the value for one GPU beats the one for all.
    const auto but = edit(kOn, {false, gpu}, {});
    BOOST_TEST(but.text.find("pci=0000:41:00.0;NvP2pBar1=0;") != std::string::npos);
    BOOST_TEST(but.text.find("NVreg_RegistryDwords=\"NvP2pBar1=1;\"") != std::string::npos);
    BOOST_TEST(edit(but.text, {true, ""}, {}).text == kOn);
}

BOOST_AUTO_TEST_CASE(vouching_for_the_host_stays) {
    const std::string old =
        "options nvidia NVreg_EnableResizableBar=1 NVreg_RegistryDwords=\"NvP2pBar1=3;\"\n";
    BOOST_TEST(edit(old, {true, ""}, {}).text == old);
}

BOOST_AUTO_TEST_CASE(an_earlier_file_is_taken_over) {
    const auto other =
        read("/etc/modprobe.d/aa.conf", "options nvidia NVreg_RegistryDwords=\"X=5\"\n");
    const auto e = edit("", {true, ""}, other);
    BOOST_TEST(e.refused.empty());
    BOOST_TEST(e.notes.size() == 1U);
    BOOST_TEST(e.text.find("X=5;NvP2pBar1=1;") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_later_file_is_named_and_nothing_changes) {
    const auto other =
        read("/etc/modprobe.d/zz.conf", "\noptions nvidia NVreg_RegistryDwords=\"X=5\"\n");
    const auto e = edit("old\n", {true, ""}, other);
    BOOST_TEST(e.text == "old\n");
    BOOST_TEST(e.refused.find("/etc/modprobe.d/zz.conf:2") == 0U);
    BOOST_TEST(e.refused.find('\n') == std::string::npos);
    const auto fine =
        read("/etc/modprobe.d/zz.conf", "options nvidia NVreg_RegistryDwords=\"NvP2pBar1=1\"\n");
    BOOST_TEST(edit("", {true, ""}, fine).refused.empty());
}

BOOST_AUTO_TEST_CASE(a_backslash_before_the_end_swallows_nothing) {
    const std::string on = kOn;
    BOOST_TEST(edit("# mine \\\n", {true, ""}, {}).text == "# mine \n" + on);
    BOOST_TEST(edit("# mine \\", {true, ""}, {}).text == "# mine \n" + on);
    BOOST_TEST(edit("options other a=1 \\\\\n", {true, ""}, {}).text ==
               "options other a=1 \n" + on);
    BOOST_TEST(edit("options nvidia NVreg_EnableResizableBar=0 \\\n", {true, ""}, {}).text == on);
    BOOST_TEST(edit("options other a=1 \\\n", {true, ""}, {}).text == "options other a=1 \n" + on);
}

namespace {
// What comes of it when `path` holds an options line with these.
bar1::Edit beside(const std::string& path, const std::string& theirs, const std::string& ours,
                  const bar1::Request& r) {
    return edit(ours, r, read(path, "options nvidia " + theirs + "\n"));
}
const std::string kGpu = "0000:01:00.0";
const std::string kPerOn = "NVreg_RegistryDwordsPerDevice=\"pci=0000:01:00.0;NvP2pBar1=1\"";
const std::string kPerOff = "NVreg_RegistryDwordsPerDevice=\"pci=0000:01:00.0;NvP2pBar1=0\"";
const std::string kLater = "/etc/modprobe.d/zz.conf", kEarlier = "/etc/modprobe.d/aa.conf";
}  // namespace

BOOST_AUTO_TEST_CASE(disable_that_leaves_it_on_is_refused) {
    for (const std::string& path : {kLater, kEarlier, std::string("/proc/cmdline")})
        for (const std::string& theirs :
             {std::string("NVreg_RegistryDwords=\"NvP2pBar1=1\""), kPerOn})
            for (const std::string& ours : {std::string(), kOn})
                for (const std::string& gpu : {std::string(), kGpu}) {
                    // Written into ours, where no per-device line is read after it.
                    const bool hides = path == kEarlier && !gpu.empty() && !ours.empty();
                    const auto e = beside(path, theirs, ours, {false, gpu});
                    BOOST_TEST_CONTEXT(path << " " << theirs << " " << ours << " " << gpu) {
                        if (theirs != kPerOn && !gpu.empty()) {
                            BOOST_TEST(e.refused.empty());
                            BOOST_TEST(e.text.find("pci=0000:01:00.0;NvP2pBar1=0;") !=
                                       std::string::npos);
                            continue;
                        }
                        if (hides) {
                            BOOST_TEST(e.refused.empty());
                            continue;
                        }
                        BOOST_TEST(e.refused.find(path + ":1: ") == 0U);
                        BOOST_TEST(e.text == ours);
                    }
                }
    // Named, but hidden or off: no harm.
    const auto off = beside(kLater, "NVreg_RegistryDwords=\"NvP2pBar1=0\"", kOn, {false, ""});
    BOOST_TEST(off.refused.empty());
    BOOST_TEST(off.text.empty());
    BOOST_TEST(off.notes.size() == 1U);
}

BOOST_AUTO_TEST_CASE(enable_that_leaves_a_gpu_off_is_refused) {
    for (const std::string& gpu : {std::string(), kGpu}) {
        const auto e = beside(kLater, kPerOff, "", {true, gpu});
        BOOST_TEST(e.refused.find(kLater + ":1: ") == 0U);
        BOOST_TEST(e.refused.find("keeps P2P off for 0000:01:00.0") != std::string::npos);
    }
    BOOST_TEST(beside(kEarlier, kPerOff, "", {true, ""}).refused.find(kEarlier) == 0U);
    BOOST_TEST(
        beside(kLater, kPerOff, "", {true, "0000:02:00.0"}).refused.find("put \"pci=0000:02") !=
        std::string::npos);
    BOOST_TEST(beside(kLater, "NVreg_EnableResizableBar=0", "", {true, ""}).refused.find(kLater) ==
               0U);
}

BOOST_AUTO_TEST_CASE(what_another_file_does_is_not_asked_for_again) {
    const auto e = beside(kLater, "NVreg_EnableResizableBar=1 " + kPerOn, "# x\n", {true, kGpu});
    BOOST_TEST(e.refused.empty());
    BOOST_TEST(e.text == "# x\n");
    const auto grow = beside(kLater, kPerOn, "", {true, kGpu});
    BOOST_TEST(grow.refused.empty());
    BOOST_TEST(grow.text.find("NVreg_EnableResizableBar=1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(bits_that_the_driver_does_not_know_are_off) {
    for (const char* value : {"9", "0x11", "2", "8"}) {
        const std::string old =
            "options nvidia NVreg_EnableResizableBar=1 NVreg_RegistryDwords=\"NvP2pBar1=" +
            std::string(value) + ";\"\n";
        const auto e = edit(old, {true, ""}, {});
        BOOST_TEST(e.text == kOn);
        BOOST_TEST(e.notes.size() == 1U);
        const auto per =
            edit("options nvidia NVreg_RegistryDwordsPerDevice=\"pci=01:00;NvP2pBar1=" +
                     std::string(value) + "\"\n",
                 {true, kGpu}, {});
        BOOST_TEST(per.text.find("pci=0000:01:00.0;NvP2pBar1=1;\"") != std::string::npos);
        BOOST_TEST(
            beside(kLater, "NVreg_RegistryDwords=NvP2pBar1=" + std::string(value), "", {true, ""})
                .refused.find(kLater) == 0U);
    }
    for (const char* value : {"1", "3", "5", "7", "0x7"}) {
        const std::string old =
            "options nvidia NVreg_EnableResizableBar=1 NVreg_RegistryDwords=\"NvP2pBar1=" +
            std::string(value) + ";\"\n";
        BOOST_TEST(edit(old, {true, ""}, {}).text == old);
    }
    // The last of two counts.
    BOOST_TEST(
        edit("options nvidia NVreg_RegistryDwords=\"NvP2pBar1=1;NvP2pBar1=0\"\n", {true, ""}, {})
            .text.find("NvP2pBar1=0") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(quotes_around_the_whole_option) {
    const auto e = edit("options nvidia \"NVreg_RegistryDwords=RMFoo=1;Bar=2\"\n", {true, ""}, {});
    BOOST_TEST(e.text ==
               "options nvidia NVreg_EnableResizableBar=1 "
               "NVreg_RegistryDwords=\"RMFoo=1;Bar=2;NvP2pBar1=1;\"\n");
    BOOST_TEST(beside(kLater, "\"NVreg_RegistryDwords=RMFoo=1;Bar=2\"", "", {true, ""})
                   .refused.find(kLater) == 0U);
}

BOOST_AUTO_TEST_CASE(an_address_that_cannot_be_read_is_kept_and_said) {
    const auto e = edit("options nvidia NVreg_RegistryDwordsPerDevice=\"A=1;pci=gpu0;B=2\"\n",
                        {true, kGpu}, {});
    BOOST_TEST(e.text.find("\"A=1;pci=0000:01:00.0;NvP2pBar1=1;pci=gpu0;B=2;\"") !=
               std::string::npos);
    BOOST_REQUIRE(e.notes.size() == 1U);
    BOOST_TEST(e.notes[0].find("pci=gpu0") == 0U);
    BOOST_TEST(edit(e.text, {true, kGpu}, {}).text == e.text);
}

BOOST_AUTO_TEST_CASE(other_gpus_of_an_earlier_file_stay_on) {
    const auto e = beside(kEarlier, kPerOn, "", {true, "0000:02:00.0"});
    BOOST_TEST(e.text.find("pci=0000:01:00.0;NvP2pBar1=1;pci=0000:02:00.0;NvP2pBar1=1;") !=
               std::string::npos);
}
