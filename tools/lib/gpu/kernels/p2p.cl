// SPDX-License-Identifier: MIT
// Device side of the data tests, in OpenCL C so that a stock clang makes PTX of it: no CUDA
// toolkit, no libdevice, no libclc.  Special registers and memory orders that OpenCL C cannot
// name are written as PTX (PTX ISA 7.0: "Special Registers", "Memory Consistency Model").
typedef unsigned int u32;
typedef unsigned long u64;
#define G __global

static inline u32 thread_index(void) {
    u32 t, b, n;
    __asm__("mov.u32 %0, %%tid.x;" : "=r"(t));
    __asm__("mov.u32 %0, %%ctaid.x;" : "=r"(b));
    __asm__("mov.u32 %0, %%ntid.x;" : "=r"(n));
    return b * n + t;
}
static inline u32 thread_count(void) {
    u32 n, b;
    __asm__("mov.u32 %0, %%ntid.x;" : "=r"(n));
    __asm__("mov.u32 %0, %%nctaid.x;" : "=r"(b));
    return n * b;
}
static inline u64 now_ns(void) {
    u64 t;
    __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}
// Volatile: a check must see memory, not a register or an old L1 line.
static inline u32 load_fresh(G u32* p) {
    u32 v;
    __asm__ volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
static inline u32 load_acquire(G u32* p) {
    u32 v;
    __asm__ volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
static inline void store_release(G u32* p, u32 v) {
    __asm__ volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
static inline void add_to(G u64* p, u64 v) {
    __asm__ volatile("red.global.add.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}
static inline void lower_to(G u64* p, u64 v) {
    __asm__ volatile("red.global.min.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

// Word i of the pattern of a seed; must equal pattern() in pattern.h.  For a given i it is a
// bijection of the seed, so two seeds never agree on a word.
static inline u32 pattern(u64 i, u32 seed) {
    u32 x = (u32)i * 0x9e3779b1u ^ (u32)(i >> 32) ^ seed;
    x ^= x >> 15;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ (x >> 16);
}

// d[i] = word base+i of the pattern, for n words.
__kernel void p2p_fill(G u32* d, u64 n, u64 base, u32 seed) {
    for (u64 i = thread_index(); i < n; i += thread_count()) d[i] = pattern(base + i, seed);
}

// Compare n words with the pattern of `seed`.  r[0] words checked, r[1] wrong, r[2] of them equal
// to the pattern of `stale`, r[3] of them zero, r[4] lowest wrong index (caller sets all ones).
__kernel void p2p_check(G u32* d, u64 n, u64 base, u32 seed, u32 stale, G u64* r) {
    u64 checked = 0, bad = 0, old = 0, zero = 0, first = ~0UL;
    for (u64 i = thread_index(); i < n; i += thread_count()) {
        u32 v = load_fresh(d + i);
        checked++;
        if (v == pattern(base + i, seed)) continue;
        bad++;
        old += v == pattern(base + i, stale);
        zero += v == 0;
        if (i < first) first = i;
    }
    add_to(r, checked);
    if (!bad) return;
    add_to(r + 1, bad);
    add_to(r + 2, old);
    add_to(r + 3, zero);
    lower_to(r + 4, first);
}

// Stores to a peer when d is the peer's, loads from it when s is.
__kernel void p2p_copy(G u32* d, G u32* s, u64 n) {
    for (u64 i = thread_index(); i < n; i += thread_count()) d[i] = s[i];
}

// Resident handshake.  A box is a flag (word 0) and a payload (from word 32, another cache line).
// Each side waits on its own box and writes into the peer's: first the payload, then the flag with
// release order.  A payload that is not there once its flag is seen means broken ordering.  The
// deadline is kept on the device, so a peer that never answers cannot wedge it.
// out[0] rounds done, out[1] ns, out[2] wrong payload words, out[3] first round that had one.
__kernel void p2p_handshake(G u32* mine, G u32* peer, u32 rounds, u32 words, u32 first, u32 seed,
                            u64 deadline_ns, G u64* out) {
    if (thread_index()) return;
    u64 start = now_ns(), bad = 0, first_bad = ~0UL;
    u32 i = 0;
    for (; i < rounds; i++) {
        if (first) {
            for (u32 w = 0; w < words; w++) peer[32 + w] = pattern((u64)i * words + w, seed);
            store_release(peer, i + 1);
        }
        while (load_acquire(mine) != i + 1)
            if (now_ns() - start > deadline_ns) goto end;
        for (u32 w = 0; w < words; w++) {
            if (load_fresh(mine + 32 + w) == pattern((u64)i * words + w, seed)) continue;
            bad++;
            if (first_bad == ~0UL) first_bad = i;
        }
        if (!first) {
            for (u32 w = 0; w < words; w++) peer[32 + w] = pattern((u64)i * words + w, seed);
            store_release(peer, i + 1);
        }
    }
end:
    out[0] = i;
    out[1] = now_ns() - start;
    out[2] = bad;
    out[3] = first_bad;
}
