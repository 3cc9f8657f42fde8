// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lib/cli/cli.h"
#include "lib/facts/parse.h"
#include "lib/facts/snapshot.h"
#include "lib/gpu/run.h"
#include "lib/report/escape.h"
#include "lib/rules/rules.h"
#include "lib/util/new_file.h"
#include "lib/util/verdict.h"
#include "p2p-bar1/app.h"
#include "p2p-bar1/edit.h"

namespace p2p::bar1 {
namespace {

using nlohmann::json;

std::string size(std::uint64_t bytes) {
    if (bytes >= (std::uint64_t{1} << 30) && bytes % (std::uint64_t{1} << 30) == 0)
        return fmt::format("{} GiB", bytes >> 30);
    return fmt::format("{} MiB", bytes >> 20);
}

// Findings that say why BAR1 is not what peer-to-peer needs.
std::vector<const Finding*> blockers(const std::vector<Finding>& all, const Gpu& g) {
    static const char* const ids[] = {"bar1-unassigned", "mmio-window-too-small", "rebar-off",
                                      "vbios-limits-bar1", "bar1-smaller-than-vram"};
    std::vector<const Finding*> found;
    for (const Finding& f : all)
        if (f.subject == g.bdf &&
            std::any_of(std::begin(ids), std::end(ids), [&](const char* id) { return f.id == id; }))
            found.push_back(&f);
    return found;
}

Sourced<BridgeWindow> windowAbove(const Facts& f, const Gpu& g) {
    const Bridge* b = g.upstream.empty() ? nullptr : f.bridge(g.upstream.front());
    return b ? b->prefetch_window
             : Sourced<BridgeWindow>::missing("/sys/bus/pci/devices/" + g.bdf, "no bridge above");
}

template <class T, class F>
json orNull(const Sourced<T>& s, F get) {
    return s ? json(get(*s)) : json(nullptr);
}

int listJson(const Facts& facts, const std::vector<Finding>& findings) {
    json gpus = json::array();
    for (const Gpu& g : facts.gpus) {
        json sizes = json::array();
        if (g.rebar)
            for (const ResizableBar& r : *g.rebar)
                for (unsigned n = 0; n < 44 && r.bar == g.bar1_number; ++n)
                    if ((r.sizes >> n) & 1) sizes.push_back(std::uint64_t{1} << (20 + n));
        json blocked = json::array();
        for (const Finding* f : blockers(findings, g))
            blocked.push_back({{"id", f->id}, {"cause", f->cause}, {"remedy", f->remedy}});
        json unread = json::array();
        const auto why = [&](const auto& s) {
            if (!s && s.unread != kAbsent)
                unread.push_back({{"path", s.path}, {"reason", s.unread}});
        };
        const auto window = windowAbove(facts, g);
        why(g.bar1);
        why(g.bar1_max_bytes);
        why(window);
        gpus.push_back(
            {{"bdf", g.bdf},
             {"name", g.name},
             {"device_id", fmt::format("{:04x}:{:04x}", g.vendor, g.device)},
             {"bar", g.bar1_number},
             {"bar1_bytes", orNull(g.bar1, [](const PciRegion& r) { return r.bytes; })},
             {"bar1_max_bytes", orNull(g.bar1_max_bytes, [](std::uint64_t b) { return b; })},
             {"bar1_sizes_bytes", sizes},
             {"bridge_window_bytes", orNull(window, [](const BridgeWindow& w) { return w.bytes; })},
             {"blocked_by", blocked},
             {"unread", unread}});
    }
    std::cout << json{{"schema", 1}, {"gpus", gpus}}.dump(2, ' ', false,
                                                          json::error_handler_t::replace)
              << "\n";
    return 0;
}

int list(const Options& o) {
    const Facts facts = readRoot(o.root, [&] {
        const Snapshot snapshot(o.root);
        p2p::Options where;
        where.root = snapshot.root();
        return collect(where);
    });
    const auto findings = assess(facts);
    if (o.json) return listJson(facts, findings);
    if (facts.gpus.empty()) {
        std::cout << "No NVIDIA GPU on the PCI bus.\n";
        return 0;
    }
    std::vector<std::vector<std::string>> table = {
        {"GPU", "NAME", "BAR1", "OFFERS", "WINDOW", "BLOCKED BY"}};
    for (const Gpu& g : facts.gpus) {
        std::string blocked;
        for (const Finding* f : blockers(findings, g))
            blocked += (blocked.empty() ? "" : ", ") + f->id;
        const auto window = windowAbove(facts, g);
        const auto missing = [](const auto& s) {
            return s.unread == kAbsent ? std::string("-") : s.unread;
        };
        table.push_back(
            {g.bdf, plain(g.name),
             g.bar1 ? (g.bar1->bytes ? size(g.bar1->bytes) : "unassigned") : missing(g.bar1),
             g.bar1_max_bytes ? size(*g.bar1_max_bytes) : missing(g.bar1_max_bytes),
             window ? (window->bytes ? size(window->bytes) : "closed") : missing(window),
             blocked.empty() ? "-" : blocked});
    }
    std::vector<std::size_t> width(table[0].size());
    for (const auto& row : table)
        for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
    for (const auto& row : table) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i)
            line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], width[i]) : row[i];
        std::cout << line << "\n";
    }
    bool first = true;
    for (const Gpu& g : facts.gpus)
        for (const Finding* f : blockers(findings, g)) {
            std::cout << (first ? "\n" : "") << plain(f->subject) << " " << f->id << ": "
                      << plain(f->cause) << "\n  " << plain(f->remedy) << "\n";
            first = false;
        }
    return 0;
}

