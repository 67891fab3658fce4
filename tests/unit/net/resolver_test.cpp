#include "proxy/net/resolver.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/net/loop.hpp"
#include "tests/unit/net/memory_ends.hpp"

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

using answer = attempt<resolved>;

/// A loop, a name server, and a resolver that asks it.
struct with_dns : test_loop {
    fake_dns server;
    dns_options options = asking(server);

    answer ask(resolver& names, const std::string& host) {
        return finish(names.resolve(host, late()));
    }
};

std::vector<std::string> answer_texts(const answer& found) {
    std::vector<std::string> all;
    REQUIRE(found.has_value());
    for (const auto& each : (*found)->addresses) {
        all.push_back(each.to_string());
    }
    std::sort(all.begin(), all.end());
    return all;
}
using list = std::vector<std::string>;

awaitable<void> resolve_into(resolver& names,
                             std::string host,
                             steady_time until,
                             std::optional<answer>& result,
                             share_holder asker = {}) {
    auto found = co_await names.resolve(std::move(host), until, asker);
    result.emplace(std::move(found));
}

/// A family is late by so much: longer than this thread is away between two answers, and shorter than it is until
/// c-ares asks again, with this for dns.timeout.
constexpr auto late_by = 2'500ms;
constexpr auto unhurried = 20s;

/// Until what was asked for before with a shorter delay has been heard: answers come in the order in
/// which they are due.
void hear_what_is_late(with_dns& test, resolver& names) {
    test.server.set("last.test", dns_type::a, {0, {"192.0.2.99"}, 60, false, late_by + 100ms});
    test.server.set("last.test", dns_type::aaaa, {});
    REQUIRE(answer_texts(test.ask(names, "last.test")) == list{"192.0.2.99"});
}

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

TEST_CASE("a family that gets no answer holds up the other only a little") {
    with_dns test;
    test.server.set("half.test", dns_type::a, {0, {"192.0.2.1"}});
    test.server.set("half.test", dns_type::aaaa, {.silent = true});
    test.options.timeout = 60s;
    resolver names{test.timer, test.options};
    const auto start = steady_now();
    CHECK(answer_texts(test.ask(names, "half.test")) == list{"192.0.2.1"});
    CHECK(steady_now() - start < 12s);  // the first retry of the other would be at 12 s
}

TEST_CASE("the family that comes late is in the kept answer") {
    with_dns test;
    test.server.set("late.test", dns_type::a, {0, {"192.0.2.1"}});
    test.server.set("late.test", dns_type::aaaa, {.silent = true});
    resolver names{test.timer, test.options};
    CHECK(answer_texts(test.ask(names, "late.test")) == list{"192.0.2.1"});
    // It comes when c-ares asks again.
    test.server.set("late.test", dns_type::aaaa, {0, {"2001:db8::1"}});
    test.run_until([&] { return answer_texts(*names.known("late.test")).size() == 2; });
    CHECK(answer_texts(test.ask(names, "late.test")) == list{"192.0.2.1", "2001:db8::1"});
    CHECK(names.asked() == 1);
}

TEST_CASE("the family that comes late makes what is kept hold no longer, whatever it brings") {
    with_dns test;
    for (const auto* name : {"more.test", "nothing.test"}) {
        test.server.set(name, dns_type::a, {0, {"192.0.2.1"}});
    }
    test.server.set("more.test", dns_type::aaaa, {0, {"2001:db8::1"}, 60, false, late_by});
    test.server.set("nothing.test", dns_type::aaaa, {0, {}, 60, false, late_by});
    test.options.timeout = unhurried;
    resolver names{test.timer, test.options};
    const auto more = test.ask(names, "more.test");
    const auto nothing = test.ask(names, "nothing.test");
    REQUIRE(answer_texts(more) == list{"192.0.2.1"});
    REQUIRE(answer_texts(nothing) == list{"192.0.2.1"});
    hear_what_is_late(test, names);
    const auto more_now = names.known("more.test");
    const auto nothing_now = names.known("nothing.test");
    REQUIRE(more_now);
    REQUIRE(nothing_now);
    CHECK(answer_texts(*more_now).size() == 2);
    CHECK((**more_now)->valid_until <= (*more)->valid_until);
    CHECK(answer_texts(*nothing_now) == list{"192.0.2.1"});
    CHECK((**nothing_now)->valid_until <= (*nothing)->valid_until);
}

