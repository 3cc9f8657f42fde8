// SPDX-License-Identifier: MIT
#include "lib/facts/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "lib/facts/parse.h"
#include "lib/facts/redact.h"

namespace p2p {
namespace {

class Fd {
  public:
    explicit Fd(int fd) : fd_(fd) {}
    ~Fd() {
        if (fd_ >= 0) ::close(fd_);
    }
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_;
};

// Reads up to `limit` bytes; errno of the failure, 0 if none.
int readAll(int fd, std::size_t limit, std::string& out) {
    char buf[16384];
    while (out.size() < limit) {
        const ssize_t n = ::read(fd, buf, std::min(sizeof buf, limit - out.size()));
        if (n == 0) break;
        if (n < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        out.append(buf, static_cast<std::size_t>(n));
    }
    return 0;
}

}  // namespace

Machine::Machine(std::string root) : root_(std::move(root)) {
    while (root_.size() > 1 && root_.back() == '/') root_.pop_back();
    if (root_ == "/") root_.clear();
    if (live()) {
        char name[HOST_NAME_MAX + 1] = "";
        if (::gethostname(name, sizeof name - 1) == 0) hostnames_.emplace_back(name);
        readHostnames();
        return;
    }
    struct stat st {};
    if (::stat(root_.c_str(), &st) != 0)
        throw std::runtime_error("--root " + root_ + ": " + std::strerror(errno) +
                                 "; give a folder or a .tar.gz made by p2p-verify gather");
    if (!S_ISDIR(st.st_mode))
        throw std::runtime_error(
            "--root " + root_ +
            ": no folder; give a folder or a .tar.gz made by p2p-verify gather");
    readHostnames();
    const auto manifest = bytes(kManifest);
    for (const std::string& l : parse::lines(manifest.valueOr(""))) {
        const std::size_t tab = l.find('\t');
        if (tab != std::string::npos) unread_[l.substr(tab + 1)] = l.substr(0, tab);
    }
}

// The name now and the one that the next boot brings; a snapshot of ours holds neither.
void Machine::readHostnames() {
    for (const char* path : {"/proc/sys/kernel/hostname", "/etc/hostname"}) {
        const auto text = bytes(path, 4096);
        for (const std::string& l : parse::lines(text.valueOr(""))) {
            std::string name = parse::trim(l);
            if (!name.empty() && name[0] != '#' &&
                std::find(hostnames_.begin(), hostnames_.end(), name) == hostnames_.end())
                hostnames_.push_back(std::move(name));
        }
    }
}

int Machine::open(const std::string& path, int flags) const {
    flags |= O_CLOEXEC;
    if (live()) return ::open(path.c_str(), flags);
    // The kernel keeps links of a snapshot inside it.  Before Linux 5.6 and in sandboxes without
    // the call, a plain open must do: unpacking has refused links that lead out already.
    const Fd top(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!top) return -1;
    struct open_how how {};
    how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(flags));
    how.resolve = RESOLVE_IN_ROOT;
    const long fd = ::syscall(SYS_openat2, top.get(), path.c_str(), &how, sizeof how);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
    char real[PATH_MAX], top_real[PATH_MAX];
    if (!::realpath(host(path).c_str(), real) || !::realpath(root_.c_str(), top_real)) return -1;
    const std::string inside = std::string(top_real) + "/";
    if ((std::string(real) + "/").compare(0, inside.size(), inside) != 0) {
        errno = ENOENT;
        return -1;
    }
    return ::open(real, flags);
}

std::string Machine::why(const std::string& path, int error) const {
    if (auto it = unread_.find(path); it != unread_.end()) return it->second;
    if (error == ENOENT || error == ENOTDIR || error == ENODEV || error == ENXIO) return kAbsent;
    if (error == EACCES || error == EPERM) return kNeedsRoot;
    return std::strerror(error);
}

std::string Machine::unreadReason(const std::string& path) const {
    auto it = unread_.find(path);
    return it == unread_.end() ? "" : it->second;
}

void Machine::note(const std::string& path, Entry entry) {
    if (recording_) entries_[path] = std::move(entry);
}

std::string Machine::prose(std::string text) const {
    text = redact(text, "");
    for (const std::string& name : hostnames_) text = redact(text, name);
    return text;
}

std::string Machine::redacted(const std::string& path, const std::string& text) const {
    if (path == "/dev/kmsg") return redactMessage(prose(text));
    if (path == "/proc/cmdline") return redactCmdline(prose(text));
    // Only where people and the kernel write prose: a host called "identity" must not change what
    // an attribute of sysfs says.
    const bool people = path == "/proc/version" || path.compare(0, 9, "/var/lib/") == 0 ||
                        path.find("/modprobe.d/") != std::string::npos;
    return people ? prose(text) : redact(text, "");
}

Sourced<std::string> Machine::bytes(const std::string& path, std::size_t limit) {
    // O_NONBLOCK: a FIFO in a folder given by hand must not hold us up.
    const Fd fd(open(path, O_RDONLY | O_NONBLOCK));
    int error = fd ? 0 : errno;
    std::string content;
    if (fd) {
        struct stat st {};
        if (::fstat(fd.get(), &st) != 0)
            error = errno;
        else if (!S_ISREG(st.st_mode))
            error = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
        else
            error = readAll(fd.get(), limit, content);
    }
    if (error) {
        const std::string reason = why(path, error);
        if (reason != kAbsent) note(path, {Entry::Unread, reason});
        return Sourced<std::string>::missing(path, reason);
    }
    note(path, {Entry::File, content});
    return {path, std::move(content)};
}

Sourced<std::string> Machine::text(const std::string& path, std::size_t limit) {
    auto raw = bytes(path, limit);
    if (!raw) return raw;
    std::string clean = redacted(path, *raw);
    note(path, {Entry::File, clean});
    return {path, std::move(clean)};
}

Sourced<std::string> Machine::line(const std::string& path) {
    auto all = text(path, 65536);
    if (!all) return all;
    return {path, parse::trim(all->substr(0, all->find('\n')))};
}

Sourced<int> Machine::number(const std::string& path) {
    const auto l = line(path);
    if (!l) return Sourced<int>::missing(path, l.unread);
    char* end = nullptr;
    errno = 0;
    const long v = std::strtol(l->c_str(), &end, 10);
    if (errno || end == l->c_str() || *end || v > INT_MAX || v < INT_MIN)
        return Sourced<int>::missing(path, "no number: '" + l->substr(0, 40) + "'");
    return {path, static_cast<int>(v)};
}

Sourced<std::string> Machine::kernelLog() {
    static const std::string path = "/dev/kmsg";
    std::string joined;
    if (!live()) {
        auto raw = bytes(path, std::size_t{16} << 20);
        if (!raw) return raw;
        joined = *raw;
    } else {
        const Fd fd(open(path, O_RDONLY | O_NONBLOCK));
        int error = fd ? 0 : errno;
        // A read gives one record; EPIPE says that records were overwritten meanwhile, and the next
        // read goes on behind them.
        char record[8192];
        for (int i = 0; fd && i < 200000; ++i) {
            const ssize_t n = ::read(fd.get(), record, sizeof record);
            if (n > 0) {
                joined.append(record, static_cast<std::size_t>(n));
                continue;
            }
            if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
            if (n < 0 && errno != EAGAIN) error = errno;
            break;
        }
        if (error) {
            const std::string reason = why(path, error);
            if (reason != kAbsent) note(path, {Entry::Unread, reason});
            return Sourced<std::string>::missing(path, reason);
        }
    }
    std::string kept;
    bool init = false;  // the last command line had its part for init, and goes on in the next line
    for (const std::string& m : parse::kernelLog(joined)) {
        const bool cmdline = m.find("ommand line: ") != std::string::npos;
        if (cmdline && init) {
            init = m.back() == '\\';
            continue;
        }
        if (cmdline) init = m.find(" -- ") != std::string::npos && m.back() == '\\';
        kept += redacted(path, m) + "\n";
    }
    note(path, {Entry::File, kept});
    return {path, std::move(kept)};
}

Sourced<std::string> Machine::link(const std::string& path) {
    char target[PATH_MAX];
    ssize_t n = -1;
    const std::size_t slash = path.rfind('/');
    const Fd dir(open(slash == 0 ? "/" : path.substr(0, slash), O_PATH | O_DIRECTORY));
    if (dir) n = ::readlinkat(dir.get(), path.c_str() + slash + 1, target, sizeof target);
    if (n < 0) {
        // EINVAL: something is there, but no link.
        const std::string reason = errno == EINVAL ? "no symbolic link" : why(path, errno);
        if (reason == kNeedsRoot) note(path, {Entry::Unread, reason});
        return Sourced<std::string>::missing(path, reason);
    }
    std::string t(target, static_cast<std::size_t>(n));
    note(path, {Entry::Link, t});
    return {path, std::move(t)};
}

Sourced<std::string> Machine::linkName(const std::string& path) {
    auto l = link(path);
    if (!l) return l;
    return {path, l->substr(l->rfind('/') + 1)};
}

Sourced<std::vector<std::string>> Machine::list(const std::string& path) {
    using Result = Sourced<std::vector<std::string>>;
    const int fd = open(path, O_RDONLY | O_DIRECTORY);
    DIR* dir = fd < 0 ? nullptr : ::fdopendir(fd);
    if (!dir) {
        const std::string reason = why(path, errno);
        if (fd >= 0) ::close(fd);
        if (reason != kAbsent) note(path, {Entry::Unread, reason});
        return Result::missing(path, reason);
    }
    std::vector<std::string> names;
    while (const dirent* e = ::readdir(dir)) {
        const std::string name = e->d_name;
        if (name != "." && name != "..") names.push_back(name);
    }
    ::closedir(dir);
    std::sort(names.begin(), names.end());
    note(path, {Entry::Folder, ""});
    return {path, std::move(names)};
}

bool Machine::isFolder(const std::string& path) const {
    const Fd fd(open(path, O_PATH));
    struct stat st {};
    return fd && ::fstat(fd.get(), &st) == 0 && S_ISDIR(st.st_mode);
}

bool Machine::regular(const std::string& path) const {
    // As the library will find it: links are followed by the machine that we run on.
    struct stat st {};
    return ::stat(host(path).c_str(), &st) != 0 || S_ISREG(st.st_mode);
}

bool Machine::exists(const std::string& path) {
    const Fd fd(open(path, O_PATH));
    if (!fd) return false;
    struct stat st {};
    const bool folder = ::fstat(fd.get(), &st) == 0 && S_ISDIR(st.st_mode);
    // What it holds is recorded only by those who read it.
    if (recording_ && !entries_.count(path)) note(path, {folder ? Entry::Folder : Entry::File, ""});
    return true;
}

}  // namespace p2p
