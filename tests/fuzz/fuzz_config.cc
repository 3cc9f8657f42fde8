// SPDX-License-Identifier: MIT
// Configuration space: the input is the config file of a GPU, its root port's, and resource lines;
// all the way through libpci, collect() and the rules.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "lib/facts/facts.h"
#include "lib/facts/pci_caps.h"
#include "lib/rules/rules.h"

namespace fs = std::filesystem;

namespace {

class Tree {
  public:
    Tree() {
        const char* shm = fs::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
        root_ = std::string(shm) + "/p2p-fuzz-XXXXXX";
        if (!::mkdtemp(root_.data())) std::abort();
        fs::create_directories(root_ + "/sys/bus/pci/devices");
        const std::string way = "pci0000:00/0000:00:01.0";
        function("0000:00:01.0", way, "0x8086", "0x0001", "0x060400");
        gpu_ = function("0000:01:00.0", way + "/0000:01:00.0", "0x10de", "0x2684", "0x030000");
        bridge_ = root_ + "/sys/devices/" + way;
    }
    ~Tree() { fs::remove_all(root_); }
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;

    void put(const std::string& config, const std::string& bridge, const std::string& resource) {
        write(gpu_ + "/config", config);
        write(bridge_ + "/config", bridge);
        write(gpu_ + "/resource", resource);
    }
    const std::string& root() const { return root_; }

  private:
    std::string function(const std::string& bdf, const std::string& way, const char* vendor,
                         const char* device, const char* cls) {
        const std::string dir = root_ + "/sys/devices/" + way;
        fs::create_directories(dir);
        fs::create_symlink("../../../devices/" + way, root_ + "/sys/bus/pci/devices/" + bdf);
        write(dir + "/vendor", vendor);
        write(dir + "/device", device);
        write(dir + "/class", cls);
        write(dir + "/irq", "0");
        write(dir + "/resource", "0 0 0\n");
        return dir;
    }
    static void write(const std::string& path, const std::string& content) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    }

    std::string root_, gpu_, bridge_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Tree tree;
    const std::string all(reinterpret_cast<const char*>(data), size);
    const std::string config = all.substr(0, 4096);
    const std::string rest = size > 4096 ? all.substr(4096) : "";
    const std::string resource = rest.substr(0, 512);

    // The decoders by themselves, at every offset.
    const p2p::pci::Config c(config);
    for (std::size_t at = 0; at <= config.size() && at < 4200; at += 4) {
        if (const auto r = p2p::pci::resizableBars(c, at))
            for (const auto& b : *r) (void)b.maxBytes();
        (void)p2p::pci::acs(c, at);
        (void)p2p::pci::portType(c, at);
        (void)p2p::pci::maxPayload(c, at);
        (void)p2p::pci::linkCapability(c, at);
        (void)p2p::pci::linkStatus(c, at);
    }
    tree.put(config, rest.empty() ? config : rest, resource);
    p2p::Options o;
    o.root = tree.root();
    o.names = false;
    (void)p2p::assess(p2p::collect(o));
    return 0;
}
