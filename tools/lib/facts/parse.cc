// SPDX-License-Identifier: MIT
#include "lib/facts/parse.h"

#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "lib/facts/pci_caps.h"

namespace p2p::parse {
namespace {

bool space(char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0;
}
bool digit(char c) {
    return c >= '0' && c <= '9';
}
bool has(const std::string& s, const char* part) {
    return s.find(part) != std::string::npos;
}

std::string unquote(const std::string& s) {
    if (s.size() >= 2 && s.front() == '"' && s.back() == '"') return s.substr(1, s.size() - 2);
    return s;
}

}  // namespace

bool startsWith(const std::string& s, const std::string& head) {
    return s.compare(0, head.size(), head) == 0;
}

std::string moduleName(std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

std::string trim(const std::string& t) {
    std::size_t a = 0, b = t.size();
    while (a < b && space(t[a])) ++a;
    while (b > a && space(t[b - 1])) --b;
    return t.substr(a, b - a);
}

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> all;
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t end = text.find('\n', at);
        if (end == std::string::npos) end = text.size();
        all.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return all;
}

std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream in(text);
    std::string w;
    while (in >> w) all.push_back(w);
    return all;
}

std::vector<std::string> cmdline(const std::string& text) {
    std::vector<std::string> all;
    std::string word;
    bool quoted = false, any = false;
    for (char c : text) {
        if (c == '"') quoted = !quoted;
        if (space(c) && !quoted) {
            if (any) all.push_back(word);
            word.clear();
            any = false;
        } else {
            word += c;
            any = true;
        }
    }
    if (any) all.push_back(word);
    return all;
}

Argument argument(const std::string& word) {
    const bool quoted = !word.empty() && word.front() == '"';
    std::string w = quoted ? word.substr(1) : word;
    const std::size_t eq = w.find('=');
    const bool value_quoted = eq != std::string::npos && eq + 1 < w.size() && w[eq + 1] == '"';
    if ((quoted || value_quoted) && !w.empty() && w.back() == '"') w.pop_back();
    if (eq == std::string::npos) return {w, ""};
    return {w.substr(0, eq), w.substr(std::min(w.size(), eq + (value_quoted ? 2 : 1)))};
}

std::optional<std::string> cmdlineValue(const std::string& text, const std::string& name) {
    std::optional<std::string> found;
    for (const std::string& w : cmdline(text))
        if (Argument a = argument(w); a.name == name) found = std::move(a.value);
    return found;
}

std::vector<ModprobeLine> modprobeLines(const std::string& text) {
    std::vector<ModprobeLine> all;
    std::string joined;
    int number = 0, count = 0;
    const auto raws = lines(text);
    for (const std::string& raw : raws) {
        ++number;
        ++count;
        if (!raw.empty() && raw.back() == '\\' && static_cast<std::size_t>(number) < raws.size()) {
            joined += raw.substr(0, raw.size() - 1);
            joined += ' ';
            continue;
        }
        // One at the end of the file asks for more that does not come.
        joined += !raw.empty() && raw.back() == '\\' ? raw.substr(0, raw.size() - 1) : raw;
        all.push_back({trim(joined), number - count + 1, count});
        joined.clear();
        count = 0;
    }
    return all;
}

void modprobe(const std::string& text, const std::string& path,
              std::vector<ModprobeOption>& options, std::vector<ModprobeRule>& rules) {
    for (const auto& [line, start, count] : modprobeLines(text)) {
        (void)count;
        if (line.empty() || line[0] == '#') continue;
        const auto w = cmdline(line);
        if (w.size() < 2) continue;
        const std::string module = moduleName(w[1]);
        if (w[0] == "options") {
            for (std::size_t i = 2; i < w.size(); ++i) {
                Argument a = argument(w[i]);
                // Kernel parameters know no difference between - and _ either.
                options.push_back({module, moduleName(a.name), std::move(a.value), path, start});
            }
        } else if (w[0] == "blacklist" || w[0] == "install" || w[0] == "remove" ||
                   w[0] == "alias" || w[0] == "softdep") {
            rules.push_back({w[0], module, line, path, start});
        }
    }
}

