// Four clients of one long chunked response: a fast one, one that stops reading, one that leaves,
// one that comes late. Nobody stalls anybody for longer than timeouts.client_body, and memory stays
// within the collapse window.

#include "tests/scenario/crowd.hpp"
#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"
#include "tests/support/long_body.hpp"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

TEST_SUITE("scenario/shared_fetch") {

    using namespace reprise::tests;

    namespace {

    const std::uint64_t length = sanitized ? 64 * mib : 1024 * mib;
    constexpr std::size_t window = 8 * mib;  // collapsing.window's default
    // What is no growth of ours: pages that are touched for the first time (code, stacks, the
    // allocator's), and under a sanitizer shadow memory and quarantines, where only a gross leak
    // would show. Another window would be eight times the former.
    const std::size_t slack = sanitized ? 512 * mib : mib;

    /// Reads a response to its end, checking it on the way.
    struct reader {
        long_body_check check;
        response answer;

        explicit reader(const long_body& body) : check{body} {}

        void read_from(client& one, std::uint64_t until) {
            while (answer.end == ending::none && check.seen() < until) {
                one.read_body(answer, 1);
                check.feed(answer.body);
                answer.body.clear();
            }
        }
    };

    }  // namespace

    TEST_CASE("a fast, a stalled, a leaving and a late client share one response") {
        const long_body body{length};
        auto settings = basic_settings();
        // So long the others wait for the stalled one; none of them may take so long itself.
        settings["timeouts"]["client_body"] = "4s";
        world w{settings};
        auto& head = w.origin.make_gate();
        auto& rest = w.origin.make_gate();
        constexpr std::size_t first = 16 * kib;  // nobody has to read for it to be taken
        w.origin.on("/warm", ok("", "warm"));
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            head.wait();
            connection.send(
                raw_head("200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n"));
            for (std::uint64_t at = 0; at < body.size();) {
                const auto piece = body.piece(at, at == 0 ? first : 256 * kib);
                if (!connection.send(chunk(piece), 6 * patience)) {
                    return;
                }
                at += piece.size();
                if (at == first) {
                    rest.wait(3 * patience);
                }
            }
            connection.send(chunk(""));
        });
        CHECK(w.get("/warm").body == "warm");
        w.proxy.forget_peak();
        const auto before = w.proxy.resident_bytes();

        auto fast = w.proxy.connect();
        auto stalled = w.proxy.connect();
        auto leaving = w.proxy.connect();
        stalled.connection().shrink_receive_buffer(64 << 10);
        fast.send(w.request("/a"));
        REQUIRE(eventually([&] { return w.origin.count("/a") == 1; }));
        stalled.send(w.request("/a"));
        leaving.send(w.request("/a"));
        REQUIRE(eventually([&] { return figure(w.proxy.stats(), figure_name::joined) == 2; }));
        head.open();

        // Each early joiner has its first byte before the origin sends the rest.
        reader of_fast{body};
        reader of_stalled{body};
        reader of_leaving{body};
        of_fast.answer = fast.read_head();
        of_fast.read_from(fast, 1);
        of_stalled.answer = stalled.read_head();
        of_stalled.read_from(stalled, 1);
        of_leaving.answer = leaving.read_head();
        of_leaving.read_from(leaving, 1);
        CHECK(of_fast.check.seen() > 0);
        CHECK(of_stalled.check.seen() > 0);
        CHECK(of_leaving.check.seen() > 0);
        rest.open();

        std::thread leaver{[&] {
            of_leaving.read_from(leaving, 4 * mib);
            leaving.connection().reset();
        }};
        reader of_late{body};
        client late{w.proxy.port()};
        std::atomic<std::uint64_t> fast_has{0};
        std::thread latecomer{[&] {
            (void)eventually([&] { return fast_has.load() > 32 * mib; }, 3 * patience);
            late.send(w.request("/a"));
            of_late.answer = late.read_head();
            of_late.read_from(late, length + 1);
        }};
        while (of_fast.answer.end == ending::none) {
            of_fast.read_from(fast, of_fast.check.seen() + mib);
            fast_has = of_fast.check.seen();
        }
        fast_has = length;
        leaver.join();
        latecomer.join();

        CHECK(of_fast.answer.complete());
        CHECK(of_fast.check.is_whole());
        CHECK(of_late.answer.complete());
        CHECK(of_late.check.is_whole());
        CHECK(of_leaving.check.is_right());
        CHECK(w.origin.count("/a") <=
              2 + 1);  // the latecomer's own, and at most one for the stalled
        // Of both fetches together: when the latecomer begins its own, the stalled client has
        // been dropped from the first.
        CHECK(w.proxy.peak_resident_bytes() < before + window + slack);

        // The stalled one reads on at last: all of it, or visibly not all.
        of_stalled.read_from(stalled, length + 1);
        CHECK(of_stalled.check.is_right());
        if (of_stalled.answer.complete()) {
            CHECK(of_stalled.check.is_whole());
        } else {
            CHECK(of_stalled.answer.end == ending::cut_short);
        }
    }

    TEST_CASE("memory for one shared response grows by less than the window") {
        const long_body body{sanitized ? 64 * mib : 256 * mib};
        world w{basic_settings()};
        w.origin.on("/warm", ok("", "warm"));
        auto& head = w.origin.make_gate();
        w.origin.on("/a", [&](origin_request&, origin_connection& connection) {
            head.wait();
            connection.send(
                raw_head("200 OK", "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n"));
            for (std::uint64_t at = 0; at < body.size();) {
                const auto piece = body.piece(at, 256 * kib);
                if (!connection.send(chunk(piece), 3 * patience)) {
                    return;
                }
                at += piece.size();
            }
            connection.send(chunk(""));
        });
        CHECK(w.get("/warm").body == "warm");
        w.proxy.forget_peak();
        const auto before = w.proxy.resident_bytes();
        auto gathered = gather(w, 3);
        std::vector<client> all = std::move(gathered.rest);
        all.push_back(std::move(gathered.leader));
        head.open();
        std::vector<std::jthread> threads;
        std::atomic<int> whole{0};
        std::atomic<int> wrong{0};
        for (auto& one : all) {
            threads.emplace_back([&] {
                long_body_check check{body};
                const auto answer = one.read("GET",
                                             [&](std::string_view bytes) { check.feed(bytes); });
                whole += answer.complete() && check.is_whole() ? 1 : 0;
                wrong += check.is_right() && check.is_whole() == answer.complete() ? 0 : 1;
            });
        }
        threads.clear();
        // Nobody could go on without this fetch, so it goes at the pace of the slowest.
        CHECK(whole.load() == 4);
        CHECK(wrong.load() == 0);
        CHECK(w.origin.count("/a") == 1);
        CHECK(w.proxy.peak_resident_bytes() < before + window + slack);
    }

}  // TEST_SUITE
