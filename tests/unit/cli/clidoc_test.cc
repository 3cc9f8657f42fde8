// SPDX-License-Identifier: MIT
#include "lib/cli/clidoc.h"

#include <boost/test/unit_test.hpp>
#include <memory>

#include "lib/cli/cli.h"
#include "lib/util/verdict.h"

using p2p::bashCompletion;
using p2p::cliMain;
using p2p::manText;

namespace {

struct Fixture {
    std::string level = "env", file, hidden, id;
    bool flag = false;
    std::unique_ptr<CLI::App> app = std::make_unique<CLI::App>("Does things.", "p2p-demo");
    Fixture() {
        app->add_option("-l,--level", level, "How far.")
            ->type_name("LEVEL")
            ->check(CLI::IsMember({"env", "data"}))
            ->default_str("env");
        app->add_option("--json", file, "Write it.")->type_name("FILE")->expected(0, 1);
        app->add_option("--secret", hidden, "Not shown.")->group("");
        app->add_flag("--flag", flag, ".dot first \\ back");
        CLI::App* sub = app->add_subcommand("explain", "Say more.");
        sub->add_option("id", id, "Which.")->type_name("ID");
        p2p::addVersionFlag(*app);
    }
    int run(std::vector<const char*> args, const std::function<int()>& run) {
        Fixture fresh;  // cliMain adds --version itself
        CLI::App bare("Does things.", "p2p-demo");
        bare.add_option("--level", fresh.level, "x")->check(CLI::IsMember({"env", "data"}));
        args.insert(args.begin(), "p2p-demo");
        return cliMain(bare, static_cast<int>(args.size()), const_cast<char**>(args.data()), run);
    }
};

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(clidoc, Fixture)

BOOST_AUTO_TEST_CASE(man_page_has_every_shown_option_and_no_hidden_one) {
    const std::string m = manText(
        *app, {8, "do things", {{"DESCRIPTION", "First."}, {"FILES", "/a\tText.\n"}}}, "1.2");
    BOOST_TEST(has(m, ".TH P2P\\-DEMO 8 \"\" \"nvidia\\-p2p 1.2\""));
    BOOST_TEST(has(m, "\\fB\\-l\\fR, \\fB\\-\\-level\\fR \\fILEVEL\\fR"));
    BOOST_TEST(has(m, "One of env, data."));
    BOOST_TEST(has(m, "Default: env."));
    BOOST_TEST(has(m, "\\fB\\-\\-json\\fR [\\fIFILE\\fR]"));
    BOOST_TEST(has(m, "\\fB\\-\\-version\\fR"));
    BOOST_TEST(has(m, "\\&.dot first \\e back"));
    BOOST_TEST(!has(m, "secret"));
    BOOST_TEST(m.find(".SH DESCRIPTION") < m.find(".SH OPTIONS"));
    BOOST_TEST(m.find(".SH OPTIONS") < m.find(".SH FILES"));
    BOOST_TEST(has(m, ".TP\n\\fB/a\\fR\nText.\n"));
}

BOOST_AUTO_TEST_CASE(completion_knows_values_commands_and_files) {
    const std::string b = bashCompletion(*app);
    BOOST_TEST(has(
        b, "-l | --level) mapfile -t COMPREPLY < <(compgen -W 'env data' -- \"$cur\"); return ;;"));
    BOOST_TEST(has(b, "--json) compopt -o filenames"));
    BOOST_TEST(has(b, "        explain)"));
    BOOST_TEST(!has(b, "secret"));
    BOOST_TEST(has(b, "complete -F _p2p_demo p2p-demo"));
}

BOOST_AUTO_TEST_CASE(every_verdict_has_its_exit_status_described) {
    const std::string t = p2p::exitStatusText(true);
    for (const char* s : {"0 proven\t", "10 slow\t", "20 unavailable\t", "21 reload\t",
                          "30 wrong-data\t", "31 hang\t", "40 inconclusive\t", "64\t", "70\t"})
        BOOST_TEST(has(t, s), s);
}

BOOST_AUTO_TEST_CASE(exit_statuses_of_cliMain) {
    BOOST_TEST(run({}, [] { return 21; }) == 21);
    BOOST_TEST(run({"--level", "x"}, [] { return 0; }) == p2p::kExitUsage);
    BOOST_TEST(run({"--nope"}, [] { return 0; }) == p2p::kExitUsage);
    BOOST_TEST(run({"--version"}, [] { return 99; }) == 0);
    BOOST_TEST(run({"--help"}, [] { return 99; }) == 0);
    BOOST_TEST(run({}, []() -> int { throw p2p::UsageError("no"); }) == p2p::kExitUsage);
    BOOST_TEST(run({}, []() -> int { throw p2p::Failure("no", 66); }) == 66);
    BOOST_TEST(run({}, []() -> int { throw std::runtime_error("no"); }) == p2p::kExitInternal);
    BOOST_TEST(run({}, []() -> int { throw 7; }) == p2p::kExitInternal);
}

BOOST_AUTO_TEST_SUITE_END()