void modprobeCmdline(const std::string& text, std::vector<ModprobeOption>& options,
                     std::vector<ModprobeRule>& rules) {
    static const std::string kPath = "/proc/cmdline";
    for (const std::string& w : cmdline(text)) {
        const auto [key, value] = argument(w);
        if (key == "modprobe.blacklist" || key == "module_blacklist") {
            std::istringstream in(value);
            std::string module;
            while (std::getline(in, module, ','))
                if (!module.empty())
                    rules.push_back({"blacklist", moduleName(module), w, kPath, 1});
            continue;
        }
        const std::size_t dot = key.find('.');
        if (dot == std::string::npos || dot == 0) continue;
        const std::string module = moduleName(key.substr(0, dot));
        if (module == "nvidia" || startsWith(module, "nvidia_"))
            options.push_back({module, moduleName(key.substr(dot + 1)), value, kPath, 1});
    }
}

std::map<std::string, std::string> params(const std::string& text) {
    std::map<std::string, std::string> all;
    for (const std::string& line : lines(text)) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos || colon == 0) continue;
        all[trim(line.substr(0, colon))] = unquote(trim(line.substr(colon + 1)));
    }
    return all;
}

std::map<std::string, std::string> settings(const std::string& text) {
    std::map<std::string, std::string> all;
    for (const std::string& line : lines(text)) {
        const std::size_t eq = line.find('=');
        if (eq != std::string::npos && eq > 0) all[line.substr(0, eq)] = trim(line.substr(eq + 1));
    }
    return all;
}

Dwords registryDwords(const std::string& text) {
    Dwords all;
    std::istringstream in(text);
    std::string pair;
    while (std::getline(in, pair, ';')) {
        const std::size_t eq = pair.find('=');
        const std::string key = trim(pair.substr(0, eq));
        if (key.empty()) continue;
        all.emplace_back(key, eq == std::string::npos ? "" : trim(pair.substr(eq + 1)));
    }
    return all;
}

namespace {

// "01:00", "0000:01:00" or "0000:01:00.0" as the last; "" for anything else.
std::string deviceBdf(const std::string& address) {
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    const char* v = address.c_str();
    int used = 0;
    // NOLINTBEGIN(cert-err34-c): %n tells whether all of the text was used, widths bound it
    if (std::sscanf(v, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function, &used) != 4 ||
        v[used]) {
        function = 0;
        used = 0;
        if (std::sscanf(v, "%8x:%2x:%2x%n", &domain, &bus, &slot, &used) != 3 || v[used]) {
            domain = 0;
            used = 0;
            if (std::sscanf(v, "%2x:%2x%n", &bus, &slot, &used) != 2 || v[used]) return "";
        }
    }
    // NOLINTEND(cert-err34-c)
    char buf[32];
    std::snprintf(buf, sizeof buf, "%04x:%02x:%02x.%x", domain, bus, slot, function);
    return buf;
}

}  // namespace

std::vector<DeviceDwords> deviceDwords(const std::string& text) {
    std::vector<DeviceDwords> all;
    for (auto& [key, value] : registryDwords(text)) {
        if (key == "pci") {
            all.push_back({value, deviceBdf(value), {}});
            continue;
        }
        if (all.empty()) all.emplace_back();
        all.back().dwords.emplace_back(std::move(key), std::move(value));
    }
    return all;
}

std::map<std::string, Dwords> registryDwordsPerDevice(const std::string& text) {
    std::map<std::string, Dwords> all;
    for (DeviceDwords& d : deviceDwords(text)) {
        if (d.bdf.empty()) continue;
        Dwords& to = all[d.bdf];
        std::move(d.dwords.begin(), d.dwords.end(), std::back_inserter(to));
    }
    return all;
}

