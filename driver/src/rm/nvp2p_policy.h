/* SPDX-License-Identifier: MIT */
/*
 * The pure decisions of the BAR1 peer window: integers in, a decision out.  No
 * RM type is used, so the driver and the unit tests compile this very file.
 *
 * Addresses and sizes are in bytes.
 */
#ifndef NVP2P_POLICY_H
#define NVP2P_POLICY_H

typedef unsigned long long nvp2p_u64;

/* Stock refuses a peer window whose bus address is off this grid (largest page). */
#define NVP2P_WINDOW_ALIGN (512ULL << 20)

/* BAR1 kept free beside the window for ordinary CPU mappings. */
#define NVP2P_MIN_DYNAMIC (256ULL << 20)

/* Bits of the registry key NvP2pBar1. */
#define NVP2P_KEY_ENABLE     0x1u /* peers of this GPU use its BAR1 */
#define NVP2P_KEY_TRUST_HOST 0x2u /* the administrator vouches for the host bridge */
#define NVP2P_KEY_AMPERE     0x4u /* take GeForce boards of the Ampere generation too (from 580) */
#define NVP2P_KEY_VALID      (NVP2P_KEY_ENABLE | NVP2P_KEY_TRUST_HOST | NVP2P_KEY_AMPERE)

/* One peer's video memory as the mapping GPU reaches it over the bus. */
struct nvp2p_window
{
    nvp2p_u64 base;    /* bus address of the peer's FB offset 0 */
    nvp2p_u64 size;    /* bytes of the peer's FB behind it */
    nvp2p_u64 minAddr; /* lowest bus address the mapping GPU can emit */
    nvp2p_u64 maxAddr; /* highest bus address the mapping GPU can emit */
};

/* A key with bits this driver does not know asks for something else: not ours. */
static inline int nvp2pKeyEnables(unsigned int key)
{
    return (key & NVP2P_KEY_ENABLE) != 0 && (key & ~NVP2P_KEY_VALID) == 0;
}

static inline int nvp2pKeyTrustsHost(unsigned int key)
{
    return nvp2pKeyEnables(key) && (key & NVP2P_KEY_TRUST_HOST) != 0;
}

static inline int nvp2pKeyTakesAmpere(unsigned int key)
{
    return nvp2pKeyEnables(key) && (key & NVP2P_KEY_AMPERE) != 0;
}

/* Can BAR1 hold all of the framebuffer and still serve CPU mappings? */
static inline int nvp2pFits(nvp2p_u64 bar1, nvp2p_u64 fb)
{
    return bar1 != 0 && fb != 0 && fb <= bar1 && bar1 - fb >= NVP2P_MIN_DYNAMIC;
}

static inline int nvp2pAligned(nvp2p_u64 busAddr)
{
    return busAddr != 0 && (busAddr & (NVP2P_WINDOW_ALIGN - 1)) == 0;
}

/*
 * Are all n pages, given as FB offsets, inside the window and within reach of
 * the mapping GPU?  A page table entry drops the bits below its page size, so
 * a page that is not aligned would silently become another one: refused.
 */
static inline int nvp2pInWindow(const struct nvp2p_window *w, const nvp2p_u64 *a, nvp2p_u64 n,
                                nvp2p_u64 page)
{
    nvp2p_u64 i;

    if (page == 0 || (page & (page - 1)) != 0 || page > w->size)
        return 0;
    if (w->base == 0 || (w->base & (page - 1)) != 0)
        return 0;
    if (w->base + (w->size - 1) < w->base)
        return 0;
    if (w->base < w->minAddr || w->base + (w->size - 1) > w->maxAddr)
        return 0;
    for (i = 0; i < n; i++)
        if (a[i] > w->size - page || (a[i] & (page - 1)) != 0)
            return 0;
    return 1;
}

/* Turn FB offsets into bus addresses.  All or nothing: on 0 nothing was changed. */
static inline int nvp2pTranslate(const struct nvp2p_window *w, nvp2p_u64 *a, nvp2p_u64 n,
                                 nvp2p_u64 page)
{
    nvp2p_u64 i;

    if (!nvp2pInWindow(w, a, n, page))
        return 0;
    for (i = 0; i < n; i++)
        a[i] += w->base;
    return 1;
}

enum nvp2p_verdict
{
    NVP2P_STOCK = 0, /* no GPU of ours, or one GPU alone: stock decides */
    NVP2P_YES,
    NVP2P_NO_MIXED,  /* some GPU of the question is not ours */
    NVP2P_NO_WINDOW, /* some pair has no usable window */
    NVP2P_NO_HOST,   /* the host is not known to forward peer reads */
    NVP2P_NO_REGKEY  /* ForceP2P turns reads or writes off */
};

/*
 * total, ours:  GPUs in the question, and how many of them opted in.
 * windows:      every pair has a usable window both ways.
 * host:         every pair's path is trusted.
 * override:     ForceP2P: -1 not set, else bit 0 reads on, bit 1 writes on.
 *
 * A pair with one GPU of ours never falls back to stock: with a ForceP2P
 * override stock would answer "mailbox", which these boards do not have.
 */
static inline enum nvp2p_verdict nvp2pVerdict(int total, int ours, int windows, int host,
                                              int override)
{
    if (total < 2 || ours == 0)
        return NVP2P_STOCK;
    if (ours != total)
        return NVP2P_NO_MIXED;
    if (!windows)
        return NVP2P_NO_WINDOW;
    if (override >= 0)
        return override == 3 ? NVP2P_YES : NVP2P_NO_REGKEY;
    return host ? NVP2P_YES : NVP2P_NO_HOST;
}

#endif
