// SPDX-License-Identifier: MIT
#include "lib/facts/tar.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <stdexcept>
#include <system_error>

namespace p2p::tar {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
constexpr std::size_t kMostEntries = 50000;
constexpr std::size_t kLongestName = 4096;

struct Header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
    char linkname[100], magic[6], version[2], uname[32], gname[32], devmajor[8], devminor[8];
    char prefix[155], pad[12];
};
static_assert(sizeof(Header) == kBlock, "ustar header");

unsigned checksumOf(Header h) {
    std::memset(h.checksum, ' ', sizeof h.checksum);
    unsigned sum = 0;
    const auto* p = reinterpret_cast<const unsigned char*>(&h);
    for (std::size_t i = 0; i < sizeof h; ++i) sum += p[i];
    return sum;
}

void pad(std::string& out) {
    out.append((kBlock - out.size() % kBlock) % kBlock, '\0');
}

void put(std::string& out, const std::string& name, char type, const std::string& target,
         const std::string& data, unsigned mode, unsigned long long mtime) {
    Header h{};
    std::memcpy(h.name, name.data(), std::min(name.size(), sizeof h.name));
    std::memcpy(h.linkname, target.data(), std::min(target.size(), sizeof h.linkname));
    std::snprintf(h.mode, sizeof h.mode, "%07o", mode);
    std::snprintf(h.uid, sizeof h.uid, "%07o", 0U);
    std::snprintf(h.gid, sizeof h.gid, "%07o", 0U);
    std::snprintf(h.size, sizeof h.size, "%011zo", data.size());
    std::snprintf(h.mtime, sizeof h.mtime, "%011llo", mtime & 077777777777ULL);
    h.type = type;
    std::memcpy(h.magic, "ustar", 6);
    std::memcpy(h.version, "00", 2);
    std::snprintf(h.checksum, sizeof h.checksum, "%06o", checksumOf(h));
    h.checksum[7] = ' ';
    out.append(reinterpret_cast<const char*>(&h), sizeof h);
    out += data;
    pad(out);
}

template <std::size_t N>
std::string text(const char (&field)[N]) {
    return std::string(field, strnlen(field, N));
}

template <std::size_t N>
std::size_t octal(const char (&field)[N]) {
    std::size_t v = 0;
    bool any = false;
    for (std::size_t i = 0; i < N; ++i) {
        const char c = field[i];
        if (c == ' ' && !any) continue;
        if (c == '\0' || c == ' ') break;
        if (c < '0' || c > '7') throw std::runtime_error("a tar header holds no octal number");
        v = v * 8 + static_cast<std::size_t>(c - '0');
        any = true;
    }
    return v;
}

// Parts of a path; throws when it leads out.
std::vector<std::string> parts(const std::string& path) {
    std::vector<std::string> all;
    std::size_t at = 0;
    while (at <= path.size()) {
        const std::size_t slash = std::min(path.find('/', at), path.size());
        const std::string part = path.substr(at, slash - at);
        at = slash + 1;
        if (part.empty() || part == ".") continue;
        if (part == "..") {
            if (all.empty()) throw std::runtime_error("'" + path + "' leads out of the snapshot");
            all.pop_back();
            continue;
        }
        all.push_back(part);
    }
    return all;
}

std::string cleanPath(const std::string& path) {
    if (path.empty() || path[0] == '/')
        throw std::runtime_error("'" + path + "' is no relative path");
    if (path.size() > kLongestName) throw std::runtime_error("a path is longer than 4096 bytes");
    std::string clean;
    for (const std::string& p : parts(path)) clean += (clean.empty() ? "" : "/") + p;
    return clean;
}

void checkLink(const std::string& path, const std::string& target) {
    if (target.empty()) throw std::runtime_error("'" + path + "' is a link to nothing");
    // Open files of a process: only their names are looked at.
    if (target.compare(0, 11, "/dev/nvidia") == 0 && target.find("..") == std::string::npos) return;
    if (target[0] == '/')
        throw std::runtime_error("'" + path + "' links to '" + target + "', out of the snapshot");
    const std::size_t slash = path.rfind('/');
    parts((slash == std::string::npos ? "" : path.substr(0, slash + 1)) + target);
}

[[noreturn]] void fail(const std::string& path) {
    // These come from the names in the archive; all others from where it is unpacked.
    for (const int ours : {ENAMETOOLONG, ENOTDIR, EISDIR, ELOOP, EEXIST})
        if (errno == ours) throw std::runtime_error(path + ": " + std::strerror(errno));
    throw std::system_error(errno, std::generic_category(), path);
}

}  // namespace

