// SPDX-License-Identifier: MIT
#include "lib/cli/cli.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "lib/util/system_fault.h"
#include "lib/util/verdict.h"

namespace p2p {

namespace {

std::string oneLine(std::string text) {
    for (char& c : text)
        if (c == '\n' || c == '\r') c = ' ';
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

int fail(const CLI::App& app, const std::string& text, int status) {
    std::fputs(fmt::format("{}: error: {}\n", app.get_name(), oneLine(text)).c_str(), stderr);
    return status;
}

int guarded(const CLI::App& app, const std::function<int()>& run) {
    try {
        return run();
    } catch (const UsageError& e) {
        return fail(app, fmt::format("{}; see {} --help", e.what(), app.get_name()), kExitUsage);
    } catch (const Failure& e) {
        return fail(app, e.what(), e.status);
    } catch (const SystemFault& e) {
        return fail(app, e.what(), kExitInternal);
    } catch (const std::exception& e) {
        return fail(
            app,
            fmt::format("internal error: {}; please report it with the output of p2p-verify gather",
                        e.what()),
            kExitInternal);
    } catch (...) {
        return fail(app, "internal error of unknown kind; please report it", kExitInternal);
    }
}

// A pipe whose reader has gone: POLLERR (poll(2)).  An earlier write may have failed with EPIPE, of
// which the stream keeps only that it failed.
bool readerGone() {
    pollfd p{STDOUT_FILENO, POLLOUT, 0};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLERR) != 0;
}

int flushed(const CLI::App& app, int status) {
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    if (errno == EPIPE || readerGone()) return status;
    return fail(
        app, fmt::format("cannot write to standard output: {}", std::strerror(errno ? errno : EIO)),
        kExitInternal);
}

// CLI11 tells that "file" is required, and not of which command.
std::string whatIsWrong(const CLI::App& app, const CLI::ParseError& e) {
    for (const CLI::App* command : app.get_subcommands())
        for (const CLI::Option* o : command->get_options())
            if (o->get_positional() && o->get_required() && o->count() == 0)
                return fmt::format("{}: {} is missing", command->get_name(), o->get_type_name());
    return e.what();
}

}  // namespace

std::string toolsVersion() {
    return P2P_VERSION;
}

CLI::Option* addVersionFlag(CLI::App& app) {
    return app.add_flag("--version", "Print the version and exit.");
}

CLI::Validator notEmpty() {
    return CLI::Validator(
        [](std::string& text) { return text.empty() ? "must not be empty" : std::string(); }, "");
}

CLI::Validator finite() {
    return CLI::Validator(
        [](std::string& text) {
            return std::isfinite(std::strtod(text.c_str(), nullptr)) ? std::string()
                                                                     : text + " is no number";
        },
        "");
}

int cliMain(CLI::App& app, int argc, char** argv, const std::function<int()>& run) {
    std::signal(SIGPIPE, SIG_IGN);
    const CLI::Option* version = addVersionFlag(app);
    try {
        try {
            app.parse(argc, argv);
        } catch (const CLI::CallForHelp&) {
            // app.help() shows the help of the command that was asked for.
            std::fputs(app.help().c_str(), stdout);
            return flushed(app, 0);
        } catch (const CLI::CallForAllHelp&) {
            std::fputs(app.help("", CLI::AppFormatMode::All).c_str(), stdout);
            return flushed(app, 0);
        } catch (const CLI::ParseError& e) {
            if (version->count() == 0)
                return fail(app,
                            fmt::format("{}; see {} --help", whatIsWrong(app, e), app.get_name()),
                            kExitUsage);
        }
        if (version->count() != 0) {
            std::fputs(fmt::format("{} (nvidia-p2p) {}\n", app.get_name(), toolsVersion()).c_str(),
                       stdout);
            return flushed(app, 0);
        }
    } catch (const std::exception& e) {
        return fail(app, fmt::format("internal error: {}", e.what()), kExitInternal);
    }
    return flushed(app, guarded(app, run));
}

}  // namespace p2p
