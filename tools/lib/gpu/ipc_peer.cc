// SPDX-License-Identifier: MIT
#include "lib/gpu/ipc_peer.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "lib/gpu/run.h"
#include "lib/gpu/session.h"

namespace p2p {

namespace {

void carryOut(const cu::Api& cu, std::unique_ptr<GpuContext>& gpu, const IpcPeer::Order& order) {
    if (!gpu || gpu->bdf != order.writer) {
        gpu.reset();
        int count = 0;
        if (const cu::Result r = cu.cuDeviceGetCount(&count))
            throw cu::Error(cu, "cuDeviceGetCount", r);
        for (int i = 0; i < count && !gpu; i++) {
            cu::Device device = 0;
            char id[32] = "";
            if (cu.cuDeviceGet(&device, i) != cu::kOk ||
                cu.cuDeviceGetPCIBusId(id, sizeof(id), device) != cu::kOk)
                continue;
            if (normalBdf(id) == order.writer)
                gpu = std::make_unique<GpuContext>(cu, device, order.writer, 4 * order.words);
        }
        if (!gpu)
            throw std::runtime_error(std::string("no GPU ") + order.writer +
                                     " in the second process");
    }
    gpu->use();
    cu::Ptr window = 0;
    if (const cu::Result r = cu.cuIpcOpenMemHandle_v2(&window, order.memory, cu::kIpcLazyPeer))
        throw cu::Error(cu, "cuIpcOpenMemHandle", r);
    const std::uint64_t half = order.words / 2, rest = order.words - half;
    const cu::Ptr to = window + 4 * order.first_word;
    gpu->fill(to, half, order.base, order.seed);
    gpu->fill(gpu->src, rest, order.base + half, order.seed);
    gpu->sync();
    if (const cu::Result r = cu.cuMemcpyDtoDAsync_v2(to + 4 * half, gpu->src, 4 * rest, nullptr))
        throw cu::Error(cu, "cuMemcpyDtoDAsync", r);
    gpu->sync();
    if (const cu::Result r = cu.cuIpcCloseMemHandle(window))
        throw cu::Error(cu, "cuIpcCloseMemHandle", r);
}

void serve(int fd) {
    cu::Api cu;
    std::string missing;
    cu::Result started = cu::kOk;
    bool loaded = false;
    std::unique_ptr<GpuContext> gpu;
    IpcPeer::Order order{};
    while (recv(fd, &order, sizeof(order), 0) == static_cast<ssize_t>(sizeof(order))) {
        IpcPeer::Answer answer{};
        std::string text;
        try {
            if (!loaded) {
                loaded = true;
                missing = cu::load(cu);
                if (missing.empty()) started = cu.cuInit(0);
            }
            if (!missing.empty()) throw std::runtime_error(missing);
            if (started) throw cu::Error(cu, "cuInit in the second process", started);
            carryOut(cu, gpu, order);
        } catch (const cu::Error& e) {
            answer.code = e.code;
            text = e.what();
        } catch (const std::exception& e) {
            answer.code = -1;
            text = e.what();
        }
        std::snprintf(answer.text, sizeof(answer.text), "%s", text.c_str());
        if (send(fd, &answer, sizeof(answer), MSG_NOSIGNAL) < 0 || !text.empty()) break;
    }
}

// Serves orders from a process that is replaced after every error: a broken context must not
// blame the next pair.
void supervise(int fd) {
    const pid_t self = getpid();
    for (;;) {
        pollfd p{fd, POLLIN, 0};
        if (poll(&p, 1, -1) < 0 && errno == EINTR) continue;
        char peek = 0;
        if (recv(fd, &peek, 1, MSG_PEEK) <= 0) return;
        const pid_t worker = fork();
        if (worker < 0) return;
        if (worker == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (getppid() == self) serve(fd);
            _exit(0);
        }
        int status = 0;
        while (waitpid(worker, &status, 0) < 0 && errno == EINTR) {
        }
        if (!WIFEXITED(status)) return;  // crashed: the closed socket says so
    }
}

}  // namespace

IpcPeer::IpcPeer() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        // Nothing but the socket may keep the parent's pipes open.
        for (int fd = 3; fd < 1024; fd++)
            if (fd != ends[1]) close(fd);
        supervise(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    fd_ = ends[0];
    if (pid_ < 0) {
        close(fd_);
        fd_ = -1;
    }
}

IpcPeer::~IpcPeer() {
    if (fd_ >= 0) close(fd_);
    if (pid_ > 0) {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, WNOHANG);
    }
}

IpcPeer::Reply IpcPeer::write(const Order& order, double seconds, Answer& answer) {
    if (fd_ < 0 || send(fd_, &order, sizeof(order), MSG_NOSIGNAL) < 0) return Reply::Gone;
    pollfd p{fd_, POLLIN, 0};
    if (poll(&p, 1, static_cast<int>(seconds * 1000)) == 0) {
        kill(pid_, SIGKILL);
        close(fd_);
        fd_ = -1;
        return Reply::TimedOut;
    }
    return recv(fd_, &answer, sizeof(answer), 0) == static_cast<ssize_t>(sizeof(answer))
               ? Reply::Answered
               : Reply::Gone;
}

}  // namespace p2p
