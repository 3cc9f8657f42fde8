// SPDX-License-Identifier: MIT
#include "lib/util/verdict.h"

#include <boost/test/unit_test.hpp>

using p2p::Verdict;
using p2p::worst;

BOOST_AUTO_TEST_CASE(nothing_against_it_is_proven) {
    BOOST_TEST((worst({}) == Verdict::Proven));
}

// 30 > 31 > 21 > 20 > 40 > 10 > 0: each wins over all that follow it.
BOOST_AUTO_TEST_CASE(priority_order) {
    const std::vector<Verdict> order = {
        Verdict::WrongData,    Verdict::Hang, Verdict::Reload, Verdict::Unavailable,
        Verdict::Inconclusive, Verdict::Slow, Verdict::Proven};
    for (auto first = order.begin(); first != order.end(); ++first) {
        std::vector<Verdict> rest(first, order.end());
        BOOST_TEST((worst(rest) == *first));
        std::vector<Verdict> reversed(rest.rbegin(), rest.rend());
        BOOST_TEST((worst(reversed) == *first));
    }
}

BOOST_AUTO_TEST_CASE(nagios_statuses) {
    BOOST_TEST(p2p::nagiosStatus(Verdict::Proven) == 0);
    BOOST_TEST(p2p::nagiosStatus(Verdict::Slow) == 1);
    BOOST_TEST(p2p::nagiosStatus(Verdict::Reload) == 1);
    BOOST_TEST(p2p::nagiosStatus(Verdict::Unavailable) == 2);
    BOOST_TEST(p2p::nagiosStatus(Verdict::WrongData) == 2);
    BOOST_TEST(p2p::nagiosStatus(Verdict::Hang) == 2);
    BOOST_TEST(p2p::nagiosStatus(Verdict::Inconclusive) == 3);
}
