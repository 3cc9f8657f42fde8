// SPDX-License-Identifier: MIT
#include "p2p-bar1/app.h"

#include "lib/cli/cli.h"

namespace p2p::bar1 {

std::unique_ptr<CLI::App> makeApp(Options& o) {
    auto app = std::make_unique<CLI::App>(
        "Show the BAR1 of NVIDIA GPUs and what keeps it small; switch peer-to-peer over it on or "
        "off.",
        "p2p-bar1");
    const auto root = [&o](CLI::App& to) {
        to.add_option(
              "--root", o.root,
              "Look at a folder laid out like / (or, for list, at a snapshot that p2p-verify "
              "gather made) instead of /.")
            ->type_name("DIR|FILE")
            ->check(notEmpty());
    };
    const auto json = [&o](CLI::App& to) {
        to.add_flag("--json", o.json, "Write the list as JSON, sizes in bytes.");
    };
    root(*app);
    json(*app);

    CLI::App* list = app->add_subcommand(
        "list",
        "List each GPU with its BAR1, what Resizable BAR offers, the window of the bridge above "
        "it, and what blocks growth. This is what is done without a command.");
    root(*list);
    json(*list);
    list->callback([&o] { o.command = Options::List; });

    const auto edit = [&](CLI::App& to) {
        to.add_option(
              "--gpu", o.gpu,
              "Only this GPU, by PCI address (NVreg_RegistryDwordsPerDevice). Without it: all.")
            ->type_name("BDF")
            ->check(notEmpty());
        to.add_flag("--dry-run", o.dry_run, "Print what the file would hold, and write nothing.");
        root(to);
    };
    CLI::App* enable = app->add_subcommand(
        "enable",
        "Let the driver grow BAR1 (NVreg_EnableResizableBar=1) and use it for peer-to-peer "
        "(NvP2pBar1=1), from the next load of the module on.");
    edit(*enable);
    enable->callback([&o] { o.command = Options::Enable; });
    CLI::App* disable = app->add_subcommand(
        "disable",
        "Make the driver behave like NVIDIA's again, from the next load of the module on.");
    edit(*disable);
    disable->callback([&o] { o.command = Options::Disable; });
    app->require_subcommand(0, 1);
    return app;
}

ManPage manPage() {
    ManPage p;
    p.section = 8;
    p.summary = "show and set up the BAR1 of NVIDIA GPUs for peer-to-peer";
    p.sections = {
        {"DESCRIPTION",
         "A GPU reaches another one's memory through that one's BAR1, a window on the PCI bus. The "
         "window "
         "must hold all of the memory, and the changed driver must be told to use it.\n\n"
         "p2p-bar1 list shows where the machine stands; it reads only. Without root rights the "
         "Resizable BAR "
         "capability cannot be read and is shown as unread.\n\n"
         "p2p-bar1 enable and disable edit one file, /etc/modprobe.d/nvidia-p2p.conf: in one step, "
         "with the "
         "old content kept beside it as .bak, and without touching other lines. The driver takes "
         "only one "
         "NVreg_RegistryDwords. What files that modprobe reads earlier put there is taken over "
         "into the line. Where another file or the kernel command line would keep P2P off that is "
         "to be on, or on that is to be off, nothing is changed and the place is named. The file "
         "keeps its owner and its rights."},
        {"EXIT STATUS",
         "0\tDone, or nothing to do.\n"
         "1\tRefused: another file, or the file itself, stands against it; nothing was changed.\n"
         "64\tThe command line is wrong, or names a snapshot that cannot be read; one line on "
         "standard "
         "error says how.\n"
         "70\tInternal error, or a file could not be written.\n"},
        {"FILES",
         "/etc/modprobe.d/nvidia-p2p.conf\tThe options.\n"
         "/etc/modprobe.d/nvidia-p2p.conf.bak\tWhat it held before the last change.\n"},
        {"EXAMPLES",
         "What is in the way:\n    p2p-bar1\n"
         "See the change before it is made:\n    p2p-bar1 enable --dry-run\n"
         "One GPU only:\n    p2p-bar1 enable --gpu 0000:01:00.0\n"},
        {"SEE ALSO", "p2p-verify(1), modprobe.d(5), update-initramfs(8)"},
    };
    return p;
}

}  // namespace p2p::bar1
