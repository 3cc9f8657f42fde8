// SPDX-License-Identifier: MIT
#include "p2p-bench/app.h"

#include "lib/cli/cli.h"
#include "lib/gpu/run.h"

namespace p2p::bench {

std::unique_ptr<CLI::App> makeApp(Options& o) {
    auto app = std::make_unique<CLI::App>(
        "Measures bandwidth and latency between all pairs of NVIDIA GPUs and sets them beside what "
        "the PCIe path allows. The data moved is checked on the GPU that received it.",
        "p2p-bench");
    const CLI::Validator address(
        [](std::string& text) -> std::string {
            const std::string bdf = normalBdf(text);
            if (bdf.empty())
                return "\"" + text + "\" is no PCI address; write it like 0000:01:00.0";
            text = bdf;
            return "";
        },
        "");
    app->add_option("--gpus", o.gpus, "GPUs to measure, separated by commas; default all")
        ->delimiter(',')
        ->type_name("BDF")
        ->transform(address);
    app->add_option("--size", o.size_mib, "size of one copy")
        ->type_name("MiB")
        ->check(CLI::Range(1, 4096));
    app->add_option("--seconds", o.seconds, "how long each rate is measured")
        ->type_name("S")
        ->check(CLI::Range(0.01, 60.0))
        ->check(finite());
    app->add_option("--timeout", o.timeout_s, "for everything; what is not reached is said")
        ->type_name("S")
        ->check(CLI::Range(1.0, 86400.0))
        ->check(finite());
    app->add_option("--min-share", o.min_share,
                    "exit with status 10 if a pair reaches less of its limit, with 40 if the limit "
                    "of a pair is not known")
        ->type_name("PERCENT")
        ->check(CLI::Range(0.0, 100.0))
        ->check(finite());
    CLI::Option* json = app->add_flag("--json", o.json, "write JSON to standard output");
    app->add_flag("--csv", o.csv, "write comma-separated values to standard output")
        ->excludes(json);
    app->add_option("--html", o.html, "also write a page that needs no other file")
        ->type_name("FILE")
        ->check(notEmpty());
    return app;
}

ManPage manPage() {
    ManPage page;
    page.section = 1;
    page.summary = "bandwidth and latency between NVIDIA GPUs against the limit of their path";
    page.sections = {
        {"DESCRIPTION",
         "For every ordered pair p2p-bench copies from the first GPU's memory into the second's "
         "with "
         "the first one's copy engine, once alone and once in both directions together, and lets "
         "two "
         "kernels pass a flag to and fro for the latency. One GPU alone gives its own copy rate "
         "and "
         "those from and to pinned host memory, and status 40, since no pair was measured.\n\n"
         "Rates are in GB/s (10^9 bytes of payload a second) as counted by the GPU's own clock; in "
         "both "
         "directions the figure is their sum, by the host's clock. Latency is one-way, in "
         "microseconds. The limit is what the slowest PCIe link between the two carries in one "
         "direction "
         "after packet headers; pairs joined by NVLink have none.\n\n"
         "No setting of the machine is changed. Nothing else should use the GPUs meanwhile."},
        {"EXIT STATUS", exitStatusText(true)},
        {"EXAMPLES",
         "All pairs, for a spreadsheet:\n\n    p2p-bench --csv > rates.csv\n\nTwo of the GPUs, "
         "failing under "
         "three quarters of the limit:\n\n    p2p-bench --gpus 0000:01:00.0,0000:02:00.0 "
         "--min-share 75"},
        {"SEE ALSO", "p2p-verify(1), p2p-bar1(8)"},
    };
    return page;
}

}  // namespace p2p::bench
