// SPDX-License-Identifier: MIT
// nvidia-uvm's own code of a release: whatever it may take a BAR1 peer's memory for, it writes it
// right or our guard keeps it off.
#define BOOST_TEST_MODULE driver_uvm_tree
#include "uvm_tree.h"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_CASE(an_aperture_is_written_right_or_refused) {
    unsigned refused = 0;
    // Up to 580 an unknown peer id is 0xff.
    for (unsigned a = 0; a <= 0xff; a++) {
        const bool off = uvmTreeRefused(a) != 0;
        BOOST_TEST((off || (uvmTreeEntryIsRight(a) && uvmTreeCopyIsRight(a))), "aperture " << a);
        refused += off;
    }
    BOOST_TEST(refused == 0x100u - 8 - 1);  // all but eight peers and the GPU's own memory
}

// Why the guard is there: without it some would silently address other memory.
BOOST_AUTO_TEST_CASE(some_are_written_wrong) {
    unsigned wrong = 0;
    for (unsigned a = 0; a < uvmTreeApertures(); a++)
        wrong += !uvmTreeEntryIsRight(a) || !uvmTreeCopyIsRight(a);
    BOOST_TEST(wrong > 0u);
    BOOST_TEST(!uvmTreeEntryIsRight(0xff));
    BOOST_TEST(!uvmTreeCopyIsRight(0xff));
}
