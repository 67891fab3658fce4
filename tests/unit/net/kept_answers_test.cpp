#include "proxy/net/kept_answers.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace reprise::proxy::net::test::of_kept_answers {
namespace {

using namespace std::chrono_literals;

constexpr steady_time now{24h};

attempt<resolved> with_addresses(std::size_t count) {
    resolution made;
    made.addresses.assign(count, asio::ip::make_address("192.0.2.1"));
    made.valid_until = now + 1min;
    return resolved{std::make_shared<const resolution>(std::move(made))};
}

std::string name_of(std::size_t number) {
    return "n" + std::to_string(number) + ".test";
}

}  // namespace

TEST_SUITE("net/kept_answers") {

    TEST_CASE("an answer is kept until its time is over, or another comes in its place") {
        kept_answers all;
        CHECK(all.find("a.test", now) == nullptr);
        all.keep("a.test", {with_addresses(1), now + 1min});
        REQUIRE(all.find("a.test", now + 59s) != nullptr);
        CHECK(all.find("a.test", now + 60s) == nullptr);
        all.keep("a.test", {failure{failure_code::dns_not_found, "none"}, now + 2min});
        REQUIRE(all.find("a.test", now + 60s) != nullptr);
        CHECK(all.find("a.test", now + 60s)->answer.has_error());
        all.clear();
        CHECK(all.find("a.test", now) == nullptr);
    }

    TEST_CASE(
        "that an answer is not whole is kept with it, also where it is asked for again late") {
        kept_answers all;
        all.keep("half.test", {with_addresses(1), now + 1min, false});
        for (std::size_t i = 0; i < resolver::most_names / 2; ++i) {
            all.keep(name_of(i), {with_addresses(1), now + 1min});
        }
        for (int again = 0; again < 2; ++again) {
            const auto* const half = all.find("half.test", now);
            REQUIRE(half != nullptr);
            CHECK_FALSE(half->is_whole);
            CHECK(half->valid_until == now + 1min);
        }
        REQUIRE(all.find(name_of(0), now) != nullptr);
        CHECK(all.find(name_of(0), now)->is_whole);
    }

    TEST_CASE(
        "of more names than there is room for the last are kept, and those that are asked for") {
        kept_answers all;
        all.keep("asked.test", {with_addresses(1), now + 1min});
        for (std::size_t i = 0; i < 2 * resolver::most_names; ++i) {
            all.keep(name_of(i), {with_addresses(1), now + 1min});
            if (i % 1'000 == 0) {
                CHECK(all.find("asked.test", now) != nullptr);
            }
        }
        CHECK(all.find(name_of(0), now) == nullptr);
        CHECK(all.find(name_of(2 * resolver::most_names - 1), now) != nullptr);
    }

    TEST_CASE(
        "names with many addresses are fewer: together they have no more than there is room for") {
        kept_answers all;
        constexpr std::size_t names = 1'000;
        static_assert(names < resolver::most_names / 2);
        for (std::size_t i = 0; i < names; ++i) {
            all.keep(name_of(i), {with_addresses(resolver::most_addresses), now + 1min});
        }
        CHECK(all.find(name_of(names - 1), now) != nullptr);
        std::size_t addresses = 0;
        for (std::size_t i = names; i > 0; --i) {
            const auto* const found = all.find(name_of(i - 1), now);
            addresses += found != nullptr ? (*found->answer)->addresses.size() : 0;
        }
        CHECK(addresses <= kept_answers::most_addresses);
        CHECK(addresses >= kept_answers::most_addresses / 4);
    }

    TEST_CASE("one name's answer that is replaced again and again takes no other's place") {
        kept_answers all;
        all.keep("other.test", {with_addresses(1), now + 1min});
        for (int i = 0; i < 1'000; ++i) {
            all.keep("a.test", {with_addresses(resolver::most_addresses), now + 1min});
        }
        CHECK(all.find("other.test", now) != nullptr);
        CHECK(all.find("a.test", now) != nullptr);
    }

}  // TEST_SUITE

}  // namespace reprise::proxy::net::test::of_kept_answers
