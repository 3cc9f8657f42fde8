// SPDX-License-Identifier: MIT
#include "lib/facts/snapshot.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "lib/facts/collect.h"
#include "lib/facts/machine.h"
#include "lib/facts/tar.h"
#include "lib/util/new_file.h"
#include "lib/util/system_fault.h"

extern char** environ;

namespace p2p {
namespace {

constexpr const char* kTop = "nvidia-p2p-snapshot";
constexpr const char* kExtra = "/extra/";
constexpr std::size_t kMostArchive = std::size_t{96} << 20;  // unpacked tar

[[noreturn]] void fail(const std::string& file, const std::string& reason) {
    throw std::runtime_error(file + ": " + reason);
}

[[noreturn]] void fault(const std::string& what, const std::string& reason) {
    throw SystemFault(what + ": " + reason);
}

// gzip with `argument`, from `in` to `out`; "" or the reason why not.
std::string gzip(const char* argument, int in, int out, pid_t& pid) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    std::string name = "gzip", arg = argument;
    char* argv[] = {name.data(), arg.data(), nullptr};
    const int rc = ::posix_spawnp(&pid, "gzip", &actions, nullptr, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc ? std::string("gzip: ") + std::strerror(rc) + "; install gzip" : "";
}

int waitFor(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Where entries really lie: folders on their way may be links that were read too.
class Places {
  public:
    explicit Places(const std::map<std::string, Machine::Entry>& entries) {
        std::vector<std::string> links;
        for (const auto& [path, e] : entries)
            if (e.kind == Machine::Entry::Link) links.push_back(path);
        std::stable_sort(links.begin(), links.end(), [](const auto& a, const auto& b) {
            return std::count(a.begin(), a.end(), '/') < std::count(b.begin(), b.end(), '/');
        });
        for (const std::string& l : links) links_[of(l)] = entries.at(l).content;
    }

    // `path` with all links but a last one followed; "/a/b".
    std::string of(const std::string& path, int depth = 0) const {
        std::string at;
        for (std::size_t i = 0; i < path.size();) {
            const std::size_t slash = std::min(path.find('/', i), path.size());
            const std::string part = path.substr(i, slash - i);
            i = slash + 1;
            const bool last = i > path.size();
            if (part.empty() || part == ".") continue;
            if (part == "..") {
                at.erase(std::min(at.rfind('/'), at.size()));
                continue;
            }
            const auto link = links_.find(at + "/" + part);
            if (link == links_.end() || last || depth > 20) {
                at += "/" + part;
            } else {
                const std::string& target = link->second;
                // A final "/." makes the last component of the target be followed as well.
                at = of((target[0] == '/' ? target : at + "/" + target) + "/.", depth + 1);
            }
        }
        return at;
    }

  private:
    std::map<std::string, std::string> links_;
};

}  // namespace

void gather(const std::string& file, const std::string& root,
            const std::map<std::string, std::string>& extra) {
    Machine machine(root);
    machine.record();
    collect(machine, false);

    const Places places(machine.entries());
    std::map<std::string, tar::Entry> at;
    std::string manifest = "nvidia-p2p snapshot 1\n";
    for (const auto& [path, e] : machine.entries()) {
        if (e.kind == Machine::Entry::Unread) {
            manifest += e.content + "\t" + path + "\n";
            continue;
        }
        const std::string place = places.of(path);
        tar::Entry t;
        t.path = kTop + place;
        t.content = e.content;
        if (e.kind == Machine::Entry::Link) t.kind = tar::Entry::Link;
        if (e.kind == Machine::Entry::Folder) t.kind = tar::Entry::Folder;
        // A target outside what a snapshot may hold keeps its last part: all that is ever asked
        // for.
        if (t.kind == tar::Entry::Link && t.content[0] == '/' &&
            t.content.compare(0, 11, "/dev/nvidia") != 0) {
            std::string up;
            for (auto n = std::count(place.begin(), place.end(), '/') - 1; n > 0; --n) up += "../";
            t.content = up + t.content.substr(1);
        }
        at[place] = std::move(t);
    }
    for (const auto& [name, content] : extra) {
        tar::Entry t;
        t.path = kTop + (kExtra + name);
        t.content = content;
        at[kExtra + name] = std::move(t);
    }
    tar::Entry m;
    m.path = kTop + std::string(kManifest);
    m.content = manifest;
    at[kManifest] = std::move(m);

    std::vector<tar::Entry> entries;
    entries.reserve(at.size());
    for (auto& [place, e] : at) entries.push_back(std::move(e));
    const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
    const std::string archive = tar::write(entries, epoch ? std::strtoull(epoch, nullptr, 10) : 0);

    // Whole or not at all: a half-written file must not look like a snapshot.
    const std::string part = file + ".part";
    const int out = createNew(part, 0644);
    if (out < 0 && errno != EEXIST) fault("cannot write " + file, whyNotWritten(errno));
    if (out < 0)
        fault(part,
              isLink(part) ? "a link was put there; remove it" : "not a regular file; remove it");
    const int in = ::memfd_create("snapshot", MFD_CLOEXEC);
    std::string reason;
    pid_t pid = -1;
    if (in < 0 ||
        ::write(in, archive.data(), archive.size()) != static_cast<ssize_t>(archive.size()) ||
        ::lseek(in, 0, SEEK_SET) != 0)
        reason = std::strerror(errno);
    if (reason.empty()) reason = gzip("-9nc", in, out, pid);
    if (reason.empty() && waitFor(pid) != 0)
        reason = "gzip failed; make room, or choose another place";
    if (in >= 0) ::close(in);
    if (::close(out) != 0 && reason.empty()) reason = whyNotWritten(errno);
    if (reason.empty() && ::rename(part.c_str(), file.c_str()) != 0) reason = whyNotWritten(errno);
    if (!reason.empty()) {
        ::unlink(part.c_str());
        fault("cannot write " + file, reason);
    }
}

Snapshot::Snapshot(const std::string& given) : root_(given) {
    struct stat st {};
    if (given.empty()) return;
    if (::stat(given.c_str(), &st) != 0)
        fail("--root " + given, std::string(std::strerror(errno)) +
                                    "; give a folder or a .tar.gz made by p2p-verify gather");
    if (S_ISDIR(st.st_mode)) return;

    const std::string what = "--root " + given;
    const int in = ::open(given.c_str(), O_RDONLY | O_CLOEXEC);
    if (in < 0) fail(what, std::strerror(errno));
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        const int error = errno;
        ::close(in);
        fault(what, std::strerror(error));
    }
    pid_t pid = -1;
    const std::string reason = gzip("-dc", in, ends[1], pid);
    ::close(in);
    ::close(ends[1]);
    std::string archive;
    char buf[65536];
    while (reason.empty() && archive.size() <= kMostArchive) {
        const ssize_t n = ::read(ends[0], buf, sizeof buf);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        archive.append(buf, static_cast<std::size_t>(n));
    }
    ::close(ends[0]);  // ends a gzip that has more to say
    if (!reason.empty()) fault(what, reason);
    const int status = waitFor(pid);
    if (archive.size() > kMostArchive)
        fail(what, "larger than 96 MiB unpacked; no snapshot of ours");
    if (status != 0) fail(what, "not a whole .tar.gz file; make it again with p2p-verify gather");

