#include "tests/support/temp_dir.hpp"
#include "tests/unit/net/memory_ends.hpp"
#include "tests/unit/net/resolver_bench.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;
using reprise::config::dns_options;

namespace {

/// Memory ends while a name is asked for, and is there again when its answer is waited for.
awaitable<void> resolve_while_memory_ends(resolver& names,
                                          std::string host,
                                          unsigned still,
                                          std::optional<memory_ends>& lack,
                                          std::optional<bool>& refused) {
    auto asking = names.resolve(std::move(host), late());
    const auto loop = co_await asio::this_coro::executor;
    asio::post(loop, [&lack] { lack.reset(); });
    lack.emplace(still);
    bool has_none = false;
    try {
        static_cast<void>(co_await std::move(asking));
    } catch (const std::bad_alloc&) {
        has_none = true;
    }
    lack.reset();
    refused.emplace(has_none);
}

}  // namespace

TEST_SUITE_BEGIN("net/resolver");

TEST_CASE("numeric hosts and localhost are answered without a server") {
    with_dns test;
    resolver names{test.timer, test.options};
    CHECK(answer_texts(test.ask(names, "192.0.2.1")) == list{"192.0.2.1"});
    CHECK(answer_texts(test.ask(names, "2001:db8::1")) == list{"2001:db8::1"});
    CHECK(answer_texts(test.ask(names, "LOCALHOST.")) == list{"127.0.0.1", "::1"});
    CHECK(answer_texts(test.ask(names, "a.localhost")) == list{"127.0.0.1", "::1"});
    CHECK(names.asked() == 0);
}

TEST_CASE("what is no host name is refused without a server") {
    with_dns test;
    resolver names{test.timer, test.options};
    const auto long_label = std::string(64, 'a') + ".test";
    const auto long_name = std::string(300, 'a');
    for (const std::string& odd : {std::string{},
                                   std::string{"."},
                                   std::string{"a..b"},
                                   std::string{".a"},
                                   std::string{"a b"},
                                   std::string{"a\\.b"},
                                   std::string{"127.1"},
                                   std::string{"2130706433"},
                                   std::string{"0x7f000001"},
                                   std::string{"a.0x1f"},
                                   std::string{"a\0b", 3},
                                   std::string{"\xc3\xa4.test"},
                                   std::string{"fe80::1%lo"},
                                   long_label,
                                   long_name}) {
        CAPTURE(odd);
        const auto found = test.ask(names, odd);
        REQUIRE(found.has_error());
        CHECK(found.error().code == failure_code::dns_not_found);
    }
    CHECK(names.asked() == 0);
}

TEST_CASE("a name has the addresses of both families") {
    with_dns test;
    test.server.set("both.test", dns_type::a, {0, {"192.0.2.1", "192.0.2.2"}});
    test.server.set("both.test", dns_type::aaaa, {0, {"2001:db8::1"}});
    resolver names{test.timer, test.options};
    CHECK(answer_texts(test.finish(names.resolve_whole("Both.Test", late()))) ==
          list{"192.0.2.1", "192.0.2.2", "2001:db8::1"});
}

TEST_CASE("a name that one family is said not to exist by has the other's addresses") {
    with_dns test;
    constexpr int no_such_name = 3;
    test.server.set("half.test", dns_type::a, {0, {"192.0.2.1"}});
    test.server.set("half.test", dns_type::aaaa, {no_such_name});
    test.server.set("other.test", dns_type::a, {no_such_name});
    test.server.set("other.test", dns_type::aaaa, {0, {"2001:db8::1"}});
    resolver names{test.timer, test.options};
    const auto asked = [&](const char* name) {
        return answer_texts(test.finish(names.resolve_whole(name, late())));
    };
    CHECK(asked("half.test") == list{"192.0.2.1"});
    CHECK(asked("other.test") == list{"2001:db8::1"});
}

TEST_CASE("an answer is kept for the least TTL in it, within bounds") {
    with_dns test;
    test.server.set("a.test", dns_type::a, {0, {"192.0.2.1"}, 100});
    test.server.set("a.test", dns_type::aaaa, {0, {"2001:db8::1"}, 40});
    test.server.set_v4("short.test", "192.0.2.2", 0);
    test.server.set_v4("long.test", "192.0.2.3", 1'000'000);
    test.options.min_ttl = 5s;
    test.options.max_ttl = 600s;
    resolver names{test.timer, test.options};
    const auto is_kept_for = [&](const char* name, std::chrono::seconds time) {
        const auto before = steady_now();
        const auto found = test.ask(names, name);
        const auto heard = steady_now();
        REQUIRE(found.has_value());
        const auto until = (*found)->valid_until;
        return until >= before + time && until <= heard + time;
    };
    CHECK(is_kept_for("a.test", 40s));
    CHECK(is_kept_for("short.test", 5s));
    CHECK(is_kept_for("long.test", 600s));
    CHECK(names.asked() == 3);
    CHECK(answer_texts(test.ask(names, "a.test")).size() == 2);
    CHECK(names.known("a.test").has_value());
    CHECK(!names.known("b.test").has_value());
    CHECK(names.asked() == 3);
}

