// SPDX-License-Identifier: MIT
// What the administrator asked of the driver, and what the driver took.
#include <map>
#include <string>

#include "lib/facts/collect.h"
#include "lib/facts/parse.h"

namespace p2p {

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
    if (facts.cmdline) parse::modprobeCmdline(*facts.cmdline, facts.options, facts.modprobe_rules);

    const std::string path = "/proc/driver/nvidia/params";
    const auto params = m.text(path);
    if (params)
        facts.params = {path, parse::params(*params)};
    else
        facts.params = Sourced<std::map<std::string, std::string>>::missing(path, params.unread);
}

}  // namespace p2p
