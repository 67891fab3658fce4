#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/resource.hpp"
#include "tests/unit/filter/digests.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/peer/sibling_bench.hpp"
#include "tests/unit/peer/sibling_server.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_digest_fetch {
namespace {

using namespace std::chrono_literals;

using test::sibling_server;

const std::string secret_text(40, 'f');

filter::digest digest_under(const fleet_secret& secret,
                            std::uint64_t from,
                            std::uint64_t to,
                            std::uint64_t counter) {
    const auto size = filter::digest_size(1000, 1e-4);
    filter::standard_bloom bits{size};
    for (auto i = from; i < to; ++i) {
        bits.insert(key_of(name_of("http://o/" + std::to_string(i), secret), secret));
    }
    return filter::digest::of(
        bits, {.seed = secret.id(), .generation = {.epoch = 5, .counter = counter}, .keys = 100});
}

/// What a Reprise answers.
std::string as_reprise(const http::request_head& head,
                       const publication& digests,
                       signature_checker* checker) {
    asker who{.is_reprise = true, .signing = checker != nullptr};
    if (checker != nullptr) {
        const auto* const host = http::find(head.fields, "Host");
        CHECK(http::find(head.fields, old_signature_field) == nullptr);
        who.signature = checker
                            ->check({.method = head.method_text,
                                     .target = head.target,
                                     .host = host->value,
                                     .fields = head.fields},
                                    {.endpoint = host->value, .name = ""},  // a literal's
                                    wall_now())
                            .what;
    }
    auto made = answer(head,
                       who,
                       {.digest = digests.now(), .seen = nullptr, .squid = nullptr, .node = "b"},
                       false,
                       wall_now());
    if (made.body) {
        made.head.append(reinterpret_cast<const char*>(made.body->data()), made.body->size());
    }
    return made.head;
}

/// What a Reprise with news answers that has nothing new: its digest, and then it holds what is asked.
std::string whole_then_silence(const http::request_head& head,
                               const publication& digests,
                               signature_checker& checker) {
    if (head.target.find("since=") != head.target.npos) {
        return std::string{sibling_server::says_nothing};
    }
    auto whole = as_reprise(head, digests, &checker);
    whole.insert(whole.find("\r\n") + 2, "Reprise-News: 30\r\n");
    return whole;
}

followed sibling_b(std::uint16_t port) {
    followed one;
    one.name = "b";
    one.host = "127.0.0.1";
    one.port = port;
    return one;
}

struct bench : test::sibling_bench {
    bench() : sibling_bench{secret_text} {}
    ~bench() {
        fetcher.stop();
        end();
    }
    void follow(std::uint16_t port,
                std::chrono::milliseconds timeout = 20s,
                bool https = false,
                std::chrono::milliseconds refresh = 20ms) {
        followed one;
        one.https = https;
        one.name = "b";
        one.host = "127.0.0.1";
        one.port = port;
        one.refresh = refresh;
        one.timeout = timeout;
        fetcher.follow({one});
    }
    [[nodiscard]] bool names_b(std::uint64_t i) {
        const auto url = "http://o/" + std::to_string(i);
        return !reader.find(url, key_of(name_of(url, secret), secret), steady_now()).empty();
    }
    [[nodiscard]] follow_figures figures() const {
        const auto all = fetcher.figures();
        return all.empty() ? follow_figures{} : all.front().digest;
    }

    [[nodiscard]] follow_context watched() {
        auto by = context();
        by.itself_again = 20ms;
        by.changed = [this] { ++changed; };
        return by;
    }

    sibling_table::reader reader{table};
    digest_fetcher fetcher{watched()};
    unsigned changed = 0;
};

/// Of a node that hears its siblings first, however long it takes.
follow_context waiting_context(bench& b, catching_up& catching) {
    auto by = b.context();
    by.catching = &catching;
    by.budget = 10min;
    return by;
}

}  // namespace

