// SPDX-License-Identifier: MIT
// What the administrator asked of the driver, and what the driver took.
#include <algorithm>
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
        if (text) parse::modprobe(*text, path, facts.options, facts.modprobe_rules);
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
