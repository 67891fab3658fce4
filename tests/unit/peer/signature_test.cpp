#include "proxy/peer/signature.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace reprise::proxy::peer::test::of_signature {
namespace {

using namespace std::chrono_literals;

constexpr wall_time now{1'763'668'089'500ms};
constexpr signed_parts parts{"GET", "/.well-known/reprise/digest?since=1-2", "b.example:3128"};
constexpr std::string_view place = "192.0.2.2:3128";
constexpr receiver here{place, "reprise-b"};

fleet_secret secret() {
    return *fleet_secret::from_content(std::string(32, 's'));
}

nonce nonce_of(unsigned number) {
    nonce out{};
    out[0] = static_cast<std::byte>(number);
    out[1] = static_cast<std::byte>(number >> 8);
    return out;
}

std::string signed_value(unsigned number = 1, wall_time when = now) {
    return sign(secret(), parts, place, when, nonce_of(number));
}

}  // namespace

TEST_SUITE("peer/signature") {
    TEST_CASE("a signature has the form that its page shows") {
        const auto value = signed_value();
        CHECK(value.starts_with(
            "v=2;t=1763668089;n=01000000000000000000000000000000;d=192.0.2.2:3128;s="));
        CHECK(value.size() == 19 + 32 + 3 + 14 + 3 + 64);
    }

    TEST_CASE("what is signed is good, once") {
        signature_checker checker{secret()};
        CHECK(checker.check(parts, here, signed_value(), now) == signature_verdict::good);
        CHECK(checker.check(parts, here, signed_value(), now) == signature_verdict::replayed);
        CHECK(checker.check(parts, here, signed_value(2), now) == signature_verdict::good);
    }

    TEST_CASE("every part of the request is signed") {
        signature_checker checker{secret()};
        const auto value = signed_value();
        CHECK(checker.check({"HEAD", parts.target, parts.host}, here, value, now) ==
              signature_verdict::wrong);
        CHECK(checker.check({"GET", "/.well-known/reprise/seen", parts.host}, here, value, now) ==
              signature_verdict::wrong);
        CHECK(checker.check({"GET", parts.target, "c.example:3128"}, here, value, now) ==
              signature_verdict::wrong);
        // Nothing moves from one part to the next.
        CHECK(checker.check({"GET", "/x", "y\nz"}, here, value, now) ==
              signature_verdict::malformed);
        CHECK(checker.check(parts, here, value, now) == signature_verdict::good);
    }

    TEST_CASE("what was signed for one node is good at no other") {
        // The same secret, the same moment, a request that was never seen there.
        const auto value = signed_value();
        for (const receiver& other : {receiver{"192.0.2.3:3128", "reprise-c"},
                                      receiver{"192.0.2.2:3129", "reprise-c"},
                                      receiver{"192.0.2.2", ""},
                                      receiver{"", ""},
                                      receiver{"192.0.2.3:3128", "example"},
                                      receiver{"192.0.2.3:3128", "b"}}) {
            signature_checker checker{secret()};
            CAPTURE(other.endpoint);
            CHECK(checker.check(parts, other, value, now) == signature_verdict::elsewhere);
        }
        // Nor is it for who writes another destination into it.
        signature_checker checker{secret()};
        auto moved = value;
        moved.replace(moved.find(place), place.size(), "192.0.2.3:3128");
        CHECK(checker.check(parts, {"192.0.2.3:3128", ""}, moved, now) == signature_verdict::wrong);
        CHECK(checker.check(parts, here, value, now) == signature_verdict::good);
    }

    TEST_CASE("where addresses are translated the name in Host says for whom it is") {
        for (const auto* name : {"b.example", "B.Example", "b.example:3128"}) {
            CAPTURE(name);
            signature_checker checker{secret()};
            CHECK(checker.check(parts, {"172.17.0.2:3128", name}, signed_value(), now) ==
                  signature_verdict::good);
        }
        const signed_parts six{"GET", "/", "[2001:db8::2]"};
        const auto value = sign(secret(), six, place, now, nonce_of(9));
        signature_checker checker{secret()};
        CHECK(checker.check(six, {"", "[2001:db8:"}, value, now) == signature_verdict::elsewhere);
        CHECK(checker.check(six, {"", "[2001:db8::2]"}, value, now) == signature_verdict::good);
    }

    TEST_CASE("what was signed before the start is out of time: its nonce may have been used") {
        signature_checker checker{secret(), now};
        CHECK(checker.check(parts, here, signed_value(1, now - 2s), now) ==
              signature_verdict::out_of_time);
        CHECK(checker.check(parts, here, signed_value(1, now), now) == signature_verdict::good);
    }

    TEST_CASE("another secret is wrong, and so is every other value of one digit") {
        signature_checker checker{secret()};
        const auto other = *fleet_secret::from_content(std::string(32, 't'));
        CHECK(checker.check(parts, here, sign(other, parts, place, now, nonce_of(1)), now) ==
              signature_verdict::wrong);
        const auto value = signed_value();
        for (std::size_t at = 0; at < value.size(); ++at) {
            CAPTURE(at);
            auto changed = value;
            changed[at] = changed[at] == '1' ? '2' : '1';
            CHECK(checker.check(parts, here, changed, now) != signature_verdict::good);
        }
    }

    TEST_CASE("anything that is not the form is malformed, and no value is missing") {
        signature_checker checker{secret()};
        CHECK(checker.check(parts, here, "", now) == signature_verdict::missing);
        const auto value = signed_value();
        for (std::size_t cut = 1; cut < value.size(); ++cut) {
            CAPTURE(cut);
            CHECK(checker.check(parts, here, value.substr(0, cut), now) ==
                  signature_verdict::malformed);
        }
        CHECK(checker.check(parts, here, value + ";", now) == signature_verdict::malformed);
        CHECK(checker.check(parts, here, " " + value, now) == signature_verdict::malformed);
        CHECK(checker.check(parts, here, "v=1" + value.substr(3), now) ==
              signature_verdict::malformed);
    }

    TEST_CASE("what was signed more than a window ago or ahead is out of time") {
        signature_checker checker{secret(), {}, 60s};
        CHECK(checker.check(parts, here, signed_value(1), now + 61s) ==
              signature_verdict::out_of_time);
        CHECK(checker.check(parts, here, signed_value(1), now - 61s) ==
              signature_verdict::out_of_time);
        CHECK(checker.check(parts, here, signed_value(1), now + 59s) == signature_verdict::good);
        CHECK(checker.check(parts, here, signed_value(2), now - 59s) == signature_verdict::good);
    }

    TEST_CASE("a nonce is remembered for as long as its signature is in time") {
        signature_checker checker{secret(), {}, 60s};
        const auto ahead = signed_value(1, now + 50s);
        CHECK(checker.check(parts, here, ahead, now) == signature_verdict::good);
        CHECK(checker.check(parts, here, ahead, now + 109s) == signature_verdict::replayed);
        CHECK(checker.check(parts, here, ahead, now + 111s) == signature_verdict::out_of_time);
    }

    TEST_CASE("what is remembered is bounded, and what does not fit is refused") {
        signature_checker checker{secret(), {}, 60s, 100};
        for (unsigned i = 0; i < 100; ++i) {
            REQUIRE(checker.check(parts, here, signed_value(i), now) == signature_verdict::good);
        }
        CHECK(checker.check(parts, here, signed_value(100), now) == signature_verdict::too_many);
        const auto later = now + 61s;
        CHECK(checker.check(parts, here, signed_value(101, later), later) ==
              signature_verdict::good);
    }

    TEST_CASE("every verdict has a name") {
        for (unsigned i = 0; i <= static_cast<unsigned>(signature_verdict::too_many); ++i) {
            CHECK(to_string(static_cast<signature_verdict>(i)) != "?");
        }
    }
}

}  // namespace reprise::proxy::peer::test::of_signature
