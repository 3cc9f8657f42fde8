/* SPDX-License-Identifier: MIT */
/*
 * Names that NVIDIA's kernel interface uses and a newer kernel no longer has.
 *
 * Included before anything else, in each conftest too, where some look at what
 * the preprocessor prints: macros only, no declaration and no include.  Which of
 * them a kernel needs is what `flags` beside this file found in its headers.
 */
#ifndef NVP2P_KERNEL_H
#define NVP2P_KERNEL_H

/* C11 7.24.2.4: at most `size` characters, and zeros up to `size`; no end is promised. */
#ifdef NVP2P_NO_STRNCPY
#define strncpy(to, from, size)                                                   \
    ({                                                                            \
        char *nvp2p_to = (to);                                                    \
        const char *nvp2p_from = (from);                                          \
        const __SIZE_TYPE__ nvp2p_size = (size);                                  \
        const __SIZE_TYPE__ nvp2p_used = strnlen(nvp2p_from, nvp2p_size);         \
        memcpy(nvp2p_to, nvp2p_from, nvp2p_used);                                 \
        memset(nvp2p_to + nvp2p_used, 0, nvp2p_size - nvp2p_used);                \
        nvp2p_to;                                                                 \
    })
#endif

/* The same structure and functions under another name; the callbacks kept theirs. */
#ifdef NVP2P_DRM_ATOMIC_COMMIT
#define drm_atomic_state drm_atomic_commit
#define drm_atomic_state_alloc drm_atomic_commit_alloc
#define drm_atomic_state_clear drm_atomic_commit_clear
#define drm_atomic_state_default_clear drm_atomic_commit_default_clear
#define drm_atomic_state_default_release drm_atomic_commit_default_release
#define drm_atomic_state_get drm_atomic_commit_get
#define drm_atomic_state_init drm_atomic_commit_init
#define drm_atomic_state_put drm_atomic_commit_put
#endif

#endif