TEST_CASE("a kept answer is asked for again when its time is over") {
    with_dns test;
    test.server.set_v4("a.test", "192.0.2.1", 0);
    test.options.min_ttl = 0s;
    resolver names{test.timer, test.options};
    CHECK(answer_texts(test.ask(names, "a.test")) == list{"192.0.2.1"});
    test.server.set_v4("a.test", "192.0.2.2", 0);
    CHECK(answer_texts(test.ask(names, "a.test")) == list{"192.0.2.2"});
}

TEST_CASE("that a name does not exist, or has no address, is remembered") {
    with_dns test;
    test.server.set("empty.test", dns_type::a, {});
    test.server.set("empty.test", dns_type::aaaa, {});
    resolver names{test.timer, test.options};
    for (const auto* name : {"missing.test", "empty.test"}) {
        CAPTURE(name);
        for (int again = 0; again < 2; ++again) {
            const auto found = test.ask(names, name);
            REQUIRE(found.has_error());
            CHECK(found.error().code == failure_code::dns_not_found);
            CHECK(found.error().detail.find(name) != std::string::npos);
        }
    }
    CHECK(names.asked() == 2);
}

TEST_CASE("questions for one name that come while it is asked are one question") {
    with_dns test;
    test.server.set("slow.test", dns_type::a, {0, {"192.0.2.1"}, 60, false, 30ms});
    test.server.set("slow.test", dns_type::aaaa, {0, {}, 60, false, 30ms});
    test.options.timeout = unhurried;  // or it might be asked again
    resolver names{test.timer, test.options};
    std::vector<std::optional<answer>> results(20);
    for (auto& each : results) {
        test.start(resolve_into(names, "slow.test", late(), each));
    }
    test.run_until([&] {
        return std::all_of(results.begin(), results.end(), [](auto& each) { return each; });
    });
    for (auto& each : results) {
        REQUIRE(each);
        CHECK(answer_texts(*each) == list{"192.0.2.1"});
    }
    CHECK(names.asked() == 1);
    CHECK(test.server.asked("slow.test", dns_type::a) == 1);
}

TEST_CASE("a name whose question ran out of time is asked for anew") {
    with_dns test;
    test.server.set("silent.test", dns_type::a, {.silent = true});
    test.server.set("silent.test", dns_type::aaaa, {.silent = true});
    test.options.timeout = 3s;  // in which what is asked for then is answered
    resolver names{test.timer, test.options};
    const auto found = test.ask(names, "silent.test");
    REQUIRE(found.has_error());
    CHECK(found.error().code == failure_code::dns_timeout);
    test.server.set_v4("silent.test", "192.0.2.1");
    CHECK(answer_texts(test.ask(names, "silent.test")) == list{"192.0.2.1"});
    CHECK(names.asked() == 2);
}

TEST_CASE("who joins a question late waits for as long as who began it") {
    with_dns test;
    fake_dns other;  // two servers, so that c-ares asks for longer than anybody waits
    for (auto* const each : {&test.server, &other}) {
        each->set("silent.test", dns_type::a, {.silent = true});
        each->set("silent.test", dns_type::aaaa, {.silent = true});
    }
    test.options.servers.push_back({"127.0.0.1", other.port()});
    test.options.timeout = 500ms;
    resolver names{test.timer, test.options};
    std::optional<answer> first;
    test.start(resolve_into(names, "silent.test", late(), first));
    test.run_until([&] { return other.asked("silent.test", dns_type::a) > 0; });
    const auto joined_at = steady_now();
    const auto found = test.ask(names, "silent.test");
    CHECK(steady_now() - joined_at >= test.options.timeout);
    REQUIRE(found.has_error());
    CHECK(found.error().code == failure_code::dns_timeout);
    CHECK(first.has_value());
}

