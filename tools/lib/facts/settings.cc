// SPDX-License-Identifier: MIT
// What the administrator asked of the driver, and what the driver took.
#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "lib/facts/collect.h"
#include "lib/facts/parse.h"

namespace p2p {
namespace {
// Modules that this tool has an interest in.
bool concerns(const std::string& module) {
    return module.compare(0, 6, "nvidia") == 0 || module == "nouveau" || module == "nova_core" ||
           module == "vfio_pci";
}

// Only the lines that this tool may have an interest in, each where it stood: the others are
// nobody's business (remarks, passwords of other modules).
std::string keptLines(const std::string& text) {
    static const char* const commands[] = {"options", "blacklist", "install",
                                           "remove",  "alias",     "softdep"};
    static const char* const modules[] = {"nvidia", "nouveau", "vfio", "nova", "pci_stub"};
    std::string kept;
    for (const auto& [line, number, count] : parse::modprobeLines(text)) {
        (void)number;
        const auto w = parse::words(line);
        bool ours = w.size() >= 2 &&
                    std::find(std::begin(commands), std::end(commands), w[0]) != std::end(commands);
        if (ours) {
            const std::string module = parse::moduleName(w[1]);
            ours = std::any_of(std::begin(modules), std::end(modules),
                               [&](const char* m) { return parse::startsWith(module, m); });
        }
        if (ours) kept += line;
        kept.append(static_cast<std::size_t>(count), '\n');
    }
    return kept;
}
}  // namespace

void collectSettings(Machine& m, Facts& facts) {
    // modprobe.d(5): by file name, and a name in an earlier folder hides it in the later ones.
    std::map<std::string, std::string> files;
    for (const char* dir : {"/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d",
                            "/usr/lib/modprobe.d", "/lib/modprobe.d"}) {
        const auto names = m.list(dir);
        for (const std::string& n : names.valueOr({})) {
            const bool conf = n.size() > 5 && n.compare(n.size() - 5, 5, ".conf") == 0;
            if (conf) files.emplace(n, std::string(dir) + "/" + n);
        }
    }
    for (const auto& [name, path] : files) {
        const auto text = m.text(path);
        if (!text) continue;
        parse::modprobe(*text, path, facts.options, facts.modprobe_rules);
        m.note(path, {Machine::Entry::File, keptLines(*text)});
    }
    const auto other = [](const auto& o) { return !concerns(o.module); };
    facts.options.erase(std::remove_if(facts.options.begin(), facts.options.end(), other),
                        facts.options.end());
    facts.modprobe_rules.erase(
        std::remove_if(facts.modprobe_rules.begin(), facts.modprobe_rules.end(), other),
        facts.modprobe_rules.end());
    if (facts.cmdline) parse::modprobeCmdline(*facts.cmdline, facts.options, facts.modprobe_rules);

    const std::string path = "/proc/driver/nvidia/params";
    const auto params = m.text(path);
    if (params)
        facts.params = {path, parse::params(*params)};
    else
        facts.params = Sourced<std::map<std::string, std::string>>::missing(path, params.unread);
}

}  // namespace p2p
