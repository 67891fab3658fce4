#include "proxy/http/message_head.hpp"
#include "tests/unit/peer/signed_messages.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_signature {

TEST_SUITE("peer/signature") {
    TEST_CASE("a signature has the form that its page shows") {
        const auto lines = signed_one().lines;
        CHECK(lines.starts_with(
            "Reprise-Node: cache-a\r\n"
            "Reprise-To: 192.0.2.2:3128\r\n"
            "Signature-Input: reprise=(\"@method\" \"@authority\" \"@path\" \"@query\" "
            "\"reprise-node\" \"reprise-to\");created=1763668089;expires=1763668149;"
            "nonce=\"01000000000000000000000000000000\";alg=\"hmac-sha256\";keyid=\""));
        CHECK(lines.find("\";tag=\"reprise-peer\"\r\nSignature: reprise=:") != std::string::npos);
        CHECK(lines.ends_with("=:\r\n"));
        CHECK(std::count(lines.begin(), lines.end(), '\n') == 4);  // and nothing else
        CHECK(lines.find(old_signature_field) == std::string::npos);
    }

    TEST_CASE("the HMAC is RFC 9421's: the one of its section B.2.5") {
        // Its test-shared-secret (B.1.5), and what append_signature_base makes of its request.
        constexpr std::string_view key_digits = "bb3bc97c1e2edcdd09cb84fb359ef930355cafccd24c89de74"
                                                "9b6481cbb8e985b85c1cb33498f105db635247"
                                                "493c1b5b9878480e2ea9725f23b1ab2395332d0d";
        std::vector<std::byte> key;
        for (std::size_t i = 0; i < key_digits.size(); i += 2) {
            key.push_back(static_cast<std::byte>(
                std::stoul(std::string{key_digits.substr(i, 2)}, nullptr, 16)));
        }
        const std::vector<http::field> fields{
            {http::field_id::date, "Date", "Tue, 20 Apr 2021 02:07:55 GMT"},
            {http::field_id::content_type, "Content-Type", "application/json"},
            {http::field_id::unknown,
             "Signature-Input",
             R"(sig-b25=("date" "@authority" "content-type");created=1618884473;)"
             R"(keyid="test-shared-secret";tag="x")"}};
        std::string base;
        REQUIRE(http::append_signature_base(
            base,
            {.method = "POST",
             .target = "/foo?param=Value&Pet=dog",
             .host = "example.com",
             .fields = fields},
            {.covered = R"("date" "@authority" "content-type")",
             .parameters = R"(;created=1618884473;keyid="test-shared-secret")"}));
        const auto code = hmac_sha256(key, std::as_bytes(std::span{base.data(), base.size()}));
        // pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=
        constexpr unsigned char known[] = {0xa7, 0x17, 0x10, 0xc3, 0xa1, 0xb7, 0x02, 0x3b,
                                           0x4c, 0x05, 0x08, 0xf0, 0xa3, 0xc5, 0xf3, 0x91,
                                           0x97, 0xff, 0x6f, 0x0b, 0x39, 0x2d, 0xe9, 0x5b,
                                           0x68, 0xc9, 0x39, 0xac, 0x62, 0x06, 0xb4, 0x4f};
        CHECK(std::equal(code.begin(), code.end(), std::begin(known), [](std::byte a, unsigned b) {
            return std::to_integer<unsigned>(a) == b;
        }));
    }

    TEST_CASE("what is signed is good, once, and says who signed it") {
        signature_checker checker{secret()};
        const auto one = signed_one();
        const auto got = judge(checker, one);
        CHECK(got.what == verdict::good);
        CHECK(got.signer == "cache-a");
        CHECK(check(checker, signed_one()) == verdict::replayed);
        CHECK(check(checker, signed_one(2)) == verdict::good);
    }

    TEST_CASE("no nonce is drawn twice") {
        nonces drawn{[from = std::uint64_t{0xfffffffffffffffe}]() mutable { return from++; }};
        signature_checker checker{secret()};
        for (int i = 0; i < 5; ++i) {
            message one;
            one.lines = sign(secret(), one.bare(), who, now, drawn.take());
            CHECK(check(checker, one) == verdict::good);
        }
    }

    TEST_CASE("every part of the request is signed") {
        for (const bool old : {false, true}) {
            CAPTURE(old);
            const auto made = [old] { return old ? signed_before() : signed_one(); };
            auto one = made();
            CHECK(check_alone(one) == verdict::good);
            one.method = "HEAD";
            CHECK(check_alone(one) == verdict::wrong);
            one = made();
            one.target = "/.well-known/reprise/seen?since=1-2";
            CHECK(check_alone(one) == verdict::wrong);
            one = made();
            one.target = "/.well-known/reprise/digest";
            CHECK(check_alone(one) == verdict::wrong);
            one = made();
            one.host = "c.example:3128";
            CHECK(check_alone(one) == verdict::wrong);
        }
        auto one = signed_one();
        one.lines = replaced(one.lines, "Node: cache-a", "Node: cache-c");
        signature_checker checker{secret()};
        CHECK(judge(checker, one).what == verdict::wrong);
        CHECK(judge(checker, one).signer.empty());
        one = signed_one();
        one.lines += "Reprise-To: 192.0.2.9:3128\r\n";  // a second line is joined to the first
        CHECK(check_alone(one) == verdict::wrong);
        for (const auto name : {node_field, to_field}) {
            one = signed_one();
            one.drop(name);
            CHECK(check_alone(one) == verdict::malformed);
        }
        // Nothing moves from one part of the old field to the next.
        message two;
        two.target = "/x";
        two.host = "y\nz";
        two.lines = "Reprise-Signature: " + std::string(96, 'v') + "\r\n";
        CHECK(check_alone(two) == verdict::malformed);
    }

    TEST_CASE("what covers too little, or says too little of itself, is malformed") {
        // With the secret, by somebody who knows another profile.
        const auto signed_as = [](std::string_view covered, std::string_view parameters) {
            message one;
            one.lines = "Reprise-Node: a\r\nReprise-To: 192.0.2.2:3128\r\n";
            std::vector<http::field> fields;
            REQUIRE(http::parse_field_lines(one.lines, fields, 100) == nullptr);
            auto request = one.bare();
            request.fields = fields;
            std::string base;
            REQUIRE(http::append_signature_base(
                base, request, {.covered = covered, .parameters = parameters}));
            one.lines.append("Signature-Input: s=(").append(covered).append(")");
            one.lines.append(parameters).append("\r\nSignature: s=:");
            one.lines.append(std::string(43, 'A')).append("=:\r\n");
            return check_alone(one);
        };
        std::string id;
        const auto own = secret();  // what id() refers to goes with it
        for (const auto byte : own.id()) {
            constexpr std::string_view digits = "0123456789abcdef";
            id += digits[std::to_integer<unsigned>(byte) >> 4];
            id += digits[std::to_integer<unsigned>(byte) & 15];
        }
        const std::string all =
            R"("@method" "@authority" "@path" "@query" "reprise-node" "reprise-to")";
        const std::string parameters =
            R"(;created=1763668089;expires=1763668149;nonce="00000000000000000000000000000000")"
            R"(;alg="hmac-sha256";keyid=")" +
            id + R"(";tag="reprise-peer")";
        CHECK(signed_as(all, parameters) == verdict::wrong);  // nothing else stands against it
        for (const auto* component : {"\"@method\" ",
                                      "\"@authority\" ",
                                      "\"@path\" ",
                                      "\"@query\" ",
                                      "\"reprise-node\" ",
                                      " \"reprise-to\""}) {
            CAPTURE(component);
            CHECK(signed_as(replaced(all, component, ""), parameters) == verdict::malformed);
        }
        for (const auto* parameter : {";created=1763668089",
                                      ";expires=1763668149",
                                      R"(;nonce="00000000000000000000000000000000")",
                                      R"(;alg="hmac-sha256")"}) {
            CAPTURE(parameter);
            CHECK(signed_as(all, replaced(parameters, parameter, "")) == verdict::malformed);
        }
        CHECK(signed_as(all, replaced(parameters, "hmac-sha256", "ed25519")) == verdict::malformed);
        CHECK(signed_as(all, replaced(parameters, "\"0000", "\"00")) == verdict::malformed);
        CHECK(signed_as(all, replaced(parameters, "=17", "=-17")) == verdict::malformed);
        CHECK(signed_as(all, replaced(parameters, id, std::string(32, '0'))) ==
              verdict::other_secret);
        CHECK(signed_as(all + " \"@target-uri\"", parameters) == verdict::wrong);
    }

    TEST_CASE("what was signed for one node is good at no other") {
        // The same secret, the same moment, a request that was never seen there.
        for (const receiver& other : {receiver{"192.0.2.3:3128", "reprise-c"},
                                      receiver{"192.0.2.2:3129", "reprise-c"},
                                      receiver{"192.0.2.2", ""},
                                      receiver{"", ""},
                                      receiver{"192.0.2.3:3128", "example"},
                                      receiver{"192.0.2.3:3128", "b"}}) {
            CAPTURE(other.endpoint);
            CHECK(check_alone(signed_one(), other) == verdict::elsewhere);
            CHECK(check_alone(signed_before(), other) == verdict::elsewhere);
        }
        // Nor is it for who writes another destination into it.
        for (auto moved : {signed_one(), signed_before()}) {
            moved.lines = replaced(moved.lines, place, "192.0.2.3:3128");
            CHECK(check_alone(moved, {"192.0.2.3:3128", ""}) == verdict::wrong);
        }
    }

    TEST_CASE("where addresses are translated the name in Host says for whom it is") {
        for (const auto* name : {"b.example", "B.Example", "b.example:3128"}) {
            CAPTURE(name);
            CHECK(check_alone(signed_one(), {"172.17.0.2:3128", name}) == verdict::good);
        }
        message six;
        six.host = "[2001:db8::2]";
        six.sign_with(secret(), 9);
        CHECK(check_alone(six, {"", "[2001:db8:"}) == verdict::elsewhere);
        CHECK(check_alone(six, {"", "[2001:db8::2]"}) == verdict::good);
    }

    TEST_CASE("behind a TLS terminator the scheme is not known, and matters to no usual port") {
        message one;
        one.secure = true;
        one.host = "b.example";
        one.sign_with(secret());
        one.secure = false;
        CHECK(check_alone(one, {"172.17.0.2:3128", "b.example"}) == verdict::good);
        one.secure = true;
        one.host = "b.example:3129";
        one.sign_with(secret());
        one.secure = false;
        CHECK(check_alone(one, {"172.17.0.2:3128", "b.example"}) == verdict::good);
    }

    TEST_CASE("what was signed before the start is out of time: its nonce may have been used") {
        signature_checker checker{secret(), signature_checker::moment{now, begun}};
        CHECK(check(checker, signed_one(1, now - 2s)) == verdict::out_of_time);
        CHECK(check(checker, signed_one(1, now)) == verdict::good);
    }

    TEST_CASE(
        "a clock that is set back behind the start keeps siblings out for two minutes at most") {
        signature_checker checker{secret(), signature_checker::moment{now, begun}};
        const auto right = now - 1h;
        CHECK(check_after(checker, 1s, 1, right) == verdict::out_of_time);
        CHECK(check_after(checker, 119s, 2, right) == verdict::out_of_time);
        CHECK(check_after(checker, 121s, 3, right) == verdict::good);
        CHECK(check_after(checker, 1h, 4, right) == verdict::good);
        // Set back by no more than siblings' clocks may differ it gets there sooner.
        signature_checker other{secret(), signature_checker::moment{now, begun}};
        CHECK(check_after(other, 29s, 1, now - 30s) == verdict::out_of_time);
        CHECK(check_after(other, 31s, 2, now - 30s) == verdict::good);
    }

    TEST_CASE("a clock that is set forward just behind the start keeps no sibling out") {
        signature_checker checker{secret(), signature_checker::moment{now, begun}};
        CHECK(judge(checker, signed_one(1, now + 5s), now + 35s, here, begun + 5s).what ==
              verdict::good);
        CHECK(judge(checker, signed_one(2, now - 2s), now + 35s, here, begun + 5s).what ==
              verdict::out_of_time);
    }

    TEST_CASE("what is forgotten is not taken again where the clock is set back by two minutes") {
        signature_checker checker{secret()};
        const auto one = signed_one(1);
        CHECK(check(checker, one) == verdict::good);
        CHECK(check_after(checker, 62s, 2, now) == verdict::good);  // nobody remembers the first
        for (auto after = 62s; after < 200s; ++after) {
            CAPTURE(after.count());
            CHECK(judge(checker, one, now + after - 120s, here, begun + after).what ==
                  verdict::out_of_time);
        }
        // Who signs by a clock that was set back by one is not kept out at all.
        signature_checker other{secret()};
        CHECK(check(other, one) == verdict::good);
        CHECK(check_after(other, 62s, 2, now) == verdict::good);
        CHECK(check_after(other, 62s, 3, now - 60s) == verdict::good);
    }

    TEST_CASE(
        "what lies ahead of a clock that was set back is known then, and in nobody's way now") {
        signature_checker checker{secret(), {}, 60s, 100};
        for (unsigned i = 0; i < 50; ++i) {
            REQUIRE(check(checker, signed_one(i)) == verdict::good);
        }
        for (unsigned turn = 0; turn < 10; ++turn) {
            CAPTURE(turn);
            for (unsigned i = 0; i < 50; ++i) {
                REQUIRE(check_after(checker, turn * 62s, 50 + 50 * turn + i, now - 1h) ==
                        verdict::good);
            }
        }
        CHECK(judge(checker, signed_one(7), now, here, begun + 1h).what == verdict::replayed);
    }

    TEST_CASE("another secret is another one's, or wrong where it claims to be this one's") {
        signature_checker checker{secret()};
        message one;
        one.sign_with(*fleet_secret::from_content(other_text));
        CHECK(check(checker, one) == verdict::other_secret);
        one.lines = one.old_line(other_text);
        CHECK(check(checker, one) == verdict::wrong);
    }

    TEST_CASE("no other value of one character is good") {
        for (const bool old : {false, true}) {
            CAPTURE(old);
            const auto whole = old ? signed_before() : signed_one();
            for (std::size_t at = 0; at + 2 < whole.lines.size(); ++at) {
                if (whole.lines[at] == '\r' || whole.lines[at] == '\n') {
                    continue;
                }
                CAPTURE(at);
                auto changed = whole;
                changed.lines[at] = changed.lines[at] == '1' ? '2' : '1';
                std::vector<http::field> fields;
                if (http::parse_field_lines(changed.lines, fields, 100) == nullptr) {
                    CHECK(check_alone(changed) != verdict::good);
                }
            }
        }
    }

    TEST_CASE("a base64 of the same bytes in another spelling is wrong") {
        const auto one = signed_one();
        const auto at = one.lines.find("=:\r\n");
        REQUIRE(at != std::string::npos);
        // The last digit holds two bits that no byte has.
        for (const char digit : std::string{"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0"
                                            "123456789+/"}) {
            auto changed = one;
            if (changed.lines[at - 1] != digit) {
                changed.lines[at - 1] = digit;
                CHECK(check_alone(changed) == verdict::wrong);
            }
        }
        auto unpadded = one;
        unpadded.lines.erase(at, 1);
        CHECK(check_alone(unpadded) == verdict::wrong);
    }

    TEST_CASE("anything that is not the form is malformed, and no signature is missing") {
        message none;
        none.lines = "Host: a\r\n";
        CHECK(check_alone(none) == verdict::missing);
        none.lines = "Reprise-Signature: \r\n";
        CHECK(check_alone(none) == verdict::missing);
        const auto whole = signed_before();
        for (std::size_t cut = 1; cut + 21 < whole.lines.size(); ++cut) {
            CAPTURE(cut);
            auto one = whole;
            one.lines.resize(whole.lines.size() - 2 - cut);
            one.lines += "\r\n";
            CHECK(check_alone(one) == verdict::malformed);
        }
        auto one = whole;
        one.lines.insert(one.lines.size() - 2, ";");
        CHECK(check_alone(one) == verdict::malformed);
        one = whole;
        one.lines = replaced(one.lines, "v=2", "v=1");
        CHECK(check_alone(one) == verdict::malformed);
    }

    TEST_CASE("what was signed more than a window ago or ahead is out of time") {
        signature_checker checker{secret(), {}, 60s};
        CHECK(check(checker, signed_one(1), now + 61s) == verdict::out_of_time);
        CHECK(check(checker, signed_one(1), now - 61s) == verdict::out_of_time);
        CHECK(check(checker, signed_one(1), now + 59s) == verdict::good);
        CHECK(check(checker, signed_one(2), now - 59s) == verdict::good);
        // A receiver with a narrower window takes nothing that claims to last longer.
        signature_checker narrow{secret(), {}, 30s};
        CHECK(check(narrow, signed_one(3)) == verdict::out_of_time);
        CHECK(check(narrow, signed_before(3)) == verdict::good);
    }

    TEST_CASE("a nonce is remembered for as long as its signature is in time, to the last moment") {
        signature_checker checker{secret(), {}, 60s};
        const auto ahead = signed_one(1, now + 50s);
        CHECK(check(checker, ahead) == verdict::good);
        CHECK(check(checker, ahead, now + 109s) == verdict::replayed);
        for (auto at = now + 109s; at < now + 112s; at += 100ms) {
            CHECK(check(checker, ahead, at) != verdict::good);
        }
        CHECK(check(checker, ahead, now + 112s) == verdict::out_of_time);
    }

    TEST_CASE("what is remembered is bounded, and what does not fit is refused") {
        signature_checker checker{secret(), {}, 60s, 100};
        for (unsigned i = 0; i < 100; ++i) {
            REQUIRE(check(checker, signed_one(i)) == verdict::good);
        }
        CHECK(check(checker, signed_one(100)) == verdict::too_many);
        const auto later = now + 62s;
        CHECK(check(checker, signed_one(101, later), later) == verdict::good);
    }

    TEST_CASE("whatever the times of a flood, none is taken twice and none is forgotten too soon") {
        for (unsigned seed = 1; seed <= 20; ++seed) {
            CAPTURE(seed);
            std::minstd_rand random{seed};
            signature_checker checker{secret(), {}, 60s};
            std::vector<message> sent;
            std::vector<unsigned> taken;
            auto at = now;
            for (unsigned turn = 0; turn < 300; ++turn) {
                at += std::chrono::milliseconds{random() % 3000};
                if (sent.empty() || random() % 2 == 0) {
                    const auto skew = std::chrono::milliseconds{random() % 130'000} - 65s;
                    sent.push_back(random() % 3 == 0 ? signed_before(turn, at + skew)
                                                     : signed_one(turn, at + skew));
                    taken.push_back(0);
                }
                const auto which = random() % sent.size();
                taken[which] += check(checker, sent[which], at) == verdict::good ? 1 : 0;
            }
            CHECK(*std::max_element(taken.begin(), taken.end()) == 1);
        }
    }

    TEST_CASE("every verdict has a name") {
        for (unsigned i = 0; i <= static_cast<unsigned>(verdict::too_many); ++i) {
            CHECK(to_string(static_cast<verdict>(i)) != "?");
        }
    }
}

}  // namespace reprise::proxy::peer::test::of_signature
