// SPDX-License-Identifier: MIT
// The second process of the IPC test: it opens memory that the first one exported and writes into
// it from its own context, as NCCL and vLLM do.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "lib/gpu/cuda_api.h"

namespace p2p {

class IpcPeer {
  public:
    // Forks the process.  Must be called before this process uses CUDA: a driver that was
    // initialised does not survive fork().
    IpcPeer();
    ~IpcPeer();
    IpcPeer(const IpcPeer&) = delete;
    IpcPeer& operator=(const IpcPeer&) = delete;

    struct Order {
        char writer[24];  // BDF of the GPU that writes
        cu::IpcMem memory;
        std::uint64_t first_word, words, base;  // what to write: pattern words of `seed`
        std::uint32_t seed;
    };
    struct Answer {
        int code;  // CUresult; -1 for anything else
        char text[240];
    };
    enum class Reply { Answered, TimedOut, Gone };
    // Sends the order and waits at most `seconds`; after TimedOut the peer is of no more use.
    // The first half is stored by a kernel, the rest sent by a copy engine.
    Reply write(const Order& order, double seconds, Answer& answer);

  private:
    int fd_ = -1;
    pid_t pid_ = -1;
};

}  // namespace p2p
