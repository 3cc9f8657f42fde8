// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "lib/cli/cli.h"
#include "lib/facts/facts.h"
#include "lib/facts/path.h"
#include "lib/facts/snapshot.h"
#include "lib/gpu/progress_line.h"
#include "lib/gpu/run.h"
#include "lib/report/escape.h"
#include "lib/report/formats.h"
#include "lib/report/make_report.h"
#include "lib/rules/rules.h"
#include "p2p-verify/app.h"
#include "p2p-verify/output.h"

namespace p2p::verify {

namespace {

constexpr const char* kRunFile = "nvml.json";  // extra file of a snapshot

void complain(const std::string& text) {
    std::fputs(fmt::format("p2p-verify: error: {}\n", plain(text)).c_str(), stderr);
}

// ---- facts

// Only for a machine whose nvidia module is loaded: asking would load it, and level env must leave
// the machine as it was.
GpuRun askNvml(double timeout_s) {
    GpuOptions o;
    o.level = GpuLevel::Env;
    o.timeout_s = timeout_s;
    o.init_timeout_s = timeout_s;
    return runGpu(o);
}

// Seconds.
// Starting eight GPUs whose driver keeps none started takes longer than 10 s.
constexpr double kEnvTimeout = 30;
constexpr double kAskAgain = 0.5;
constexpr double kLetFinish = 4;

// Does another program compute on this GPU of the machine?
bool computes(const Facts& facts, const GpuInfo& g) {
    const Gpu* gpu = facts.gpu(g.bdf);
    return gpu != nullptr && !gpu->takenByOther() && g.compute_processes > 0;
}

// This machine, a folder or a snapshot, as level env sees it.  `live`: the GPUs are this machine's,
// whatever the folder.
class Machine {
  public:
    explicit Machine(const std::string& root, double timeout_s = kEnvTimeout, bool live = false)
        : live_(live || root.empty()) {
        readRoot(root, [&] {
            if (!root.empty()) snapshot_ = std::make_unique<Snapshot>(root);
            p2p::Options where;
            where.root = this->root();
            facts = collect(where);
        });
        if (!live_) {
            const std::string text = snapshot_->extra(kRunFile);
            asked = !text.empty();
            if (asked) env = runFromSnapshot(text);
        } else {
            asked = facts.loaded.value.has_value();
            if (asked) env = askNvml(timeout_s);
        }
    }
    // The driver takes the context of a program that has ended down a little later: who looks
    // at once after it sees a GPU at work.  Asks again, for up to `seconds`.
    void letFinish(double seconds) {
        const auto busy = [&](const GpuInfo& g) { return computes(facts, g); };
        if (!live_ || !asked) return;
        using Clock = std::chrono::steady_clock;
        const auto until = Clock::now() + std::chrono::duration<double>(seconds);
        while (Clock::now() < until) {
            if (std::none_of(env.gpus.begin(), env.gpus.end(), busy)) return;
            std::this_thread::sleep_for(std::chrono::duration<double>(kAskAgain));
            env = askNvml(kEnvTimeout);
        }
    }
    // Null when NVML was not asked.
    const GpuRun* run() const { return asked ? &env : nullptr; }

    std::string root() const { return snapshot_ ? snapshot_->root() : ""; }

    Facts facts;
    GpuRun env;
    bool asked = false;

