#include "proxy/http/query.hpp"

#include <doctest/doctest.h>

namespace reprise::proxy::http {

TEST_SUITE("http/query") {

    TEST_CASE("parameters come decoded and in their order") {
        const auto read = parse_query("url=http%3A%2f%2Fa%2Fb%3Fc%3Dd&soft&header=A:%20b&header=C");
        REQUIRE(read);
        CHECK(*read ==
              std::vector<query_parameter>{
                  {"url", "http://a/b?c=d"}, {"soft", ""}, {"header", "A: b"}, {"header", "C"}});
    }

    TEST_CASE("only the first equals sign separates, and a plus sign is one") {
        CHECK(*parse_query("url=http://a/?b=c+d") ==
              std::vector<query_parameter>{{"url", "http://a/?b=c+d"}});
    }

    TEST_CASE("what is to be there once is told from what may be there again") {
        const auto all = parse_query("url=a&header=x&header=y&url=a&method=GET");
        CHECK(named_twice(*all, {"method", "url"}) == "url");
        CHECK(named_twice(*all, {"method", "listener"}).empty());
        CHECK(named_twice(*all, {}).empty());
    }

    TEST_CASE("empty pieces are none") {
        CHECK(parse_query("")->empty());
        CHECK(parse_query("&&")->empty());
        CHECK(parse_query("&a=1&")->size() == 1);
        CHECK(parse_query("=")->front() == query_parameter{});
    }

    TEST_CASE("a broken escape and a control character, decoded or not, refuse the whole") {
        for (const auto* wrong : {"a=%",
                                  "a=%4",
                                  "a=%4g",
                                  "%zz=1",
                                  "a=%0d%0ab",
                                  "a=%00",
                                  "a=\x01",
                                  "a=%7F",
                                  "b=1&a=%"}) {
            CAPTURE(wrong);
            CHECK_FALSE(parse_query(wrong));
        }
        CHECK(parse_query("a=%41")->front().value == "A");
    }

    TEST_CASE("more parameters than allowed are refused") {
        CHECK(parse_query("a&b", 2));
        CHECK_FALSE(parse_query("a&b&c", 2));
    }
}

}  // namespace reprise::proxy::http
