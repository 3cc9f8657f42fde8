// SPDX-License-Identifier: MIT
#include "lib/facts/redact.h"

#include <strings.h>

#include <algorithm>
#include <cstring>

#include "lib/facts/parse.h"

namespace p2p {
namespace {

constexpr const char* kGone = "REDACTED";

bool isHex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool isWord(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isBlank(char c) {
    return c == ' ' || c == '\t';
}
bool isSpace(char c) {
    return isBlank(c) || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}
using parse::startsWith;

// 8-4-4-4-12 hexadecimal digits at `at`?
bool uuidAt(const std::string& t, std::size_t at) {
    if (t.size() - at < 36) return false;
    for (std::size_t i = 0; i < 36; ++i) {
        const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? t[at + i] != '-' : !isHex(t[at + i])) return false;
    }
    return true;
}

void redactUuids(std::string& text) {
    for (std::size_t dash = text.find('-'); dash != std::string::npos;
         dash = text.find('-', dash + 1))
        if (dash >= 8 && uuidAt(text, dash - 8))
            text.replace(dash - 8, 36, "00000000-0000-0000-0000-000000000000");
}

// Six or more pairs of hexadecimal digits with the same ':' or '-' between them: addresses of
// network cards, with the "01-" that boot loaders put in front too.
void redactMacs(std::string& text) {
    for (std::size_t at = 0; at + 17 <= text.size(); ++at) {
        if (at > 0 && isWord(text[at - 1])) continue;
        const auto pair = [&](std::size_t i) {
            return i + 2 <= text.size() && isHex(text[i]) && isHex(text[i + 1]) &&
                   (i + 2 == text.size() || !isWord(text[i + 2]));
        };
        if (!pair(at) || (text[at + 2] != ':' && text[at + 2] != '-')) continue;
        const char separator = text[at + 2];
        std::size_t end = at + 2, pairs = 1;
        for (; end < text.size() && text[end] == separator && pair(end + 1); ++pairs) end += 3;
        if (pairs >= 6)
            for (std::size_t i = at; i < end; ++i)
                if (text[i] != separator) text[i] = '0';
        at = end - 1;
    }
}

// Words that are `least` to `most` hexadecimal digits: 32 are a machine id (machine-id(5)).
void redactHex(std::string& text, std::size_t least, std::size_t most) {
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        bool hex = true;
        for (; end < text.size() && isWord(text[end]); ++end) hex = hex && isHex(text[end]);
        if (hex && end - at >= least && end - at <= most) text.replace(at, end - at, end - at, '0');
        at = end + 1;
    }
}

// Where a value that starts at `from` ends: spaces inside double quotes are part of it.
std::size_t valueEnd(const std::string& text, std::size_t from) {
    bool quoted = false;
    for (; from < text.size() && text[from] != '\n'; ++from) {
        if (text[from] == '"') quoted = !quoted;
        if (isSpace(text[from]) && !quoted) break;
    }
    return from;
}

// Boot parameters that name a disk, a host or an address.
void redactParameters(std::string& text) {
    struct Key {
        const char* name;
        bool tail;  // of any name that ends so
    };
    static const Key keys[] = {
        {"root=", false},         {"resume=", false},       {"cryptdevice=", false},
        {"rd.luks.uuid=", false}, {"rd.luks.name=", false}, {"rd.lvm.lv=", false},
        {"nfsroot=", false},      {"ip=", false},           {"netconsole=", false},
        {"BOOTIF=", false},       {"ifname=", false},       {"hostname=", true},
        {"machine_id=", true},    {"machine-id=", true}};
    for (const auto& [key, tail] : keys) {
        const std::size_t n = std::strlen(key);
        for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at)) {
            const bool start = tail || at == 0 || isSpace(text[at - 1]) || text[at - 1] == '"';
            at += n;
            if (!start) continue;
            const std::size_t end = valueEnd(text, at);
            if (end > at) text.replace(at, end - at, kGone);
        }
    }
}