  private:
    bool live_;
    std::unique_ptr<Snapshot> snapshot_;
};

int gatherTo(const std::string& file, const std::string& root) {
    const Machine machine(root);
    std::map<std::string, std::string> extra;
    if (machine.asked) extra[kRunFile] = runToSnapshot(machine.env);
    gather(file, machine.root(), extra);
    std::fputs(
        fmt::format("p2p-verify: wrote {}; look at it before you pass it on\n", file).c_str(),
        stderr);
    return 0;
}

// ---- explain

constexpr const char* kWithheld = "data-test-withheld";
constexpr const char* kBelow = "below-min-bandwidth";

// The rules, and what this program finds by itself because it hangs on options.
std::vector<Rule> explained() {
    std::vector<Rule> all = rules();
    const auto nothing = [](const Facts&, const GpuRun*) { return std::vector<Finding>(); };
    all.push_back({kWithheld, "data tests that could do harm, held back without --force",
                   "iommu_group/type, NVML; levels data and full only", nothing, "", false});
    all.push_back({kBelow, "a pair that carries less than --min-bandwidth",
                   "bandwidth test; level full only", nothing, "", false});
    return all;
}

int explain(const std::string& id, const std::string& root) {
    const std::vector<Rule> all = explained();
    if (id.empty()) {
        std::size_t w = 0;
        for (const Rule& r : all) w = std::max(w, std::string(r.id).size());
        for (const Rule& r : all)
            std::fputs(fmt::format("{:<{}}  {}\n", r.id, w, r.title).c_str(), stdout);
        return 0;
    }
    const auto rule =
        std::find_if(all.begin(), all.end(), [&](const Rule& r) { return id == r.id; });
    if (rule == all.end())
        throw UsageError(fmt::format("no rule is named {}; p2p-verify explain lists them", id));
    std::string text = fmt::format("{}: {}\nReads: {}\n", rule->id, rule->title, rule->reads);
    if (*rule->see != '\0') text += fmt::format("Field reports: {}\n", rule->see);
    if (rule->forecast)
        text += "A forecast: where data tests pass all the same, it is only a warning.\n";
    // Causes and remedies depend on what is found, so they are shown as they apply here.
    const Machine machine(root);
    const std::vector<Finding> found = rule->assess(machine.facts, machine.run());
    if (found.empty()) text += "Here: nothing found.\n";
    for (const Finding& f : found)
        text += fmt::format("Here, {} ({}): {}\n  Remedy: {}\n", plain(f.subject),
                            severityName(f.severity), plain(f.cause), plain(f.remedy));
    std::fputs(text.c_str(), stdout);
    return 0;
}

// Keeps the GPUs of --gpus.
void choose(Facts& facts, const std::vector<std::string>& wanted) {
    if (wanted.empty()) return;
    std::set<std::string> keep;
    for (const std::string& w : wanted) {
        const std::string bdf = normalBdf(w);
        if (bdf.empty())
            throw UsageError(fmt::format("--gpus: {} is no PCI address such as 0000:01:00.0", w));
        if (facts.gpu(bdf) == nullptr) {
            std::vector<std::string> have;
            for (const Gpu& g : facts.gpus) have.push_back(g.bdf);
            throw UsageError(
                fmt::format("--gpus: no NVIDIA GPU at {}; there are: {}", bdf,
                            have.empty() ? "none" : fmt::format("{}", fmt::join(have, ", "))));
        }
        keep.insert(bdf);
    }
    auto& all = facts.gpus;
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const Gpu& g) { return keep.count(g.bdf) == 0; }),
              all.end());
}

// ---- data

// What speaks against moving data on this machine, as a finding; nothing when all is well.
std::vector<Finding> withheld(const Facts& facts, const GpuRun& env) {
    std::vector<Finding> out;
    Finding translating{
        kWithheld,
        Severity::Inconclusive,
        "host",
        "No data was moved: an IOMMU translates what the GPUs send to each other, and a test could "
        "end in a lost GPU.",
        "Set the IOMMU to pass-through (kernel parameter iommu=pt) or off and reboot; or take the "
        "risk with --force.",
        {}};
    for (const Gpu& g : facts.gpus)
        if (!g.takenByOther() && g.iommu_type && g.iommu_type->rfind("DMA", 0) == 0)
            translating.evidence.push_back({g.iommu_type.path, *g.iommu_type});
    if (!translating.evidence.empty()) out.push_back(translating);
    Finding busy{kWithheld,
                 Severity::Inconclusive,
                 "host",
                 "No data was moved: other programs compute on the GPUs, and the test would "
                 "disturb them and they "
                 "the test.",
                 "Stop them, or choose free GPUs with --gpus, or use --force.",
                 {}};
    for (const GpuInfo& g : env.gpus)
        if (computes(facts, g))
            busy.evidence.push_back(
                {"NVML compute processes of " + g.bdf, std::to_string(g.compute_processes)});
    if (!busy.evidence.empty()) out.push_back(busy);
    return out;
}

GpuRun moveData(const Facts& facts, const Options& o) {
    GpuOptions g;
    g.level = o.level == "full" ? GpuLevel::Full : GpuLevel::Data;
    for (const Gpu& gpu : facts.gpus)
        if (!gpu.takenByOther()) g.bdfs.push_back(gpu.bdf);
    // CUDA may offer some of the machine's GPUs; those that were named have to be there.
    g.all_needed = !o.gpus.empty();
    const double n = static_cast<double>(g.bdfs.size());
    g.timeout_s = o.timeout_s > 0 ? o.timeout_s : 60 + 15 * n * (n - 1);
    g.init_timeout_s = std::min(g.init_timeout_s, g.timeout_s);
    // Who gives more time to all tests wants to wait longer for each.
    g.step_timeout_s = std::min(std::max(g.step_timeout_s, o.timeout_s / 10), g.timeout_s);
    g.limits_gbs = pathLimits(facts);
    g.progress = progressLine("p2p-verify");
    return runGpu(g);
}