    std::vector<tar::Entry> entries;
    try {
        entries = tar::read(archive);
    } catch (const std::runtime_error& e) {
        fail(what, std::string(e.what()) + "; make it again with p2p-verify gather");
    }
    const char* tmp = std::getenv("TMPDIR");
    const bool set = tmp && *tmp;
    const std::string place = set ? std::string("TMPDIR=") + tmp : "/tmp";
    const char* const elsewhere = "; set TMPDIR to a folder with room that you may write to";
    std::string dir = std::string(set ? tmp : "/tmp") + "/p2p-snapshot.XXXXXX";
    if (!::mkdtemp(dir.data())) fault(place, std::strerror(errno) + std::string(elsewhere));
    root_ = dir;
    temporary_ = true;
    try {
        tar::unpack(entries, dir);
    } catch (const std::runtime_error& e) {
        std::error_code ignored;
        std::filesystem::remove_all(dir, ignored);
        const auto* system = dynamic_cast<const std::system_error*>(&e);
        if (system) fault(place, system->code().message() + elsewhere);
        fail(what, e.what());
    }
    // One folder around everything is how archives are made.
    const std::string first =
        entries.empty() ? "" : entries[0].path.substr(0, entries[0].path.find('/'));
    const bool around =
        !first.empty() && first != "sys" && first != "proc" &&
        std::all_of(entries.begin(), entries.end(), [&](const tar::Entry& e) {
            return e.path == first || e.path.compare(0, first.size() + 1, first + "/") == 0;
        });
    top_ = dir;
    if (around) root_ += "/" + first;
}

Snapshot::~Snapshot() {
    std::error_code ignored;
    if (temporary_) std::filesystem::remove_all(top_, ignored);
}

std::string Snapshot::extra(const std::string& name) const {
    if (root_.empty()) return "";
    Machine machine(root_);
    return machine.bytes(kExtra + name, std::size_t{16} << 20).valueOr("");
}

}  // namespace p2p
