#include "proxy/cache/unattended.hpp"
#include "proxy/fetch/producer.hpp"
#include "tests/unit/fetch/arrivals.hpp"
#include "tests/unit/net/addresses.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/memory_ends.hpp"
#include "tests/unit/net/silent_port.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace reprise::proxy::fetch::test::of_producer {

namespace {

using event = cache::fetch_reader::event;
using net::descriptors;

/// A node whose origins are waited for as long as a test likes.
config::options patient() {
    auto out = with_memory(1u << 20);
    out.timeouts.origin_connect = std::chrono::hours{1};
    return out;
}

template <class Condition>
void run_until(node& at, Condition met) {
    const auto give_up = net::late();
    while (!met() && steady_now() < give_up) {
        at.w.io.restart();
        at.w.io.run_one_for(std::chrono::milliseconds{20});
    }
}

/// A fetch that others may join, and its one reader.
struct led {
    led(node& in, std::uint16_t port) : at{in}, order{order_for("GET " + url, "", in.settings)} {
        order->key = filter::hash_of(url, in.common.admission.secret());
        auto place = in.common.fetches.join_or_lead(order->key, url, {}, in.settings->fetches);
        REQUIRE(place.leads);
        reader = std::move(place.reader);
        order->into = reader->source();
        order->listed = true;
        order->retryable = true;
        order->connect_host = "127.0.0.1";
        order->connect_port = port;
        order->exempt = true;
    }
    void begin() { start_producer(at.w, order); }
    [[nodiscard]] std::uint64_t ended(fetch_end how) const {
        return at.w.counts.fetches_ended[static_cast<std::size_t>(how)].read();
    }
    [[nodiscard]] bool is_listed() const { return at.common.fetches.has(order->key, url); }

    static inline const std::string url = "http://a.example/x";
    node& at;
    std::shared_ptr<fetch_order> order;
    std::unique_ptr<cache::fetch_reader> reader;
};

}  // namespace

TEST_SUITE_BEGIN("fetch/producer");

TEST_CASE("a fetch whose clients leave while its origin is dialled leaves no socket behind") {
    node at{patient()};
    const net::silent_port silent{at.w.io, net::ip("127.0.0.1")};
    led one{at, silent.port()};
    const auto before = descriptors();
    one.begin();
    run_until(at, [&] { return descriptors() == before + 1; });
    REQUIRE(descriptors() == before + 1);
    one.reader.reset();
    run_until(at, [&] { return !one.is_listed() && descriptors() == before; });
    CHECK_FALSE(one.is_listed());
    CHECK(descriptors() == before);
    CHECK(one.ended(fetch_end::given_up) == 1);
    CHECK(at.w.origins.figures().dials == 1);
    CHECK_FALSE(at.w.origins.must_wait(one.order->origin(), {}));
}

TEST_CASE("one that is abandoned before anybody is asked dials nobody") {
    node at{patient()};
    const net::silent_port silent{at.w.io, net::ip("127.0.0.1")};
    led one{at, silent.port()};
    one.reader.reset();
    one.begin();
    run_until(at, [&] { return !one.is_listed(); });
    CHECK(one.ended(fetch_end::given_up) == 1);
    CHECK(at.w.origins.figures().dials == 0);
}

TEST_CASE("one that is abandoned while a parent is dialled finds that gone, and tries no other") {
    auto options = patient();
    options.timeouts.origin_connect = std::chrono::milliseconds{100};
    config::peer_options any;
    any.name = "s";
    any.url = "http://127.0.0.1:9";
    options.peers.push_back(any);
    node at{options};
    const net::silent_port silent{at.w.io, net::ip("127.0.0.1")};
    auto book = std::make_shared<peer::peer_book>();
    const std::vector<std::string> names{"p", "q"};
    for (const auto& name : names) {
        book->parents.push_back({.name = name, .host = "127.0.0.1", .port = silent.port()});
    }
    book->choice = std::make_shared<peer::parent_choice>(names);
    at.w.peers->book = book;
    led one{at, 80};
    one.order->connect_host = "a.example";
    one.order->exempt = false;
    one.order->may_use_peers = true;
    std::vector<cache::unattended_permit> taken;
    bool has_permit = true;
    SUBCASE("by a permit") {}
    SUBCASE("without one it is given up, and nobody blamed") {
        has_permit = false;
        while (auto each = at.w.common.unattended.enter(
                   one.order->charged_to, one.order->now_settings->fetches.unattended)) {
            taken.push_back(std::move(each));
        }
    }
    const auto before = descriptors();
    one.begin();
    run_until(at, [&] { return descriptors() == before + 1; });
    one.reader.reset();
    run_until(at, [&] { return !one.is_listed() && descriptors() == before; });
    CHECK(descriptors() == before);
    CHECK(one.ended(fetch_end::given_up) == 1);
    CHECK(at.w.origins.figures().dials == 1);
    // The URL says which is first.
    CHECK((book->choice->has_failed(0) != book->choice->has_failed(1)) == has_permit);
    CHECK(at.w.names.asked() == 0);
}

