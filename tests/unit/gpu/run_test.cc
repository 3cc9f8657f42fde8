// SPDX-License-Identifier: MIT
#include "lib/gpu/run.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>

#include "fake.h"

using fake::impatient;
using fake::options;
using fake::outcome;
using fake::run;
using fake::story;
using fake::test;
using p2p::GpuLevel;
using p2p::GpuRun;
using p2p::Outcome;

namespace {

constexpr const char* kAllOk = "ce_push=ok ce_pull=ok sm_store=ok sm_load=ok handshake=ok ipc=ok";

struct Stopwatch {
    std::chrono::steady_clock::time_point t0 = std::chrono::steady_clock::now();
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - t0).count();
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(two_good_gpus_pass_every_data_test) {
    const GpuRun r = run("gpus=2");
    BOOST_TEST(r.ran);
    BOOST_TEST(r.error == "");
    BOOST_TEST(r.driver_version == "555.58.02");
    BOOST_TEST(r.gpus.size() == 2U);
    BOOST_TEST(r.gpus[0].in_cuda);
    BOOST_TEST(r.pairs.size() == 2U);
    BOOST_TEST(story(r, 0, 1) == kAllOk);
    BOOST_TEST(story(r, 1, 0) == kAllOk);
    BOOST_TEST(fake::pair(r, 0, 1).path == "pcie-bar1");
    // Payload, guards and the whole source: more words than were sent.
    BOOST_TEST(test(r, 0, 1, "ce_push").words > 2U * options().bytes / 4);
}

BOOST_AUTO_TEST_CASE(env_asks_nvml_only) {
    const GpuRun r = run("gpus=10", options(GpuLevel::Env));
    BOOST_TEST(r.ran);
    BOOST_TEST(!r.cuda_asked);
    BOOST_TEST(r.gpus.size() == 10U);
    BOOST_TEST(!r.gpus[0].in_cuda);
    BOOST_TEST(r.gpus[9].bar1_bytes == 32768ULL << 20U);
    BOOST_TEST(r.pairs.empty());
}

// A window that shows a private copy: a round trip through it would look right.
BOOST_AUTO_TEST_CASE(mirror_is_seen_in_the_direction_that_has_it) {
    const GpuRun r = run("mirror:0>1", impatient());
    BOOST_TEST(story(r, 0, 1) ==
               "ce_push=not-delivered ce_pull=ok sm_store=not-delivered sm_load=ok "
               "handshake=timeout ipc=not-delivered");
    BOOST_TEST(outcome(r, 1, 0, "ce_push") == "ok");
    BOOST_TEST(outcome(r, 1, 0, "ce_pull") == "zeros");
    BOOST_TEST(outcome(r, 1, 0, "sm_load") == "zeros");
}

BOOST_AUTO_TEST_CASE(dropped_writes) {
    const GpuRun r = run("drop", impatient());
    BOOST_TEST(story(r, 0, 1) ==
               "ce_push=not-delivered ce_pull=ok sm_store=not-delivered sm_load=ok "
               "handshake=timeout ipc=not-delivered");
}

BOOST_AUTO_TEST_CASE(one_flipped_bit) {
    const GpuRun r = run("flip");
    BOOST_TEST(test(r, 0, 1, "sm_store").bad_words == 1U);
    BOOST_TEST(outcome(r, 0, 1, "sm_store") == "corrupt");
    BOOST_TEST(outcome(r, 0, 1, "ce_push") == "corrupt");
    BOOST_TEST(outcome(r, 0, 1, "ipc") == "corrupt");
    const std::uint64_t payload = (options().bytes / 4) | 1U;
    BOOST_TEST(test(r, 0, 1, "ce_push").first_bad == payload / 3);
}

BOOST_AUTO_TEST_CASE(a_lost_tail_an_overrun_and_a_damaged_source) {
    BOOST_TEST(test(run("tail"), 0, 1, "ce_push").bad_words == 8U);
    const GpuRun beyond = run("beyond");
    BOOST_TEST(outcome(beyond, 0, 1, "ce_push") == "corrupt");
    BOOST_TEST(test(beyond, 0, 1, "ce_push").detail.find("8 words beyond the destination") !=
               std::string::npos);
    const GpuRun smash = run("smash");
    BOOST_TEST(test(smash, 0, 1, "ce_push").detail == "1 words of the source were overwritten");
}

BOOST_AUTO_TEST_CASE(data_in_the_wrong_buffer) {
    BOOST_TEST(outcome(run("swap:0>1", impatient()), 0, 1, "ce_push") == "not-delivered");
}

BOOST_AUTO_TEST_CASE(zeros_arrive) {
    BOOST_TEST(outcome(run("zero"), 0, 1, "sm_store") == "zeros");
}

BOOST_AUTO_TEST_CASE(handshake_that_never_meets_while_copies_work) {
    const Stopwatch watch;
    const GpuRun r = run("hang", impatient());
    BOOST_TEST(r.ran);
    BOOST_TEST(outcome(r, 0, 1, "sm_store") == "ok");
    BOOST_TEST(outcome(r, 0, 1, "handshake") == "timeout");
    BOOST_TEST(outcome(r, 0, 1, "ipc") == "ok");
    // Two directions, half a second each; the rest is for a busy machine.
    BOOST_TEST(watch.seconds() < 20);
}

BOOST_AUTO_TEST_CASE(late_flags) {
    BOOST_TEST(outcome(run("late:0>1", impatient()), 0, 1, "handshake") == "timeout");
}

BOOST_AUTO_TEST_CASE(payload_behind_its_flag) {
    const GpuRun r = run("reorder:1>0");
    BOOST_TEST(outcome(r, 0, 1, "handshake") == "corrupt");
    BOOST_TEST(outcome(r, 0, 1, "ce_push") == "ok");
}

BOOST_AUTO_TEST_CASE(mapping_refused) {
    const GpuRun r = run("mapfail:0>1");
    BOOST_TEST(fake::pair(r, 0, 1).can_access);
    BOOST_TEST(
        story(r, 0, 1) ==
        "ce_push=refused ce_pull=ok sm_store=refused sm_load=ok handshake=refused ipc=refused");
    BOOST_TEST(test(r, 0, 1, "ce_push").cuda_error == 205);
    BOOST_TEST(
        test(r, 0, 1, "ce_push").detail ==
        "cuCtxEnablePeerAccess(0000:02:00.0 from 0000:01:00.0): CUDA_ERROR_MAP_FAILED (205)");
}

BOOST_AUTO_TEST_CASE(no_access) {
    const GpuRun r = run("noaccess");
    BOOST_TEST(!fake::pair(r, 0, 1).can_access);
    BOOST_TEST(fake::pair(r, 0, 1).path == "none");
    BOOST_TEST(test(r, 0, 1, "sm_load").cuda_error == 217);
}

BOOST_AUTO_TEST_CASE(kernels_cannot_be_translated) {
    const GpuRun r = run("jit-missing");
    BOOST_TEST(r.ran);
    BOOST_TEST(outcome(r, 0, 1, "ce_push") == "refused");
    BOOST_TEST(test(r, 0, 1, "ce_push").cuda_error == 221);
    BOOST_TEST(test(run("bad-ptx"), 0, 1, "ce_push").cuda_error == 218);
}

BOOST_AUTO_TEST_CASE(library_and_module_differ) {
    const GpuRun r = run("version-mismatch");
    BOOST_TEST(!r.ran);
    BOOST_TEST(r.cuda_asked);
    BOOST_TEST(r.cuda_init == 803);
    BOOST_TEST(r.nvml_init == 18);
    BOOST_TEST(r.error == "cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)");
    const GpuRun env = run("version-mismatch", options(GpuLevel::Env));
    BOOST_TEST(env.nvml_init == 18);
    BOOST_TEST(env.error == "nvmlInit_v2: driver/library version mismatch (18)");
}

BOOST_AUTO_TEST_CASE(no_device) {
    const GpuRun r = run("no-device");
    BOOST_TEST(!r.ran);
    BOOST_TEST(r.cuda_init == 100);
}

// The other direction and the other pairs are still tested, in a new process.
BOOST_AUTO_TEST_CASE(a_lost_device_spoils_its_own_pair_only) {
    const GpuRun r = run("gpus=3,lost:0>1");
    BOOST_TEST(r.ran);
    BOOST_TEST(test(r, 0, 1, "ce_push").cuda_error == 719);
    BOOST_TEST(outcome(r, 0, 1, "sm_store") == "not-run");
    BOOST_TEST(test(r, 0, 1, "sm_store").detail ==
               "not run: ce_push broke the GPU context of this pair");
    BOOST_TEST(story(r, 0, 2) == kAllOk);
    BOOST_TEST(story(r, 2, 1) == kAllOk);
    for (const int code : {999, 700}) {
        const GpuRun other = run(("lost=" + std::to_string(code)).c_str());
        BOOST_TEST(test(other, 0, 1, "ce_push").cuda_error == code);
    }
    BOOST_TEST(run("init=46").cuda_init == 46);
}

BOOST_AUTO_TEST_CASE(a_child_that_crashes_or_is_killed_leaves_an_answer) {
    const GpuRun crash = run("crash:0>1");
    BOOST_TEST(outcome(crash, 0, 1, "ce_push") == "not-run");
    BOOST_TEST(test(crash, 0, 1, "ce_push").detail.find("during this test") != std::string::npos);
    BOOST_TEST(outcome(crash, 1, 0, "ce_push") == "ok");
    const GpuRun killed = run("die:0>1");
    BOOST_TEST(test(killed, 0, 1, "ce_push").detail ==
               "the test process died of signal 9 during this test");
    BOOST_TEST(outcome(killed, 1, 0, "sm_store") == "ok");
}

BOOST_AUTO_TEST_CASE(calls_that_never_return_end_at_their_deadline) {
    auto o = options();
    o.step_timeout_s = 0.5;
    o.init_timeout_s = 3;
    o.timeout_s = 8;
    const Stopwatch watch;
    const GpuRun sync = run("stuck", o);
    BOOST_TEST(watch.seconds() < o.timeout_s + 2);
    BOOST_TEST(sync.timed_out);
    BOOST_TEST(outcome(sync, 0, 1, "ce_push") == "timeout");
    BOOST_TEST(outcome(sync, 0, 1, "sm_load") == "not-run");

    const GpuRun init = run("stuck=cuInit", o);
    BOOST_TEST(init.timed_out);
    BOOST_TEST(!init.ran);
    BOOST_TEST(init.error == "cuInit did not return by its deadline");
    BOOST_TEST(init.gpus.size() == 2U);  // what NVML said before is kept

    o.level = GpuLevel::Env;
    const GpuRun nvml = run("stuck=nvmlInit_v2", o);
    BOOST_TEST(nvml.timed_out);
    BOOST_TEST(nvml.error == "NVML did not return by its deadline");
}

BOOST_AUTO_TEST_CASE(the_second_process_fails) {
    BOOST_TEST(test(run("ipc-refused"), 0, 1, "ipc").cuda_error == 801);
    BOOST_TEST(outcome(run("ipc-stuck:0>1", impatient()), 0, 1, "ipc") == "timeout");
    const GpuRun dies = run("ipc-dies:0>1");
    BOOST_TEST(outcome(dies, 0, 1, "ipc") == "not-run");
    BOOST_TEST(test(dies, 0, 1, "ipc").detail == "the second process ended before it answered");
    BOOST_TEST(outcome(dies, 0, 1, "handshake") == "ok");
}

BOOST_AUTO_TEST_CASE(no_room_and_a_check_that_does_not_run) {
    BOOST_TEST(test(run("oom"), 0, 1, "ce_push").cuda_error == 2);
    const GpuRun blind = run("blind");
    BOOST_TEST(outcome(blind, 0, 1, "ce_push") == "not-run");
    BOOST_TEST(test(blind, 0, 1, "ce_push").detail.find("looked at 0 of") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(busy_gpus_are_reported) {
    const GpuRun r = run("busy", options(GpuLevel::Env));
    BOOST_TEST(r.gpus[0].busy_percent.value() == 97);
    BOOST_TEST(r.gpus[0].compute_processes == 2);
}

BOOST_AUTO_TEST_CASE(one_gpu_tests_itself) {
    const GpuRun r = run("gpus=1");
    BOOST_TEST(r.ran);
    BOOST_TEST(r.pairs.empty());
    BOOST_TEST(r.single.size() == 4U);
    for (const auto& t : r.single)
        BOOST_TEST((t.outcome == Outcome::Ok), t.test << ": " << t.detail);
    const GpuRun rates = run("gpus=1", options(GpuLevel::Rates));
    BOOST_TEST(rates.local.size() == 1U);
    BOOST_TEST(rates.local[0].host_to_gpu_gbs.value() > 0);
    BOOST_TEST(rates.local[0].copy_gbs.value() > 0);
}

BOOST_AUTO_TEST_CASE(one_gpu_with_faults) {
    auto single = [](const char* rig, const char* name) {
        for (const auto& t : run(rig, impatient()).single)
            if (t.test == name) return std::string(p2p::outcomeName(t.outcome));
        return std::string("none");
    };
    BOOST_TEST(single("gpus=1,hang", "self_handshake") == "timeout");
    BOOST_TEST(single("gpus=1,ipc-refused", "self_ipc") == "refused");
    BOOST_TEST(single("gpus=1,jit-missing", "self_fill") == "refused");
}

BOOST_AUTO_TEST_CASE(full_measures_and_still_checks) {
    auto o = options(GpuLevel::Full);
    o.limits_gbs[{"0000:01:00.0", "0000:02:00.0"}] = 28.6;
    const GpuRun r = run("gpus=3", o);
    BOOST_TEST(r.ran);
    const auto& p = fake::pair(r, 0, 1);
    BOOST_TEST(story(r, 0, 1) ==
               std::string(kAllOk) + " concurrent=ok bandwidth=ok bidirectional=ok latency=ok");
    BOOST_TEST(p.bandwidth_gbs.value() > 0);
    BOOST_TEST(p.bidir_gbs.value() > 0);
    BOOST_TEST(p.latency_us.value() > 0);
    BOOST_TEST(p.limit_gbs.value() == 28.6);
    BOOST_TEST(!fake::pair(r, 1, 0).limit_gbs);
    BOOST_TEST(p.path_evidence.find("NVML counted 26.00 GB/s leaving") != std::string::npos);

    const GpuRun slow = run("slow:0>1", o);
    BOOST_TEST(fake::pair(slow, 0, 1).bandwidth_gbs.value() < 0.2);
    BOOST_TEST(outcome(slow, 0, 1, "bandwidth") == "ok");

    const GpuRun flip = run("flip:0>1", o);
    BOOST_TEST(outcome(flip, 0, 1, "concurrent") == "corrupt");
    BOOST_TEST(outcome(flip, 0, 1, "bandwidth") == "corrupt");
    BOOST_TEST(!fake::pair(flip, 0, 1).bandwidth_gbs);
}

BOOST_AUTO_TEST_CASE(nvlink_is_told_from_pcie) {
    const GpuRun r = run("nvlink");
    BOOST_TEST(fake::pair(r, 0, 1).path == "nvlink");
    BOOST_TEST(fake::pair(r, 0, 1).path_evidence.find("4 NVLinks active") != std::string::npos);
}

// A GPU can have 8 peers at a time, so ten GPUs need their pairs mapped and unmapped one by one.
BOOST_AUTO_TEST_CASE(ten_gpus) {
    auto o = options(GpuLevel::Full);
    o.rate_seconds = 0.001;
    o.rate_bytes = 16 << 10;
    o.bytes = 8 << 10;
    o.handshake_rounds = 3;
    const GpuRun r = run("gpus=10", o);
    BOOST_TEST(r.ran);
    BOOST_TEST(r.pairs.size() == 90U);
    for (const auto& p : r.pairs)
        for (const auto& t : p.tests) {
            if (t.test == "concurrent" && t.outcome == Outcome::NotRun) {
                BOOST_TEST(t.detail.find("8 peers") != std::string::npos);
                continue;
            }
            BOOST_TEST((t.outcome == Outcome::Ok),
                       p.src << "->" << p.dst << " " << t.test << ": " << t.detail);
        }
}

BOOST_AUTO_TEST_CASE(chosen_gpus) {
    auto o = options();
    o.bdfs = {"00000000:03:00.0", "01:00.0"};
    const GpuRun r = run("gpus=3", o);
    BOOST_TEST(r.pairs.size() == 2U);
    BOOST_TEST(r.pairs[0].src == "0000:01:00.0");
    BOOST_TEST(r.pairs[0].dst == "0000:03:00.0");
    o.bdfs = {"0000:41:00.0"};
    const GpuRun none = run("gpus=2", o);
    BOOST_TEST(!none.ran);
    BOOST_TEST(none.error ==
               "GPU 0000:41:00.0 is not offered by CUDA, which has 0000:01:00.0, 0000:02:00.0; "
               "check the address, CUDA_VISIBLE_DEVICES and the bound driver");
}

BOOST_AUTO_TEST_CASE(seeds_differ_from_run_to_run_and_can_be_fixed) {
    auto o = options();
    o.seed = 42;
    BOOST_TEST(story(run("", o), 0, 1) == kAllOk);
}

BOOST_AUTO_TEST_CASE(progress_counts_up_to_the_plan) {
    auto o = options();
    std::vector<p2p::GpuProgress> seen;
    o.progress = [&](const p2p::GpuProgress& p) { seen.push_back(p); };
    run("gpus=2", o);
    BOOST_REQUIRE(!seen.empty());
    BOOST_TEST(seen.back().done == 12U);
    BOOST_TEST(seen.back().total == 12U);
    for (std::size_t i = 1; i < seen.size(); i++) BOOST_TEST(seen[i - 1].done <= seen[i].done);
    BOOST_TEST(seen.back().left_s.has_value());
}

// Whoever reads our output must see its end even if a stuck child lives on.
BOOST_AUTO_TEST_CASE(children_hold_none_of_our_descriptors) {
    int ends[2];
    BOOST_REQUIRE(pipe(ends) == 0);
    const pid_t user = fork();
    if (user == 0) {
        close(ends[0]);
        auto o = options();
        o.timeout_s = 30;
        o.init_timeout_s = 30;
        run("stuck=cuInit", o);
        _exit(0);
    }
    close(ends[1]);
    usleep(700000);  // time enough to be in cuInit; if not, the test is only weaker
    kill(user, SIGKILL);
    waitpid(user, nullptr, 0);
    const Stopwatch watch;
    char c = 0;
    BOOST_TEST(read(ends[0], &c, 1) == 0);
    BOOST_TEST(watch.seconds() < 10);
    close(ends[0]);
}

BOOST_AUTO_TEST_CASE(addresses) {
    using p2p::normalBdf;
    BOOST_TEST(normalBdf("00000000:41:00.0") == "0000:41:00.0");
    BOOST_TEST(normalBdf("0000:C1:00.0") == "0000:c1:00.0");
    BOOST_TEST(normalBdf("c1:1f.7") == "0000:c1:1f.7");
    BOOST_TEST(normalBdf("00010000:01:00.0") == "10000:01:00.0");
    for (const char* bad : {"", "gpu0", "01:00", "01:00.8", "01:20.0", "0000:01:00.0x",
                            "0000:01:00.", ":01:00.0", " 01:00.0", "-1:00.0", "0x1:00.0", "01:+1.0",
                            "000000000:01:00.0", "0:0:01:00.0", "01:00:0"})
        BOOST_TEST(normalBdf(bad) == "", bad);
}
