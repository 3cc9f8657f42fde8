// SPDX-License-Identifier: MIT
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include "dump.h"
#include "lib/facts/elf.h"
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

namespace {

void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

// PKCS#7 as Ubuntu's key makes it: its issuer is "gpu-node-7 Secure Boot Module Signature key".
constexpr const char* kSignature =
    "3081ee06092a864886f70d010702a081e03081dd020101310f300d06096086480165030402010500300b0609"
    "2a864886f70d0107013181b93081b6020101304e30363134303206035504030c2b6770752d6e6f64652d3720"
    "53656375726520426f6f74204d6f64756c65205369676e6174757265206b657902143bebe04ab7c7520638af"
    "e9a18677c856a4afb59f300d06096086480165030402010500300a06082a8648ce3d04030204463044022019"
    "6111b0ff2e045481e54f5c134a4e9473b6482be34567c6a346b0bf880dbe0802204bece611a7fe5a6e3aed76"
    "f0860c7187fe6b7922aa41152307a0fdc78e0846be";

std::string signatureWithTrailer() {
    std::string bytes;
    for (const char* p = kSignature; *p; p += 2)
        bytes += static_cast<char>(std::stoi(std::string(p, 2), nullptr, 16));
    const auto length = static_cast<char>(static_cast<unsigned char>(bytes.size()));
    return bytes + std::string("\0\0\2\0\0\0\0\0\0\0\0", 11) + length +
           "~Module signature appended~\n";
}

std::string all(const std::string& dir) {
    std::string text;
    for (const auto& e : fs::recursive_directory_iterator(dir))
        if (e.is_regular_file()) text += content(e.path());
    return text;
}

}  // namespace

// Debian's headers bring modules.builtin from 7.x on, its image vmlinuz beside the modules.
BOOST_AUTO_TEST_CASE(headers_alone_are_no_kernel) {
    const Temp t;
    const std::string modules = t.dir + "/root/lib/modules/";
    for (const char* release : {"7.3.1-headers", "7.3.2-image", "6.12.1-older", "6.1.1-folder"}) {
        put(modules + release + "/modules.builtin", "");
        put(modules + release + "/build/Makefile", "");
    }
    put(modules + "7.3.2-image/vmlinuz", "");
    put(modules + "6.1.1-folder/kernel/fs/x.ko", "");
    put(t.dir + "/root/boot/vmlinuz-6.12.1-older", "");
    std::set<std::string> found;
    for (const auto& k : at(t.dir + "/root").kernels) found.insert(k.release);
    const std::set<std::string> wanted = {"7.3.2-image", "6.12.1-older", "6.1.1-folder"};
    BOOST_TEST(found == wanted, boost::test_tools::per_element());
}

