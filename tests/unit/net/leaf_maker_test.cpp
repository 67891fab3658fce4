#include "proxy/net/leaf_maker.hpp"
#include "tests/unit/net/leaf_shown.hpp"

#include <doctest/doctest.h>

#include <ctime>
#include <set>

namespace reprise::proxy::net::test::of_leaf_maker_test {
namespace {

using namespace std::chrono_literals;
using tests::authority_wishes;

leaf_maker maker_of(const authority_files& files,
                    std::chrono::seconds lifetime = 24h * 7,
                    const std::shared_ptr<evp_pkey_st>& key = make_leaf_key()) {
    auto found = leaf_authority::read(files.wanted, wall_now());
    REQUIRE(found.authority);
    return {found.authority, key, lifetime};
}

wall_time time_of(const ASN1_TIME* at) {
    std::tm parts{};
    REQUIRE(ASN1_TIME_to_tm(at, &parts) == 1);
    return wall_time{std::chrono::seconds{::timegm(&parts)}};
}

std::string value_of(const X509* of, int what) {
    const auto at = X509_get_ext_by_NID(of, what, -1);
    if (at < 0) {
        return "none";
    }
    auto* extension = X509_get_ext(of, at);
    const ssl_owned<BIO> out{BIO_new(BIO_s_mem())};
    X509V3_EXT_print(out.get(), extension, 0, 0);
    char* text = nullptr;
    const auto size = BIO_get_mem_data(out.get(), &text);
    return (X509_EXTENSION_get_critical(extension) == 1 ? "critical " : "") +
           std::string{text, static_cast<std::size_t>(size)};
}

}  // namespace

TEST_SUITE("net/leaf_maker") {

    TEST_CASE("a strict client believes a leaf for the host that it was made for, and no other") {
        const authority_files files;
        const auto maker = maker_of(files);
        for (const auto* host : {"a.test", "deep.under.b.test"}) {
            CAPTURE(host);
            const auto leaf = maker.make(host, wall_now());
            REQUIRE(leaf);
            for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
                const auto seen = show(*leaf->identity, host, newest);
                CHECK(seen.verdict == "ok");
                CHECK(seen.shaken);
                CHECK(seen.sent == 2);  // the intermediate behind it
            }
            CHECK(show(*leaf->identity, "other.b.test").verdict == "hostname mismatch");
        }
    }

    TEST_CASE("a leaf for a host outside the constraints is refused by whoever sees it") {
        const authority_files files;
        const auto leaf = maker_of(files).make("evil.test", wall_now());
        REQUIRE(leaf);
        const auto seen = show(*leaf->identity, "evil.test");
        CHECK(seen.verdict == "permitted subtree violation");
        CHECK_FALSE(seen.shaken);
    }

    TEST_CASE("a leaf says what it must and nothing else") {
        const authority_files files;
        const auto now = wall_now();
        const auto leaf = maker_of(files, 24h * 7).make("a.test", now);
        REQUIRE(leaf);
        const auto seen = show(*leaf->identity, "a.test");
        const auto* it = seen.leaf.get();
        REQUIRE(it != nullptr);
        CHECK(X509_NAME_entry_count(X509_get_subject_name(it)) == 0);
        CHECK(value_of(it, NID_subject_alt_name) == "critical DNS:a.test");
        CHECK(value_of(it, NID_ext_key_usage) == "TLS Web Server Authentication");
        CHECK(value_of(it, NID_key_usage) == "critical Digital Signature");
        CHECK(value_of(it, NID_authority_key_identifier) != "none");
        CHECK(X509_get_ext_count(it) == 4);
        CHECK(EVP_PKEY_get_bits(X509_get0_pubkey(it)) == 256);
        CHECK(X509_get_signature_nid(it) == NID_ecdsa_with_SHA256);
        const auto second = std::chrono::floor<std::chrono::seconds>(now);
        CHECK(time_of(X509_get0_notBefore(it)) == second - 1h);
        CHECK(time_of(X509_get0_notAfter(it)) == second + 24h * 7);
        CHECK(leaf->due == now + 12h * 7);
        CHECK(leaf->is_good_at(now));
        CHECK_FALSE(leaf->is_good_at(leaf->due));
        CHECK_FALSE(leaf->is_good_at(now - 61min));  // the clock was set back
    }

