// SPDX-License-Identifier: MIT
#include "lib/facts/elf.h"

#include <elf.h>
#include <fcntl.h>
#include <lzma.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace p2p::elf {
namespace {

constexpr std::uint64_t kMostUnpacked = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostSection = std::uint64_t{1} << 20;

bool readAt(int fd, void* to, std::size_t bytes, std::uint64_t at) {
    auto* p = static_cast<char*>(to);
    while (bytes > 0) {
        const ssize_t n = ::pread(fd, p, bytes, static_cast<off_t>(at));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        at += static_cast<std::uint64_t>(n);
        bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

bool writeAll(int fd, const void* from, std::size_t bytes) {
    const auto* p = static_cast<const char*>(from);
    while (bytes > 0) {
        const ssize_t n = ::write(fd, p, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        bytes -= static_cast<std::size_t>(n);
    }
    return true;
}

bool endsWith(const std::string& s, const char* tail) {
    const std::size_t n = std::strlen(tail);
    return s.size() >= n && s.compare(s.size() - n, n, tail) == 0;
}

const char kMagic[] = "~Module signature appended~\n";
constexpr std::size_t kMagicSize = sizeof kMagic - 1;
constexpr std::size_t kInfoSize = 12;  // struct module_signature

// Each unpacks all of `in` to `out`; "" or the reason why not.
std::string unpackZstd(int in, int out) {
    const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> z(ZSTD_createDStream(),
                                                                       ZSTD_freeDStream);
    if (!z) return "out of memory";
    std::string from(ZSTD_DStreamInSize(), 0), to(ZSTD_DStreamOutSize(), 0);
    std::uint64_t total = 0;
    std::size_t left = 1;  // of the frame: 0 when it is complete
    for (;;) {
        const ssize_t n = ::read(in, from.data(), from.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return std::strerror(errno);
        if (n == 0) return left == 0 ? "" : "the zstd data ends early";
        ZSTD_inBuffer src{from.data(), static_cast<std::size_t>(n), 0};
        while (src.pos < src.size) {
            ZSTD_outBuffer dst{to.data(), to.size(), 0};
            left = ZSTD_decompressStream(z.get(), &dst, &src);
            if (ZSTD_isError(left)) return std::string("zstd: ") + ZSTD_getErrorName(left);
            total += dst.pos;
            if (total > kMostUnpacked) return "larger than 1 GiB";
            if (!writeAll(out, to.data(), dst.pos)) return std::strerror(errno);
        }
    }
}

std::string unpackXz(int in, int out) {
    lzma_stream z = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&z, std::uint64_t{256} << 20, 0) != LZMA_OK) return "out of memory";
    const std::unique_ptr<lzma_stream, decltype(&lzma_end)> end(&z, lzma_end);
    std::string from(65536, 0), to(65536, 0);
    std::uint64_t total = 0;
    lzma_action action = LZMA_RUN;
    for (;;) {
        if (z.avail_in == 0 && action == LZMA_RUN) {
            const ssize_t n = ::read(in, from.data(), from.size());
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) return std::strerror(errno);
            if (n == 0) action = LZMA_FINISH;
            z.next_in = reinterpret_cast<const std::uint8_t*>(from.data());
            z.avail_in = static_cast<std::size_t>(n);
        }
        z.next_out = reinterpret_cast<std::uint8_t*>(to.data());
        z.avail_out = to.size();
        const lzma_ret rc = lzma_code(&z, action);
        const std::size_t got = to.size() - z.avail_out;
        total += got;
        if (total > kMostUnpacked) return "larger than 1 GiB";
        if (!writeAll(out, to.data(), got)) return std::strerror(errno);
        if (rc == LZMA_STREAM_END) return "";
        if (rc != LZMA_OK) return "xz: damaged or cut off (code " + std::to_string(rc) + ")";
    }
}

}  // namespace

std::string buildId(const std::string& notes) {
    std::size_t at = 0;
    while (notes.size() - at >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr h;
        std::memcpy(&h, notes.data() + at, sizeof h);
        at += sizeof h;
        // Name and descriptor are padded to four bytes each.
        const std::uint64_t name = (std::uint64_t{h.n_namesz} + 3) & ~std::uint64_t{3};
        const std::uint64_t desc = (std::uint64_t{h.n_descsz} + 3) & ~std::uint64_t{3};
        if (name > notes.size() - at || h.n_descsz > notes.size() - at - name) break;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 &&
            std::memcmp(notes.data() + at, "GNU", 4) == 0) {
            static const char digits[] = "0123456789abcdef";
            std::string hex;
            for (std::size_t i = 0; i < h.n_descsz; ++i) {
                const auto b = static_cast<unsigned char>(notes[at + name + i]);
                hex += digits[b >> 4];
                hex += digits[b & 15];
            }
            return hex;
        }
        if (desc > notes.size() - at - name) break;
        at += name + desc;
    }
    return "";
}

