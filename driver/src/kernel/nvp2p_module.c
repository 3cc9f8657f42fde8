/* SPDX-License-Identifier: MIT */
/*
 * The mark by which tools know a changed nvidia.ko: `modinfo -F nvidia_p2p`.
 */
#include <linux/module.h>

#include "nvp2p_version.h"

MODULE_INFO(nvidia_p2p, NVP2P_VERSION);
