#include "proxy/peer/fleet_fetch.hpp"
#include "proxy/peer/resource.hpp"
#include "tests/unit/peer/sibling_bench.hpp"
#include "tests/unit/peer/sibling_server.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_fleet_fetch {
namespace {

using namespace std::chrono_literals;

struct bench : sibling_bench {
    bench() : sibling_bench{std::string(40, 'f')} {}
    ~bench() {
        fetcher.stop();
        end();
    }
    static followed sibling_at(std::string name, std::uint16_t port, bool squid = false) {
        followed one;
        one.name = std::move(name);
        one.host = "127.0.0.1";
        one.port = port;
        one.squid = squid;
        return one;
    }
    [[nodiscard]] std::int64_t requests_of(const std::string& name) const {
        for (const auto& row : fleet.rows(steady_now())) {
            if (row.name == name) {
                return static_cast<std::int64_t>(row.figures.requests);
            }
        }
        return -1;
    }

    fleet_table fleet{"a", 1};
    fleet_fetcher fetcher{context(), fleet};
};

std::string as_answer(const std::vector<std::byte>& body, const std::string& lines = "") {
    std::string out = "HTTP/1.1 200 OK\r\n" + lines +
                      "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    out.append(reinterpret_cast<const char*>(body.data()), body.size());
    return out;
}

}  // namespace

TEST_SUITE("peer/fleet_fetch") {
    TEST_CASE("a sibling's figures are asked for once a second, signed, on one connection") {
        bench b;
        fleet_table other{"b", 2};
        signature_checker checker{b.secret};
        std::vector<std::string> asked;
        std::vector<signature_verdict> verdicts;
        sibling_server sibling{b, [&](const http::request_head& head) {
                                   asked.emplace_back(head.target);
                                   CHECK(http::find(head.fields, old_signature_field) == nullptr);
                                   const auto host = http::find(head.fields, "Host")->value;
                                   verdicts.push_back(checker
                                                          .check({.method = head.method_text,
                                                                  .target = head.target,
                                                                  .host = host,
                                                                  .fields = head.fields},
                                                                 {.endpoint = host, .name = ""},
                                                                 wall_now())
                                                          .what);
                                   other.note_own({.requests = asked.size()}, steady_now());
                                   return as_answer(other.told(steady_now()));
                               }};
        b.fetcher.follow(
            {bench::sibling_at("b", sibling.port), bench::sibling_at("squid", sibling.port, true)});
        const auto begun = steady_now();
        b.run_until([&] { return b.requests_of("b") == 3; });
        CHECK(steady_now() - begun > 1800ms);
        CHECK(asked == std::vector<std::string>(3, std::string{figures_path}));
        CHECK(verdicts == std::vector<signature_verdict>(3, signature_verdict::good));
        CHECK(sibling.sockets.size() == 1);
        CHECK(b.fetcher.counted().good == 3);
        CHECK(b.fetcher.counted().failed == 0);
        CHECK(b.fetcher.counted().bytes > 300);
    }

    TEST_CASE(
        "whatever one sibling says instead, the others are asked, and nothing of his is taken") {
        auto broken = fleet_table{"evil", 3}.told(steady_now());
        broken.push_back(std::byte{0});
        const std::string wrongs[] = {
            as_answer(broken),
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n",
            "SSH-2.0-OpenSSH\r\n\r\n",
            "",  // it closes
        };
        for (const auto& wrong : wrongs) {
            CAPTURE(wrong);
            bench b;
            fleet_table other{"b", 2};
            other.note_own({.requests = 5}, steady_now());
            sibling_server good{b,
                                [&](const auto&) { return as_answer(other.told(steady_now())); }};
            sibling_server bad{b, [&](const auto&) { return wrong; }};
            b.fetcher.follow(
                {bench::sibling_at("b", good.port), bench::sibling_at("evil", bad.port)});
            b.run_until([&] { return bad.requests > 0 && b.requests_of("b") == 5; });
            b.run_until([&] { return b.fetcher.counted().failed > 0; });
            CHECK(b.fleet.rows(steady_now()).size() == 1);
        }
    }

    TEST_CASE(
        "who answers as this node itself has nothing to tell, and is left alone for a while") {
        bench b;
        fleet_table same{"a", 9};
        same.note_own({.requests = 5}, steady_now());
        sibling_server self{b, [&](const auto&) {
                                return as_answer(same.told(steady_now()), "Reprise-Node: a\r\n");
                            }};
        b.fetcher.follow({bench::sibling_at("pool/127.0.0.1", self.port)});
        b.run_until([&] { return self.requests == 1; });
        b.run_for(1300ms);
        CHECK(self.requests == 1);
        CHECK(b.fleet.rows(steady_now()).empty());
    }
}

}  // namespace reprise::proxy::peer::test::of_fleet_fetch