[[noreturn]] void fail(const std::string& path, const std::string& todo) {
    throw Failure(path + ": " + std::strerror(errno) + "; " + todo, kExitInternal);
}

// The text of a file; `st` tells what it is, unless there is none.
std::string readFile(const std::string& path, bool& exists, struct stat& st) {
    if (::lstat(path.c_str(), &st) != 0) {
        if (errno != ENOENT) fail(path, "check the folder's rights");
        exists = false;
        return "";
    }
    exists = true;
    // Replacing a link would cut it off from the file that somebody keeps elsewhere.
    if (!S_ISREG(st.st_mode))
        throw Failure(path + ": not a regular file; edit what it leads to by hand", kExitInternal);
    std::ifstream in(path, std::ios::binary);
    std::ostringstream all;
    all << in.rdbuf();
    if (!in) fail(path, "run it as root");
    return all.str();
}

// Whole or not at all, and on the disk before it takes the old one's place.
// With the owner and the rights of `like`, the file whose place or side it takes; without one,
// readable for all.
void writeFile(const std::string& path, const std::string& text, const struct stat* like) {
    const std::string part = path + ".p2p-new";
    const int fd = createNew(part, 0600);
    if (fd < 0)
        fail(part, errno != EEXIST ? "run it as root"
                   : isLink(part)  ? "a link was put there; remove it"
                                   : "remove it");
    std::size_t done = 0;
    struct stat made {};
    bool ok = ::fstat(fd, &made) == 0;
    if (ok && like && (made.st_uid != like->st_uid || made.st_gid != like->st_gid))
        ok = ::fchown(fd, like->st_uid, like->st_gid) == 0;
    ok = ok && ::fchmod(fd, like ? like->st_mode & 07777 : 0644) == 0;
    while (ok && done < text.size()) {
        const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            ok = false;
        else
            done += static_cast<std::size_t>(n);
    }
    ok = ok && ::fsync(fd) == 0;
    ok = ::close(fd) == 0 && ok;
    ok = ok && ::rename(part.c_str(), path.c_str()) == 0;
    if (ok) return;
    const int error = errno;
    ::unlink(part.c_str());
    errno = error;
    fail(path, "nothing was changed");
}

