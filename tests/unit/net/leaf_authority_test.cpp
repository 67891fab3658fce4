#include "proxy/net/leaf_authority.hpp"
#include "tests/unit/net/authority_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace reprise::proxy::net::test::of_leaf_authority_test {
namespace {

using namespace std::chrono_literals;
using tests::authority_wishes;

leaf_authority::reading read(const authority_files& files) {
    return leaf_authority::read(files.wanted, wall_now());
}

/// The one thing that is wrong, without its beginning, which is always the same.
std::string only_mistake(const authority_files& files) {
    const auto found = read(files);
    CHECK(found.authority == nullptr);
    REQUIRE(found.mistakes.size() == 1);
    const auto begin = "intercept.ca_certificate: the certificate in " +
                       files.wanted.ca_certificate + ' ';
    return found.mistakes[0].starts_with(begin) ? found.mistakes[0].substr(begin.size())
                                                : found.mistakes[0];
}
std::string only_mistake(const authority_wishes& wishes) {
    return only_mistake(authority_files{wishes});
}

std::string text_of(const std::string& path) {
    std::ifstream in{path};
    return {std::istreambuf_iterator<char>{in}, {}};
}

}  // namespace

TEST_SUITE("net/leaf_authority") {

    TEST_CASE("an intermediate that is bound to the listed hosts is taken, without a word") {
        const authority_files files;
        const auto found = read(files);
        CHECK(found.mistakes.empty());
        CHECK(found.warnings.empty());
        REQUIRE(found.authority);
        CHECK(found.authority->sent().size() == 1);
        CHECK(found.authority->left(wall_now()) == std::chrono::days{364});
    }

    TEST_CASE("of a chain what is self-signed is not sent") {
        authority_files files;
        const auto both = text_of(files.wanted.ca_certificate) + root_of_the_test().certificate();
        files.wanted.ca_certificate = files.at.write("chain.pem", both);
        // The root's own end comes first here: nothing may outlive it.
        const auto found = read(files);
        REQUIRE(found.authority);
        CHECK(found.authority->sent().size() == 1);
        CHECK(found.authority->until() < wall_now() + 25h);
    }

    TEST_CASE("files that can't be read, or hold nothing, are both told at once") {
        authority_files files;
        files.wanted.ca_certificate = files.at.file("absent");
        files.wanted.ca_key = files.at.file("none");
        const auto found = read(files);
        REQUIRE(found.mistakes.size() == 2);
        CHECK(found.mistakes[0] == "intercept.ca_certificate: cannot read " +
                                       files.wanted.ca_certificate + ": No such file or directory");
        CHECK(found.mistakes[1] == "intercept.ca_key: cannot read " + files.wanted.ca_key +
                                       ": No such file or directory");
        authority_files text;
        text.set_key("no key at all");
        CHECK(only_mistake(text) ==
              "intercept.ca_key: no PEM private key without a passphrase in " + text.wanted.ca_key);
    }

    TEST_CASE("where an access list says whom the group's bits are for, it is asked") {
        const authority_files files;
        const auto listed = [&](std::uint32_t user, std::uint16_t group) {
            // linux/posix_acl_xattr.h: version 2; its owner, one user, its group, the mask, others
            const struct {
                std::uint32_t version = 2;
                struct {
                    std::uint16_t tag, allowed;
                    std::uint32_t id;
                } entries[5];
            } list{.entries = {{0x01, 4, ~0u},
                               {0x02, 4, user},
                               {0x04, group, ~0u},
                               {0x10, 4, ~0u},
                               {0x20, 0, ~0u}}};
            ::chmod(files.wanted.ca_key.c_str(), 0400);
            return ::setxattr(files.wanted.ca_key.c_str(),
                              "system.posix_acl_access",
                              &list,
                              sizeof list,
                              0) == 0;
        };
        if (!listed(::geteuid(), 0)) {
            MESSAGE("skipped: this file system has no access lists");
            return;
        }
        struct ::stat is {};
        REQUIRE(::stat(files.wanted.ca_key.c_str(), &is) == 0);
        REQUIRE((is.st_mode & 0777) == 0440);  // as systemd gives a service its credentials
        CHECK(read(files).authority);
        REQUIRE(listed(::geteuid(), 4));
        CHECK_FALSE(read(files).authority);
        REQUIRE(listed(::geteuid() + 1, 0));
        CHECK_FALSE(read(files).authority);
    }

    TEST_CASE("a key that its group or others may read, or write, is refused") {
        for (const unsigned mode : {0640u, 0604u, 0620u, 0644u}) {
            CAPTURE(mode);
            authority_files files;
            files.set_key(text_of(files.wanted.ca_key), mode);
            CHECK(only_mistake(files) == "intercept.ca_key: " + files.wanted.ca_key +
                                             " may be used by others than its owner: chmod 600 it");
        }
        authority_files files;
        files.set_key(text_of(files.wanted.ca_key), 0400);
        CHECK(read(files).authority);
    }

    TEST_CASE("another certificate's key is refused") {
        authority_files files;
        files.set_key(root_of_the_test().issue_authority().key);
        CHECK(only_mistake(files) == "intercept.ca_key: " + files.wanted.ca_key +
                                         " is not the key of intercept.ca_certificate, " +
                                         files.wanted.ca_certificate);
    }

    TEST_CASE("what may not sign for servers is refused") {
        authority_wishes none;
        none.basic = "critical,CA:FALSE";
        CHECK(only_mistake(none) == "is none of a CA: its basicConstraints don't say CA:TRUE");
        none.basic = "";
        CHECK(only_mistake(none) == "is none of a CA: its basicConstraints don't say CA:TRUE");
        authority_wishes mute;
        mute.usage = "critical,cRLSign";
        CHECK(only_mistake(mute) ==
              "may not sign certificates: its keyUsage doesn't say keyCertSign");
        mute.usage = "";
        CHECK(only_mistake(mute) ==
              "may not sign certificates: its keyUsage doesn't say keyCertSign");
        authority_wishes mail;
        mail.extended_usage = "emailProtection";
        CHECK(only_mistake(mail) ==
              "may not sign for servers: its extendedKeyUsage doesn't say serverAuth");
        mail.extended_usage = "serverAuth,clientAuth";
        CHECK(read(authority_files{mail}).authority);
        authority_wishes weak;
        weak.rsa_bits = 1024;
        CHECK(only_mistake(weak) == "has a key that clients find too weak: make one of P-256");
    }

    TEST_CASE("what is not valid now is refused, and what ends within 30 days warned of") {
        authority_wishes over;
        over.when = {-48h, -1h};
        CHECK(only_mistake(over).starts_with("has expired on 20"));
        authority_wishes early;
        early.when = {1h, 48h};
        CHECK(only_mistake(early).starts_with("is not valid before 20"));
        authority_wishes soon;
        soon.when = {-1h, 24h * 29 + 12h};
        const authority_files files{soon};
        const auto found = read(files);
        REQUIRE(found.authority);
        REQUIRE(found.warnings.size() == 1);
        CHECK(found.warnings[0].starts_with("intercept.ca_certificate: the certificate in " +
                                            files.wanted.ca_certificate + " expires in 29 days"));
        CHECK(found.authority->left(wall_now()) == std::chrono::days{29});
        soon.when = {-1h, 24h * 30 + 12h};
        CHECK(read(authority_files{soon}).warnings.empty());
    }

    TEST_CASE("a certificate behind it that didn't issue it is refused") {
        const tests::test_authority stranger;
        authority_files files;
        files.wanted.ca_certificate = files.at.write(
            "chain.pem", text_of(files.wanted.ca_certificate) + stranger.certificate());
        CHECK(only_mistake(files) == "was not issued by the one behind it in the file");
    }

    TEST_CASE("a chain whose leaves every client refuses is refused, with a client's reason") {
        const auto chain = [](const authority_wishes& of_above) {
            const auto above = root_of_the_test().issue_authority(of_above);
            const auto own = tests::test_authority::issue_authority_below(above);
            return authority_files{tests::made_certificate{
                own.certificate + above.certificate + root_of_the_test().certificate(), own.key}};
        };
        authority_wishes above;
        CHECK(only_mistake(chain(above)) ==
              "signs what every client refuses, with those behind it in the file: path length "
              "constraint exceeded");
        above.basic = "critical,CA:TRUE";
        CHECK(read(chain(above)).authority);
        above.extended_usage = "emailProtection";
        CHECK(only_mistake(chain(above)).starts_with("signs what every client refuses"));
        above.extended_usage = "";
        above.rsa_bits = 1024;
        CHECK(only_mistake(chain(above)).starts_with("signs what every client refuses"));
    }

    TEST_CASE("each listed host that its constraints leave out is named") {
        authority_files files;
        files.wanted.hosts = {
            "a.test", "sub.a.test", "*.a.test", "c.test", "*.test", "*.b.test", "xa.test"};
        const auto found = read(files);
        CHECK(found.authority == nullptr);
        REQUIRE(found.mistakes.size() == 3);
        CHECK(found.mistakes[0] ==
              "intercept.hosts: c.test is not among the names that the certificate in " +
                  files.wanted.ca_certificate +
                  " is constrained to: make another, or leave it out");
        CHECK(found.mistakes[1].starts_with("intercept.hosts: *.test is not "));
        CHECK(found.mistakes[2].starts_with("intercept.hosts: xa.test is not "));
    }

    TEST_CASE("a CA that is bound to no names is refused, unless that is meant, and said") {
        authority_wishes free;
        for (const auto* constraints :
             {"",
              "critical,excluded;IP:0.0.0.0/0.0.0.0",
              "critical,DER:30:06:a0:04:30:02:82:00"}) {  // the last permits the empty name
            CAPTURE(constraints);
            free.constraints = constraints;
            authority_files files{free};
            CHECK(only_mistake(files).starts_with("is bound to no names: its key could be any "));
            files.wanted.unconstrained = true;
            const auto found = read(files);
            CHECK(found.authority);
            REQUIRE(found.warnings.size() == 1);
            CHECK(found.warnings[0].find("is bound to no names (intercept.unconstrained)") !=
                  std::string::npos);
        }
        free.constraints = "critical,permitted;DNS:a.test,permitted;DNS:b.test";
        const auto found = read(authority_files{free});
        CHECK(found.authority);
        REQUIRE(found.warnings.size() == 1);
        CHECK(found.warnings[0].find("should exclude 0.0.0.0/0 and ::/0") != std::string::npos);
    }

    TEST_CASE("the constraints of a root bind nobody") {
        const auto made = tests::test_authority::issue_root({});
        CHECK(only_mistake(authority_files{made}).starts_with("is a root, and not every client"));
    }

    TEST_CASE("all that is wrong is told at once, and nothing of the key") {
        authority_wishes bad;
        bad.basic = "critical,CA:FALSE";
        bad.usage = "";
        bad.constraints = "";
        bad.when = {-48h, -1h};
        authority_files files{bad};
        const auto key = root_of_the_test().issue_authority().key;
        files.set_key(key, 0644);
        files.wanted.hosts = {"c.test"};
        const auto found = read(files);
        CHECK(found.mistakes.size() == 6);
        for (const auto& one : found.mistakes) {
            for (std::size_t at = 30; at + 8 < key.size(); at += 8) {
                CHECK(one.find(key.substr(at, 8)) == std::string::npos);
            }
        }
    }

}  // TEST_SUITE

}  // namespace reprise::proxy::net::test::of_leaf_authority_test