bool sameKey(const std::string& a, const std::string& b) {
    return ::strcasecmp(a.c_str(), b.c_str()) == 0;
}

std::optional<std::uint32_t> dword(const std::string& text) {
    if (text.empty() || !digit(text[0])) return std::nullopt;
    char* end = nullptr;
    errno = 0;
    const unsigned long long v = std::strtoull(text.c_str(), &end, 0);
    if (*end || errno || v > 0xffffffffULL) return std::nullopt;
    return static_cast<std::uint32_t>(v);
}

bool keyEnables(const std::string& value) {
    const auto v = dword(value);
    return v && (*v & 1) && (*v & ~7U) == 0;
}

namespace {

// "6,1234,5678,-;text" -> text;  "[    1.234567] kernel: text" -> text.
std::string message(const std::string& line) {
    std::size_t at = 0;
    if (!line.empty() && digit(line[0])) {
        const std::size_t semi = line.find(';');
        const std::size_t comma = line.find(',');
        if (semi != std::string::npos && comma < semi) at = semi + 1;
    }
    if (at < line.size() && line[at] == '[') {
        const std::size_t close = line.find("] ", at);
        bool stamp = close != std::string::npos;
        for (std::size_t i = at + 1; stamp && i < close; ++i)
            stamp = digit(line[i]) || line[i] == '.' || line[i] == ' ';
        if (stamp) at = close + 2;
    }
    if (line.compare(at, 8, "kernel: ") == 0) at += 8;
    return trim(line.substr(at));
}

bool relevant(const std::string& m) {
    for (const char* key : {"NVRM",
                            "nvidia",
                            "nouveau",
                            "nova",
                            "AMD-Vi",
                            "DMAR",
                            "iommu",
                            "IOMMU",
                            "vfio",
                            "module verification failed",
                            "Lockdown",
                            "Secure boot",
                            "Secure Boot",
                            "AER:",
                            "no space",
                            "failed to assign",
                            "can't assign",
                            "ACS",
                            "Key was rejected",
                            "is rejected",
                            "efifb",
                            "simple-framebuffer",
                            "fb0:"})
        if (has(m, key)) return true;
    return false;
}

}  // namespace

std::vector<std::string> kernelLog(const std::string& text) {
    // A driver that repeats one complaint thousands of times must not fill the memory.
    constexpr std::size_t kMost = 2000, kLongest = 1000;
    std::vector<std::string> all;
    for (const std::string& line : lines(text)) {
        // " SUBSYSTEM=pci": the dictionary of the record before.
        if (!line.empty() && line[0] == ' ' && !startsWith(line, "  ")) continue;
        std::string m = message(line);
        if (!relevant(m)) continue;
        if (m.size() > kLongest) {
            // At a space: half of an address would no longer be known for one.
            const std::size_t end = m.rfind(' ', kLongest);
            m.resize(end == std::string::npos || end == 0 ? kLongest : end);
        }
        if (all.size() < kMost) all.push_back(std::move(m));
    }
    return all;
}

std::map<std::string, std::string> consoleRegions(const std::string& text) {
    std::map<std::string, std::string> all;
    std::vector<std::pair<std::size_t, std::string>> inside;  // indentation, BDF
    for (const std::string& line : lines(text)) {
        const std::size_t indent = line.find_first_not_of(' ');
        const std::size_t colon = line.find(" : ");
        if (indent == std::string::npos || colon == std::string::npos) continue;
        while (!inside.empty() && inside.back().first >= indent) inside.pop_back();
        const std::string name = trim(line.substr(colon + 3));
        if (pci::isBdf(name)) {
            inside.emplace_back(indent, name);
        } else if (!inside.empty() && (name == "BOOTFB" || name == "efifb" || name == "simplefb" ||
                                       name == "vesafb")) {
            all[inside.back().second] = name;
        }
    }
    return all;
}

