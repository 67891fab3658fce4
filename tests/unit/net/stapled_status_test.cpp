#include "proxy/net/stapled_status.hpp"
#include "tests/unit/net/tls_bench.hpp"

#include <doctest/doctest.h>

#include <openssl/ssl.h>

namespace reprise::proxy::net::test::of_stapled_status_test {
namespace {

using namespace std::chrono_literals;
using tests::made_certificate;
using tests::test_authority;
using tests::tls_peer;
using word = tests::status_wishes::word;

/// Why a server of b.test that shows and staples this is not taken; empty when it is.
std::string verdict(const tls_trust_ptr& trust,
                    const made_certificate& shown,
                    const std::string& stapled,
                    int newest) {
    tls_bench bench;
    auto peer = tls_peer::server(bench.far_socket(), shown, {.stapled = stapled, .newest = newest});
    bench.on_thread([&] {
        if (peer.shake_hands()) {
            static_cast<void>(peer.read_to_end());
        }
    });
    std::string why;
    {
        const auto made = bench.connected({"b.test"}, trust);
        if (made.has_error()) {
            CHECK(made.error().code == failure_code::tls_certificate);
            why = made.error().detail;
        }
    }
    bench.join_running();
    return why;
}

constexpr int both_versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
constexpr auto revoked = "the certificate of b.test: certificate revoked";
constexpr auto not_shown = "the certificate of b.test: OCSP verification needed";

struct stapled_text {
    const char* what;
    std::string bytes;
};

/// Whatever says nothing of use about this certificate of known_authority().
std::vector<stapled_text> useless_about(const std::string& certificate) {
    const auto& own = known_authority();
    const test_authority other;
    const auto good = own.status_of(certificate);
    return {
        {"nothing", ""},
        {"garbage", std::string(500, 'x')},
        {"cut", good.substr(0, good.size() / 2)},
        {"unknown to its issuer", own.status_of(certificate, {.says = word::unknown})},
        {"good, long ago", own.status_of(certificate, {.when = {.from = -48h, .until = -1h}})},
        {"good, of two days ago, without an end",
         own.status_of(certificate, {.when = {.from = -48h}, .endless = true})},
        {"revoked, long ago",
         own.status_of(certificate, {.says = word::revoked, .when = {.from = -48h, .until = -1h}})},
        {"revoked, in future",
         own.status_of(certificate, {.says = word::revoked, .when = {.from = 1h, .until = 2h}})},
        {"another certificate, good", own.status_of(own.issue("DNS:b.test").certificate)},
        {"another certificate, revoked",
         own.status_of(own.issue("DNS:b.test").certificate, {.says = word::revoked})},
        {"another authority, good", other.status_of(certificate)},
        {"another authority, revoked", other.status_of(certificate, {.says = word::revoked})},
        {"another certificate, revoked, by SHA-256",
         own.status_of(own.issue("DNS:b.test").certificate,
                       {.says = word::revoked, .sha256 = true})},
        {"good by whom it is nothing to", other.status_of(certificate, {.issued_by = &own})},
        {"revoked by whom it is nothing to",
         other.status_of(certificate, {.says = word::revoked, .issued_by = &own})},
    };
}

}  // namespace

TEST_SUITE_BEGIN("net/stapled_status");

TEST_CASE("a certificate of which its server itself shows that it is revoked is refused") {
    const auto trust = trust_of_the_test();
    const auto& own = known_authority();
    for (const bool must_staple : {false, true}) {
        const auto shown = own.issue_as("DNS:b.test", {.must_staple = must_staple});
        // By whichever digest it names the certificate.
        for (const bool sha256 : {false, true}) {
            const auto bad = own.status_of(shown.certificate,
                                           {.says = word::revoked, .sha256 = sha256});
            const auto good = own.status_of(shown.certificate, {.sha256 = sha256});
            for (const int version : both_versions) {
                CAPTURE(must_staple);
                CAPTURE(sha256);
                CAPTURE(version);
                CHECK(verdict(trust, shown, bad, version) == revoked);
                CHECK(verdict(trust, shown, good, version).empty());
            }
        }
    }
}

TEST_CASE(
    "of a response about several certificates what counts is said of this one, the worst of it") {
    const auto trust = trust_of_the_test();
    const auto& own = known_authority();
    const auto shown = own.issue("DNS:b.test");
    const auto other = own.issue("DNS:b.test").certificate;
    for (const auto& before : {other, shown.certificate}) {
        const auto said = own.status_of(shown.certificate,
                                        {.says = word::revoked, .before = before});
        CHECK(verdict(trust, shown, said, TLS1_3_VERSION) == revoked);
    }
    const auto said = own.status_of(other, {.says = word::revoked, .before = shown.certificate});
    CHECK(verdict(trust, shown, said, TLS1_3_VERSION).empty());
}

TEST_CASE("what says nothing of use changes nothing, unless the certificate promises its status") {
    const auto trust = trust_of_the_test();
    const auto& own = known_authority();
    const auto plain = own.issue("DNS:b.test");
    const auto strict = own.issue_as("DNS:b.test", {.must_staple = true});
    for (const int version : both_versions) {
        CAPTURE(version);
        for (const auto& one : useless_about(plain.certificate)) {
            CAPTURE(one.what);
            CHECK(verdict(trust, plain, one.bytes, version).empty());
        }
        for (const auto& one : useless_about(strict.certificate)) {
            CAPTURE(one.what);
            CHECK(verdict(trust, strict, one.bytes, version) == not_shown);
        }
    }
}

TEST_CASE("a file of another authority's lists leaves stapled responses heeded") {
    static_cast<void>(trust_of_the_test());  // moves the system's store
    const tests::temp_dir at;
    const auto& own = known_authority();
    const test_authority other;
    config::origin_options options;
    options.ca_file = at.write("ca", other.certificate());
    options.crl_file = at.write("crl", other.revoke(""));
    const auto trust = tls_trust::read(options);
    const auto shown = own.issue_as("DNS:b.test", {.must_staple = true});
    const auto good = own.status_of(shown.certificate);
    const auto bad = own.status_of(shown.certificate, {.says = word::revoked});
    for (const int version : both_versions) {
        CAPTURE(version);
        CHECK(verdict(trust, shown, good, version).empty());
        CHECK(verdict(trust, shown, bad, version) == revoked);
        CHECK(verdict(trust, shown, "", version) == not_shown);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_stapled_status_test