    TEST_CASE("a leaf of 398 days is valid for no longer, its hour before now included") {
        authority_wishes old;
        old.when = {-24h, 24h * 1'000};
        const authority_files files{old};
        const auto leaf = maker_of(files, 24h * 398).make("a.test", wall_now());
        REQUIRE(leaf);
        const auto seen = show(*leaf->identity, "a.test");
        CHECK(time_of(X509_get0_notAfter(seen.leaf.get())) -
                  time_of(X509_get0_notBefore(seen.leaf.get())) ==
              24h * 398);
    }

    TEST_CASE("a leaf never outlives its CA, and there is none where that has ended") {
        authority_wishes short_lived;
        short_lived.when = {-24h, 10h};
        const authority_files files{short_lived};
        const auto maker = maker_of(files);
        const auto now = wall_now();
        const auto leaf = maker.make("a.test", now);
        REQUIRE(leaf);
        const auto seen = show(*leaf->identity, "a.test");
        CHECK(time_of(X509_get0_notAfter(seen.leaf.get())) == maker.authority().until());
        CHECK(leaf->due < now + 5h + 1min);
        CHECK_FALSE(maker.make("a.test", maker.authority().until()));
    }

    TEST_CASE("serial numbers are random, of 128 bits, and never the same") {
        const authority_files files;
        const auto maker = maker_of(files);
        std::set<std::string> all;
        std::size_t longest = 0;
        for (int i = 0; i < 32; ++i) {
            const auto leaf = maker.make("a.test", wall_now());
            REQUIRE(leaf);
            const auto seen = show(*leaf->identity, "a.test");
            const auto* serial = X509_get0_serialNumber(seen.leaf.get());
            CHECK(ASN1_STRING_type(serial) == V_ASN1_INTEGER);  // and no negative one
            longest = std::max(longest, static_cast<std::size_t>(ASN1_STRING_length(serial)));
            all.emplace(reinterpret_cast<const char*>(ASN1_STRING_get0_data(serial)),
                        static_cast<std::size_t>(ASN1_STRING_length(serial)));
        }
        CHECK(all.size() == 32);
        CHECK(longest == 16);
    }

    TEST_CASE("a CA signs with the key it has: RSA, or an Edwards curve") {
        authority_wishes other;
        other.rsa_bits = 2048;
        const auto by_rsa = maker_of(authority_files{other}).make("a.test", wall_now());
        REQUIRE(by_rsa);
        CHECK(show(*by_rsa->identity, "a.test").verdict == "ok");
        other.rsa_bits = 0;
        other.curve = "ED25519";
        const auto by_edwards = maker_of(authority_files{other}).make("a.test", wall_now());
        REQUIRE(by_edwards);
        CHECK(show(*by_edwards->identity, "a.test").verdict == "ok");
    }

    TEST_CASE("a client resumes under another leaf of the same host and CA, and under no other") {
        const authority_files files;
        const auto key = make_leaf_key();
        const auto maker = maker_of(files, 24h, key);
        const auto first = maker.make("a.test", wall_now());
        const auto next = maker.make("a.test", wall_now());
        const auto host = maker.make("x.b.test", wall_now());
        const auto stranger = maker_of(authority_files{}, 24h, key).make("a.test", wall_now());
        REQUIRE((first && next && host && stranger));
        for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
            CAPTURE(newest);
            const auto resumes = [&](const made_leaf& at) {
                const auto begun = show(*first->identity, "a.test", newest);
                REQUIRE(begun.shaken);
                return show(*at.identity, "a.test", newest, begun.session.get()).resumed;
            };
            CHECK(resumes(*first));
            CHECK(resumes(*next));
            CHECK_FALSE(resumes(*host));
            CHECK_FALSE(resumes(*stranger));
        }
    }

}  // TEST_SUITE

}  // namespace reprise::proxy::net::test::of_leaf_maker_test
