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
    BOOST_TEST(edit("options nvidia NVreg_EnableResizableBar=0 \\\n", {true, ""}, {}).text == on);
    BOOST_TEST(edit("options other a=1 \\\n", {true, ""}, {}).text == "options other a=1 \n" + on);
}
