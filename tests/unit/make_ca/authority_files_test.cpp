#include "proxy/net/leaf_authority.hpp"
#include "proxy/net/leaf_maker.hpp"
#include "tests/support/temp_dir.hpp"
#include "tools/make_ca/authorities.hpp"
#include "tools/make_ca/authority_files.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace reprise::make_ca::test::of_authority_files_test {
namespace {

using namespace std::chrono_literals;
using proxy::wall_now;
using proxy::net::certificate_ptr;
using proxy::net::pem_file;

unsigned mode_of(const std::string& path) {
    struct ::stat found {};
    REQUIRE(::stat(path.c_str(), &found) == 0);
    return found.st_mode & 0777u;
}
std::string text_of(const std::string& path) {
    std::ifstream in{path};
    return {std::istreambuf_iterator<char>{in}, {}};
}

/// Both tiers on disk, as an operator makes them, and what signs under them.
struct two_tiers {
    tests::temp_dir at;
    config::intercept_options settings;
    written root = write_root(at.file("root"), wall_now());
    written intermediate;

    explicit two_tiers(std::vector<std::string> hosts) {
        settings.hosts = std::move(hosts);
        settings.ca_certificate = at.file("ca.pem");
        settings.ca_key = at.file("ca.key");
        intermediate = write_intermediate(
            settings, {at.file("root"), "", std::chrono::days{100}}, wall_now());
    }

    /// What a strict client that has the root alone says of a leaf for this host.
    [[nodiscard]] std::string verdict_on(const std::string& host) const {
        const auto read = proxy::net::leaf_authority::read(settings, wall_now());
        for (const auto& one : read.mistakes) {
            FAIL_CHECK(one);
        }
        REQUIRE(read.authority);
        const proxy::net::leaf_maker maker{read.authority, proxy::net::make_leaf_key(), 24h};
        const auto leaf = maker.make(host, wall_now());
        REQUIRE(leaf);
        const auto ssl = leaf->identity->begin();
        auto* own = SSL_get_certificate(ssl.get());
        STACK_OF(X509)* above = nullptr;
        SSL_get0_chain_certs(ssl.get(), &above);
        CHECK(sk_X509_num(above) == 1);
        const auto trusted = pem_file{"root", root.certificate}.certificates();
        auto* store = X509_STORE_new();
        X509_STORE_add_cert(store, trusted.front().get());
        auto* context = X509_STORE_CTX_new();
        X509_STORE_CTX_init(context, store, own, above);
        auto* rules = X509_STORE_CTX_get0_param(context);
        X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_X509_STRICT);
        X509_VERIFY_PARAM_set_purpose(rules, X509_PURPOSE_SSL_SERVER);
        X509_VERIFY_PARAM_set1_host(rules, host.data(), host.size());
        X509_verify_cert(context);
        const std::string said = X509_verify_cert_error_string(X509_STORE_CTX_get_error(context));
        X509_STORE_CTX_free(context);
        X509_STORE_free(store);
        return said;
    }
};

}  // namespace

