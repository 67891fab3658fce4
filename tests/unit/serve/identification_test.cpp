#include "proxy/serve/identification.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/serve/exchanges.hpp"

#include <crypt.h>

namespace reprise::proxy::serve::test::of_identification {

namespace {

const std::string basic_ann = "Proxy-Authorization: Basic YW5uOnNlY3JldA==\r\n";  // ann:secret

std::string hashed(const char* password) {
    crypt_data work{};
    return ::crypt_r(password, "$6$rounds=1000$salt$", &work);
}

struct files {
    tests::temp_dir place;
    config::options options = fetch::test::with_memory(1000);

    explicit files(bool in_clear) {
        options.access.users_file = place.write("users", "ann:" + hashed("secret") + "\n");
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
        stated one{*this, head_of("GET " + (who.inside ? "/x" : url), fields)};
        auto out = identify(one.x);
        one.x.consume_head();
        name = one.x.book.user ? one.x.book.user->name : "";
        return out;
    }
    failure_code refused(const std::string& fields) {
        const auto out = judged(fields);
        REQUIRE(out);
        REQUIRE(std::holds_alternative<answers::refused>(*out));
        return std::get<answers::refused>(*out).why.code;
    }
    /// A tunnel was opened for who was found to be this by a mark.
    void is_inside(std::string whose, net::secret_name mark) {
        const auto user = std::make_shared<const net::known_user>(
            net::known_user{std::move(whose), mark});
        who.inside = std::make_shared<const opened_host>(
            opened_host{"a.example", 443, std::make_shared<inside_counts>(), user});
    }
    /// What the files say from now on.
    void reads(const std::string& users, const std::string& tokens) {
        auto now = std::make_shared<thread::settings>(*at.settings);
        now->users = std::make_shared<const net::user_list>(
            net::read_password_lines(users).by_name, net::read_token_lines(tokens).by_digest);
        at.settings = at.w.current = now;
    }
    [[nodiscard]] const net::user_list& users() const { return *at.settings->users; }
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
    const auto ann = std::make_shared<const net::known_user>(
        net::known_user{"ann", here.users().password_mark("ann")});
    here.at.w.logins.note(what.which, here.users(), ann, steady_now());
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
    here.is_inside("ann", here.users().password_mark("ann"));
    CHECK_FALSE(here.judged(""));
    CHECK(here.name == "ann");
}

TEST_CASE("a tunnel is its user's while the lists have what its CONNECT showed, and no longer") {
    const std::string ann = "ann:" + hashed("secret") + "\n";
    const std::string with_another = "ann:" + hashed("another") + "\n";
    const std::string token = "ann:0123456789abcdef\n", another_token = "ann:fedcba9876543210\n";
    visitor here{"127.0.0.1"};
    here.reads(ann, token);
    SUBCASE("a password") {
        here.is_inside("ann", here.users().password_mark("ann"));
        CHECK_FALSE(here.judged(""));
        here.reads("# read again\n" + ann, another_token);
        CHECK_FALSE(here.judged(""));
        CHECK(here.name == "ann");
        here.reads(with_another, token);  // she is listed still
        CHECK(here.refused("") == failure_code::user_unknown);
        CHECK(here.refused(basic_ann) == failure_code::user_unknown);
        here.reads("", token);
        CHECK(here.refused("") == failure_code::user_unknown);
    }
    SUBCASE("a token") {
        here.is_inside("ann", here.users().token_mark("0123456789abcdef"));
        CHECK_FALSE(here.judged(""));
        here.reads(with_another, "# read again\n" + token);
        CHECK_FALSE(here.judged(""));
        CHECK(here.name == "ann");
        here.reads(ann, another_token);
        CHECK(here.refused("") == failure_code::user_unknown);
        here.reads(ann, "eve:0123456789abcdef\n");
        CHECK(here.refused("") == failure_code::user_unknown);
    }
}

TEST_CASE("a token that was known is known behind a reload, and is whose it is by then") {
    const std::string field = "Proxy-Authorization: Bearer 0123456789abcdef\r\n";
    visitor here{"127.0.0.1"};
    CHECK_FALSE(here.judged(field));
    CHECK(here.name == "robot");
    here.reads("", "robot:0123456789abcdef\n");
    CHECK_FALSE(here.judged(field));
    CHECK(here.name == "robot");
    here.reads("", "eve:0123456789abcdef\n");
    CHECK_FALSE(here.judged(field));
    CHECK(here.name == "eve");
    here.reads("", "eve:fedcba9876543210\n");
    CHECK(here.refused(field) == failure_code::user_unknown);
}

TEST_CASE("a tunnel whose user is known no more, or that has none, ends, whatever is said in it") {
    const auto bob = std::make_shared<const net::known_user>(
        net::known_user{"bob", net::secret_name{"bob", "hash"}});
    for (const auto& whose : {net::user_ptr{}, bob}) {
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