TEST_CASE("a name that could not be asked for, for want of memory, is asked for by the next") {
    std::optional<memory_ends> lack;
    with_dns test;
    test.server.set("silent.test", dns_type::a, {.silent = true});
    test.server.set("silent.test", dns_type::aaaa, {.silent = true});
    resolver names{test.timer, test.options};
    // While it is asked for, the socket to the server stays, and is watched.
    std::optional<answer> silent;
    test.start(resolve_into(names, "silent.test", late(), silent));
    test.run_until([&] { return test.server.asked("silent.test", dns_type::a) > 0; });
    std::optional<bool> refused;
    for (unsigned still = 0; !refused || *refused; ++still) {
        CAPTURE(still);
        REQUIRE(still < 60);
        const auto name = "n" + std::to_string(still) + ".test";
        test.server.set_v4(name, "192.0.2.1");
        refused.reset();
        test.start(resolve_while_memory_ends(names, name, still, lack, refused));
        test.run_until([&] { return refused.has_value(); });
        REQUIRE(refused);
        CHECK(answer_texts(test.ask(names, name)) == list{"192.0.2.1"});
    }
}

TEST_CASE("a server that does not answer is a timeout, by dns.timeout or the caller's deadline") {
    with_dns test;
    test.server.set("silent.test", dns_type::a, {.silent = true});
    test.server.set("silent.test", dns_type::aaaa, {.silent = true});
    SUBCASE("dns.timeout") {
        test.options.timeout = 60ms;
        resolver names{test.timer, test.options};
        const auto found = test.ask(names, "silent.test");
        REQUIRE(found.has_error());
        CHECK(found.error().code == failure_code::dns_timeout);
    }
    SUBCASE("the caller's deadline") {
        resolver names{test.timer, test.options};
        const auto found = test.finish(names.resolve("silent.test", steady_now() + 30ms));
        REQUIRE(found.has_error());
        CHECK(found.error().code == failure_code::dns_timeout);
    }
}

TEST_CASE("a question that is lost is asked again") {
    with_dns test;
    test.server.set("lost.test", dns_type::a, {.silent = true});
    test.server.set("lost.test", dns_type::aaaa, {});
    resolver names{test.timer, test.options};
    std::optional<answer> result;
    test.start(resolve_into(names, "lost.test", late(), result));
    test.run_until([&] { return test.server.asked("lost.test", dns_type::a) > 0; });
    test.server.set_v4("lost.test", "192.0.2.1");
    test.run_until([&] { return result.has_value(); });
    REQUIRE(result);
    CHECK(answer_texts(*result) == list{"192.0.2.1"});
    CHECK(test.server.asked("lost.test", dns_type::a) > 1);
    CHECK(names.asked() == 1);
}

TEST_CASE("a server that fails is an error, remembered for a moment only") {
    with_dns test;
    test.server.set("fails.test", dns_type::a, {.rcode = 2, .addresses = {}});
    test.server.set("fails.test", dns_type::aaaa, {.rcode = 2, .addresses = {}});
    test.options.negative_ttl = 0s;
    resolver names{test.timer, test.options};
    const auto found = test.ask(names, "fails.test");
    REQUIRE(found.has_error());
    CHECK(found.error().code == failure_code::dns_error);
    test.server.set_v4("fails.test", "192.0.2.1");
    CHECK(answer_texts(test.ask(names, "fails.test")) == list{"192.0.2.1"});
}

TEST_CASE("the hosts file comes before the server") {
    with_dns test;
    const reprise::tests::temp_dir directory;
    test.server.set_v4("listed.test", "192.0.2.1");
    test.options.hosts_file = directory.write("hosts", "192.0.2.77 listed.test localhost\n");
    resolver names{test.timer, test.options};
    CHECK(answer_texts(test.ask(names, "listed.test")) == list{"192.0.2.77"});
    const auto here = [&](std::string_view host) {
        list out;
        for (const auto& address : names.local(host).value_or(std::vector<asio::ip::address>{})) {
            out.push_back(address.to_string());
        }
        return out;
    };
    CHECK(here("LISTED.test.") == list{"192.0.2.77"});
    CHECK(here("a.localhost") == list{"::1", "127.0.0.1"});
    CHECK(here("192.0.2.5") == list{"192.0.2.5"});
    CHECK(!names.local("other.test"));
    for (const auto* no_name :
         {"127.0.0.1..", "0127.0.0.1", "127.1", "08", "a..test", "a~b.test"}) {
        CAPTURE(no_name);
        CHECK(names.local(no_name) == std::vector<asio::ip::address>{});
    }
    CHECK(names.asked() == 0);
}

