// SPDX-License-Identifier: MIT
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "dump.h"
#include "lib/facts/facts.h"
#include "lib/facts/snapshot.h"

using namespace p2p;
namespace fs = std::filesystem;

namespace {

std::string machine(const std::string& name) {
    return std::string(P2P_FIXTURES "/machines/") + name + ".tar.gz";
}

Facts at(const std::string& root) {
    Options o;
    o.root = root;
    o.names = false;
    return collect(o);
}

struct Temp {
    std::string dir = "/tmp/p2p-collect-XXXXXX";
    Temp() { BOOST_REQUIRE(::mkdtemp(dir.data())); }
    ~Temp() { fs::remove_all(dir); }
    Temp(const Temp&) = delete;
    Temp& operator=(const Temp&) = delete;
};

std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    return all.str();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_ready_machine) {
    const Snapshot s(machine("ready"));
    const Facts f = at(s.root());
    BOOST_REQUIRE_EQUAL(f.gpus.size(), 2U);
    const Gpu& g = f.gpus[0];
    BOOST_TEST(g.bdf == "0000:41:00.0");
    BOOST_TEST(g.bar1->bytes == 32ULL << 30);
    BOOST_TEST(*g.bar1_max_bytes == 32ULL << 30);
    BOOST_TEST(g.rebar.path.find("0xbb0") != std::string::npos);
    BOOST_TEST(!g.vf_rebar);
    BOOST_TEST(g.vf_rebar.unread == kAbsent);
    BOOST_TEST(*g.driver == "nvidia");
    BOOST_TEST(*g.iommu_type == "identity");
    BOOST_TEST(*g.max_payload == 256);
    BOOST_TEST(g.root_bus == "0000:40");
    BOOST_REQUIRE_EQUAL(g.upstream.size(), 1U);
    const Bridge* b = f.bridge(g.upstream[0]);
    BOOST_REQUIRE(b);
    BOOST_TEST(portTypeName(*b->port) == "root port");
    BOOST_TEST(!b->acs->redirects());
    BOOST_TEST(b->prefetch_window->bytes == 64ULL << 30);
    BOOST_REQUIRE(f.chosenModule());
    BOOST_TEST(*f.chosenModule()->marker == "570.211.01+p2p1");
    BOOST_TEST(f.loadedFile() == f.chosenModule());
    BOOST_TEST(f.chosenModule()->signer.unread == kAbsent);
    BOOST_TEST(f.libraries.size() == 2U);
    BOOST_TEST(f.option("NVreg_RegistryDwords")->value == "NvP2pBar1=1");
    // Paths are those of the machine, not of this run.
    BOOST_TEST(g.bar1.path == "/sys/bus/pci/devices/0000:41:00.0/resource");
}

BOOST_AUTO_TEST_CASE(bar1_is_bar_2_where_bar0_is_64_bit) {
    const Snapshot s(machine("hopper"));
    const Facts f = at(s.root());
    BOOST_TEST(f.gpus[0].bar1_number == 2);
    BOOST_TEST(f.gpus[0].bar1->bytes == 128ULL << 30);
    BOOST_TEST(*f.gpus[0].bar1_max_bytes == 128ULL << 30);
}

BOOST_AUTO_TEST_CASE(rebar_of_virtual_functions_is_kept_apart) {
    const Snapshot s(machine("vf-rebar"));
    const Facts f = at(s.root());
    BOOST_TEST(!f.gpus[0].rebar);
    BOOST_REQUIRE(bool(f.gpus[0].vf_rebar));
    BOOST_TEST(!f.gpus[0].bar1_max_bytes);
}

BOOST_AUTO_TEST_CASE(without_rights_nothing_is_called_absent) {
    const Snapshot s(machine("user"));
    const Facts f = at(s.root());
    BOOST_TEST(f.gpus[0].config_bytes == 64);
    BOOST_TEST(f.gpus[0].rebar.unread == kNeedsRoot);
    BOOST_TEST(f.gpus[0].link->width == 16);
    BOOST_TEST(f.bridges[0].acs.unread == kNeedsRoot);
    BOOST_TEST(f.log.unread == kNeedsRoot);
    BOOST_TEST(f.host_windows.unread == kNeedsRoot);
    BOOST_TEST(f.holders.unread == kNeedsRoot);
}

BOOST_AUTO_TEST_CASE(a_guest_without_extended_space) {
    const Snapshot s(machine("guest"));
    const Facts f = at(s.root());
    BOOST_TEST(f.gpus[0].config_bytes == 256);
    BOOST_TEST(f.gpus[0].rebar.unread == "no extended configuration space");
    BOOST_TEST(*f.hypervisor == "qemu");
}

