#include "proxy/server/conversation.hpp"
#include "proxy/server/given_sockets.hpp"
#include "proxy/server/successor.hpp"
#include "tests/support/caught_stderr.hpp"
#include "tests/support/waiting.hpp"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <netinet/in.h>
#include <new>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <utility>

namespace reprise::proxy::server::test::of_conversation {
namespace {

using tests::eventually;
using tests::patience;

struct pair {
    pair() {
        std::array<int, 2> ends{};
        REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
        one = std::make_shared<conversation>(descriptor{ends[0]});
        other = std::make_shared<conversation>(descriptor{ends[1]});
    }
    // What waits in the one, sent.
    void flush() const { (void)one->next(steady_now()); }
    std::shared_ptr<conversation> one, other;
};

thread::purge_order order_of(std::string url) {
    thread::purge_order out;
    out.keys.push_back(std::move(url));
    return out;
}

descriptor listening() {
    descriptor out{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(out.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(out.get(), 1) == 0);
    return out;
}

}  // namespace

TEST_SUITE("server/conversation") {

    TEST_CASE("a socket goes along with its message") {
        const pair p;
        auto socket = listening();
        const auto at = bound_address(socket.get());
        REQUIRE(at);
        p.one->send({handover_kind::listener, 0, "127.0.0.1:0"}, std::move(socket));
        p.flush();
        auto got = p.other->next(steady_now() + patience);
        REQUIRE(got);
        CHECK(got->message.bytes == "127.0.0.1:0");
        const auto there = bound_address(got->with.get());
        REQUIRE(there);
        CHECK(there->port == at->port);
    }

    TEST_CASE("where there is no descriptor for the socket its message comes alone") {
        const pair p;
        p.one->send({handover_kind::listener, 0, "127.0.0.1:0"}, listening());
        p.flush();
        rlimit before{};
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
        const rlimit none{2, before.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
        const auto got = p.other->next(steady_now() + patience);
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
        REQUIRE(got);
        CHECK(got->message.bytes == "127.0.0.1:0");
        CHECK_FALSE(got->with);
    }

    TEST_CASE("what the other told before it ended is carried out, whatever was left to tell it") {
        pair p;
        p.one->tell(order_of("http://a.example/1"));
        p.one->tell(order_of("http://a.example/2"));
        int more = 0;
        SUBCASE("nothing was left") {}
        SUBCASE("it had something to read yet") {
            more = 1;
            p.other->tell(order_of("http://b.example/1"));
            (void)p.other->next(steady_now());
        }
        SUBCASE("something is to be told to it yet") {
            more = 2;
        }
        p.flush();
        p.one.reset();
        if (more == 2) {
            p.other->tell(order_of("http://b.example/1"));
        }
        int carried_out = 0;
        bool heard = false;
        p.other->when_carried_out([&] { heard = true; });
        p.other->on_purge([&](const thread::purge_order&, const std::function<void()>& kept) {
            ++carried_out;
            kept();
        });
        p.other->attend();
        CHECK(carried_out == 2);
        CHECK(p.other->is_over());
        CHECK(heard == (more == 0));  // who has told that one something waits on
        p.other->tell(order_of("http://b.example/2"));
        p.other->end();
        CHECK(heard);
    }

    TEST_CASE("the beginning of an order of which no end was told is no part of the next") {
        const pair p;
        std::optional<thread::purge_order> came;
        p.other->on_purge(
            [&](const thread::purge_order& order, const std::function<void()>&) { came = order; });
        p.one->send({handover_kind::more, 7, "a piece"});
        const auto order = order_of("http://a.example/");
        p.one->tell(order);
        p.flush();
        (void)p.other->next(steady_now());
        CHECK(came == order);
    }

    TEST_CASE("what there is no memory to carry out nobody hears of, and the next is carried out") {
        const pair p;
        std::atomic<int> came{0};
        p.other->on_purge([&](const thread::purge_order&, const std::function<void()>& kept) {
            if (++came == 1) {
                throw std::bad_alloc{};
            }
            kept();
        });
        std::thread attends{[&] { p.other->attend(); }};
        p.one->tell(order_of("http://a.example/1"));
        bool heard = false;
        p.one->when_carried_out([&] { heard = true; });
        p.one->tell(order_of("http://a.example/2"));
        CHECK(eventually([&] {
            p.flush();
            return came == 2;
        }));
        p.other->interrupt();
        attends.join();
        p.flush();
        CHECK_FALSE(heard);
    }

    TEST_CASE("a purge is carried out there, and who waits hears of it when it is kept") {
        const pair p;
        std::optional<thread::purge_order> came;
        std::function<void()> kept;
        p.other->on_purge([&](const thread::purge_order& order, std::function<void()> when) {
            came = order;
            kept = std::move(when);
        });
        bool heard = false;
        p.one->when_carried_out([&] { heard = true; });
        CHECK(heard);  // nothing was told
        heard = false;
        const auto order = order_of("http://a.example/" + std::string(300'000, 'x'));  // in pieces
        p.one->tell(order);
        p.one->when_carried_out([&] { heard = true; });
        REQUIRE(eventually([&] {
            p.flush();
            (void)p.other->next(steady_now());
            return came.has_value();
        }));
        CHECK(came == order);
        p.flush();
        CHECK_FALSE(heard);
        kept();
        (void)p.other->next(steady_now());
        p.flush();
        CHECK(heard);
    }

    TEST_CASE("purges that come before anybody can carry them out wait for that") {
        const pair p;
        p.one->tell(order_of("http://a.example/1"));
        p.one->tell(order_of("http://a.example/2"));
        p.flush();
        CHECK_FALSE(p.other->next(steady_now()));
        std::string came;
        p.other->on_purge([&](const thread::purge_order& order, const std::function<void()>&) {
            came += order.keys.front().back();
        });
        CHECK(came == "12");
    }

    TEST_CASE("where the other has ended they wait until that is dealt with") {
        pair p;
        p.one->tell(order_of("http://a.example/"));
        bool heard = false;
        p.one->when_carried_out([&] { heard = true; });
        p.other.reset();
        p.flush();
        CHECK(p.one->is_over());
        CHECK_FALSE(heard);
        p.one->end();
        CHECK(heard);
        heard = false;
        p.one->tell(order_of("http://a.example/"));
        p.one->when_carried_out([&] { heard = true; });
        CHECK(heard);
    }

    TEST_CASE("one that takes nothing is told up to a bound, and nobody hears that it was") {
        const pair p;
        const auto order = order_of("http://a.example/");
        for (std::size_t i = 0; i < conversation::most_waiting + 10; ++i) {
            p.one->tell(order);
        }
        std::size_t came = 0;
        p.other->on_purge([&](const thread::purge_order&, const std::function<void()>& kept) {
            ++came;
            kept();
        });
        bool heard = false;
        p.one->when_carried_out([&] { heard = true; });
        REQUIRE(eventually([&] {
            for (std::size_t i = 0; i < conversation::most_waiting; ++i) {
                p.flush();
                (void)p.other->next(steady_now());
            }
            return came == conversation::most_waiting;
        }));
        p.flush();
        CHECK_FALSE(heard);
    }

    TEST_CASE("sockets are found by how their listener was set, or by where they are bound") {
        std::vector<given_socket> all;
        auto first = listening();
        const auto at = bound_address(first.get());
        REQUIRE(at);
        all.push_back({std::move(first), "127.0.0.1:0", false});
        all.push_back(
            {listening(), "127.0.0.1:0", false});  // of the next listener, with a port of its own
        all.push_back({listening(), "127.0.0.1:0", true});
        all.push_back({listening(), "127.0.0.2:0", false});
        given_sockets given{std::move(all)};
        CHECK(given.take({"127.0.0.1", 1}, false).empty());
        CHECK(given.take({"127.0.0.1", at->port}, false).size() == 1);
        CHECK(given.take({"127.0.0.1", 0}, false).size() == 1);
        CHECK(given.take({"127.0.0.1", 0}, false).empty());
        CHECK(given.take({"127.0.0.1", 0}, true).size() == 1);
        CHECK_FALSE(given.empty());
    }
}

TEST_SUITE("server/successor") {

    namespace {

    struct heir {
        std::atomic<int> told{0}, taken_back{0};
        std::atomic<bool> served{false};
        [[nodiscard]] estate all() {
            return {.pseudonym = "p",
                    .sockets = {},
                    .tell_purges_to =
                        [this](const std::shared_ptr<conversation>& to) { told += to ? 1 : -1; },
                    .lend_store = [](std::chrono::milliseconds) { return std::string{}; },
                    .take_store_back = [this] { return ++taken_back > 0; },
                    .keep_purges = [](const std::function<void()>& kept) { kept(); },
                    .admission = [] { return std::vector<std::byte>{}; },
                    .history = [](steady_time) { return std::string{}; },
                    .succeeded = [this](pid_t) { served = true; }};
        }
    };

    void nothing(const thread::purge_order&, const std::function<void()>&) {}

    }  // namespace

    TEST_CASE("a program that says nothing is ended when its time is over") {
        heir h;
        successor next{
            {"sleep", "1000"}, h.all(), nothing, {.prepared = std::chrono::milliseconds{20}}};
        CHECK(eventually([&] { return !next.is_under_way(); }));
        CHECK_FALSE(h.served);
        CHECK_FALSE(next.serves());
        CHECK(h.taken_back == 0);  // it was never given
        next.abandon();
    }

    TEST_CASE("where memory ends behind the loan all is taken back, and this program goes on") {
        const tests::caught_stderr log;
        heir h;
        auto all = h.all();
        all.admission = []() -> std::vector<std::byte> { throw std::bad_alloc{}; };
        // It says that it is prepared, and nothing more.
        successor next{
            {"sh", "-c", R"(printf 'p\001\000\000\000\000\000\000\000' >&3; exec sleep 1000)"},
            std::move(all),
            nothing};
        CHECK(eventually([&] { return !next.is_under_way(); }));
        next.abandon();
        CHECK_FALSE(h.served);
        CHECK(h.taken_back == 1);
        CHECK(h.told == 0);  // and not any more
        CHECK(log.text().find("upgrade: out of memory; this program goes on") != std::string::npos);
    }

    TEST_CASE("one that is given up is ended at once") {
        heir h;
        successor next{{"sleep", "1000"}, h.all(), nothing};
        next.abandon();
        CHECK_FALSE(next.is_under_way());
        CHECK_FALSE(h.served);
    }

    TEST_CASE("what failed is said when all is taken back, and another may be begun at once") {
        const tests::caught_stderr log;
        const auto is_said = [&] {
            return log.text().find("this program goes on") != std::string::npos;
        };
        heir h;
        auto all = h.all();
        bool too_early = false;
        all.keep_purges = [&](const std::function<void()>& kept) {
            too_early = is_said();
            kept();
        };
        {
            const successor next{{"/nonexistent/reprise"}, std::move(all), nothing};
            CHECK(eventually(is_said));
            CHECK_FALSE(next.is_under_way());
        }
        CHECK_FALSE(too_early);
    }

    TEST_CASE("what can't be started has nothing to be ended") {
        heir h;
        const successor next{{"/nonexistent/reprise"}, h.all(), nothing};
        CHECK(eventually([&] { return !next.is_under_way(); }));
        CHECK_FALSE(h.served);
    }
}

}  // namespace reprise::proxy::server::test::of_conversation
