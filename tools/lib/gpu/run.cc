// SPDX-License-Identifier: MIT
#include "lib/gpu/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <set>
#include <thread>

#include "lib/gpu/plan.h"
#include "lib/gpu/wire.h"
#include "lib/gpu/worker.h"

namespace p2p {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

double since(Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
}

// In the child: nothing of the parent's may stay open, or whoever reads the parent's output waits
// for a child that the kernel cannot end.
void shedDescriptors(int keep, int errors) {
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    dup2(errors >= 0 ? errors : null, 2);
    if (DIR* d = opendir("/proc/self/fd")) {
        std::set<int> open_fds;
        while (const dirent* e = readdir(d))
            open_fds.insert(static_cast<int>(std::strtol(e->d_name, nullptr, 10)));
        const int own = dirfd(d);
        for (int fd : open_fds)
            if (fd > 2 && fd != keep && fd != own) close(fd);
        closedir(d);
    }
}

// A child process, its pipe, and what it wrote on stderr.
class Child {
  public:
    Child(const GpuOptions& options, const std::set<std::size_t>& settled) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return;
        errors_ = memfd_create("p2p-stderr", MFD_CLOEXEC);
        const pid_t parent = getpid();
        pid_ = fork();
        if (pid_ == 0) {
            setpgid(0, 0);  // one signal must reach its own children too
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() != parent) _exit(1);
            signal(SIGPIPE, SIG_IGN);
            shedDescriptors(ends[1], errors_);
            _exit(gpuWorker(options, settled, ends[1]));
        }
        close(ends[1]);
        if (pid_ < 0) {
            close(ends[0]);
            return;
        }
        setpgid(pid_, pid_);
        fd_ = ends[0];
    }
    ~Child() {
        if (fd_ >= 0) close(fd_);
        if (errors_ >= 0) close(errors_);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    bool started() const { return pid_ > 0; }

    // Waits at most `seconds` for more output; calls `line` for each whole line.  False at the end.
    template <typename F>
    bool read(double seconds, F line) {
        pollfd p{fd_, POLLIN, 0};
        const int n = poll(&p, 1, std::max(1, static_cast<int>(seconds * 1000)));
        if (n <= 0) return true;
        char buffer[8192];
        const ssize_t got = ::read(fd_, buffer, sizeof(buffer));
        if (got < 0 && errno == EINTR) return true;
        if (got <= 0) return false;
        pending_.append(buffer, static_cast<std::size_t>(got));
        for (std::size_t end; (end = pending_.find('\n')) != std::string::npos;) {
            line(pending_.substr(0, end));
            pending_.erase(0, end + 1);
        }
        return true;
    }

    void kill() const { ::kill(-pid_, SIGKILL); }

    // Reaps the child within `seconds`; false if it cannot be ended (uninterruptible in the
    // kernel).  It is then left to init.
    bool reap(double seconds) {
        for (const auto t0 = Clock::now();;) {
            const pid_t r = waitpid(pid_, &status_, WNOHANG);
            if (r == pid_ || (r < 0 && errno == ECHILD)) {
                ::kill(-pid_, SIGKILL);  // what it left behind
                return true;
            }
            if (since(t0) > seconds) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }

    bool exitedWith(int status) const {
        return WIFEXITED(status_) && WEXITSTATUS(status_) == status;
    }

    std::string lastWords() const {
        std::string how = WIFSIGNALED(status_)
                              ? fmt::format("died of signal {}", WTERMSIG(status_))
                              : fmt::format("ended with status {}", WEXITSTATUS(status_));
        const off_t size = lseek(errors_, 0, SEEK_END);
        if (size <= 0) return how;
        char text[400];
        const off_t from =
            size > static_cast<off_t>(sizeof(text)) ? size - static_cast<off_t>(sizeof(text)) : 0;
        const ssize_t n = pread(errors_, text, sizeof(text), from);
        if (n <= 0) return how;
        std::string words(text, static_cast<std::size_t>(n));
        std::replace(words.begin(), words.end(), '\n', ' ');
        return how + ", saying: " + words;
    }

  private:
    pid_t pid_ = -1;
    int fd_ = -1, errors_ = -1, status_ = 0;
    std::string pending_;
};

class Run {
  public:
    explicit Run(const GpuOptions& options) : options_(options) {
        for (std::string& b : options_.bdfs)
            if (const std::string n = normalBdf(b); !n.empty()) b = n;
    }

    GpuRun go() {
        // A child that a test broke or that had to be killed is replaced, so that one bad pair
        // does not hide the others; but a machine that breaks again and again is left alone.
        constexpr int kMaxChildren = 5;
        for (int n = 0; n < kMaxChildren; n++)
            if (!oneChild()) break;
        settleRest(stop_reason_.empty() ? "not reached" : stop_reason_);
        for (PairResult& p : result_.pairs) {
            // The caller's limit is that of PCIe; NVLink is not bound by it.
            const auto limit = options_.limits_gbs.find({p.src, p.dst});
            if (limit != options_.limits_gbs.end() && p.path != "nvlink")
                p.limit_gbs = limit->second;
        }
        return std::move(result_);
    }

  private:
    double left() const { return options_.timeout_s - since(start_); }

    // One child's life.  True when another one should do the rest.
    bool oneChild() {
        if (left() <= 0)
            return stop(true,
                        fmt::format("the {} s for all tests were used up", options_.timeout_s));
        Child child(options_, settled_);
        if (!child.started()) {
            result_.error = "cannot start the test process: out of processes or memory";
            return stop(false, result_.error);
        }
        done_ = false;
        in_flight_.clear();
        phase_ = "the start";
        double deadline = options_.init_timeout_s + since(start_);
        bool late = false;
        for (;;) {
            const double now = since(start_);
            const double end = std::min(deadline, options_.timeout_s);
            if (now >= end) {
                late = true;
                break;
            }
            if (!child.read(std::min(0.25, end - now),
                            [&](const std::string& l) { event(l, deadline); }))
                break;
            if (done_) break;
            report();
        }
        if (late) child.kill();
        bool reaped = child.reap(late ? 0.5 : 1.0);
        if (!reaped && !late) {
            // It has said all (or closed its pipe) but does not end: the driver holds it.
            child.kill();
            reaped = child.reap(0.5);
        }
        if (late) return wasLate(reaped);
        if (done_) {
            result_.ran = result_.error.empty();
            return false;
        }
        return died(child, reaped);
    }

    bool wasLate(bool reaped) {
        result_.timed_out = true;
        const bool all = left() <= 0;
        std::string what = in_flight_.empty()
                               ? fmt::format("{} did not return", phase_)
                               : fmt::format("{} did not finish", label(in_flight_.front()));
        const std::string why =
            all ? fmt::format("within the {} s for all tests", options_.timeout_s)
                : "by its deadline";
        const std::string text = fmt::format("{} {}", what, why);
        const bool in_test = !in_flight_.empty();
        for (std::size_t step : in_flight_) {
            TestResult& t = slot(step);
            t.outcome = Outcome::Timeout;
            t.detail = fmt::format("did not finish {}; the test process was ended", why);
            settled_.insert(step);
            skipPair(step, "this pair hung in " + plan_steps_[step].first);
        }
        in_flight_.clear();
        if (!in_test && result_.error.empty()) result_.error = text;
        if (!reaped)
            return stop(
                true,
                text + ", and the process cannot be ended: a driver call is stuck in the kernel");
        if (all) return stop(true, text);
        return in_test ? true : stop(true, text);
    }

    bool died(const Child& child, bool reaped) {
        if (reaped && child.exitedWith(kWorkerAgain)) {
            // Its last result broke the context: the rest of that pair would only repeat it.
            if (last_step_ && plan_steps_[*last_step_].second != kNoPair)
                skipPair(*last_step_, fmt::format("{} broke the GPU context of this pair",
                                                  plan_steps_[*last_step_].first));
            else if (last_step_)
                return stop(false, plan_steps_[*last_step_].first + " broke the GPU context");
            stop_reason_ = "the tests broke the GPU context again and again";
            return true;
        }
        const std::string words = "the test process " + child.lastWords();
        if (in_flight_.empty()) {
            if (result_.error.empty()) result_.error = words + " during " + phase_;
            return stop(false, words);
        }
        for (std::size_t step : in_flight_) {
            slot(step).detail = words + " during this test";
            settled_.insert(step);
            skipPair(step, words + " during " + plan_steps_[step].first + " of this pair");
        }
        in_flight_.clear();
        if (result_.error.empty()) result_.error = words;
        stop_reason_ = words;
        return true;
    }

    bool stop(bool timed_out, const std::string& reason) {
        result_.timed_out = result_.timed_out || timed_out;
        stop_reason_ = reason;
        return false;
    }

    TestResult& slot(std::size_t step) {
        const auto& [test, pair] = plan_steps_.at(step);
        auto& list = pair == kNoPair ? result_.single : result_.pairs.at(pair).tests;
        for (TestResult& t : list)
            if (t.test == test) return t;
        list.push_back({});
        list.back().test = test;
        return list.back();
    }

    std::string label(std::size_t step) const {
        const auto& [test, pair] = plan_steps_.at(step);
        if (pair == kNoPair) return test;
        const PairResult& p = result_.pairs.at(pair);
        return fmt::format("{} {} -> {}", test, p.src, p.dst);
    }

    void skipPair(std::size_t step, const std::string& why) {
        const int pair = plan_steps_[step].second;
        for (std::size_t i = 0; i < plan_steps_.size(); i++)
            if (plan_steps_[i].second == pair && settled_.insert(i).second)
                slot(i).detail = "not run: " + why;
    }

    void settleRest(const std::string& why) {
        for (std::size_t i = 0; i < plan_steps_.size(); i++)
            if (settled_.insert(i).second) slot(i).detail = "not run: " + why;
    }

    void event(const std::string& line, double& deadline) {
        const json j = json::parse(line, nullptr, false);
        if (!j.is_object()) return;  // a child gone mad; its end will tell
        try {
            handle(j, deadline);
        } catch (const std::exception&) {
            return;  // likewise
        }
    }

    void handle(const json& j, double& deadline) {
        const auto ev = j.at("ev").get<std::string>();
        if (ev == "phase") {
            j.at("what").get_to(phase_);
            deadline = since(start_) + j.at("limit").get<double>();
        } else if (ev == "nvml") {
            j.at("code").get_to(result_.nvml_init);
            j.at("driver").get_to(result_.driver_version);
            // Without NVML an env run has learnt nothing; a data run can still prove.
            if (options_.level == GpuLevel::Env && result_.nvml_init)
                j.at("error").get_to(result_.error);
        } else if (ev == "cuda") {
            result_.cuda_asked = true;
            j.at("code").get_to(result_.cuda_init);
            if (result_.cuda_init) {
                j.at("error").get_to(result_.error);
                stop_reason_ = result_.error;
            }
        } else if (ev == "gpu") {
            const auto g = j.get<GpuInfo>();
            auto& all = result_.gpus;
            const auto it = std::find_if(all.begin(), all.end(),
                                         [&](const GpuInfo& o) { return o.bdf == g.bdf; });
            if (it == all.end())
                all.push_back(g);
            else
                *it = g;
        } else if (ev == "plan") {
            takePlan(j);
        } else if (ev == "begin") {
            in_flight_ = j.at("steps").get<std::vector<std::size_t>>();
            for (std::size_t s : in_flight_) static_cast<void>(plan_steps_.at(s));
            deadline = since(start_) + j.at("limit").get<double>();
            report();
        } else if (ev == "result") {
            const auto step = j.at("step").get<std::size_t>();
            slot(step) = j.get<TestResult>();
            settled_.insert(step);
            last_step_ = step;
            in_flight_.erase(std::remove(in_flight_.begin(), in_flight_.end(), step),
                             in_flight_.end());
            phase_ = "the time after " + label(step);
            deadline = since(start_) + options_.init_timeout_s;
            report();
        } else if (ev == "pair") {
            takePair(j, result_.pairs.at(j.at("pair").get<std::size_t>()));
        } else if (ev == "local") {
            result_.local.push_back(j.get<LocalRates>());
        } else if (ev == "fatal") {
            j.at("text").get_to(result_.error);
        } else if (ev == "done") {
            done_ = true;
        }
    }

    void takePlan(const json& j) {
        std::vector<std::pair<std::string, int>> steps;
        for (const json& s : j.at("steps")) steps.emplace_back(s.at(0), s.at(1));
        if (!plan_steps_.empty()) {
            if (steps != plan_steps_) stop_reason_ = "the GPUs changed during the run";
            return;
        }
        for (const json& p : j.at("pairs")) {
            PairResult pair;
            p.at(0).get_to(pair.src);
            p.at(1).get_to(pair.dst);
            result_.pairs.push_back(pair);
        }
        plan_steps_ = steps;
        for (std::size_t i = 0; i < steps.size(); i++) slot(i).detail = "not run";
    }

    static void takePair(const json& j, PairResult& p) {
        auto number = [&](const char* key, std::optional<double>& v) {
            if (j.contains(key)) v = j.at(key).get<double>();
        };
        number("bandwidth_gbs", p.bandwidth_gbs);
        number("bidir_gbs", p.bidir_gbs);
        number("latency_us", p.latency_us);
        if (j.contains("can_access")) j.at("can_access").get_to(p.can_access);
        if (j.contains("path")) j.at("path").get_to(p.path);
        if (j.contains("path_evidence")) j.at("path_evidence").get_to(p.path_evidence);
        if (j.contains("traffic")) p.path_evidence += "; " + j.at("traffic").get<std::string>();
    }

    void report() {
        if (!options_.progress) return;
        GpuProgress p;
        p.done = settled_.size();
        p.total = plan_steps_.size();
        p.elapsed_s = since(start_);
        p.label = in_flight_.empty() ? phase_ : label(in_flight_.front());
        if (p.done == 0 || p.total == 0) {
            first_step_s_ = p.elapsed_s;
        } else {
            // Start-up is slow and happens once: it must not be spread over the steps.
            const double each = (p.elapsed_s - first_step_s_) / static_cast<double>(p.done);
            p.left_s =
                std::min(std::max(0.0, left()), each * static_cast<double>(p.total - p.done));
        }
        options_.progress(p);
    }

    GpuOptions options_;
    const Clock::time_point start_ = Clock::now();
    GpuRun result_;
    std::vector<std::pair<std::string, int>> plan_steps_;  // test, pair
    std::set<std::size_t> settled_;
    std::vector<std::size_t> in_flight_;
    std::optional<std::size_t> last_step_;
    std::string phase_, stop_reason_;
    bool done_ = false;
    double first_step_s_ = 0;
};

}  // namespace

GpuRun runGpu(const GpuOptions& options) {
    return Run(options).go();
}

}  // namespace p2p
