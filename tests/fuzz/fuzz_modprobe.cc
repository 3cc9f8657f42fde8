// SPDX-License-Identifier: MIT
// modprobe.d files, registry strings, and what p2p-bar1 makes of them.
#include <cstdint>
#include <string>

#include "lib/facts/parse.h"
#include "p2p-bar1/edit.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace p2p;
    const std::string text(reinterpret_cast<const char*>(data), size);
    if (text.find('\0') != std::string::npos) return 0;  // no text file
    std::vector<ModprobeOption> options;
    std::vector<ModprobeRule> rules;
    parse::modprobe(text, bar1::kFile, options, rules);
    parse::modprobeCmdline(text, options, rules);
    (void)parse::registryDwords(text);
    (void)parse::registryDwordsPerDevice(text);
    (void)parse::dword(text);
    for (const char* gpu : {"", "0000:01:00.0"}) {
        const bar1::Edit on = bar1::edit(text, {true, gpu}, {});
        // Done once is done: a second run changes nothing.
        if (on.refused.empty() && bar1::edit(on.text, {true, gpu}, {}).text != on.text)
            __builtin_trap();
        const bar1::Edit off = bar1::edit(on.text, {false, gpu}, {});
        if (bar1::edit(off.text, {false, gpu}, {}).text != off.text) __builtin_trap();
    }
    return 0;
}
