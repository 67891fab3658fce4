#include "proxy/net/tls_trust.hpp"
#include "tests/unit/net/tls_bench.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>

namespace reprise::proxy::net::test::of_tls_trust_test {
namespace {

using namespace std::chrono_literals;
using tests::made_certificate;
using tests::temp_dir;
using tests::test_authority;
using tests::tls_peer;

config::origin_options believing(const std::string& ca_file, const std::string& crl_file = "") {
    config::origin_options options;
    options.ca_file = ca_file;
    options.crl_file = crl_file;
    return options;
}

/// What is thrown of these files; empty when nothing is.
std::string mistake(const config::origin_options& options) {
    try {
        static_cast<void>(tls_trust::read(options));
        return {};
    } catch (const std::runtime_error& thrown) {
        return thrown.what();
    }
}

/// Why a server of this host that shows this is not taken; empty when it is.
std::string verdict(const tls_trust_ptr& trust,
                    const made_certificate& shown,
                    const std::string& host = "b.test") {
    tls_bench bench;
    auto peer = tls_peer::server(bench.far_socket(), shown);
    bench.on_thread([&] {
        if (peer.shake_hands()) {
            static_cast<void>(peer.read_to_end());
        }
    });
    std::string why;
    {
        const auto made = bench.connected({host}, trust);
        if (made.has_error()) {
            CHECK(made.error().code == failure_code::tls_certificate);
            why = made.error().detail;
        }
    }
    bench.join_running();
    return why;
}

constexpr auto revoked = "the certificate of b.test: certificate revoked";

}  // namespace

TEST_SUITE_BEGIN("net/tls_trust");

TEST_CASE("an authority of origins.ca_file is believed beside the system's") {
    const temp_dir at;
    static_cast<void>(trust_of_the_test());  // moves the system's store
    const test_authority own;
    const auto trust = tls_trust::read(believing(at.write("ca", own.certificate())));
    CHECK(verdict(trust, own.issue("DNS:b.test")).empty());
    CHECK(verdict(trust, known_authority().issue("DNS:b.test")).empty());
    const test_authority unknown;
    CHECK(verdict(trust, unknown.issue("DNS:b.test")) ==
          "the certificate of b.test: unable to get local issuer certificate");
}

TEST_CASE("what a list names is refused, and nothing else is") {
    const temp_dir at;
    const test_authority with_list;
    const test_authority without;
    const auto named = with_list.issue("DNS:b.test");
    const auto trust = tls_trust::read(
        believing(at.write("ca", with_list.certificate() + without.certificate()),
                  at.write("crl", with_list.revoke(named.certificate))));
    CHECK(verdict(trust, named) == revoked);
    CHECK(verdict(trust, with_list.issue("DNS:b.test")).empty());
    CHECK(verdict(trust, without.issue("DNS:b.test")).empty());
    const test_authority unknown;
    CHECK(verdict(trust, unknown.issue("DNS:b.test")) ==
          "the certificate of b.test: unable to get local issuer certificate");
}

TEST_CASE("every list of the file counts") {
    const temp_dir at;
    const test_authority one;
    const test_authority other;
    const auto named_by_one = one.issue("DNS:b.test");
    const auto named_by_other = other.issue("DNS:b.test");
    const auto trust = tls_trust::read(believing(
        at.write("ca", one.certificate() + other.certificate()),
        at.write("crl",
                 one.revoke(named_by_one.certificate) + other.revoke(named_by_other.certificate))));
    CHECK(verdict(trust, named_by_one) == revoked);
    CHECK(verdict(trust, named_by_other) == revoked);
    CHECK(verdict(trust, other.issue("DNS:b.test")).empty());
}

TEST_CASE("a list that is out of date, or that its authority did not sign, vouches for nobody") {
    const temp_dir at;
    const test_authority own;
    const auto ca = at.write("ca", own.certificate());
    const auto old = tls_trust::read(
        believing(ca, at.write("old", own.revoke("", {.when = {.from = -48h, .until = -1h}}))));
    CHECK(verdict(old, own.issue("DNS:b.test")) == "the certificate of b.test: CRL has expired");
    CHECK(verdict(old, known_authority().issue("DNS:b.test")).empty());

    const auto early = tls_trust::read(
        believing(ca, at.write("early", own.revoke("", {.when = {.from = 1h, .until = 2h}}))));
    CHECK(verdict(early, own.issue("DNS:b.test")) ==
          "the certificate of b.test: CRL is not yet valid");

    auto forged = own.revoke("");
    auto& of_signature = forged.at(forged.find("\n-----END") - 6);
    of_signature = of_signature == 'A' ? 'B' : 'A';
    const auto tampered = tls_trust::read(believing(ca, at.write("forged", forged)));
    CHECK(verdict(tampered, own.issue("DNS:b.test")) ==
          "the certificate of b.test: CRL signature failure");
}

TEST_CASE("an authority whose only list can't be used for it is not taken as one without a list") {
    const temp_dir at;
    // One name, and two keys, as when an authority has changed its key.
    const test_authority before{"twin"};
    const test_authority after{"twin"};
    const auto ca = at.write("ca", before.certificate() + after.certificate());
    const auto no_list = "the certificate of b.test: unable to get certificate CRL";
    const auto of_one = tls_trust::read(believing(ca, at.write("one", after.revoke(""))));
    CHECK(verdict(of_one, after.issue("DNS:b.test")).empty());
    CHECK(verdict(of_one, before.issue("DNS:b.test")) == no_list);
    const auto named = before.issue("DNS:b.test");
    const auto of_both = tls_trust::read(
        believing(ca, at.write("both", after.revoke("") + before.revoke(named.certificate))));
    CHECK(verdict(of_both, after.issue("DNS:b.test")).empty());
    CHECK(verdict(of_both, before.issue("DNS:b.test")).empty());
    CHECK(verdict(of_both, named) == revoked);

    const test_authority own;
    const auto own_ca = at.write("own", own.certificate());
    for (const std::string scope :
         {"critical,indirectCRL:TRUE", "critical,onlysomereasons:keyCompromise"}) {
        CAPTURE(scope);
        const auto trust = tls_trust::read(
            believing(own_ca, at.write("scoped", own.revoke("", {.scope = scope}))));
        CHECK(verdict(trust, own.issue("DNS:b.test")) == no_list);
        CHECK(verdict(trust, known_authority().issue("DNS:b.test")).empty());
    }
}

TEST_CASE("a certificate is a host's by the names it is made out to, never by its subject's") {
    const auto trust = trust_of_the_test();
    const auto& own = known_authority();
    const auto mismatch = "the certificate of b.test: hostname mismatch";
    CHECK(verdict(trust, own.issue_as("", {.called = "b.test"})) == mismatch);
    CHECK(verdict(trust, own.issue_as("IP:127.0.0.1", {.called = "b.test"})) == mismatch);
    CHECK(verdict(trust, own.issue_as("DNS:a.test", {.called = "b.test"})) == mismatch);
    CHECK(verdict(trust, own.issue_as("DNS:b.test", {.called = "a.test"})).empty());
    CHECK(verdict(trust, own.issue("DNS:*.b.test")) == mismatch);
}

TEST_CASE("a host that is a name's end alone is nobody's") {
    const auto trust = trust_of_the_test();
    for (const std::string host : {".test", ".b.test", "."}) {
        CAPTURE(host);
        CHECK(verdict(trust, known_authority().issue("DNS:b.test,DNS:a.b.test"), host) ==
              "no certificate is valid for \"" + host + '"');
    }
}

TEST_CASE("a file that holds no list is named") {
    const temp_dir at;
    const test_authority own;
    const auto ca = at.write("ca", own.certificate());
    const auto absent = at.file("absent");
    CHECK(mistake(believing(ca, absent)) ==
          "origins.crl_file: cannot read " + absent + ": No such file or directory");
    for (const auto& text : {std::string{}, std::string{"no list"}, own.certificate()}) {
        const auto file = at.write("none", text);
        CHECK(mistake(believing(ca, file)) ==
              "origins.crl_file: no PEM revocation list in " + file + ": no start line");
    }
    const auto whole = own.revoke("");
    const auto file = at.write("cut", whole + whole.substr(0, whole.size() / 2));
    CHECK(mistake(believing(ca, file))
              .starts_with("origins.crl_file: a further PEM revocation list in " + file + ": "));
}

TEST_CASE("a file of lists may have 64 MiB, one of authorities 1 MiB") {
    const temp_dir at;
    static_cast<void>(trust_of_the_test());  // moves the system's store
    const auto& own = known_authority();
    const auto ca = at.write("ca", own.certificate());
    const auto named = own.issue("DNS:b.test");
    const std::string words(std::size_t{2} << 20, '#');
    const auto trust = tls_trust::read(
        believing(ca, at.write("long", words + '\n' + own.revoke(named.certificate))));
    CHECK(verdict(trust, named) == revoked);
    const auto longer = at.write("longer", own.revoke(""));
    std::filesystem::resize_file(longer, (std::uintmax_t{64} << 20) + 1);
    CHECK(mistake(believing(ca, longer)) ==
          "origins.crl_file: cannot read " + longer + ": larger than 64 MiB");
    const auto authorities = at.write("authorities", words + '\n' + own.certificate());
    CHECK(mistake(believing(authorities)) ==
          "origins.ca_file: cannot read " + authorities + ": larger than 1 MiB");
}

TEST_CASE("a file that holds no authority is named") {
    const temp_dir at;
    const test_authority own;
    const auto absent = at.file("absent");
    CHECK(mistake(believing(absent)) ==
          "origins.ca_file: cannot read " + absent + ": No such file or directory");
    for (const auto& text : {std::string{}, std::string{"no PEM"}, own.revoke("")}) {
        const auto file = at.write("none", text);
        CHECK(mistake(believing(file)) ==
              "origins.ca_file: no PEM certificate in " + file + ": no start line");
    }
    const auto leaf = own.issue("DNS:b.test").certificate;
    for (const auto& text : {leaf, own.certificate() + leaf}) {
        const auto file = at.write("leaf", text);
        CHECK(mistake(believing(file)) ==
              "origins.ca_file: a certificate in " + file + " is no authority's (CA:FALSE)");
    }
    const auto cut = at.write("cut", own.certificate() + leaf.substr(0, leaf.size() / 2));
    CHECK(mistake(believing(cut))
              .starts_with("origins.ca_file: a further certificate in " + cut + " is not PEM: "));
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_tls_trust_test
