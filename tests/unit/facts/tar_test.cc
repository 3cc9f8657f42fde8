// SPDX-License-Identifier: MIT
#include "lib/facts/tar.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

using namespace p2p;
namespace fs = std::filesystem;

namespace {
tar::Entry file(const std::string& p, const std::string& c) {
    return {tar::Entry::File, p, c};
}
tar::Entry linkTo(const std::string& p, const std::string& t) {
    return {tar::Entry::Link, p, t};
}
std::string refusal(const std::vector<tar::Entry>& e) {
    try {
        tar::read(tar::write(e, 0));
    } catch (const std::runtime_error& x) {
        return x.what();
    }
    return "";
}
}  // namespace

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
    const std::string deep = std::string(60, 'a') + "/" + std::string(90, 'b') + "/file";
    const std::vector<tar::Entry> all = {{tar::Entry::Folder, "d", ""},
                                         file("d/f", std::string("\0x\n", 3)),
                                         file(deep, "deep"),
                                         linkTo("l", "d/" + std::string(120, 'c')),
                                         file("e", "")};
    const auto back = tar::read(tar::write(all, 1));
    BOOST_REQUIRE_EQUAL(back.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        BOOST_TEST(back[i].path == all[i].path);
        BOOST_TEST(back[i].content == all[i].content);
        BOOST_TEST(back[i].kind == all[i].kind);
    }
}

BOOST_AUTO_TEST_CASE(ways_out_are_refused) {
    BOOST_TEST(refusal({file("../x", "")}).find("leads out") != std::string::npos);
    BOOST_TEST(refusal({file("/x", "")}).find("no relative path") != std::string::npos);
    BOOST_TEST(refusal({linkTo("a/l", "../../x")}).find("leads out") != std::string::npos);
    BOOST_TEST(refusal({linkTo("l", "/etc/shadow")}).find("out of the snapshot") !=
               std::string::npos);
    BOOST_TEST(refusal({linkTo("proc/1/fd/3", "/dev/nvidia0")}).empty());
    BOOST_TEST(refusal({linkTo("a/l", "../b")}).empty());
}

BOOST_AUTO_TEST_CASE(damage_is_an_error) {
    std::string t = tar::write({file("f", "content")}, 0);
    BOOST_CHECK_THROW(tar::read(t.substr(0, 700)), std::runtime_error);
    BOOST_CHECK_THROW(tar::read(""), std::runtime_error);
    t[0] ^= 1;
    BOOST_CHECK_THROW(tar::read(t), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(nothing_is_written_through_a_link) {
    std::string dir = (fs::temp_directory_path() / "p2p-tar-XXXXXX").string();
    BOOST_REQUIRE(::mkdtemp(dir.data()));
    fs::create_directory(dir + "/in");
    // A link to a folder outside, then a file below it: the file is made first, in a folder of its
    // own.
    tar::unpack({linkTo("d", "in"), file("d/f", "x")}, dir);
    BOOST_TEST(fs::is_directory(fs::symlink_status(dir + "/d")));
    BOOST_TEST(!fs::exists(dir + "/in/f"));
    fs::remove_all(dir);
}