TEST_CASE(
    "a fetch that fails says what it has asked, and that is nothing where nobody can be reached") {
    for (const bool is_reached : {true, false}) {
        CAPTURE(is_reached);
        node at{patient()};
        auto origin = net::listen_on_loopback(at.w.io);
        const net::closed_port nobody{at.w.io};
        led one{at, is_reached ? origin.local_endpoint().port() : nobody.port};
        one.begin();
        if (is_reached) {
            run_until(at, [&] { return one.order->into->asked().has_value(); });
            auto far = origin.accept();
            far.close();
        }
        run_until(at, [&] { return !one.is_listed(); });
        cache::fetch_reader::report told;
        one.reader->next(told, 1);
        CHECK(told.what == event::failed);
        CHECK(told.why.code ==
              (is_reached ? failure_code::origin_closed : failure_code::connect_refused));
        const auto asked = one.order->into->asked();
        REQUIRE(asked.has_value() == is_reached);
        if (asked) {
            CHECK(asked->head.get() == &one.order->request->head);
        }
    }
}

TEST_CASE("clients that leave where there is no memory end their fetch all the same") {
    node at{patient()};
    auto origin = net::listen_on_loopback(at.w.io);
    led one{at, origin.local_endpoint().port()};
    one.begin();
    run_until(at, [&] { return one.order->into->asked().has_value(); });
    REQUIRE(one.order->into->asked().has_value());
    bool threw = false;
    const auto leave = [&] {
        const net::memory_ends lack;
        try {
            one.reader->leave();
        } catch (const std::bad_alloc&) {
            threw = true;
        }
    };
    SUBCASE("on its thread") {
        leave();
    }
    SUBCASE("on another") {
        std::thread other{leave};
        other.join();
    }
    CHECK_FALSE(threw);
    run_until(at, [&] { return !one.is_listed(); });
    CHECK_FALSE(one.is_listed());
    CHECK(one.ended(fetch_end::given_up) == 1);
}

// Each piece of memory is refused once. Where it is for what the coroutine is about to wait for, that hears nothing of it.
TEST_CASE(
    "one whose memory ends on its way to an answer ends for its readers, and is joined no more") {
    unsigned lost = 0, unharmed = 0;
    constexpr unsigned most = 50;
    // Once more, when the thread keeps what the first ones took: then each counts alike.
    for (unsigned i = 0; i < 2 * most; ++i) {
        const auto still = i % most;
        CAPTURE(still);
        node at{patient()};
        auto origin = net::listen_on_loopback(at.w.io);
        led one{at, origin.local_endpoint().port()};
        one.begin();
        run_until(at, [&] { return at.w.origins.figures().opened == 1; });
        REQUIRE(at.w.origins.figures().opened == 1);
        bool threw = false;
        {
            // It goes on with its connection, until it waits for an answer.
            const net::memory_ends lack{still, 1};
            try {
                at.w.io.restart();
                (void)at.w.io.poll();
            } catch (const std::bad_alloc&) {
                threw = true;
            }
        }
        lost += threw ? 1 : 0;
        for (int turn = 0; turn < 10; ++turn) {
            at.w.io.restart();
            (void)at.w.io.poll();
        }
        cache::fetch_reader::report told;
        one.reader->next(told, 1);
        if (told.what == event::nothing) {
            ++unharmed;
            CHECK_FALSE(threw);
            CHECK(one.is_listed());
            continue;
        }
        CHECK(told.what == event::failed);
        CHECK(told.why.code == failure_code::out_of_memory);
        CHECK_FALSE(one.is_listed());
        CHECK(one.ended(fetch_end::failed) == 1);
        CHECK(at.w.origins.figures().open == 0);
    }
    CHECK(lost > 0);
    CHECK(unharmed > 0);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::fetch::test::of_producer
