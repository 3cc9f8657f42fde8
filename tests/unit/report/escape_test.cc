// SPDX-License-Identifier: MIT
#include "lib/report/escape.h"

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(escape)

BOOST_AUTO_TEST_CASE(utf8_keeps_what_is_well_formed) {
    const std::string good = "a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80";
    BOOST_TEST(p2p::utf8(good) == good);
}

// RFC 3629: overlong forms, surrogates, above 10FFFF, cut short, stray bytes.
BOOST_AUTO_TEST_CASE(utf8_replaces_what_is_not) {
    const std::string r = "\xef\xbf\xbd";
    BOOST_TEST(p2p::utf8("\xc0\xaf") == r + r);
    BOOST_TEST(p2p::utf8("\xed\xa0\x80") == r + r + r);
    BOOST_TEST(p2p::utf8("\xf4\x90\x80\x80") == r + r + r + r);
    BOOST_TEST(p2p::utf8("a\xe2\x82") == "a" + r + r);
    BOOST_TEST(p2p::utf8("\xff") == r);
}

BOOST_AUTO_TEST_CASE(plain_cannot_move_the_cursor_or_forge_a_line) {
    BOOST_TEST(p2p::plain("a\x1b[2J\r\nb\x7f\xc2\x9b") == "a\\x1b[2J\\x0d\\x0ab\\x7f\\x9b");
}

BOOST_AUTO_TEST_CASE(xml_escapes_markup_and_drops_what_xml_cannot_hold) {
    BOOST_TEST(p2p::xml("<a b=\"c\" d='e'>&]]>") ==
               "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;]]&gt;");
    BOOST_TEST(p2p::xml(std::string("\0\x01\x1b", 3)) == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    BOOST_TEST(p2p::xml("\xef\xbf\xbe") == "\xef\xbf\xbd");  // U+FFFE
    BOOST_TEST(p2p::xml("a\n\tb") == "a&#10;&#9;b");
}

BOOST_AUTO_TEST_CASE(html_escapes_text_and_attributes) {
    BOOST_TEST(p2p::html("<img src=x onerror='a(\"b\")'>&") ==
               "&lt;img src=x onerror=&#39;a(&quot;b&quot;)&#39;&gt;&amp;");
    BOOST_TEST(p2p::html(std::string("a\0b", 3)) ==
               "a\xef\xbf\xbd"
               "b");
}

BOOST_AUTO_TEST_CASE(label_escapes_backslash_quote_and_line_feed_only) {
    BOOST_TEST(p2p::label("a\\b\"c\nd\te") == "a\\\\b\\\"c\\nd\te");
}

BOOST_AUTO_TEST_SUITE_END()