TEST_SUITE("peer/digest_fetch") {
    TEST_CASE("no refusal, and no connection that ends, brings out the old field of a signature") {
        bench b;
        unsigned by_rfc9421 = 0;
        unsigned in_old_field = 0;
        sibling_server sibling{
            b, [&](const http::request_head& head) {
                by_rfc9421 += http::find(head.fields, http::signature_field) != nullptr ? 1 : 0;
                in_old_field += http::find(head.fields, old_signature_field) != nullptr ? 1 : 0;
                return std::string{sibling.requests % 3 == 0 ? ""
                                                             : "HTTP/1.1 403 Forbidden\r\n"
                                                               "Content-Length: 0\r\n\r\n"};
            }};
        b.follow(sibling.port);
        b.run_until([&] { return sibling.requests >= 5; });
        CHECK(sibling.requests >= 5);
        CHECK(by_rfc9421 == sibling.requests);
        CHECK(in_old_field == 0);
    }

    TEST_CASE("a request has all that a sibling needs to know") {
        const auto secret = *fleet_secret::from_content(secret_text);
        followed of;
        of.host = "::1";
        of.port = 3128;
        const wall_time now{1'763'668'089'000ms};
        const auto wire = digest_request(
            of,
            "[::1]:3128",
            digest_path,
            {.query = "since=1-2", .none_match = "\"1-2\"", .modified_since = ""},
            secret,
            "a",
            now,
            {});
        CHECK(wire.starts_with("GET /.well-known/reprise/digest?since=1-2 HTTP/1.1\r\n"
                               "Host: [::1]:3128\r\nIf-None-Match: \"1-2\"\r\n"
                               "Reprise-Node: a\r\nReprise-To: [::1]:3128\r\n"
                               "Signature-Input: reprise=("));
        CHECK(wire.ends_with("\r\n\r\n"));
        http::request_head head;
        REQUIRE(http::parse_request_head(wire, head, {}).state == http::head_state::done);
        signature_checker checker{secret};
        const auto judged = checker.check(
            {.method = "GET", .target = head.target, .host = "[::1]:3128", .fields = head.fields},
            {"[::1]:3128", ""},
            now);
        CHECK(judged.what == signature_verdict::good);
        CHECK(judged.signer == "a");
        of.squid = true;
        const auto squid = digest_request(of, {}, squid_digest_path, {}, secret, "a", now, {});
        CHECK(squid.find("Via: 1.1 a\r\n") != std::string::npos);
        CHECK(squid.find("Signature") == std::string::npos);
        CHECK(squid.find("Reprise-") == std::string::npos);
        CHECK(squid.find("Accept: application/cache-digest\r\n") != std::string::npos);
    }

    TEST_CASE("a sibling is followed: the whole, a delta, nothing new; and let go of") {
        bench b;
        publication digests;
        digests.publish(digest_under(b.secret, 0, 500, 1), wall_now());
        signature_checker checker{b.secret};
        sibling_server sibling{
            b, [&](const auto& head) { return as_reprise(head, digests, &checker); }};
        b.follow(sibling.port);
        b.run_until([&] { return b.names_b(1); });
        CHECK(b.names_b(499));
        CHECK_FALSE(b.names_b(505));
        digests.publish(digest_under(b.secret, 0, 510, 2), wall_now());
        b.run_until([&] { return b.names_b(505); });
        CHECK(b.names_b(1));
        b.run_until([&] { return b.figures().unchanged > 0; });
        CHECK(b.figures().wholes == 1);
        CHECK(b.figures().deltas == 1);
        CHECK(b.figures().state == follow_state::current);
        CHECK(sibling.sockets.size() == 1);  // one connection for all of them
        const auto shown = b.fetcher.figures();
        REQUIRE(shown.size() == 1);
        CHECK(shown[0].generation == filter::digest_generation{.epoch = 5, .counter = 2});
        CHECK(shown[0].estimated_objects == doctest::Approx(510).epsilon(0.05));
        b.fetcher.follow({});
        CHECK_FALSE(b.names_b(1));
        CHECK(b.fetcher.figures().empty());
    }

    TEST_CASE("what a sibling sent is decoded and indexed beside the loop") {
        bench b;
        publication digests;
        digests.publish(digest_under(b.secret, 0, 500, 1), wall_now());
        signature_checker checker{b.secret};
        const auto reply = [&](const auto& head) { return as_reprise(head, digests, &checker); };
        sibling_server sibling{b, reply};
        std::promise<void> free;
        b.aside.post([&] { free.get_future().wait(); });  // something long
        b.follow(sibling.port);
        b.run_until([&] { return sibling.requests == 1; });
        b.run_for(50ms);
        CHECK(b.figures().wholes == 0);
        CHECK_FALSE(b.names_b(1));
        // The loop goes on: another is followed in its place, and let go of.
        sibling_server other{b, reply};
        b.follow(other.port);
        b.run_until([&] { return other.requests == 1; });
        CHECK(other.requests == 1);
        free.set_value();
        b.run_until([&] { return b.names_b(1); });
        CHECK(b.names_b(499));
        b.run_until([&] { return b.figures().wholes == 1; });
        // What was under way when its sibling went is not listed under the next one's name.
        std::promise<void> again;
        const auto before = sibling.requests + other.requests;
        b.aside.post([&] { again.get_future().wait(); });
        b.run_until([&] { return sibling.requests + other.requests > before; });
        b.fetcher.follow({});
        again.set_value();
        b.run_until([&] { return b.aside.is_idle(); });
        REQUIRE(b.aside.is_idle());
        b.run_for(50ms);
        CHECK(b.table.enrol("c") == 0u);
        CHECK_FALSE(b.names_b(1));
    }

    TEST_CASE("who proves to be this instance itself is no other") {
        bench b;
        sibling_server self{b, [](const auto&) {
                                return std::string{"HTTP/1.1 200 OK\r\nReprise-Node: a\r\n"
                                                   "Content-Length: 0\r\n\r\n"};
                            }};
        b.follow(self.port);
        CHECK(b.fetcher.others() == 1);
        b.run_until([&] { return b.figures().state == follow_state::itself; });
        CHECK(b.fetcher.others() == 0);
        std::vector<followed> many(most_slots + 6);
        for (std::size_t i = 0; i < many.size(); ++i) {
            many[i].name = "s" + std::to_string(i);
            many[i].host = "127.0.0.1";
            many[i].port = self.port;
        }
        b.fetcher.follow(many);
        CHECK(b.fetcher.others() == most_slots);
    }

    TEST_CASE(
        "what there was no memory to hear is told again, and who was asked then is asked on") {
        bench b;
        sibling_server self{b, [](const auto&) {
                                return std::string{"HTTP/1.1 200 OK\r\nReprise-Node: a\r\n"
                                                   "Content-Length: 0\r\n\r\n"};
                            }};
        unsigned times = 0;
        auto by = b.context();
        by.itself_again = 20ms;
        by.changed = [&times] {
            if (++times == 1) {
                throw std::bad_alloc{};
            }
        };
        digest_fetcher fetcher{by};
        auto one = sibling_b(self.port);
        one.refresh = 20ms;
        fetcher.follow({one});
        b.run_until([&] { return times == 2; });
        CHECK(times == 2);
        CHECK(fetcher.is_itself("b"));
        const auto asked = self.requests;
        b.run_until([&] { return self.requests > asked; });
        CHECK(self.requests > asked);
        CHECK(times == 2);
        fetcher.stop();
    }

    TEST_CASE("who proves to be this instance itself takes no slot, until it is another") {
        bench b;
        std::string node = "a";
        publication digests;
        sibling_server self{b, [&](const http::request_head& head) {
                                return node == "a" ? "HTTP/1.1 200 OK\r\nReprise-Node: a\r\n"
                                                     "Content-Length: 0\r\n\r\n"
                                                   : as_reprise(head, digests, nullptr);
                            }};
        sibling_server other{b, [](const auto&) {
                                 return std::string{
                                     "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"};
                             }};
        // In the order of their names: 257 of which the first is itself.
        std::vector<followed> all(most_slots + 1);
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i].name = "s" + std::to_string(100 + i);
            all[i].host = "127.0.0.1";
            all[i].port = i == 0 ? self.port : other.port;
            all[i].refresh = 20ms;
        }
        const auto has_slot = [&](const std::string& name) {
            const auto shown = b.fetcher.figures();
            const auto at = std::find_if(shown.begin(), shown.end(), [&](const auto& one) {
                return one.name == name && one.slot.has_value();
            });
            return at != shown.end();
        };
        b.fetcher.follow(all);
        CHECK(has_slot("s100"));
        CHECK_FALSE(has_slot("s356"));
        b.run_until([&] { return b.fetcher.is_itself("s100") && !has_slot("s100"); });
        CHECK(has_slot("s356"));
        CHECK(b.fetcher.others() == 256);
        CHECK(b.fetcher.followed_count() == 257);
        CHECK(b.changed == 1);
        // Without another it would have to be left out again: there is room.
        all.pop_back();
        b.fetcher.follow(all);
        CHECK(b.fetcher.others() == 255);
        CHECK(b.fetcher.is_itself("s100"));
        digests.publish(digest_under(b.secret, 0, 100, 1), wall_now());
        node = "b";
        b.run_until([&] { return has_slot("s100") && b.names_b(5); });
        CHECK_FALSE(b.fetcher.is_itself("s100"));
        CHECK(b.fetcher.others() == 256);
        CHECK(b.changed == 2);
    }

    TEST_CASE(
        "what becomes another when there is no slot is left out, as whoever is one too many") {
        bench b;
        std::string node = "a";
        sibling_server self{b, [&](const auto&) {
                                return "HTTP/1.1 403 Forbidden\r\nReprise-Node: " + node +
                                       "\r\nContent-Length: 0\r\n\r\n";
                            }};
        std::vector<followed> all(most_slots + 1);
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i].name = "s" + std::to_string(100 + i);
            all[i].host = "127.0.0.1";
            all[i].port = i == 0 ? self.port : 1;
            all[i].refresh = 20ms;
        }
        b.fetcher.follow(all);
        b.run_until([&] { return b.fetcher.is_itself("s100"); });
        CHECK(b.fetcher.others() == 256);
        node = "b";
        b.run_until([&] { return b.changed == 2; });
        CHECK(b.fetcher.followed_count() == 256);
        CHECK(b.fetcher.others() == 256);
        all.erase(all.begin() + 1);  // one leaves, and so there is room
        b.fetcher.follow(all);
        CHECK(b.fetcher.others() == 256);
        CHECK(b.fetcher.figures().front().name == "s100");
    }

    TEST_CASE("what a bad sibling sends is refused by name") {
        struct row {
            std::string reply;
            follow_trouble trouble;
        };
        const std::string cut = "HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\nshort, close\r\n";
        const std::vector<row> rows{
            {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", follow_trouble::malformed},
            {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", follow_trouble::too_large},
            {"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", follow_trouble::refused},
            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
             follow_trouble::bad_message},
            {"SSH-2.0-OpenSSH\r\n\r\n", follow_trouble::bad_message},
            {cut, follow_trouble::unreachable},
            {"", follow_trouble::unreachable},
        };
        for (std::size_t i = 0; i < rows.size(); ++i) {
            CAPTURE(i);
            bench b;
            sibling_server sibling{b, [&](const auto&) { return rows[i].reply; }};
            b.follow(sibling.port);
            b.run_until([&] { return b.figures().failed > 0; });
            CHECK(to_string(b.figures().trouble) == to_string(rows[i].trouble));
            CHECK_FALSE(b.names_b(1));
        }
    }

    TEST_CASE("one that says nothing is given up on, and one that is not there is found later") {
        bench b;
        sibling_server mute{b, [](const auto&) { return std::string{"HTTP/1.1 200 OK\r\n"}; }};
        b.follow(mute.port, 50ms);
        b.run_until([&] { return b.figures().failed > 0; });
        CHECK(b.figures().trouble == follow_trouble::timed_out);

        const net::closed_port nobody{b.io};
        b.follow(nobody.port);
        b.run_until([&] { return b.figures().failed > 1; });
        CHECK(b.figures().trouble == follow_trouble::unreachable);
    }

    TEST_CASE("one that was away is asked as soon as it is heard") {
        for (const bool named : {false, true}) {
            CAPTURE(named);
            bench b;
            publication digests;
            digests.publish(digest_under(b.secret, 0, 500, 1), wall_now());
            signature_checker checker{b.secret};
            bool there = false;
            const std::string away =
                named ? "HTTP/1.1 503 Unavailable\r\nReprise-Node: b\r\nContent-Length: 0\r\n\r\n"
                      : "";
            sibling_server sibling{b, [&](const auto& head) {
                                       return there ? as_reprise(head, digests, &checker) : away;
                                   }};
            b.follow(sibling.port, 20s, false, 10min);
            b.run_until([&] { return b.figures().failed == 1; });
            there = true;
            const auto asked = sibling.requests;
            b.run_for(150ms);
            CHECK(sibling.requests == asked);
            b.fetcher.heard_of("");
            if (named) {
                b.fetcher.heard_of("c");
                b.run_for(150ms);
                CHECK(sibling.requests == asked);
            }
            b.fetcher.heard_of("b");
            b.run_until([&] { return b.figures().state == follow_state::current; });
            CHECK(b.figures().state == follow_state::current);  // shown behind what it names
            CHECK(b.names_b(1));
            CHECK(b.figures().failed == 1);
            // All can be had: nothing comes of it.
            const auto then = sibling.requests;
            b.fetcher.heard_of("b");
            b.run_for(150ms);
            CHECK(sibling.requests == then);
        }
    }

    TEST_CASE("a node that begins is catching up until all have been heard that can be") {
        bench b;
        publication digests;
        digests.publish(digest_under(b.secret, 0, 500, 1), wall_now());
        signature_checker checker{b.secret};
        catching_up catching{10min};
        auto by = waiting_context(b, catching);
        digest_fetcher fetcher{by};
        const net::closed_port nobody{b.io};
        sibling_server sibling{
            b, [&](const auto& head) { return as_reprise(head, digests, &checker); }};
        const auto at = [](const char* name, std::uint16_t port) {
            followed one;
            one.name = name;
            one.host = "127.0.0.1";
            one.port = port;
            one.refresh = 20ms;
            return one;
        };
        CHECK_FALSE(catching.is_on(steady_now()));
        fetcher.follow({at("gone", nobody.port), at("b", sibling.port)});
        net::wakeup heard{b.timer};
        REQUIRE(catching.enter(heard.handle(), catching.begun_at()));
        bool is_over = false;
        b.run_until([&] { return is_over = is_over || heard.take(); });
        CHECK(is_over);
        catching.leave();
        CHECK(b.names_b(1));
        // Whoever comes later does not begin it anew, nor what is not followed by news.
        sibling_server other{b,
                             [&](const auto& head) { return as_reprise(head, digests, &checker); }};
        fetcher.follow({at("b", sibling.port), at("c", other.port)});
        CHECK_FALSE(catching.is_on(steady_now()));
        b.run_until([&] {
            const auto all = fetcher.figures();
            return all.size() == 2 && all[0].digest.state == follow_state::current &&
                   all[1].digest.state == follow_state::current;
        });
        const auto later = steady_now() + 1min;
        fetcher.came_back(later, later, 10min);
        CHECK(catching.begun_at() == later);
        CHECK_FALSE(catching.is_on(later));
        fetcher.stop();
    }

    TEST_CASE("behind a stop whoever has nothing new to say is not waited for") {
        bench b;
        publication digests;
        digests.publish(digest_under(b.secret, 0, 500, 1), wall_now());
        signature_checker checker{b.secret};
        catching_up catching{10min};
        auto by = waiting_context(b, catching);
        by.news = 200ms;
        digest_fetcher fetcher{by};
        sibling_server sibling{
            b, [&](const auto& head) { return whole_then_silence(head, digests, checker); }};
        auto one = sibling_b(sibling.port);
        fetcher.follow({one});
        b.run_until([&] { return sibling.requests == 2; });  // the second is open
        REQUIRE_FALSE(catching.is_on(steady_now()));
        const auto stopped = steady_now(), back = stopped + 1min;
        net::wakeup heard{b.timer};
        fetcher.came_back(stopped, back, 10min);
        REQUIRE(catching.enter(heard.handle(), back));
        bool is_over = false;
        b.run_until([&] { return is_over = is_over || heard.take(); });
        CHECK(is_over);
        catching.leave();
        CHECK(sibling.requests == 2);
        fetcher.stop();
    }

    TEST_CASE("an https sibling is followed over one connection, if its certificate is good") {
        bench b;
        b.pool.set_trust(net::trust_of_the_test());
        publication digests;
        digests.publish(digest_under(b.secret, 0, 500, 1), wall_now());
        signature_checker checker{b.secret};
        const auto reply = [&](const auto& head) { return as_reprise(head, digests, &checker); };
        sibling_server good{
            b, reply, net::identity_for(net::known_authority().issue("IP:127.0.0.1"))};
        b.follow(good.port, 20s, true);
        b.run_until([&] { return b.names_b(1) && b.figures().unchanged > 1; });
        CHECK(b.names_b(499));
        CHECK(b.figures().state == follow_state::current);
        CHECK(good.sockets.size() == 1);

        sibling_server other{
            b, reply, net::identity_for(net::known_authority().issue("DNS:b.test"))};
        b.follow(other.port, 20s, true);
        b.run_until([&] { return b.figures().failed > 0; });
        CHECK(b.figures().trouble == follow_trouble::unreachable);
        CHECK(b.figures().detail ==
              "tls_certificate: the certificate of 127.0.0.1: IP address mismatch");
        CHECK(other.requests == 0);

        // One that has no TLS is told nothing.
        sibling_server plain{b, reply};
        b.follow(plain.port, 20s, true);
        b.run_until([&] { return b.figures().failed > 0; });
        CHECK(b.figures().trouble == follow_trouble::unreachable);
        CHECK(plain.requests == 0);
    }

    TEST_CASE(
        "a sibling whose name moves is asked where it leads, though who was there still answers") {
        bench b;
        auto by = b.context();
        by.news = 200ms;
        publication digests;
        digests.publish(digest_under(b.secret, 0, 500, 1), wall_now());
        signature_checker checker{b.secret};
        digest_fetcher fetcher{by};
        sibling_server sibling{
            b, [&](const auto& head) { return whole_then_silence(head, digests, checker); }};
        auto one = sibling_b(sibling.port);
        fetcher.follow({one});
        b.run_until([&] { return sibling.requests == 2; });  // the second is open
        one.where.ends = {net::endpoint_text(asio::ip::make_address("127.0.0.1"), one.port)};
        fetcher.follow({one});
        b.run_for(30ms);
        CHECK(sibling.requests == 2);  // it is there already
        CHECK(sibling.sockets.size() == 1);
        one.where.ends = {"192.0.2.1:1"};
        fetcher.follow({one});
        b.run_until([&] { return sibling.requests == 3; });
        CHECK(sibling.requests == 3);  // asked anew, and by what the name leads to
        CHECK(sibling.sockets.size() == 2);
        CHECK(fetcher.figures().front().digest.failed == 0);
        CHECK(b.names_b(1));
        fetcher.stop();
    }

    TEST_CASE("a sibling of another secret is not asked") {
        bench b;
        const auto other = *fleet_secret::from_content(std::string(40, 'g'));
        publication digests;
        digests.publish(digest_under(other, 0, 500, 1), wall_now());
        sibling_server sibling{
            b, [&](const auto& head) { return as_reprise(head, digests, nullptr); }};
        b.follow(sibling.port);
        b.run_until([&] { return b.figures().failed > 0; });
        CHECK(b.figures().trouble == follow_trouble::other_secret);
    }

    TEST_CASE("stopping ends a fetch under way") {
        bench b;
        sibling_server mute{b, [](const auto&) { return std::string{"HTTP/1.1 200 OK\r\n"}; }};
        b.follow(mute.port);
        b.run_until([&] { return mute.requests > 0; });
        b.fetcher.stop();
        b.run_for(20ms);
        CHECK(b.figures().failed == 0);
    }
}

}  // namespace reprise::proxy::peer::test::of_digest_fetch