TEST_SUITE("make_ca/authority_files") {

    TEST_CASE("what is listed verifies under the root, and nothing else that the same key signs") {
        const two_tiers made{{"a.test", "*.b.test"}};
        CHECK(made.verdict_on("a.test") == "ok");
        CHECK(made.verdict_on("deep.x.b.test") == "ok");
        for (const auto* host : {"c.test", "test", "xa.test", "a.test.evil", "b.testx"}) {
            CAPTURE(host);
            CHECK(made.verdict_on(host) == "permitted subtree violation");
        }
    }

    TEST_CASE("the proxy takes the intermediate without a word of warning") {
        const two_tiers made{{"a.test", "*.b.test"}};
        const auto read = proxy::net::leaf_authority::read(made.settings, wall_now());
        CHECK(read.mistakes.empty());
        CHECK(read.warnings.empty());
        REQUIRE(read.authority);
        CHECK(read.authority->sent().size() == 1);  // the root is behind it, and not sent
        CHECK(read.authority->left(wall_now()) == std::chrono::days{99});
    }

    TEST_CASE("keys are their owner's, and the root's directory too") {
        const two_tiers made{{"a.test"}};
        CHECK(mode_of(made.root.key) == 0600);
        CHECK(mode_of(made.intermediate.key) == 0600);
        CHECK(mode_of(made.at.file("root")) == 0700);
        CHECK(text_of(made.root.certificate).find("PRIVATE") == std::string::npos);
        CHECK(text_of(made.intermediate.certificate).find("PRIVATE") == std::string::npos);
    }

    TEST_CASE("nothing is written over, and of two files none is left alone") {
        const two_tiers made{{"a.test"}};
        const auto key = text_of(made.root.key);
        CHECK_THROWS_WITH(static_cast<void>(write_root(made.at.file("root"), wall_now())),
                          (made.root.certificate +
                           ": is there already, and nothing is written over: move it away")
                              .c_str());
        CHECK(text_of(made.root.key) == key);
        ::unlink(made.intermediate.certificate.c_str());
        const wishes again{made.at.file("root"), "", std::chrono::days{100}};
        CHECK_THROWS_AS(static_cast<void>(write_intermediate(made.settings, again, wall_now())),
                        std::runtime_error);
        CHECK(text_of(made.intermediate.certificate).empty());  // the key was in the way
        ::unlink(made.intermediate.key.c_str());
        CHECK(write_intermediate(made.settings, again, wall_now()).key == made.intermediate.key);
    }

    TEST_CASE("an intermediate takes the place of the one before where that is asked for") {
        two_tiers both{{"a.test"}};
        both.settings.hosts = {"a.test", "new.test"};
        const auto before = text_of(both.settings.ca_certificate);
        (void)both.at.write("ca.key.new", "half of one");  // a try that was killed
        (void)write_intermediate(
            both.settings, {both.at.file("root"), "", std::chrono::days{100}, true}, wall_now());
        CHECK(text_of(both.settings.ca_certificate) != before);
        CHECK(mode_of(both.settings.ca_key) == 0600);
        CHECK(both.verdict_on("new.test") == "ok");
        CHECK_FALSE(std::filesystem::exists(both.at.file("ca.key.new")));
        CHECK_FALSE(std::filesystem::exists(both.at.file("ca.pem.new")));
    }

    TEST_CASE("a renewed file has the owner and the mode of the one before") {
        const two_tiers both{{"a.test"}};
        const auto& [certificate, key] = both.intermediate;
        REQUIRE(::chmod(key.c_str(), 0440) == 0);
        REQUIRE(::chmod(certificate.c_str(), 0600) == 0);
        constexpr unsigned service = 64321, its_group = 64322;
        const bool is_root = ::geteuid() == 0;
        if (is_root) {
            REQUIRE(::chown(key.c_str(), service, its_group) == 0);
            REQUIRE(::chown(certificate.c_str(), service, its_group) == 0);
        } else {
            MESSAGE("skipped: only root can give files away");
        }
        const auto before = text_of(key);
        (void)write_intermediate(
            both.settings, {both.at.file("root"), "", std::chrono::days{100}, true}, wall_now());
        CHECK(text_of(key) != before);
        CHECK(mode_of(key) == 0440);
        CHECK(mode_of(certificate) == 0600);
        for (const auto& one : {key, certificate}) {
            CAPTURE(one);
            struct ::stat found {};
            REQUIRE(::stat(one.c_str(), &found) == 0);
            CHECK(found.st_uid == (is_root ? service : ::geteuid()));
            CHECK(found.st_gid == (is_root ? its_group : ::getegid()));
        }
    }

    TEST_CASE("where one of two can't be renewed both stay as they were") {
        two_tiers both{{"a.test"}};
        const wishes renewed{both.at.file("root"), "", std::chrono::days{100}, true};
        const auto key = text_of(both.settings.ca_key);
        const auto certificate = text_of(both.settings.ca_certificate);

        const auto one = both.at.write("both.pem", certificate + key);
        auto settings = both.settings;
        settings.ca_certificate = settings.ca_key = one;
        CHECK_THROWS_WITH(
            static_cast<void>(write_intermediate(settings, renewed, wall_now())),
            (one + ": is to be the certificate's file and the key's: write two").c_str());
        CHECK(text_of(one) == certificate + key);

        const auto directory = both.at.file("a-directory");
        std::filesystem::create_directories(directory + "/with-a-file");
        settings = both.settings;
        settings.ca_certificate = directory;
        CHECK_THROWS_AS(static_cast<void>(write_intermediate(settings, renewed, wall_now())),
                        std::runtime_error);
        CHECK(text_of(both.settings.ca_key) == key);
        CHECK(both.verdict_on("a.test") == "ok");
        for (const auto* left : {"ca.key.new", "ca.key.before-renewal", "a-directory.new"}) {
            CAPTURE(left);
            CHECK_FALSE(std::filesystem::exists(both.at.file(left)));
        }
    }

    TEST_CASE("with a directory given it is made, and the settings' files are let be") {
        const two_tiers made{{"a.test"}};
        const wishes elsewhere{
            made.at.file("root"), made.at.file("new/place"), std::chrono::days{100}};
        const auto to = write_intermediate(made.settings, elsewhere, wall_now());
        CHECK(to.certificate == made.at.file("new/place/ca.pem"));
        CHECK(mode_of(to.key) == 0600);
    }

    TEST_CASE("an intermediate never outlives its root, and an expired root signs none") {
        const two_tiers made{{"a.test"}};
        ::unlink(made.intermediate.certificate.c_str());
        ::unlink(made.intermediate.key.c_str());
        const wishes longest{made.at.file("root"), "", std::chrono::days{3'652}};
        const auto later = wall_now() + std::chrono::days{3'000};
        static_cast<void>(write_intermediate(made.settings, longest, later));
        const auto read = proxy::net::leaf_authority::read(made.settings, later);
        REQUIRE(read.authority);
        CHECK(read.authority->left(later) == std::chrono::days{651});
        CHECK_THROWS_AS(static_cast<void>(write_intermediate(
                            made.settings,
                            {made.at.file("root"), made.at.file("late"), std::chrono::days{1}},
                            wall_now() + root_lifetime)),
                        std::runtime_error);
    }

    TEST_CASE("a root that is not whole, or of two makings, is refused") {
        const two_tiers made{{"a.test"}};
        const auto other = write_root(made.at.file("other"), wall_now());
        std::ofstream{other.key} << text_of(made.root.key);
        CHECK_THROWS_WITH(static_cast<void>(write_intermediate(
                              made.settings,
                              {made.at.file("other"), made.at.file("x"), std::chrono::days{1}},
                              wall_now())),
                          (other.key + ": is not the key of root.pem beside it").c_str());
        CHECK_THROWS_AS(static_cast<void>(write_intermediate(
                            made.settings,
                            {made.at.file("nowhere"), made.at.file("x"), std::chrono::days{1}},
                            wall_now())),
                        std::runtime_error);
    }

    TEST_CASE("a name is permitted once, with all that lies below it") {
        CHECK(permitted_names({"x.a.test", "*.a.test", "a.test", "b.test", "xb.test", "b.test"}) ==
              std::vector<std::string>{"a.test", "b.test", "xb.test"});
    }

}  // TEST_SUITE

}  // namespace reprise::make_ca::test::of_authority_files_test