TEST_CASE("half of an answer says which family it lacks, and a whole one that it lacks none") {
    with_dns test;
    test.server.set("six.test", dns_type::a, {.silent = true});
    test.server.set("six.test", dns_type::aaaa, {0, {"2001:db8::1"}});
    test.server.set("four.test", dns_type::a, {0, {"192.0.2.1"}});
    test.server.set("four.test", dns_type::aaaa, {.silent = true});
    test.server.set_v4("whole.test", "192.0.2.2");
    test.options.timeout = 60s;
    resolver names{test.timer, test.options};
    const auto unheard_of = [&](const char* name) {
        const auto found = test.ask(names, name);
        REQUIRE(found.has_value());
        return (*found)->unheard;
    };
    CHECK(unheard_of("six.test") == ip_family::v4);
    CHECK(unheard_of("four.test") == ip_family::v6);
    CHECK(unheard_of("whole.test") == std::nullopt);
    CHECK(unheard_of("whole.test") == std::nullopt);  // as it is kept
    CHECK(unheard_of("four.test") == ip_family::v6);
}

TEST_CASE("who wants both families waits for the one that is late") {
    with_dns test;
    test.server.set("late.test", dns_type::a, {0, {"192.0.2.1"}});
    test.server.set("late.test", dns_type::aaaa, {0, {"2001:db8::1"}, 60, false, late_by});
    test.options.timeout = unhurried;
    resolver names{test.timer, test.options};
    SUBCASE("having asked") {}
    SUBCASE("having joined a question that was answered") {
        REQUIRE(answer_texts(test.ask(names, "late.test")) == list{"192.0.2.1"});
    }
    const auto found = test.finish(names.resolve_whole("late.test", late()));
    CHECK(answer_texts(found) == list{"192.0.2.1", "2001:db8::1"});
    CHECK((*found)->unheard == std::nullopt);
    CHECK(names.asked() == 1);
}

TEST_CASE("who wants both families gets one, when there is no more time for the other") {
    with_dns test;
    test.server.set("half.test", dns_type::a, {0, {"192.0.2.1"}});
    test.server.set("half.test", dns_type::aaaa, {.silent = true});
    test.options.timeout = 2s;
    resolver names{test.timer, test.options};
    const auto found = test.finish(names.resolve_whole("half.test", late()));
    CHECK(answer_texts(found) == list{"192.0.2.1"});
    CHECK((*found)->unheard == ip_family::v6);
}

TEST_CASE("of one family a later answer takes the place of an earlier one") {
    with_dns test;
    test.server.set("half.test", dns_type::a, {0, {"192.0.2.1"}});
    test.server.set("half.test", dns_type::aaaa, {.rcode = 2, .addresses = {}});
    resolver names{test.timer, test.options};
    const auto whole = [&] {
        return answer_texts(test.finish(names.resolve_whole("half.test", late())));
    };
    REQUIRE(whole() == list{"192.0.2.1"});
    test.server.set("half.test", dns_type::a, {0, {"192.0.2.2"}});
    REQUIRE(whole() == list{"192.0.2.2"});
    CHECK(answer_texts(test.ask(names, "half.test")) == list{"192.0.2.2"});
    // But not that of the other family.
    test.server.set("half.test", dns_type::a, {.rcode = 2, .addresses = {}});
    test.server.set("half.test", dns_type::aaaa, {0, {"2001:db8::1"}});
    REQUIRE(whole() == list{"2001:db8::1"});
    CHECK(answer_texts(test.ask(names, "half.test")) == list{"192.0.2.2"});
}

TEST_CASE("addresses that there is no memory for are not heard of, and not taken for none") {
    with_dns test;
    list many;
    for (int i = 0; i < 28; ++i) {
        many.push_back("192.0.2." + std::to_string(i));
    }
    test.server.set("many.test", dns_type::a, {0, many, 60, false, 200ms});
    test.server.set("many.test", dns_type::aaaa, {0, {"2001:db8::1"}});
    unsigned halves = 0;
    for (unsigned still = 0; still < 4; ++still) {
        CAPTURE(still);
        resolver names{test.timer, test.options};
        std::optional<answer> found;
        test.start(test_loop::put_into(names.resolve_whole("many.test", late()), found));
        test.run_for(50ms);
        {
            constexpr std::size_t least = 400;  // of bytes: a list of so many addresses
            const memory_ends lack{still, 1, least};
            test.run_until([&] { return found.has_value(); });
        }
        REQUIRE((found && *found));
        const auto& heard = ***found;
        CHECK((heard.unheard || heard.addresses.size() == 29));
        halves += heard.unheard == ip_family::v4 ? 1 : 0;
    }
    CHECK(halves > 0);
}

TEST_CASE("a family that failed is asked for anew by whoever wants both, and by nobody else") {
    with_dns test;
    test.server.set("half.test", dns_type::a, {0, {"192.0.2.1"}});
    test.server.set("half.test", dns_type::aaaa, {.rcode = 2, .addresses = {}});
    resolver names{test.timer, test.options};
    REQUIRE(answer_texts(test.finish(names.resolve_whole("half.test", late()))) ==
            list{"192.0.2.1"});
    REQUIRE(names.asked() == 1);
    test.server.set("half.test", dns_type::aaaa, {0, {"2001:db8::1"}});
    CHECK(answer_texts(test.ask(names, "half.test")) == list{"192.0.2.1"});
    CHECK(names.asked() == 1);
    const list both{"192.0.2.1", "2001:db8::1"};
    CHECK(answer_texts(test.finish(names.resolve_whole("half.test", late()))) == both);
    CHECK(names.asked() == 2);
    CHECK(answer_texts(test.ask(names, "half.test")) == both);
    CHECK(answer_texts(test.finish(names.resolve_whole("half.test", late()))) == both);
    CHECK(names.asked() == 2);
}

