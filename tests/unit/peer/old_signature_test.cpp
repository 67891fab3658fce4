// The field of before RFC 9421, which is still taken (proxy/peer/VERSIONS.md) and never sent.

#include "tests/unit/peer/signed_messages.hpp"

#include <doctest/doctest.h>

#include <string>

namespace reprise::proxy::peer::test::of_signature {

TEST_SUITE("peer/old_signature") {
    TEST_CASE("the old field alone is still good: for its receiver and its moment, once") {
        signature_checker checker{secret()};
        const auto one = signed_before();
        // What a node of before RFC 9421 sent.
        CHECK(one.lines == "Reprise-Signature: v=2;t=1763668089;n=01000000000000000000000000000000"
                           ";d=192.0.2.2:3128;s="
                           "413fb24c74859ff0a96e1206de06d4dac469867e7a1a75290f4b287b1fa232da\r\n");
        CHECK(check(checker, one, now, {"192.0.2.3:3128", "c"}) == verdict::elsewhere);
        CHECK(check(checker, one, now + 62s) == verdict::out_of_time);
        const auto got = judge(checker, one);
        CHECK(got.what == verdict::good);
        CHECK(got.signer.empty());
        CHECK(check(checker, one) == verdict::replayed);
    }

    TEST_CASE("what is signed by RFC 9421 can't be brought down to the old field") {
        signature_checker checker{secret()};
        const auto whole = signed_one();
        auto stripped = whole;
        stripped.drop(http::signature_input_field);
        CHECK(check(checker, stripped) == verdict::missing);
        stripped.drop(http::signature_field);
        CHECK(check(checker, stripped) == verdict::missing);
        // Whoever has no secret has nothing to put in its place.
        stripped.lines += stripped.old_line(other_text);
        CHECK(check(checker, stripped) == verdict::wrong);
        CHECK(check(checker, whole) == verdict::good);
    }

    TEST_CASE("a request that has both is one request, whichever is taken off it") {
        signature_checker checker{secret()};
        CHECK(check(checker, signed_one(1)) == verdict::good);
        CHECK(check(checker, signed_before(1)) == verdict::replayed);
        CHECK(check(checker, signed_before(2)) == verdict::good);
        CHECK(check(checker, signed_one(2)) == verdict::replayed);
        CHECK(judge(checker, signed_twice(3)).signer == "cache-a");
        for (const auto& again : {signed_twice(3), signed_one(3), signed_before(3)}) {
            CHECK(check(checker, again) == verdict::replayed);
        }
    }

    TEST_CASE("the old field is not looked at beside a signature by RFC 9421, good or not") {
        auto spoilt = signed_twice();
        spoilt.lines = replaced(spoilt.lines, "Signature: reprise=:", "Signature: reprise=:A");
        CHECK(check_alone(spoilt) == verdict::wrong);
        spoilt = signed_twice();
        spoilt.drop(http::signature_field);
        CHECK(check_alone(spoilt) == verdict::malformed);
        spoilt = signed_twice();
        spoilt.lines = replaced(spoilt.lines, "Signature-Input: reprise=(", "Signature-Input: (");
        CHECK(check_alone(spoilt) == verdict::malformed);
        // What is another application's is nothing of ours.
        auto beside = signed_before();
        beside.lines += "Signature-Input: a=(\"@method\");tag=\"other\"\r\nSignature: a=:AA==:\r\n";
        CHECK(check_alone(beside) == verdict::good);
        beside = signed_one();
        beside.lines += "Signature-Input: a=(\"@method\");tag=\"other\"\r\nSignature: a=:AA==:\r\n";
        CHECK(check_alone(beside) == verdict::good);
    }
}

}  // namespace reprise::proxy::peer::test::of_signature