std::string section(int fd, const std::string& name) {
    Elf64_Ehdr h;
    if (!readAt(fd, &h, sizeof h, 0)) return "";
    if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_shentsize != sizeof(Elf64_Shdr) ||
        h.e_shstrndx >= h.e_shnum)
        return "";
    std::vector<Elf64_Shdr> all(h.e_shnum);
    if (!readAt(fd, all.data(), all.size() * sizeof(Elf64_Shdr), h.e_shoff)) return "";
    const Elf64_Shdr& strings = all[h.e_shstrndx];
    if (strings.sh_size > kMostSection) return "";
    std::string names(strings.sh_size, 0);
    if (!readAt(fd, names.data(), names.size(), strings.sh_offset)) return "";
    for (const Elf64_Shdr& s : all) {
        if (s.sh_name >= names.size() || s.sh_type == SHT_NOBITS || s.sh_size > kMostSection)
            continue;
        if (names.compare(s.sh_name, name.size() + 1, name.c_str(), name.size() + 1) != 0) continue;
        std::string content(s.sh_size, 0);
        if (!readAt(fd, content.data(), content.size(), s.sh_offset)) return "";
        return content;
    }
    return "";
}

int openModule(const std::string& path, std::string& reason) {
    const int in = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in < 0) {
        reason = std::strerror(errno);
        return -1;
    }
    struct stat st {};
    if (::fstat(in, &st) != 0 || !S_ISREG(st.st_mode)) {
        reason = "no regular file";
        ::close(in);
        return -1;
    }
    const bool zst = endsWith(path, ".zst"), xz = endsWith(path, ".xz");
    if (!zst && !xz) {
        if (endsWith(path, ".ko")) return in;
        reason = "compressed in a way that is not supported (known: .xz, .zst)";
        ::close(in);
        return -1;
    }
    const int out = ::memfd_create("module", MFD_CLOEXEC);
    if (out < 0)
        reason = std::strerror(errno);
    else
        reason = zst ? unpackZstd(in, out) : unpackXz(in, out);
    ::close(in);
    if (out >= 0 && !reason.empty()) ::close(out);
    return reason.empty() ? out : -1;
}

std::string signatureTrailer(int fd) {
    struct stat st {};
    if (::fstat(fd, &st) != 0) return "";
    const auto size = static_cast<std::uint64_t>(st.st_size);
    if (size < kMagicSize + kInfoSize) return "";
    unsigned char tail[kInfoSize + kMagicSize];
    if (!readAt(fd, tail, sizeof tail, size - sizeof tail)) return "";
    if (std::memcmp(tail + kInfoSize, kMagic, kMagicSize) != 0) return "";
    // sig_len: the last four bytes of the structure, big endian.
    std::uint64_t length = 0;
    for (int i = 8; i < 12; ++i) length = length << 8 | tail[i];
    if (length > kMostSection || length + sizeof tail > size) return "";
    std::string all(length + sizeof tail, 0);
    return readAt(fd, all.data(), all.size(), size - all.size()) ? all : "";
}

namespace {
// Of struct module_signature.
enum Field { kAlgorithm, kHash, kKind, kSignerLength, kKeyLength, kSignatureLength = 11 };
constexpr char kRsa = 1, kSha256 = 4, kX509 = 1;
}  // namespace