void judgeBandwidth(const GpuRun& run, double least, std::vector<Finding>& findings) {
    for (const PairResult& p : run.pairs) {
        if (!p.bandwidth_gbs || *p.bandwidth_gbs >= least) continue;
        findings.push_back(
            {kBelow,
             Severity::Slow,
             p.src + "->" + p.dst,
             fmt::format("{:.1f} GB/s were measured, less than the {:g} GB/s of --min-bandwidth.",
                         *p.bandwidth_gbs, least),
             "Look at the width and speed of every link on the way and at ACS on the bridges.",
             {{"bandwidth test, GB/s", fmt::format("{:.2f}", *p.bandwidth_gbs)}}});
    }
}

// ---- outputs

int writeAll(const Report& report, const Options& o) {
    bool failed = false;
    auto put = [&](const std::optional<std::string>& file, const std::string& text) {
        const std::string error = writeOutput(*file, text);
        if (error.empty()) return;
        complain(error);
        failed = true;
    };
    if (o.json) put(o.json, toJson(report));
    if (o.junit) put(o.junit, toJunit(report));
    if (o.prometheus) put(o.prometheus, toPrometheus(report));
    if (o.html) put(o.html, toHtml(report));
    if (o.nagios) {
        put(std::string("-"), toNagios(report));
    } else if (!o.json && !o.junit && !o.prometheus && !o.html) {
        TextStyle style;
        const char* no_color = std::getenv("NO_COLOR");
        style.colour =
            !o.no_color && (no_color == nullptr || *no_color == '\0') && isatty(STDOUT_FILENO) != 0;
        put(std::string("-"), toText(report, style));
    }
    if (failed) return kExitInternal;
    return o.nagios ? nagiosStatus(report.verdict) : static_cast<int>(report.verdict);
}

bool isFolder(const std::string& path) {
    struct stat st {};
    return stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

void check(const Options& o) {
    // A folder may be this machine's own root, seen from a container; a file never is.
    if (o.level != "env" && !o.root.empty() && !isFolder(o.root))
        throw UsageError(fmt::format(
            "--level {} moves data on GPUs, which the snapshot {} does not have", o.level, o.root));
    if (o.min_bandwidth_gbs && o.level != "full")
        throw UsageError("--min-bandwidth needs --level full");
    int on_stdout = o.nagios ? 1 : 0;
    for (const auto* f : {&o.json, &o.junit, &o.prometheus, &o.html})
        on_stdout += *f && **f == "-" ? 1 : 0;
    if (on_stdout > 1)
        throw UsageError("only one output can go to standard output; name files for the others");
}

}  // namespace

int run(const Options& o) {
    if (!o.not_for_command.empty())
        throw UsageError(o.not_for_command + " is for reports; leave it out");
    if (o.explain) return explain(o.explain_id, o.root);
    if (o.gather) return gatherTo(o.gather_file, o.root);
    check(o);
    Machine machine(o.root, o.timeout_s > 0 ? o.timeout_s : kEnvTimeout, o.level != "env");
    choose(machine.facts, o.gpus);
    const GpuRun* run = machine.run();
    std::vector<Finding> extra;
    GpuRun data;
    if (o.level != "env") {
        if (!o.force) {
            machine.letFinish(kLetFinish);
            extra = withheld(machine.facts, machine.env);
        }
        // An empty choice would mean all that CUDA offers; assess() says why there is none.
        const auto& gpus = machine.facts.gpus;
        if (extra.empty() &&
            !std::all_of(gpus.begin(), gpus.end(), std::mem_fn(&Gpu::takenByOther))) {
            data = moveData(machine.facts, o);
            run = &data;
        }
        if (o.min_bandwidth_gbs) judgeBandwidth(data, *o.min_bandwidth_gbs, extra);
    }
    std::vector<Finding> findings = assess(machine.facts, run);
    findings.insert(findings.end(), extra.begin(), extra.end());
    return writeAll(
        makeReport(machine.facts, run, std::move(findings), o.level, std::time(nullptr)), o);
}

}  // namespace p2p::verify