// A machine that names itself wherever it can: nothing of it is in what gather writes.
BOOST_AUTO_TEST_CASE(a_snapshot_names_nobody) {
    const Temp t;
    const std::string root = t.dir + "/root", release = "6.8.0-45-generic";
    const std::string modules = root + "/lib/modules/" + release;
    put(root + "/proc/sys/kernel/hostname", "gpu-node-7\n");
    put(root + "/etc/hostname", "# ours\ngpu-node-8.example.org\n");
    put(root + "/proc/sys/kernel/osrelease", release + "\n");
    put(root + "/proc/cmdline",
        "ro iommu=pt BOOTIF=01-52-54-00-12-34-56 ifname=eth0:52:54:00:12:34:56 "
        "systemd.hostname=gpu-node-7 systemd.machine_id=0123456789abcdef0123456789abcdef user=me7 "
        "-- password7\n");
    put(root + "/dev/kmsg",
        "6,1,1,-;Kernel command line: ro iommu=pt user=me7 -- password7 \\\n"
        "6,1,1,-;Kernel command line: password7 iommu=on\n"
        "6,2,2,-;NVRM: GPU Board Serial Number: 0322917069872\n"
        "6,3,3,-;nvidia: gpu-node-7 and gpu-node-8 speak\n"
        "5,4,4,-;integrity: Loaded X.509 cert 'gpu-node-6 Secure Boot Module Signature key: "
        "3fabcdef3fabcdef3fabcdef3fabcdef3fabcdef'\n");
    put(root + "/etc/modprobe.d/a.conf",
        "# made for gpu-node-7, password7\noptions bonding secret=password7\n\\\n"
        "options nvidia \\\n NVreg_X=gpu-node-8\nblacklist nouveau\noptions cfg80211 \\\n"
        " password7\noptions vfio-pci ids=10de:2684\n");
    put(root + "/etc/ld.so.conf.d/a.conf", "# password7\n/opt/lib\n");
    const std::string ko = elf::stub(std::string("version=1\0", 10), "", signatureWithTrailer());
    put(modules + "/updates/dkms/nvidia.ko.zst", elf::pack(ko, "nvidia.ko.zst"));
    put(modules + "/kernel/nvidia-1/nvidia.ko", ko);

    const Facts f = at(root);
    BOOST_TEST(*f.cmdline ==
               "ro iommu=pt BOOTIF=REDACTED ifname=REDACTED "
               "systemd.hostname=REDACTED systemd.machine_id=REDACTED user=REDACTED");
    BOOST_REQUIRE(f.options.size() == 2U);
    BOOST_TEST(f.options[0].line == 3);
    BOOST_TEST(f.options[0].value == "HOST");
    BOOST_TEST(f.options[1].line == 9);
    BOOST_REQUIRE(f.kernels[0].nvidia.size() == 2U);
    const std::string signer = *f.kernels[0].nvidia[0].signer;
    // "unknown" where libkmod has no libcrypto.
    BOOST_TEST((signer == "HOST Secure Boot Module Signature key" || signer == "unknown"), signer);

    gather(t.dir + "/x.tar.gz", root);
    const Snapshot again(t.dir + "/x.tar.gz");
    BOOST_TEST(test::dump(f) == test::dump(at(again.root())));
    std::string text = all(again.root());
    for (const auto& e : fs::recursive_directory_iterator(again.root()))
        if (e.path().extension() == ".zst") {
            std::string reason;
            const int fd = elf::openModule(e.path(), reason);
            BOOST_REQUIRE(fd >= 0);
            text += elf::signatureTrailer(fd) + content("/proc/self/fd/" + std::to_string(fd));
            ::close(fd);
        }
    for (const char* name : {"gpu-node", "password7", "me7", "52:54", "52-54", "0322917069872",
                             "0123456789abcdef", "3fabcdef", "bonding", "cfg80211"})
        BOOST_TEST(text.find(name) == std::string::npos, name);
    // Nor of the key: the start of the signature's PKCS#7.
    BOOST_TEST(text.find("\x2a\x86\x48\x86\xf7") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_link_is_not_written_through) {
    const Temp t;
    const std::string file = t.dir + "/o.tar.gz", part = file + ".part";
    put(t.dir + "/victim", "precious");
    fs::create_symlink("victim", part);
    const auto names = [&](const std::runtime_error& e) {
        return std::string(e.what()).find(part + ": a link was put there") == 0;
    };
    BOOST_CHECK_EXCEPTION(gather(file, t.dir), std::runtime_error, names);
    BOOST_TEST(content(t.dir + "/victim") == "precious");
    BOOST_TEST(!fs::exists(file));
    // What an interrupted run left is written anew, apart from whoever shares it.
    fs::remove(part);
    fs::create_hard_link(t.dir + "/victim", part);
    gather(file, t.dir);
    BOOST_TEST(content(t.dir + "/victim") == "precious");
    BOOST_TEST(fs::exists(file));
    BOOST_TEST(!fs::exists(part));
}

BOOST_AUTO_TEST_CASE(a_pipe_in_a_copy_of_sys_holds_nobody_up) {
    const Snapshot s(machine("ready"));
    const std::string dir = s.root() + "/sys/bus/pci/devices/0000:41:00.0/";
    for (const char* name : {"vendor", "config", "resource"}) {
        fs::rename(dir + name, dir + "kept");
        BOOST_REQUIRE(::mkfifo((dir + name).c_str(), 0600) == 0);
        const auto one_line = [&](const std::runtime_error& e) {
            return std::string(e.what()).find(dir + name + ": not a regular file") == 0;
        };
        BOOST_CHECK_EXCEPTION(at(s.root()), std::runtime_error, one_line);
        fs::rename(dir + "kept", dir + name);
    }
    BOOST_TEST(at(s.root()).gpus.size() == 2U);
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