// Does a setting of initramfs-tools or dracut ask for the nvidia module?
std::string initramfsSetting(const std::string& root) {
    const auto names = [&](const std::string& path, bool list) {
        std::error_code none;
        if (!std::filesystem::is_regular_file(root + path, none)) return false;
        std::ifstream in(root + path);
        std::string line;
        while (std::getline(in, line)) {
            const std::string clean = parse::trim(line.substr(0, line.find('#')));
            if (list ? clean == "nvidia" || clean.compare(0, 7, "nvidia ") == 0
                     : clean.find("drivers") != std::string::npos &&
                           clean.find("nvidia") != std::string::npos)
                return true;
        }
        return false;
    };
    if (names("/etc/initramfs-tools/modules", true)) return "/etc/initramfs-tools/modules";
    for (const char* f : {"/etc/dracut.conf", "/etc/dracut.conf.d/nvidia.conf",
                          "/etc/dracut.conf.d/90-nvidia.conf"})
        if (names(f, false)) return f;
    return "";
}

int change(const Options& o) {
    if (o.json) throw UsageError("--json: only list writes JSON; leave it out");
    struct stat st {};
    if (!o.root.empty() && (::stat(o.root.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)))
        throw UsageError("--root " + o.root + ": no folder; a snapshot can only be listed");
    p2p::Options where;
    where.root = o.root;
    where.names = false;
    const Facts facts = readRoot(o.root, [&] { return collect(where); });
    Request request;
    request.enable = o.command == Options::Enable;
    if (!o.gpu.empty()) {
        request.gpu = normalBdf(o.gpu);
        if (request.gpu.empty())
            throw UsageError("--gpu " + o.gpu + ": no PCI address; write it as 0000:01:00.0");
    }
    const std::string path = o.root + kFile;
    bool exists = false;
    const std::string old = readFile(path, exists, st);
    // What is set for a card outlives the card.
    if (!request.gpu.empty() && !facts.gpu(request.gpu) && !names(old, request.gpu)) {
        std::string known;
        for (const Gpu& g : facts.gpus) known += (known.empty() ? "" : ", ") + g.bdf;
        throw UsageError("--gpu " + o.gpu + ": no NVIDIA GPU there, and " + path +
                         " does not name it; this machine has " + (known.empty() ? "none" : known));
    }
    const Edit e = edit(old, request, facts.options);
    if (!e.refused.empty()) {
        std::cerr << "p2p-bar1: error: " << plain(e.refused) << "\n";
        return kExitRefused;
    }
    for (const std::string& n : e.notes) std::cout << "Note: " << plain(n) << ".\n";
    if (e.text == old) {
        std::cout << path << ": nothing to change.\n";
        return 0;
    }
    if (o.dry_run) {
        std::cout << e.text;
        return 0;
    }
    const std::string dir = path.substr(0, path.rfind('/'));
    if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) fail(dir, "make it first");
    const struct stat* like = exists ? &st : nullptr;
    if (exists) writeFile(path + ".bak", old, like);
    writeFile(path, e.text, like);
    std::cout << path << ": written"
              << (exists ? fmt::format("; the old content is in {}.bak", path) : "") << ".\n";
    const std::string setting = initramfsSetting(o.root);
    if (!o.root.empty()) {
        // Not this machine: nothing here is to be made anew or rebooted.
        if (!setting.empty())
            std::cout << o.root << setting
                      << " puts nvidia into the initramfs of that system: run update-initramfs -u "
                         "(or dracut -f) inside it.\n";
        return 0;
    }
    std::cout << "It counts from the next load of the nvidia module: reboot.\n";
    if (!setting.empty())
        std::cout << setting
                  << " puts nvidia into the initramfs: run update-initramfs -u (or dracut -f) "
                     "before the reboot.\n";
    else
        std::cout << "No setting puts nvidia into the initramfs; if lsinitramfs "
                     "/boot/initrd.img-$(uname -r) "
                     "shows nvidia.ko all the same, run update-initramfs -u.\n";
    return 0;
}

}  // namespace

int run(const Options& o) {
    return o.command == Options::List ? list(o) : change(o);
}

}  // namespace p2p::bar1
