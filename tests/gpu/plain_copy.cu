// SPDX-License-Identifier: MIT
// The same copies as p2p-bench in the plainest CUDA, to compare its rates with.
//   nvcc -O2 -o plain_copy plain_copy.cu && ./plain_copy [MIB [SECONDS]]
// Prints one line per way: from, to, GB/s (10^9 bytes).
#include <cstdio>
#include <cstdlib>

#define OK(call)                                                                     \
    do {                                                                             \
        cudaError_t e = (call);                                                      \
        if (e != cudaSuccess) {                                                      \
            std::fprintf(stderr, "plain_copy: %s: %s\n", #call, cudaGetErrorString(e)); \
            std::exit(1);                                                            \
        }                                                                            \
    } while (0)

template <typename Copy>
static double rate(size_t bytes, double seconds, Copy copy) {
    cudaStream_t stream;
    cudaEvent_t from, to;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaEventCreate(&from));
    OK(cudaEventCreate(&to));
    double took = 0;
    auto timed = [&](int n) {
        OK(cudaEventRecord(from, stream));
        for (int i = 0; i < n; i++) copy(stream);
        OK(cudaEventRecord(to, stream));
        OK(cudaEventSynchronize(to));
        float ms = 0;
        OK(cudaEventElapsedTime(&ms, from, to));
        took = ms / 1e3;
    };
    timed(1);
    timed(2);
    const int n = static_cast<int>(seconds / (took / 2)) + 2;
    timed(n);
    return static_cast<double>(bytes) * n / took / 1e9;
}

int main(int argc, char** argv) {
    const size_t bytes = static_cast<size_t>(argc > 1 ? std::atoi(argv[1]) : 64) << 20;
    const double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
    int count = 0;
    OK(cudaGetDeviceCount(&count));
    void* host;
    OK(cudaMallocHost(&host, bytes));
    for (int g = 0; g < count; g++) {
        OK(cudaSetDevice(g));
        void *a, *b;
        OK(cudaMalloc(&a, bytes));
        OK(cudaMalloc(&b, bytes));
        std::printf("gpu%d\tgpu%d\t%.2f\n", g, g, rate(bytes, seconds, [&](cudaStream_t s) {
            OK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, s));
        }));
        std::printf("gpu%d\thost\t%.2f\n", g, rate(bytes, seconds, [&](cudaStream_t s) {
            OK(cudaMemcpyAsync(host, a, bytes, cudaMemcpyDeviceToHost, s));
        }));
        std::printf("host\tgpu%d\t%.2f\n", g, rate(bytes, seconds, [&](cudaStream_t s) {
            OK(cudaMemcpyAsync(a, host, bytes, cudaMemcpyHostToDevice, s));
        }));
        for (int h = 0; h < count; h++) {
            int can = 0;
            if (h == g) continue;
            OK(cudaDeviceCanAccessPeer(&can, g, h));
            if (!can) continue;
            void* there;
            OK(cudaSetDevice(h));
            OK(cudaMalloc(&there, bytes));
            OK(cudaSetDevice(g));
            OK(cudaDeviceEnablePeerAccess(h, 0));
            std::printf("gpu%d\tgpu%d\t%.2f\n", g, h, rate(bytes, seconds, [&](cudaStream_t s) {
                OK(cudaMemcpyPeerAsync(there, h, a, g, bytes, s));
            }));
            OK(cudaDeviceDisablePeerAccess(h));
            OK(cudaFree(there));
        }
        OK(cudaFree(a));
        OK(cudaFree(b));
    }
    return 0;
}