// "Serial Number: 0322917069872", "serial=...": the word after it.
void redactSerials(std::string& text) {
    const auto same = [&](std::size_t at, const char* word) {
        return at < text.size() && ::strncasecmp(text.c_str() + at, word, std::strlen(word)) == 0;
    };
    for (std::size_t at = 0; at < text.size(); ++at) {
        if ((text[at] != 's' && text[at] != 'S') || !same(at, "serial")) continue;
        std::size_t i = at + 6;
        std::size_t word = i;
        while (word < text.size() &&
               (isBlank(text[word]) || text[word] == '_' || text[word] == '-'))
            ++word;
        for (const char* more : {"number", "num", "no.", "no", "nr"})
            if (same(word, more)) {
                i = word + std::strlen(more);
                break;
            }
        while (i < text.size() && isBlank(text[i])) ++i;
        if (i == text.size() || (text[i] != ':' && text[i] != '=')) continue;
        ++i;
        while (i < text.size() && (isBlank(text[i]) || text[i] == '"')) ++i;
        std::size_t end = i;
        while (end < text.size() && !isSpace(text[end]) && !std::strchr(",;\")", text[end])) ++end;
        if (end > i) text.replace(i, end - i, kGone);
        at = i;
    }
}

// Ubuntu names the key that it makes for a machine after the machine
// (shim-signed: update-secureboot-policy), by the name that it had then.
void redactKeyNames(std::string& text) {
    static const std::string tail = " Secure Boot Module Signature key";
    std::size_t at = text.find(tail), done = 0;
    while (at != std::string::npos) {
        std::size_t from = at;
        while (from > done && !isSpace(text[from - 1]) && !std::strchr("',;\")", text[from - 1]))
            --from;
        const std::size_t n = std::strlen(kGone);
        const bool gone = at - from >= n && text.compare(at - n, n, kGone) == 0;
        if (from < at && !gone) {
            text.replace(from, at - from, "HOST");
            at = from + 4;
        }
        done = at + tail.size();
        at = text.find(tail, done);
    }
}

// Words of the kernel's and modprobe's own language that a host may be called.
bool tellsNothing(const std::string& host) {
    static const char* const words[] = {
        "nvidia",   "localhost", "linux", "kernel",  "debian", "ubuntu",  "iommu",     "pcie",
        "host",     "none",      "root",  "HOST",    "pci",    "nouveau", "vfio",      "nova",
        "modprobe", "options",   "alias", "install", "remove", "softdep", "blacklist", "REDACTED",
        "sbin",     "bin",       "off",   "true",    "false",  "modules"};
    if (host.size() < 3) return true;
    if (std::all_of(host.begin(), host.end(), isHex)) return true;
    return std::find(std::begin(words), std::end(words), host) != std::end(words);
}

void replaceWord(std::string& text, const std::string& word, const std::string& by) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !isWord(text[at - 1])) && (end == text.size() || !isWord(text[end]))) {
            text.replace(at, word.size(), by);
            at += by.size();
        } else {
            at = end;
        }
    }
}

// Boot parameters whose values are settings, not names; "x*" stands for all that begin so.
bool harmless(std::string key) {
    static const char* const known[] = {"acpi*",
                                        "amd_iommu*",
                                        "apparmor",
                                        "apic*",
                                        "audit",
                                        "clocksource",
                                        "console",
                                        "cpuidle*",
                                        "crashkernel",
                                        "default_hugepagesz",
                                        "efi",
                                        "hpet",
                                        "hugepages*",
                                        "idle",
                                        "init_on_*",
                                        "initcall_blacklist",
                                        "intel_idle*",
                                        "intel_iommu",
                                        "intel_pstate",
                                        "iommu*",
                                        "irqaffinity",
                                        "isolcpus",
                                        "kaslr",
                                        "kvm*",
                                        "lockdown",
                                        "loglevel",
                                        "lsm",
                                        "maxcpus",
                                        "mce",
                                        "mem",
                                        "memmap",
                                        "mitigations",
                                        "modprobe.blacklist",
                                        "module.*",
                                        "module_blacklist",
                                        "net.ifnames",
                                        "nmi_watchdog",
                                        "nohz_full",
                                        "nokaslr",
                                        "nomodeset",
                                        "nosmt",
                                        "nouveau.*",
                                        "nova*",
                                        "numa*",
                                        "nvidia*",
                                        "panic*",
                                        "pci",
                                        "pci_stub.*",
                                        "pcie*",
                                        "preempt",
                                        "processor.*",
                                        "quiet",
                                        "rcu_nocbs",
                                        "rd.driver.blacklist",
                                        "rd.driver.pre",
                                        "rdblacklist",
                                        "reboot",
                                        "security",
                                        "selinux",
                                        "splash",
                                        "swiotlb",
                                        "tsc",
                                        "vfio*",
                                        "vga",
                                        "video",
                                        "vt.*",
                                        "watchdog*",
                                        "x2apic*"};
    std::replace(key.begin(), key.end(), '-', '_');
    for (const char* k : known) {
        const std::size_t n = std::strlen(k);
        if (k[n - 1] == '*' ? key.compare(0, n - 1, k, n - 1) == 0 : key == k) return true;
    }
    return false;
}

