/* SPDX-License-Identifier: MIT */
/*
 * For kernels without this header; one that has it is searched first.  What it said
 * where CONFIG_OF_GPIO is not set, which is every PC: no GPIO by name.
 */
#ifndef NVP2P_LINUX_OF_GPIO_H
#define NVP2P_LINUX_OF_GPIO_H

#include <linux/errno.h>

struct device_node;

static inline int of_get_named_gpio(const struct device_node *node, const char *name, int index)
{
    (void)node;
    (void)name;
    (void)index;
    return -ENOSYS;
}

#endif
