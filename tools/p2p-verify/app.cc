// SPDX-License-Identifier: MIT
#include "p2p-verify/app.h"

#include "lib/cli/cli.h"

namespace p2p::verify {

std::unique_ptr<CLI::App> makeApp(Options& o) {
    auto app = std::make_unique<CLI::App>(
        "Tell whether the GPUs of this machine reach each other over PCI Express.", "p2p-verify");
    // Values are bound by hand: CLI11 1.9 has no std::optional of strings with an optional value.
    auto file = [&](const std::string& name, std::optional<std::string>& to,
                    const std::string& what) {
        return app
            ->add_option_function<std::string>(
                name, [&to](const std::string& v) { to = v.empty() ? "-" : v; }, what)
            ->type_name("FILE")
            ->check(notEmpty());
    };
    app->add_option(
           "--level", o.level,
           "How far to go. env reads only: files of the kernel, and NVML when the nvidia module is "
           "loaded. "
           "data also sends data between every ordered pair of GPUs, each way that programs use, "
           "and checks "
           "it on the GPU that received it. full adds all pairs at once, bandwidth and latency.")
        ->type_name("LEVEL")
        ->check(CLI::IsMember({"env", "data", "full"}))
        ->default_str("env");
    app->add_option(
           "--root", o.root,
           "Look at a snapshot that p2p-verify gather made, or at a folder laid out like /, "
           "instead of /. A snapshot is for level env; a folder may be this machine's "
           "root as a container sees it, and then GPUs can be tested too.")
        ->type_name("DIR|FILE")
        ->check(notEmpty());
    file("--json", o.json,
         "Write the report as JSON (p2p-verify-1.json describes it). Without FILE: to standard "
         "output.")
        ->expected(0, 1);
    file("--junit", o.junit, "Write the report as JUnit XML.");
    file("--prometheus", o.prometheus,
         "Write metrics for the textfile collector of the Prometheus node exporter; FILE is "
         "replaced in one step.");
    file("--html", o.html, "Write the report as one self-contained HTML page.");
    app->add_flag("--nagios", o.nagios,
                  "Print one line with performance data and exit as a monitoring plugin does: 0 "
                  "OK, 1 WARNING, "
                  "2 CRITICAL, 3 UNKNOWN.");
    app->add_option("--gpus", o.gpus,
                    "Only these GPUs, a list of PCI addresses separated by commas, such as "
                    "01:00.0,0000:41:00.0.")
        ->type_name("BDF,...")
        ->delimiter(',')
        ->check(notEmpty());
    app->add_option(
           "--timeout", o.timeout_s,
           "Seconds for all GPU tests together. Without it: 60 and 15 for each ordered pair, 30 "
           "for level env. A single test may take 20, or a tenth of this when that is more. An "
           "answer comes at most two seconds later, even when a driver call never returns.")
        ->type_name("SECONDS")
        ->check(CLI::Range(1.0, 86400.0))
        ->check(finite());
    app->add_flag("--force", o.force,
                  "Move data although an IOMMU translates peer addresses, which can end in wrong "
                  "data or a lost GPU, "
                  "or although other programs use the GPUs.");
    app->add_option_function<double>(
           "--min-bandwidth", [&o](const double& v) { o.min_bandwidth_gbs = v; },
           "Judge a pair slow when it carries less than this, in GB/s (10^9 bytes per second, one "
           "direction). "
           "Level full only.")
        ->type_name("GB/s")
        ->check(CLI::PositiveNumber)
        ->check(finite());
    app->add_flag("--no-color", o.no_color,
                  "Plain text on a terminal too; so does the environment variable NO_COLOR.");

    // --root and its like are understood on both sides of the command's name.
    app->fallthrough();
    CLI::App* gather = app->add_subcommand("gather",
                                           "Write what level env reads to FILE (.tar.gz), without "
                                           "UUIDs, serial numbers and the host name: to "
                                           "be read with --root elsewhere.");
    gather->add_option("file", o.gather_file, "The archive to write.")
        ->required()
        ->type_name("FILE")
        ->check(notEmpty());
    // Both write no report: what is asked of one would be lost without a word.
    const auto alone = [&o, main = app.get()](const char* command) {
        for (const CLI::Option* given : main->get_options())
            for (const char* report :
                 {"--level", "--json", "--junit", "--prometheus", "--html", "--nagios", "--gpus",
                  "--timeout", "--force", "--min-bandwidth"})
                if (given->count() != 0 && given->check_name(report))
                    o.not_for_command = std::string(command) + ": " + report;
    };
    gather->callback([&o, alone] {
        o.gather = true;
        alone("gather");
    });
    CLI::App* explain = app->add_subcommand("explain",
                                            "Say what the rule ID looks for, where it reads, and "
                                            "what it finds here. Without ID: list all rules.");
    explain->add_option("id", o.explain_id, "Name of a finding, such as rebar-off.")
        ->type_name("ID")
        ->check(notEmpty());
    explain->callback([&o, alone] {
        o.explain = true;
        alone("explain");
    });
    app->require_subcommand(0, 1);
    return app;
}

ManPage manPage() {
    ManPage p;
    p.section = 1;
    p.summary = "tell whether GPUs reach each other over PCI Express";
    p.sections = {
        {"DESCRIPTION",
         "p2p-verify answers one question: can the NVIDIA GPUs of this machine read and write each "
         "other's memory "
         "over PCI Express, and does the data arrive?\n\n"
         "Queries of the driver cannot tell: with peer-to-peer forced on they say yes in any case, "
         "and a copy there "
         "and back passes while the data goes nowhere. So the levels data and full send data one "
         "way and check it by "
         "a program on the GPU that received it. What stands in the way is named, with the place "
         "where it was read "
         "and what to do.\n\n"
         "The verdict is the exit status. Several outputs can be asked for at once; without any, "
         "text goes to "
         "standard output.\n\n"
         "Root rights are not needed. Without them parts of the PCI configuration space cannot be "
         "read; the report "
         "says which. GPU tests run in a child process with a deadline."},
        {"EXIT STATUS",
         exitStatusText(true) +
             "\nWith --nagios: 0 proven; 1 slow or reload; 2 unavailable, wrong-data "
             "or hang; 3 inconclusive or an error of the program.\n"},
        {"ENVIRONMENT",
         "NO_COLOR\tNo colours, if it is not empty.\n"
         "CUDA_VISIBLE_DEVICES\tHides GPUs from the levels data and full, as from any CUDA "
         "program.\n"},
        {"FILES",
         "/usr/share/nvidia-p2p/p2p-verify-1.json\tJSON Schema of the output of --json.\n"
         "/var/lib/prometheus/node-exporter/\tUsual folder for --prometheus.\n"},
        {"EXAMPLES",
         "What is in the way, if anything:\n    p2p-verify\n"
         "Proof, with a page to keep:\n    p2p-verify --level data --html report.html\n"
         "Metrics and a line for a monitoring system in one run:\n"
         "    p2p-verify --prometheus /var/lib/prometheus/node-exporter/nvidia_p2p.prom --nagios\n"
         "What a finding means:\n    p2p-verify explain rebar-off\n"
         "A snapshot for a report, and how it is read elsewhere:\n    p2p-verify gather "
         "machine.tar.gz\n"
         "    p2p-verify --root machine.tar.gz --json\n"},
        {"SEE ALSO", "p2p-bar1(8), p2p-bench(1), lspci(8), modprobe.d(5)"},
    };
    return p;
}

}  // namespace p2p::verify
