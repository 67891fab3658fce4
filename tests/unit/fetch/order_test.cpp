#include "tests/unit/cache/responses.hpp"
#include "tests/unit/fetch/orders.hpp"

#include <string>

namespace reprise::proxy::fetch::test::of_order {

namespace {

const auto now = wall_time{std::chrono::seconds{1'700'000'000}};

std::string sent(const fetch_order& order, next_hop to = next_hop::origin, bool validate = false) {
    return *wire_of(order, to, validate, "me", now);
}

bool has(const std::string& wire, const std::string& line) {
    return wire.find("\r\n" + line + "\r\n") != std::string::npos;
}

cache::stored_ptr stored_with(const std::string& fields) {
    auto made = cache::test::response({});
    made->head.insert(made->status_line_size, fields);
    cache::index_head(made);
    return made;
}

const std::string own = "Range: bytes=1-2\r\nIf-None-Match: \"c\"\r\nAccept: x\r\n";
const std::string get = "GET http://a.example/x";

}  // namespace

TEST_SUITE_BEGIN("fetch/order");

TEST_CASE("an order of a kind has that kind's part, and no other's") {
    fetch_order order;
    CHECK(!order.validating());
    CHECK(!order.behind());
    CHECK(!order.described());
    CHECK(!order.body());
    const cache::stored_ptr stored = cache::test::response({});
    order.what = wanted::validating{stored};
    CHECK(order.validating() == stored);
    CHECK(!order.behind());
    order.what = wanted::validating{stored, true};
    CHECK(order.behind() == stored);
    order.validate_nothing();
    CHECK(!order.validating());
    CHECK(order.as<wanted::whole>() != nullptr);
    order.what = wanted::whole{stored};
    CHECK(order.behind() == stored);
    CHECK(!order.validating());
    order.what = wanted::head{stored};
    order.validate_nothing();
    CHECK(order.described() == stored);
}

TEST_CASE("what may be stored is asked for without the client's range and conditions") {
    const auto order = order_for(get, own);
    const auto wire = sent(*order);
    CHECK(wire.starts_with("GET /x HTTP/1.1\r\n"));
    CHECK(has(wire, "Accept: x"));
    CHECK(wire.find("Range") == std::string::npos);
    CHECK(wire.find("If-None-Match") == std::string::npos);
    SUBCASE("unless they are to be its own") {
        order->own_range = order->own_conditions = true;
        CHECK(has(sent(*order), "Range: bytes=1-2"));
        CHECK(has(sent(*order), "If-None-Match: \"c\""));
    }
    SUBCASE("and what may not, with them") {
        order->may_store = false;
        CHECK(has(sent(*order), "Range: bytes=1-2"));
        CHECK(has(sent(*order), "If-None-Match: \"c\""));
    }
}

TEST_CASE("a validation asks by what is stored, and not by what the client has") {
    const auto order = order_for(get, own);
    order->what = wanted::validating{stored_with("ETag: \"s\"\r\n")};
    const auto wire = sent(*order, next_hop::origin, true);
    CHECK(has(wire, "If-None-Match: \"s\""));
    CHECK(wire.find("\"c\"") == std::string::npos);
    CHECK(wire.find("Range") == std::string::npos);
    SUBCASE("a second request, without") {
        CHECK(sent(*order).find("If-None-Match") == std::string::npos);
    }
}

TEST_CASE("the rest and a gap are asked for under If-Range, in place of the client's range") {
    const auto order = order_for(get, own);
    order->own_range = order->own_conditions = true;
    order->what = wanted::rest{7, "\"s\""};
    const auto rest = sent(*order);
    CHECK(has(rest, "Range: bytes=7-"));
    CHECK(has(rest, "If-Range: \"s\""));
    CHECK(rest.find("bytes=1-2") == std::string::npos);
    CHECK(rest.find("If-None-Match") == std::string::npos);
    order->what = wanted::gap{"bytes=3-4", "\"p\""};
    CHECK(has(sent(*order), "Range: bytes=3-4"));
    CHECK(has(sent(*order), "If-Range: \"p\""));
}

TEST_CASE("peers are asked by the absolute URL, siblings for what they have alone") {
    const auto order = order_for(get);
    CHECK(sent(*order, next_hop::parent).starts_with("GET http://a.example/x HTTP/1.1\r\n"));
    CHECK(!has(sent(*order, next_hop::parent), "Cache-Control: only-if-cached"));
    CHECK(has(sent(*order, next_hop::sibling), "Cache-Control: only-if-cached"));
}

TEST_CASE("a parent's credentials stand in what it is asked, and in nothing else") {
    const auto order = order_for(get);
    const auto with = *wire_of(*order, next_hop::parent, false, "p", wall_time{}, "Basic dTpw");
    CHECK(has(with, "Proxy-Authorization: Basic dTpw"));
    CHECK(with.ends_with("\r\n\r\n"));
    for (const auto to : {next_hop::parent, next_hop::sibling, next_hop::origin}) {
        CHECK(sent(*order, to).find("Proxy-Authorization") == std::string::npos);
    }
}

TEST_CASE("a home is named to itself, hop by hop, and to nobody else") {
    const auto order = order_for(get);
    const auto with = *wire_of(*order, next_hop::home, false, "p", wall_time{}, "cache-b");
    CHECK(with.starts_with("GET http://a.example/x HTTP/1.1\r\n"));
    CHECK(has(with, "Reprise-Home: cache-b"));
    CHECK(has(with, "Connection: Reprise-Home"));
    CHECK(with.find("only-if-cached") == std::string::npos);
    CHECK(with.find("Proxy-Authorization") == std::string::npos);
    for (const auto to : {next_hop::parent, next_hop::sibling, next_hop::origin}) {
        CHECK(sent(*order, to).find("Reprise-Home") == std::string::npos);
    }
}

TEST_CASE("an upgrade is asked for where one was, and goes to the origin alone") {
    const auto order = order_for(get);
    order->may_store = false;
    order->what.emplace<wanted::passed>().websocket = true;
    CHECK(has(sent(*order), "Upgrade: websocket"));
    CHECK(!order->body());
}

TEST_CASE(
    "two orders for one key would send the same if no line differs that a shared fetch sends") {
    struct {
        std::string one, other;
        bool is_same;
    } const rows[]{
        {"", "", true},
        {"Accept: x\r\nA: 1\r\n", "Accept: x\r\nA: 1\r\n", true},
        {"A: 1\r\n", "A: 2\r\n", false},
        {"A: 1\r\n", "", false},
        {"", "A: 1\r\n", false},
        {"A: 1\r\nB: 2\r\n", "B: 2\r\nA: 1\r\n", false},
        {"A: 1\r\n", "a: 1\r\n", false},
        // Neither sends these, nor the Host that its client wrote.
        {own, "Accept: x\r\n", true},
        {"If-Modified-Since: x\r\n", "If-None-Match: \"d\"\r\nIf-Range: \"d\"\r\n", true},
    };
    for (const auto& row : rows) {
        CAPTURE(row.one);
        CAPTURE(row.other);
        const auto one = order_for(get, row.one);
        const auto other = order_for(get, row.other);
        CHECK(would_send(*one, as_sent(*other, {})) == row.is_same);
        CHECK(would_send(*other, as_sent(*one, {})) == row.is_same);
    }
}

TEST_CASE("whose request it is makes another of it where whoever is asked is told that") {
    for (const bool is_told : {false, true}) {
        CAPTURE(is_told);
        config::options options;
        if (is_told) {
            options.forwarding.client_address = config::forwarded_field::x_forwarded_for;
        }
        const auto now_settings = thread::make_settings(options);
        const auto one = order_for(get, "", now_settings);
        const auto other = order_for(get, "", now_settings);
        one->client_address = "192.0.2.1";
        other->client_address = "192.0.2.2";
        CHECK(would_send(*one, as_sent(*one, {})));
        CHECK(would_send(*one, as_sent(*other, {})) == !is_told);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_order