std::string write(const std::vector<Entry>& entries, unsigned long long mtime) {
    std::string out;
    for (const Entry& e : entries) {
        const std::string name = e.path + (e.kind == Entry::Folder ? "/" : "");
        const std::string target = e.kind == Entry::Link ? e.content : "";
        // GNU tar's long names: the name as the data of an entry of its own.
        if (name.size() > 100) put(out, "././@LongLink", 'L', "", name + '\0', 0644, 0);
        if (target.size() > 100) put(out, "././@LongLink", 'K', "", target + '\0', 0644, 0);
        const bool file = e.kind == Entry::File;
        put(out, name,
            file                    ? '0'
            : e.kind == Entry::Link ? '2'
                                    : '5',
            target, file ? e.content : "",
            file                    ? 0644
            : e.kind == Entry::Link ? 0777
                                    : 0755,
            mtime);
    }
    out.append(2 * kBlock, '\0');
    return out;
}

std::vector<Entry> read(const std::string& archive) {
    std::vector<Entry> all;
    std::string longName, longTarget;
    std::size_t at = 0, total = 0;
    while (archive.size() - at >= kBlock) {
        Header h;
        std::memcpy(&h, archive.data() + at, sizeof h);
        at += kBlock;
        if (h.name[0] == '\0' && checksumOf(h) == 8 * ' ') return all;  // the end: a block of zeros
        if (octal(h.checksum) != checksumOf(h))
            throw std::runtime_error("a tar header is damaged (wrong checksum)");
        const std::size_t size = h.type == '2' || h.type == '5' ? 0 : octal(h.size);
        total += size;
        if (size > archive.size() - at) throw std::runtime_error("the tar archive ends early");
        if (total > kMostBytes) throw std::runtime_error("the snapshot is larger than 64 MiB");
        if (all.size() >= kMostEntries)
            throw std::runtime_error("the snapshot has more than 50000 entries");
        const std::string data = archive.substr(at, size);
        at += std::min((size + kBlock - 1) / kBlock * kBlock, archive.size() - at);

        if (h.type == 'L' || h.type == 'K') {
            if (size > kLongestName + 1)
                throw std::runtime_error("a path is longer than 4096 bytes");
            (h.type == 'L' ? longName : longTarget) = data.substr(0, data.find('\0'));
            continue;
        }
        if (h.type == 'g' || h.type == 'x') continue;  // pax: times and the like, not needed
        std::string name = longName.empty() ? text(h.name) : longName;
        if (longName.empty() && std::memcmp(h.magic, "ustar", 6) == 0 && h.prefix[0])
            name = text(h.prefix) + "/" + name;
        const std::string target = longTarget.empty() ? text(h.linkname) : longTarget;
        longName.clear();
        longTarget.clear();
        Entry e;
        e.path = cleanPath(name);
        switch (h.type) {
            case '0':
            case '\0':
                e.kind = Entry::File;
                e.content = data;
                break;
            case '2':
                e.kind = Entry::Link;
                e.content = target;
                checkLink(e.path, target);
                break;
            case '5':
                e.kind = Entry::Folder;
                break;
            default:
                throw std::runtime_error("'" + e.path + "' is neither file, folder nor link");
        }
        if (!e.path.empty()) all.push_back(std::move(e));
    }
    throw std::runtime_error(archive.empty() ? "empty" : "the tar archive ends early");
}

void unpack(const std::vector<Entry>& entries, const std::string& dir) {
    // Links come last: nothing is then written through one.
    std::set<std::string> made;
    const auto folders = [&](const std::string& path) {
        for (std::size_t at = path.find('/'); at != std::string::npos;
             at = path.find('/', at + 1)) {
            const std::string part = path.substr(0, at);
            if (!made.insert(part).second) continue;
            if (::mkdir((dir + "/" + part).c_str(), 0700) != 0 && errno != EEXIST) fail(part);
        }
    };
    for (const Entry& e : entries) {
        const std::string to = dir + "/" + e.path;
        if (e.kind == Entry::Folder) folders(e.path + "/");
        if (e.kind != Entry::File) continue;
        folders(e.path);
        const int fd =
            ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0) fail(e.path);
        std::size_t done = 0;
        while (done < e.content.size()) {
            const ssize_t n = ::write(fd, e.content.data() + done, e.content.size() - done);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) {
                ::close(fd);
                fail(e.path);
            }
            done += static_cast<std::size_t>(n);
        }
        ::close(fd);
    }
    for (const Entry& e : entries) {
        if (e.kind != Entry::Link) continue;
        // A folder on the way may be a link by now; then this entry was never ours to make.
        std::string parent = e.path.substr(0, e.path.rfind('/') + 1);
        while (!parent.empty()) {
            parent.pop_back();
            struct stat st {};
            if (::lstat((dir + "/" + parent).c_str(), &st) == 0 && S_ISLNK(st.st_mode))
                throw std::runtime_error("'" + e.path + "' lies behind the link '" + parent + "'");
            parent.erase(parent.rfind('/') == std::string::npos ? 0 : parent.rfind('/') + 1);
        }
        folders(e.path);
        if (::symlink(e.content.c_str(), (dir + "/" + e.path).c_str()) != 0 && errno != EEXIST)
            fail(e.path);
    }
}

}  // namespace p2p::tar
