/* SPDX-License-Identifier: MIT */
/*
 * Kernel interfaces that moved under a supported release, one wrapper each.
 *
 * The compiler is asked, not the kernel version and not a shell conftest:
 * stable and distribution kernels take changes early, and a _Generic selection
 * picks by the very prototype that is compiled against, inside the same
 * translation unit and with the same flags.  No default branch is given, so a
 * third prototype stops the build instead of passing garbage.
 */
#ifndef NVP2P_COMPAT_H
#define NVP2P_COMPAT_H

#include <linux/compiler.h>
#include <linux/pci.h>

typedef int (*nvp2p_resize3_fn)(struct pci_dev *, int, int);
typedef int (*nvp2p_resize4_fn)(struct pci_dev *, int, int, int);

static __always_inline int nvp2p_resize3(nvp2p_resize3_fn fn, struct pci_dev *dev, int bar, int size)
{
    return fn(dev, bar, size);
}

/* Exclude no BAR: the caller has released those that may move. */
static __always_inline int nvp2p_resize4(nvp2p_resize4_fn fn, struct pci_dev *dev, int bar, int size)
{
    return fn(dev, bar, size, 0);
}

/*
 * pci_resize_resource() takes a mask of BARs to leave alone since Linux 6.19,
 * and in the stable series that took the change (Debian's 6.1.192).
 */
#define nvp2p_pci_resize_resource(dev, bar, size)         \
    _Generic(&pci_resize_resource,                        \
             nvp2p_resize3_fn: nvp2p_resize3,             \
             nvp2p_resize4_fn: nvp2p_resize4)(&pci_resize_resource, dev, bar, size)

#endif
