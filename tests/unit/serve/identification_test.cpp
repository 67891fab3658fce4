#include "proxy/serve/identification.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/serve/exchanges.hpp"

#include <crypt.h>

namespace reprise::proxy::serve::test::of_identification {

namespace {

const std::string basic_ann = "Proxy-Authorization: Basic YW5uOnNlY3JldA==\r\n";  // ann:secret

struct files {
    tests::temp_dir place;
    config::options options = fetch::test::with_memory(1000);

    explicit files(bool in_clear) {
        crypt_data work{};
        options.access.users_file = place.write(
            "users",
            std::string{"ann:"} + ::crypt_r("secret", "$6$rounds=1000$salt$", &work) + "\n");
        options.access.tokens_file = place.write("tokens", "robot:0123456789abcdef\n");
        options.access.plaintext_passwords = in_clear;
    }
};

/// A client at this address asks.
struct visitor : files, bench {
    explicit visitor(const std::string& address, bool in_clear = false)
        : files{in_clear},
          bench{files::options} {
        who.address = address;
        who.at = net::canonical(asio::ip::make_address(address));
    }
    /// How `fields` are judged.
    std::optional<answer> judged(const std::string& fields) {
        stated one{*this, head_of("GET " + url, fields)};
        auto out = identify(one.x);
        one.x.consume_head();
        name = one.x.book.user ? *one.x.book.user : "";
        return out;
    }
    failure_code refused(const std::string& fields) {
        const auto out = judged(fields);
        REQUIRE(out);
        REQUIRE(std::holds_alternative<answers::refused>(*out));
        return std::get<answers::refused>(*out).why.code;
    }
    std::string name;
};

}  // namespace

TEST_SUITE_BEGIN("serve/identification");

TEST_CASE("nobody is asked who he is where nobody is named") {
    bench open;
    stated one{open, head_of("GET " + url, basic_ann)};
    CHECK_FALSE(identify(one.x));
}

TEST_CASE("from afar a password is taken over TLS alone, unless the settings say otherwise") {
    visitor afar{"192.0.2.1"};
    CHECK(afar.refused(basic_ann) == failure_code::user_in_clear);
    CHECK(afar.refused("") == failure_code::user_in_clear);  // nor is it asked for
    visitor allowed{"192.0.2.1", true};
    CHECK(allowed.refused("") == failure_code::user_unknown);
}

TEST_CASE(
    "a token is known at once, a password is to be tried, and what was found right is known") {
    visitor here{"127.0.0.1"};
    CHECK_FALSE(here.judged("Proxy-Authorization: Bearer 0123456789abcdef\r\n"));
    CHECK(here.name == "robot");
    CHECK(here.refused("Proxy-Authorization: Bearer 0123456789abcdee\r\n") ==
          failure_code::user_unknown);
    const auto untried = here.judged(basic_ann);
    REQUIRE(untried);
    REQUIRE(std::holds_alternative<answers::unverified>(*untried));
    const auto& what = std::get<answers::unverified>(*untried);
    CHECK(what.login.user == "ann");
    here.at.w.logins.note(what.which,
                          {here.at.settings->users->generation(), 1},
                          std::make_shared<const std::string>("ann"),
                          steady_now());
    CHECK_FALSE(here.judged(basic_ann));
    CHECK(here.name == "ann");
}

TEST_CASE("what says nothing that is understood is asked again") {
    visitor here{"127.0.0.1"};
    for (const std::string fields : {"",
                                     "Proxy-Authorization: Basic !!!\r\n",
                                     "Proxy-Authorization: Negotiate abc\r\n",
                                     "Authorization: Basic YW5uOnNlY3JldA==\r\n"}) {
        CAPTURE(fields);
        CHECK(here.refused(fields) == failure_code::user_unknown);
    }
    CHECK(here.refused("Proxy-Authorization: Bearer " + std::string(5000, 'a') + "\r\n") ==
          failure_code::user_unknown);
}

TEST_CASE("what comes in an opened tunnel is its CONNECT's") {
    visitor here{"127.0.0.1"};
    here.who.inside = std::make_shared<const opened_host>(
        opened_host{"a.example",
                    443,
                    std::make_shared<inside_counts>(),
                    std::make_shared<const std::string>("ann")});
    stated one{here, head_of("GET /x", "Host: a.example\r\n")};
    CHECK_FALSE(identify(one.x));
    REQUIRE(one.x.book.user);
    CHECK(*one.x.book.user == "ann");
}

TEST_CASE("a tunnel whose user is known no more, or that has none, ends, whatever is said in it") {
    for (const auto& whose : {net::user_name{}, std::make_shared<const std::string>("bob")}) {
        CAPTURE((whose != nullptr));
        visitor here{"127.0.0.1"};
        here.who.inside = std::make_shared<const opened_host>(
            opened_host{"a.example", 443, std::make_shared<inside_counts>(), whose});
        stated one{here, head_of("GET /x", basic_ann)};
        REQUIRE(one.x.out.keeps);
        const auto out = identify(one.x);
        REQUIRE(out);
        REQUIRE(std::holds_alternative<answers::refused>(*out));
        CHECK(std::get<answers::refused>(*out).why.code == failure_code::user_unknown);
        CHECK_FALSE(one.x.out.keeps);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_identification