// What is cut takes TCP: tests/scenario/sibling_names.cpp.
TEST_CASE("answers with as many addresses as UDP carries are had whole, of both families") {
    with_dns test;
    list many;
    for (int i = 0; i < 28; ++i) {
        many.push_back("192.0.2." + std::to_string(i));
    }
    test.server.set("many.test", dns_type::a, {0, many});
    list six;
    for (int i = 10; i < 24; ++i) {
        six.push_back("2001:db8::" + std::to_string(i));
    }
    test.server.set("many.test", dns_type::aaaa, {0, six});
    resolver names{test.timer, test.options};
    CHECK(answer_texts(test.finish(names.resolve_whole("many.test", late()))).size() == 28 + 14);
}

TEST_CASE("one client's questions that nobody answers leave others' theirs") {
    with_dns test;
    test.options.timeout = 3s;  // none of them ends before all is said of them
    const auto name = [](std::size_t i) { return "silent" + std::to_string(i) + ".test"; };
    for (std::size_t i = 0; i < resolver::most_questions_of_one + 2; ++i) {
        test.server.set(name(i), dns_type::a, {.silent = true});
        test.server.set(name(i), dns_type::aaaa, {.silent = true});
    }
    test.server.set_v4("other.test", "192.0.2.1");
    resolver names{test.timer, test.options};
    const share_holder one = canonical(asio::ip::make_address("192.0.2.7"));
    const share_holder another = canonical(asio::ip::make_address("192.0.2.8"));
    // Whoever asks leaves soon, and the question stays.
    std::vector<std::optional<answer>> results(resolver::most_questions_of_one);
    for (std::size_t i = 0; i < results.size(); ++i) {
        test.start(resolve_into(names, name(i), steady_now() + 10ms, results[i], one));
    }
    test.run_until([&] {
        return std::all_of(results.begin(), results.end(), [](auto& each) { return each; });
    });
    CHECK(names.failures() == 0);
    CHECK(names.asked() == resolver::most_questions_of_one);
    const auto last = resolver::most_questions_of_one;
    const auto refused = test.finish(names.resolve(name(last), late(), one));
    REQUIRE(refused.has_error());
    CHECK(refused.error().code == failure_code::client_share_used);
    CHECK(refused.error().detail.find("by this client") != std::string::npos);
    CHECK(names.asked() == resolver::most_questions_of_one);
    // So many at once, and the server's socket would take no more.
    test.run_until([&] { return test.server.asked(name(results.size() - 1), dns_type::a) > 0; });
    CHECK(answer_texts(test.finish(names.resolve("other.test", late(), another))) ==
          list{"192.0.2.1"});
    CHECK(test.finish(names.resolve(name(last), steady_now(), {})).has_error());
    CHECK(names.asked() == resolver::most_questions_of_one + 2);
    // What is known, or asked for already, takes of no share; and what is over gives it back.
    CHECK(answer_texts(test.finish(names.resolve("other.test", late(), one))) == list{"192.0.2.1"});
    test.run_until([&] { return names.failures() == resolver::most_questions_of_one + 1; });
    test.server.set_v4("more.test", "192.0.2.2");
    CHECK(answer_texts(test.finish(names.resolve("more.test", late(), one))) == list{"192.0.2.2"});
}

TEST_CASE("stopping ends every question at once") {
    with_dns test;
    test.server.set("silent.test", dns_type::a, {.silent = true});
    test.server.set("silent.test", dns_type::aaaa, {.silent = true});
    resolver names{test.timer, test.options};
    std::optional<answer> result;
    test.start(resolve_into(names, "silent.test", late(), result));
    test.run_until([&] { return test.server.asked("silent.test", dns_type::a) > 0; });
    SUBCASE("the resolver") {
        names.stop();
    }
    SUBCASE("its thread's deadlines") {
        test.timer.stop();
    }
    test.run_until([&] { return result.has_value(); });
    REQUIRE(result);
    CHECK(result->has_error());
    names.stop();
    const auto later = test.ask(names, "other.test");
    REQUIRE(later.has_error());
    CHECK(later.error().code == failure_code::dns_error);
}

TEST_CASE("a resolver and its loop may be destroyed with questions under way") {
    std::optional<answer> result;
    {
        with_dns test;
        test.server.set("silent.test", dns_type::a, {.silent = true});
        test.server.set("silent.test", dns_type::aaaa, {.silent = true});
        resolver names{test.timer, test.options};
        test.start(resolve_into(names, "silent.test", late(), result));
        test.run_until([&] { return test.server.asked("silent.test", dns_type::a) > 0; });
    }
    CHECK(!result);
}

TEST_CASE("servers that make no sense are refused at the start") {
    test_loop loop;
    dns_options options;
    options.servers = {{"not an address", 53}};
    CHECK_THROWS_AS((resolver{loop.timer, options}), std::runtime_error);
}

TEST_SUITE_END();