std::vector<HostWindow> hostWindows(const std::string& text) {
    std::vector<HostWindow> all;
    for (const std::string& line : lines(text)) {
        if (line.empty() || line[0] == ' ') continue;  // only the top level
        const std::size_t colon = line.find(" : PCI Bus ");
        if (colon == std::string::npos) continue;
        char* end = nullptr;
        const std::uint64_t first = std::strtoull(line.c_str(), &end, 16);
        if (*end != '-') continue;
        const std::uint64_t last = std::strtoull(end + 1, &end, 16);
        if (last <= first) continue;
        all.push_back({trim(line.substr(colon + 11)), first, last - first + 1});
    }
    return all;
}

bool hypervisorFlag(const std::string& text) {
    for (const std::string& line : lines(text)) {
        if (!startsWith(line, "flags")) continue;
        const auto w = words(line);
        return std::find(w.begin(), w.end(), "hypervisor") != w.end();
    }
    return false;
}

std::optional<Processor> processor(const std::string& text) {
    Processor p;
    bool family = false, model = false;
    for (const std::string& line : lines(text)) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) {
            if (line.empty() && !p.vendor.empty()) break;  // the end of the first one
            continue;
        }
        const auto key = words(line.substr(0, colon));
        const auto value = words(line.substr(colon + 1));
        if (value.size() != 1) continue;
        const auto number = [&](int& into) {
            char* end = nullptr;
            const long n = std::strtol(value[0].c_str(), &end, 10);
            if (*end != '\0' || n < 0 || n > 0xffff) return false;
            into = static_cast<int>(n);
            return true;
        };
        if (key == std::vector<std::string>{"vendor_id"})
            p.vendor = value[0];
        else if (key == std::vector<std::string>{"cpu", "family"})
            family = number(p.family);
        else if (key == std::vector<std::string>{"model"})
            model = number(p.model);
    }
    if (p.vendor.empty() || !family || !model) return std::nullopt;
    return p;
}

std::optional<std::uint64_t> shmLimit(const std::string& text) {
    std::optional<std::uint64_t> found;
    for (const std::string& line : lines(text)) {
        const auto w = words(line);
        if (w.size() < 4 || w[1] != "/dev/shm") continue;
        found.reset();
        std::istringstream in(w[3]);
        std::string option;
        while (std::getline(in, option, ',')) {
            if (!startsWith(option, "size=")) continue;
            char* end = nullptr;
            errno = 0;
            const std::uint64_t v = std::strtoull(option.c_str() + 5, &end, 10);
            int shift = -1;
            if (*end == '\0') shift = 0;
            if (*end == 'k') shift = 10;
            if (*end == 'm') shift = 20;
            if (*end == 'g') shift = 30;
            if (shift >= 0 && !errno && digit(option[5]) && v <= (UINT64_MAX >> shift))
                found = v << shift;
        }
    }
    return found;
}

std::string selected(const std::string& text) {
    const std::size_t a = text.find('['), b = text.find(']');
    if (a == std::string::npos || b == std::string::npos || b < a) return trim(text);
    return text.substr(a + 1, b - a - 1);
}

namespace {
// "550.54.15", "565.77": digits with one or two dots, three digits first.
bool isVersion(const std::string& w) {
    std::size_t dots = 0, run = 0;
    for (const char c : w) {
        if (c == '.') {
            if (run == 0 || (dots == 0 && run != 3)) return false;
            ++dots;
            run = 0;
        } else if (digit(c)) {
            ++run;
        } else {
            return false;
        }
    }
    return run > 0 && (dots == 1 || dots == 2);
}
}  // namespace

std::string driverVersion(const std::string& text) {
    for (const std::string& line : lines(text)) {
        if (!has(line, "NVRM version")) continue;
        for (const std::string& w : words(line))
            if (isVersion(w)) return w;
    }
    return "";
}

std::string libraryVersion(const std::string& file, const std::string& library) {
    if (!startsWith(file, library + ".")) return "";
    const std::string version = file.substr(library.size() + 1);
    return isVersion(version) ? version : "";
}

}  // namespace p2p::parse
