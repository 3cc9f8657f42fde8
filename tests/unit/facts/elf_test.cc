// SPDX-License-Identifier: MIT
#include "lib/facts/elf.h"

#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>

using namespace p2p;

namespace {
std::string note() {
    std::string n("\4\0\0\0\3\0\0\0\3\0\0\0GNU\0", 16);
    return n + std::string("\xab\xcd\x01\0", 4);
}
struct File {
    std::string path;
    explicit File(const std::string& name, const std::string& content) {
        std::string dir = "/tmp/p2p-elf-XXXXXX";
        BOOST_REQUIRE(::mkdtemp(dir.data()));
        path = dir + "/" + name;
        std::ofstream(path, std::ios::binary) << content;
    }
    ~File() {
        ::unlink(path.c_str());
        ::rmdir(path.substr(0, path.rfind('/')).c_str());
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
};
}  // namespace

BOOST_AUTO_TEST_CASE(build_ids) {
    BOOST_TEST(elf::buildId(note()) == "abcd01");
    BOOST_TEST(elf::buildId(std::string("\4\0\0\0\0\0\0\0\1\0\0\0GNU\0", 16) + note()) == "abcd01");
    for (std::size_t n = 0; n < 19; ++n) BOOST_TEST(elf::buildId(note().substr(0, n)).empty());
    BOOST_TEST(elf::buildId(std::string(64, '\xff')).empty());
}

BOOST_AUTO_TEST_CASE(a_stub_answers_in_every_packing) {
    const std::string trailer = std::string("sig") + std::string("\0\0\0\0\0\0\0\0\0\0\0\3", 12) +
                                "~Module signature appended~\n";
    const std::string stub = elf::stub(std::string("license=X\0", 10), note(), trailer);
    for (const char* name : {"nvidia.ko", "nvidia.ko.xz", "nvidia.ko.zst"}) {
        const File f(name, elf::pack(stub, name));
        std::string reason;
        const int fd = elf::openModule(f.path, reason);
        BOOST_REQUIRE_MESSAGE(fd >= 0, reason);
        BOOST_TEST(elf::buildId(elf::section(fd, ".note.gnu.build-id")) == "abcd01");
        BOOST_TEST(elf::section(fd, ".modinfo") == std::string("license=X\0", 10));
        BOOST_TEST(elf::signatureTrailer(fd) == trailer);
        BOOST_TEST(elf::section(fd, ".absent").empty());
        ::close(fd);
    }
}

BOOST_AUTO_TEST_CASE(a_signature_that_names_its_signer_only) {
    for (const std::string& name : {std::string("Me"), std::string(300, 'x')}) {
        const std::string ko = elf::stub("", "", elf::signature(name));
        const File f("nvidia.ko", ko);
        std::string reason;
        const int fd = elf::openModule(f.path, reason);
        BOOST_REQUIRE_MESSAGE(fd >= 0, reason);
        BOOST_TEST(elf::plainSigner(fd, elf::signatureTrailer(fd)) ==
                   name.substr(0, elf::kMostSigner));
        BOOST_TEST(elf::plainSigner(fd, "").empty());
        ::close(fd);
    }
}

BOOST_AUTO_TEST_CASE(damaged_files_have_a_reason) {
    for (const char* name : {"nvidia.ko.zst", "nvidia.ko.xz"}) {
        std::string packed = elf::pack(std::string(5000, 'x'), name);
        packed.resize(packed.size() - 3);
        const File f(name, packed);
        std::string reason;
        BOOST_TEST(elf::openModule(f.path, reason) == -1);
        BOOST_TEST(!reason.empty());
    }
    const File bz("nvidia.ko.bz2", "BZh");
    std::string reason;
    BOOST_TEST(elf::openModule(bz.path, reason) == -1);
    BOOST_TEST(reason.find("not supported") != std::string::npos);
}
