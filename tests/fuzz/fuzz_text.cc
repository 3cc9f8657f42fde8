// SPDX-License-Identifier: MIT
// Parsers of the kernel's text files and of the log; the first byte picks one.
#include <cstdint>
#include <string>

#include "lib/facts/elf.h"
#include "lib/facts/parse.h"
#include "lib/facts/pci_caps.h"
#include "lib/facts/snapshot.h"
#include "lib/rules/rules.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace p2p;
    if (size == 0) return 0;
    const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
    switch (data[0] % 10) {
        case 0: {
            Facts f;
            f.gpus.resize(2);
            f.gpus[0].bdf = "0000:01:00.0";
            f.gpus[1].bdf = "0000:02:00.0";
            f.log = {"/dev/kmsg", parse::kernelLog(text)};
            (void)assess(f);
            break;
        }
        case 1:
            (void)parse::params(text);
            break;
        case 2:
            (void)parse::consoleRegions(text);
            break;
        case 3:
            (void)parse::hostWindows(text);
            break;
        case 4:
            (void)parse::hypervisorFlag(text);
            break;
        case 5:
            (void)parse::shmLimit(text);
            break;
        case 6:
            (void)pci::regions(text);
            break;
        case 7:
            (void)elf::buildId(text);
            break;
        case 8: {
            const std::string once = redact(text, "myhost");
            // What was taken out once must not come back, nor change again.
            if (redact(once, "myhost") != once) __builtin_trap();
            break;
        }
        default:
            (void)parse::driverVersion(text);
            (void)parse::libraryVersion(text, "libcuda.so");
            (void)parse::selected(text);
            (void)parse::settings(text);
            (void)pci::linkSpeed(text);
            (void)pci::isBdf(text);
    }
    return 0;
}