std::string signature(const std::string& signer) {
    const std::string name = signer.substr(0, kMostSigner), nothing = "-";
    std::string info(kInfoSize, '\0');
    info[kAlgorithm] = kRsa;
    info[kHash] = kSha256;
    info[kKind] = kX509;
    info[kSignerLength] = static_cast<char>(name.size());
    info[kSignatureLength] = static_cast<char>(nothing.size());
    return name + nothing + info + kMagic;
}

std::string plainSigner(int fd, const std::string& trailer) {
    struct stat st {};
    const std::size_t tail = kInfoSize + kMagicSize;
    if (trailer.size() < tail || ::fstat(fd, &st) != 0) return "";
    const char* info = trailer.data() + trailer.size() - tail;
    const std::size_t name = static_cast<unsigned char>(info[kSignerLength]);
    const std::size_t key = static_cast<unsigned char>(info[kKeyLength]);
    const auto size = static_cast<std::uint64_t>(st.st_size);
    if (info[kKind] != kX509 || size < trailer.size() + key + name) return "";
    std::string signer(name, '\0');
    return readAt(fd, signer.data(), name, size - trailer.size() - key - name) ? signer : "";
}

std::string stub(const std::string& modinfo, const std::string& notes, const std::string& trailer) {
    static const char names[] = "\0.modinfo\0.note.gnu.build-id\0.shstrtab";
    const std::string strings(names, sizeof names);
    Elf64_Ehdr h{};
    std::memcpy(h.e_ident, ELFMAG, SELFMAG);
    h.e_ident[EI_CLASS] = ELFCLASS64;
    h.e_ident[EI_DATA] = ELFDATA2LSB;
    h.e_ident[EI_VERSION] = EV_CURRENT;
    h.e_type = ET_REL;
    h.e_machine = EM_X86_64;
    h.e_version = EV_CURRENT;
    h.e_ehsize = sizeof h;
    h.e_shentsize = sizeof(Elf64_Shdr);
    h.e_shnum = 4;
    h.e_shstrndx = 3;
    h.e_shoff = sizeof h;
    Elf64_Shdr s[4] = {};
    std::uint64_t at = sizeof h + sizeof s;
    const auto place = [&](Elf64_Shdr& to, unsigned name, unsigned type, const std::string& data) {
        to.sh_name = name;
        to.sh_type = type;
        to.sh_offset = at;
        to.sh_size = data.size();
        to.sh_addralign = 4;
        at += data.size() + (4 - data.size() % 4) % 4;
    };
    place(s[1], 1, SHT_PROGBITS, modinfo);
    place(s[2], 10, SHT_NOTE, notes);
    place(s[3], 29, SHT_STRTAB, strings);
    std::string out(reinterpret_cast<const char*>(&h), sizeof h);
    out.append(reinterpret_cast<const char*>(s), sizeof s);
    for (const std::string* data : {&modinfo, &notes, &strings}) {
        out += *data;
        out.append((4 - data->size() % 4) % 4, '\0');
    }
    return out + trailer;
}

std::string pack(const std::string& bytes, const std::string& name) {
    if (endsWith(name, ".zst")) {
        std::string out(ZSTD_compressBound(bytes.size()), 0);
        const std::size_t n = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3);
        if (ZSTD_isError(n)) throw std::runtime_error(name + ": " + ZSTD_getErrorName(n));
        out.resize(n);
        return out;
    }
    if (endsWith(name, ".xz")) {
        std::string out(lzma_stream_buffer_bound(bytes.size()), 0);
        std::size_t n = 0;
        // CRC32: the kernel's decoder, and so libkmod's users, know no other check.
        if (lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, nullptr,
                                    reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                    bytes.size(), reinterpret_cast<std::uint8_t*>(out.data()), &n,
                                    out.size()) != LZMA_OK)
            throw std::runtime_error(name + ": xz compression failed");
        out.resize(n);
        return out;
    }
    return bytes;
}

}  // namespace p2p::elf
