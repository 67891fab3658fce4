#include "proxy/net/address.hpp"
#include "proxy/peer/discovery.hpp"
#include "proxy/peer/peer_book.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_peer_book {
namespace {

config::peer_options sibling(const std::string& name, const std::string& url, bool squid = false) {
    config::peer_options made;
    made.name = name;
    made.url = url;
    made.protocol = squid ? config::peer_protocol::squid : config::peer_protocol::reprise;
    return made;
}

config::peer_options parent(const std::string& name, const std::string& url) {
    auto made = sibling(name, url);
    made.kind = config::peer_kind::parent;
    return made;
}

}  // namespace

TEST_SUITE("peer/peer_book") {
    TEST_CASE("an https URL is asked of siblings behind TLS alone, and of no Squid") {
        const std::vector<config::peer_options> peers{
            sibling("plain", "http://10.0.0.1:3128"),
            sibling("secure", "https://10.0.0.2:3128"),
            sibling("squid", "http://10.0.0.3:3128", true),
            sibling("secure squid", "https://10.0.0.4:3128", true)};
        sibling_table table;
        const auto book = make_book(
            peers, {}, "us", configured_siblings(peers, false), {}, {}, {}, table, nullptr);
        const auto names = [&](bool secure) {
            std::vector<std::string> all;
            for (std::size_t slot = 0; slot < book->siblings.size(); ++slot) {
                if (book->asked_for(secure).has(static_cast<unsigned>(slot))) {
                    REQUIRE(book->siblings[slot]);
                    all.push_back(book->siblings[slot]->name);
                }
            }
            return all;
        };
        CHECK(names(false) == std::vector<std::string>{"plain", "secure", "squid", "secure squid"});
        CHECK(names(true) == std::vector<std::string>{"secure"});
    }

    TEST_CASE("a sibling that is there no more is asked for nothing") {
        const std::vector<config::peer_options> peers{sibling("a", "https://10.0.0.1:3128")};
        sibling_table table;
        const auto book = make_book(peers, {}, "us", {}, {}, {}, {}, table, nullptr);
        CHECK(book->asked_for(false).empty());
        CHECK(book->asked_for(true).empty());
    }

    TEST_CASE("a guest may ask what siblings may, and is no peer in any other respect") {
        const std::vector<config::peer_options> peers{sibling("a", "http://10.0.0.1:443")};
        sibling_table table;
        const auto at = [](const char* text) { return asio::ip::make_address(text); };
        config::network guests;
        guests.address = net::canonical(at("192.0.2.0"));
        guests.prefix_bits = 96 + 25;
        const auto book = make_book(peers,
                                    {},
                                    "us",
                                    configured_siblings(peers, false),
                                    {{at("10.0.0.1"), false}},
                                    std::vector{guests},
                                    {},
                                    table,
                                    nullptr);
        CHECK(book->may_ask(at("10.0.0.1")));
        CHECK(book->may_ask(at("192.0.2.7")));
        CHECK(book->may_ask(at("::ffff:192.0.2.7")));
        CHECK_FALSE(book->may_ask(at("192.0.2.129")));
        CHECK(book->is_peer(at("10.0.0.1")));
        CHECK_FALSE(book->is_peer(at("192.0.2.7")));
        CHECK_FALSE(book->is_listener(at("192.0.2.7"), 443, {}));
    }

    TEST_CASE(
        "a peer may listen on its own port, on another peer's, and where we listen ourselves") {
        const std::vector<config::peer_options> peers{sibling("a", "http://10.0.0.1:3128"),
                                                      sibling("b", "http://10.0.0.2:3129")};
        sibling_table table;
        const auto at = [](const char* text) { return asio::ip::make_address(text); };
        const auto book = make_book(peers,
                                    {},
                                    "us",
                                    configured_siblings(peers, false),
                                    {{at("10.0.0.1"), false}, {at("10.0.0.2"), false}},
                                    {},
                                    {},
                                    table,
                                    nullptr);
        const std::vector<std::uint16_t> own_ports{3128, 443};
        CHECK(book->is_listener(at("10.0.0.1"), 3128, own_ports));
        CHECK(book->is_listener(at("10.0.0.1"), 3129, own_ports));
        CHECK(book->is_listener(at("::ffff:10.0.0.1"), 443, own_ports));
        CHECK_FALSE(book->is_listener(at("10.0.0.1"), 443, {}));
        CHECK_FALSE(book->is_listener(at("10.0.0.1"), 444, own_ports));
        CHECK_FALSE(book->is_listener(at("10.0.0.3"), 443, own_ports));
    }

    TEST_CASE("what is known of a parent goes on where it is the same, and of no other address") {
        sibling_table table;
        const auto of = [&](const std::vector<config::peer_options>& peers,
                            const parent_credentials& known,
                            const peer_book* before) {
            return make_book(peers, known, "us", {}, {}, {}, {}, table, before);
        };
        const auto a = parent("a", "http://10.0.0.1:3128"), b = parent("b", "http://10.0.0.2:3128");
        const steady_time now{std::chrono::hours{1}};
        const auto first = of({a, b}, {}, nullptr);
        first->choice->failed(0, now, now, failure_code::parent_refused);
        first->choice->failed(1, now, now);
        CHECK(of({a, b}, {}, first.get())->choice == first->choice);

        const auto moved = parent("b", "http://10.0.0.3:3128");
        const auto next = of({a, moved}, {}, first.get());
        CHECK(next->choice->is_down(0, now));
        CHECK(next->choice->has_failed(0));
        CHECK(next->choice->trouble(0) == failure_code::parent_refused);
        CHECK_FALSE(next->choice->is_down(1, now));
        CHECK_FALSE(next->choice->has_failed(1));
        // What is under way to where it was fails there.
        const auto later = now + std::chrono::minutes{2};
        first->choice->failed(1, later, later);
        CHECK_FALSE(next->choice->has_failed(1));

        const auto by_login = of({a, b}, {{"a", "Basic YTpi"}}, first.get());
        CHECK_FALSE(by_login->choice->is_down(0, now));
        CHECK(by_login->choice->is_down(1, now));
        const auto more = of({b, parent("c", "http://10.0.0.4:3128"), a}, {}, first.get());
        CHECK(more->choice->is_down(0, now));
        CHECK_FALSE(more->choice->is_down(1, now));
        CHECK(more->choice->is_down(2, now));
        CHECK_FALSE(of({}, {}, first.get())->choice);
    }

    TEST_CASE("homes go on from book to book as long as the same nodes live") {
        const std::vector<config::peer_options> peers{sibling("a", "http://10.0.0.1:3128")};
        sibling_table table;
        const std::vector<live_node> live{{0, "a", false}};
        const auto of = [&](const std::optional<std::vector<live_node>>& nodes,
                            const peer_book* before) {
            return make_book(
                peers, {}, "us", configured_siblings(peers, false), {}, {}, nodes, table, before);
        };
        const auto first = of(live, nullptr);
        REQUIRE(first->homes);
        CHECK(of(live, first.get())->homes == first->homes);
        const auto alone = of(std::vector<live_node>{}, first.get());
        REQUIRE(alone->homes);
        CHECK(alone->homes != first->homes);
        CHECK_FALSE(of(std::nullopt, first.get())->homes);
    }

    TEST_CASE("a home that does not answer is passed by though another node comes or goes") {
        sibling_table table;
        const auto of = [&](const std::vector<live_node>& nodes, const peer_book* before) {
            return make_book({}, {}, "us", {}, {}, {}, nodes, table, before);
        };
        // Of those of so many keys.
        const auto names = [](const peer_book& book) {
            std::set<std::string> out;
            for (std::uint64_t i = 0; i < 500; ++i) {
                const filter::key_hash key{i * 0x9e3779b97f4a7c15, (i + 7) * 0xbf58476d1ce4e5b9};
                const auto home = book.homes->of(key, false, steady_now());
                out.insert(home ? std::string{home->name} : "us");
            }
            return out;
        };
        const auto first = of({{0, "a", false}, {1, "b", false}}, nullptr);
        const failure why{failure_code::origin_head_timeout, ""};
        for (int i = 0; i < 10; ++i) {  // so that it lasts for as long as this test
            first->homes->failed(0, steady_now() + std::chrono::hours{i}, why);
        }
        REQUIRE(names(*first) == std::set<std::string>{"b", "us"});
        const auto more = of({{2, "c", false}, {1, "b", false}, {0, "a", false}}, first.get());
        CHECK(names(*more) == std::set<std::string>{"b", "c", "us"});
        const auto less = of({{0, "a", false}}, more.get());
        CHECK(names(*less) == std::set<std::string>{"us"});
        // Another slot is another node.
        const auto moved = of({{3, "a", false}}, less.get());
        CHECK(names(*moved) == std::set<std::string>{"a", "us"});
    }
}

}  // namespace reprise::proxy::peer::test::of_peer_book