BOOST_AUTO_TEST_CASE(compressed_modules_of_every_kernel) {
    const Snapshot s(machine("kernels"));
    const Facts f = at(s.root());
    BOOST_REQUIRE_EQUAL(f.kernels.size(), 3U);
    BOOST_TEST(*f.kernels[0].nvidia[0].build_id ==
               std::string(40, '0').replace(0, 40, "0303030303030303030303030303030303030303"));
    BOOST_TEST(f.kernels[1].running);
    BOOST_TEST(f.kernels[1].nvidia[0].path.find(".ko.zst") != std::string::npos);
    BOOST_TEST(bool(f.kernels[1].nvidia[0].marker));
    BOOST_TEST(f.kernels[2].nvidia.empty());
    BOOST_TEST(f.package_state.at("6.8.0-47-generic").at("status") == "no-headers");
}

BOOST_AUTO_TEST_CASE(modprobe_takes_what_depmod_chose) {
    const Snapshot s(machine("two-modules"));
    const Facts f = at(s.root());
    BOOST_REQUIRE_EQUAL(f.kernels[0].nvidia.size(), 2U);
    BOOST_TEST(f.chosenModule()->path.find("kernel/drivers/video") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_signature_is_seen) {
    const Snapshot s(machine("key-not-enrolled"));
    const Facts f = at(s.root());
    BOOST_REQUIRE(f.chosenModule());
    BOOST_TEST(bool(f.chosenModule()->signer));
    BOOST_TEST(*f.secure_boot);
    BOOST_TEST(*f.lockdown == "integrity");
}

// What gather writes, read back, is the same machine: for all machines, and for this one.
BOOST_AUTO_TEST_CASE(gathered_machines_stay_the_same) {
    const Temp t;
    std::vector<std::string> roots = {""};
    std::vector<std::unique_ptr<Snapshot>> open;
    for (const auto& e : fs::directory_iterator(P2P_FIXTURES "/machines"))
        if (e.path().extension() == ".gz") {
            open.push_back(std::make_unique<Snapshot>(e.path().string()));
            roots.push_back(open.back()->root());
        }
    BOOST_REQUIRE(roots.size() > 12);
    for (const std::string& root : roots) {
        const std::string file = t.dir + "/x.tar.gz";
        gather(file, root, {{"note.txt", "hello"}});
        const Snapshot again(file);
        BOOST_TEST(test::dump(at(root)) == test::dump(at(again.root())), root);
        BOOST_TEST(again.extra("note.txt") == "hello");
        BOOST_TEST(again.extra("absent").empty());
        const std::string first = content(file);
        gather(file, again.root(), {{"note.txt", "hello"}});
        BOOST_TEST(content(file).size() == first.size());
    }
}

BOOST_AUTO_TEST_CASE(names_are_taken_out) {
    BOOST_TEST(redact("root=UUID=123 ro resume=/dev/sda2", "") ==
               "root=REDACTED ro resume=REDACTED");
    BOOST_TEST(redact("xroot=1", "") == "xroot=1");
    BOOST_TEST(redact("GPU-12345678-9abc-def0-1234-56789abcdef0 x", "") ==
               "GPU-00000000-0000-0000-0000-000000000000 x");
    BOOST_TEST(redact("by mybox.example.org and mybox, not mybox2", "mybox.example.org") ==
               "by HOST and HOST, not mybox2");
    BOOST_TEST(redact("nvidia 0000:01:00.0", "nvidia") == "nvidia 0000:01:00.0");
    const std::string once = redact("root=a ip=1.2.3.4 12345678-9abc-def0-1234-56789abcdef0", "");
    BOOST_TEST(redact(once, "") == once);
}

BOOST_AUTO_TEST_CASE(a_snapshot_cannot_lead_out) {
    const Temp t;
    fs::create_directories(t.dir + "/root/proc");
    std::ofstream(t.dir + "/secret") << "secret\n";
    fs::create_symlink(t.dir + "/secret", t.dir + "/root/proc/cmdline");
    fs::create_symlink("../../secret", t.dir + "/root/proc/version");
    ::mkfifo((t.dir + "/root/proc/cpuinfo").c_str(), 0600);
    const Facts f = at(t.dir + "/root");
    BOOST_TEST(!f.cmdline);
    BOOST_TEST(!f.kernel_version);
}

BOOST_AUTO_TEST_CASE(bad_roots_are_one_line) {
    const Temp t;
    std::ofstream(t.dir + "/junk.tar.gz") << "junk";
    for (const std::string& bad : {t.dir + "/absent", t.dir + "/junk.tar.gz"}) {
        try {
            const Snapshot s(bad);
            BOOST_ERROR("no error for " + bad);
        } catch (const std::runtime_error& e) {
            const std::string what = e.what();
            BOOST_TEST(what.find(bad) != std::string::npos);
            BOOST_TEST(what.find('\n') == std::string::npos);
        }
    }
}

BOOST_AUTO_TEST_CASE(an_empty_folder_is_a_machine_without_gpus) {
    const Temp t;
    const Facts f = at(t.dir);
    BOOST_TEST(f.gpus.empty());
    BOOST_TEST(f.host_bridge.unread == kAbsent);
}
