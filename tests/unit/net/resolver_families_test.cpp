#include "tests/unit/net/memory_ends.hpp"
#include "tests/unit/net/resolver_bench.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// Half of an answer: one family of a name's addresses is late, lost, or denied.

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

TEST_SUITE_BEGIN("net/resolver_families");

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

TEST_SUITE_END();