TEST_CASE("a question anew that brings less leaves what is kept of addresses") {
    with_dns test;
    test.server.set("half.test", dns_type::a, {0, {"192.0.2.1"}});
    test.server.set("half.test", dns_type::aaaa, {.rcode = 2, .addresses = {}});
    test.options.timeout = 2s;
    resolver names{test.timer, test.options};
    REQUIRE(answer_texts(test.finish(names.resolve_whole("half.test", late()))) ==
            list{"192.0.2.1"});
    test.server.set("half.test", dns_type::a, {.silent = true});
    SUBCASE("nothing") {
        test.server.set("half.test", dns_type::aaaa, {.silent = true});
        const auto found = test.finish(names.resolve_whole("half.test", late()));
        REQUIRE(found.has_error());
        CHECK(found.error().code == failure_code::dns_timeout);
    }
    SUBCASE("the other half") {
        test.server.set("half.test", dns_type::aaaa, {0, {"2001:db8::1"}});
        const auto found = test.finish(names.resolve_whole("half.test", late()));
        CHECK(answer_texts(found) == list{"2001:db8::1"});
        CHECK((*found)->unheard == ip_family::v4);
    }
    SUBCASE("that there is no such name, by one family's word") {
        constexpr int no_such_name = 3;
        test.server.set("half.test", dns_type::aaaa, {no_such_name});
        CHECK(test.finish(names.resolve_whole("half.test", late())).has_error());
    }
    REQUIRE(names.asked() == 2);
    const auto known = names.known("half.test");
    REQUIRE(known);
    CHECK(answer_texts(*known) == list{"192.0.2.1"});
}

TEST_CASE("to whoever wants both families one of them can't say that there is no such name") {
    with_dns test;
    constexpr int no_such_name = 3;
    test.server.set("half.test", dns_type::a, {.silent = true});
    test.server.set("half.test", dns_type::aaaa, {no_such_name});
    test.options.timeout = 2s;
    resolver names{test.timer, test.options};
    const auto soon = test.ask(names, "half.test");
    REQUIRE(soon.has_error());
    CHECK(soon.error().code == failure_code::dns_not_found);
    const auto whole = test.finish(names.resolve_whole("half.test", late()));
    REQUIRE(whole.has_error());
    CHECK(whole.error().code == failure_code::dns_timeout);
    test.server.set("half.test", dns_type::a, {no_such_name});
    const auto both = test.finish(names.resolve_whole("half.test", late()));
    REQUIRE(both.has_error());
    CHECK(both.error().code == failure_code::dns_not_found);
}

TEST_CASE("the rest of an answer is what its question brings yet, and nobody is asked for it") {
    with_dns test;
    test.server.set("late.test", dns_type::a, {0, {"192.0.2.1"}});
    test.server.set("late.test", dns_type::aaaa, {0, {"2001:db8::1"}, 60, false, late_by});
    test.options.timeout = unhurried;
    resolver names{test.timer, test.options};
    CHECK_FALSE(test.finish(names.resolve_rest("late.test", late())).has_value());
    CHECK(names.asked() == 0);
    REQUIRE(answer_texts(test.ask(names, "late.test")) == list{"192.0.2.1"});
    for (int again = 0; again < 2; ++again) {
        const auto rest = test.finish(names.resolve_rest("late.test", late()));
        REQUIRE(rest);
        CHECK(answer_texts(*rest) == list{"192.0.2.1", "2001:db8::1"});
    }
    CHECK(names.asked() == 1);
    CHECK_FALSE(test.finish(names.resolve_rest("other.test", late())).has_value());
}

TEST_CASE("what comes late to a question that was asked anew does not displace the newer answer") {
    with_dns test;
    constexpr int no_such_name = 3;
    test.server.set("a.test", dns_type::a, {no_such_name});
    test.server.set("a.test", dns_type::aaaa, {0, {"2001:db8::1"}, 60, false, late_by});
    test.options.negative_ttl = 0s;
    test.options.timeout = unhurried;
    resolver names{test.timer, test.options};
    REQUIRE(test.ask(names, "a.test").has_error());
    test.server.set_v4("a.test", "192.0.2.2");
    REQUIRE(answer_texts(test.ask(names, "a.test")) == list{"192.0.2.2"});
    hear_what_is_late(test, names);
    const auto now = names.known("a.test");
    REQUIRE(now);
    CHECK(answer_texts(*now) == list{"192.0.2.2"});
    CHECK(names.asked() == 3);
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