// The kernel's own file: "/boot/vmlinuz-6.8.0-45-generic", maybe behind a disk of GRUB's.
bool plainImage(const std::string& value) {
    const std::size_t from = value.find(")/") == std::string::npos ? 0 : value.find(")/") + 1;
    std::string path = value.substr(from);
    if (startsWith(path, "/boot/")) path.erase(0, 5);
    return startsWith(path, "/vmlinuz") && path.find('/', 1) == std::string::npos &&
           value.find('"') == std::string::npos;
}

// "1", "off", "auto": who and where is not in them.
bool tame(const std::string& value) {
    for (const char* w : {"on", "off", "auto", "yes", "no", "y", "n", "Y", "N"})
        if (value == w) return true;
    return value.size() <= 4 && value.find_first_not_of("0123456789") == std::string::npos;
}

std::string redactWord(const std::string& word) {
    const std::size_t eq = word.find('=');
    // Quotes may be around all of it.
    const std::string key = word.substr(word[0] == '"' ? 1 : 0, eq - (word[0] == '"' ? 1 : 0));
    const bool plain = std::all_of(key.begin(), key.end(), [](char c) {
        return isWord(c) || c == '.' || c == '-' || c == ':';
    });
    if (!plain) return kGone;
    if (eq == std::string::npos) return word[0] == '"' ? kGone : word;
    if (harmless(key) || tame(word.substr(eq + 1))) return word;
    if (key == "BOOT_IMAGE" && word[0] != '"' && plainImage(word.substr(eq + 1))) return word;
    return key + "=" + kGone;
}

}  // namespace

std::string redact(const std::string& text, const std::string& hostname) {
    std::string out = text;
    if (out.find('=') != std::string::npos) redactParameters(out);
    redactSerials(out);
    redactUuids(out);
    redactMacs(out);
    redactHex(out, 32, 32);
    redactKeyNames(out);
    if (!tellsNothing(hostname)) {
        replaceWord(out, hostname, "HOST");
        const std::string bare = hostname.substr(0, hostname.find('.'));
        if (bare != hostname && !tellsNothing(bare)) replaceWord(out, bare, "HOST");
    }
    return out;
}

std::string redactCmdline(const std::string& text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        if (isSpace(text[at])) {
            out += text[at++];
            continue;
        }
        std::size_t end = at;
        bool quoted = false;
        for (; end < text.size() && (quoted || !isSpace(text[end])); ++end)
            if (text[end] == '"') quoted = !quoted;
        const std::string word = text.substr(at, end - at);
        at = end;
        if (word == "--") {
            while (!out.empty() && isSpace(out.back())) out.pop_back();
            if (text.back() == '\n') out += '\n';
            break;
        }
        out += redactWord(word);
    }
    return out;
}

std::string redactMessage(const std::string& text) {
    std::string out = text;
    // "Kernel command line: ...", 'Unknown kernel command line parameters "...", will be ...'.
    const std::size_t named = out.find("ommand line");
    if (named != std::string::npos) {
        static const std::string rest = "\", will be passed to user space.";
        std::size_t from = out.find_first_of(":\"", named);
        if (from == std::string::npos) from = named + 10;
        ++from;
        // What is behind the last one would be taken for a part of it.
        if (const std::size_t end = out.find(rest, from); end != std::string::npos) out.resize(end);
        out = out.substr(0, from) + redactCmdline(out.substr(from));
    }
    // "Loaded X.509 cert 'NAME: 0123...'": the key is one machine's alone.
    redactHex(out, 32, 128);
    return out;
}

}  // namespace p2p
