/* SPDX-License-Identifier: MIT */
/* nvidia-uvm's own writers of entries and copies for Ada and Ampere, beside our guard. */
#ifndef UVM_TREE_H
#define UVM_TREE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Would our guard keep UVM off a pair of Ada boards that it reaches by this aperture? */
int uvmTreeRefused(unsigned aperture);
/* Does the entry for this aperture address that memory, and no other? */
int uvmTreeEntryIsRight(unsigned aperture);
/* The same of a copy by physical addresses. */
int uvmTreeCopyIsRight(unsigned aperture);
/* The last value of this release's enumeration. */
unsigned uvmTreeApertures(void);

#ifdef __cplusplus
}
#endif
#endif
