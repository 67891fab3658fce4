#include "proxy/net/user_list.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <crypt.h>
#include <string>

using namespace reprise::proxy::net;
using reprise::tests::temp_dir;

namespace {

std::string hashed(const char* prefix, const std::string& password) {
    crypt_data work{};
    char salt[CRYPT_GENSALT_OUTPUT_SIZE];
    // The least cost that is taken: what is tried is that the hash is known, not how long it takes.
    const unsigned long cost = std::string_view{prefix} == "$6$"   ? 1000
                               : std::string_view{prefix} == "$y$" ? 1
                                                                   : 4;
    REQUIRE(crypt_gensalt_rn(prefix, cost, nullptr, 0, salt, sizeof salt) != nullptr);
    const char* const made = ::crypt_r(password.c_str(), salt, &work);
    REQUIRE(made != nullptr);
    return made;
}

std::string first_mistake(std::string_view text) {
    const auto read = read_password_lines(text);
    REQUIRE(read.mistakes.size() == 1);
    return std::to_string(read.mistakes[0].line) + ": " + read.mistakes[0].why;
}

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_SUITE("net/user_list") {
    TEST_CASE("bcrypt, yescrypt and SHA-512 are taken, and tell right from wrong") {
        for (const auto* const prefix : {"$2y$", "$2b$", "$y$", "$6$"}) {
            CAPTURE(prefix);
            auto read = read_password_lines("# comment\n\nann:" + hashed(prefix, "s3cret") +
                                            "\r\n");
            CHECK(read.mistakes.empty());
            const user_list users{std::move(read.by_name), {}};
            CHECK(users.has_password("ann", "s3cret"));
            CHECK_FALSE(users.has_password("ann", "S3cret"));
            CHECK_FALSE(users.has_password("bob", "s3cret"));
            CHECK_FALSE(users.has_password("ann", ""));
        }
    }

    TEST_CASE("what is guessed too fast is refused by its line, and what would be right is said") {
        CHECK(has(first_mistake("ok:" + hashed("$6$", "x") + "\na:$apr1$ab$cd\n"),
                  "2: is an MD5 hash"));
        CHECK(has(first_mistake("a:$1$ab$cd"), "1: is an MD5 hash"));
        CHECK(has(first_mistake("a:{SHA}abc="), "is a SHA-1 hash"));
        CHECK(has(first_mistake("a:$5$ab$cd"), "is a SHA-256 hash"));
        CHECK(has(first_mistake("\n\na:hunter2"), "3: is plain text"));
        CHECK(has(first_mistake("a:hunter2"), "htpasswd -B"));
        CHECK_FALSE(has(first_mistake("a:hunter2"), "hunter2"));
    }

    TEST_CASE("hashes that are cut, or that would hold a processor for seconds, are refused") {
        const auto whole = hashed("$2y$", "x");
        CHECK(has(first_mistake("a:" + whole.substr(0, 59)), "no whole bcrypt"));
        CHECK(has(first_mistake("a:$2y$15" + whole.substr(6)), "bcrypt cost"));
        CHECK(has(first_mistake("a:$6$rounds=9999999$salt$" + std::string(86, 'a')), "rounds"));
        CHECK(has(first_mistake("a:$6$salt$abc"), "no whole SHA-512"));
        CHECK(has(first_mistake("a:$y$jFT$salt$" + std::string(43, 'a')), "yescrypt parameters"));
        CHECK(has(first_mistake("a:$y$j9T$salt"), "no whole yescrypt"));
    }

    TEST_CASE("names and lines are checked") {
        const auto hash = hashed("$6$", "x");
        CHECK(has(first_mistake("nonsense"), "no colon"));
        CHECK(has(first_mistake(":" + hash), "a name has 1 to"));
        CHECK(has(first_mistake("a:" + hash + "\na:" + hash),
                  "2: names a user who was named before"));
        std::string many;
        for (int i = 0; i < 100; ++i) {
            many += "x\n";
        }
        CHECK(read_password_lines(many).mistakes.size() == 20);
    }

    TEST_CASE(
        "a name without a password takes the time of some user's, and the same one's always") {
        // Whose hash is of another kind, or costs more, answers later: so would all who are listed, and
        // nobody else, were unknown names all tried against one hash.
        password_hashes all;
        for (int i = 0; i < 8; ++i) {
            all.emplace("bcrypt" + std::to_string(i), "$2y$05$" + std::to_string(i));
            all.emplace("sha" + std::to_string(i), "$6$" + std::to_string(i));
        }
        const user_list users{all, {}};
        CHECK(users.hash_tried_for("sha3") == "$6$3");
        CHECK(users.hash_tried_for("bcrypt7") == "$2y$05$7");
        const auto read_again = [&all] {
            auto other = all;
            other.emplace("one more", "$6$more");
            return other;
        }();
        const user_list later{read_again, {}};
        unsigned bcrypts = 0, others = 0;
        for (int i = 0; i < 1000; ++i) {
            const auto name = "nobody" + std::to_string(i);
            const auto& tried = users.hash_tried_for(name);
            bcrypts += tried.starts_with("$2y$") ? 1 : 0;
            const auto& then = later.hash_tried_for(name);
            others += then != tried ? 1 : 0;
            CHECK((then == tried || then == "$6$more"));  // which is in its place now
        }
        // Eight of sixteen, and one of seventeen: what is drawn is the same in each run.
        CHECK(bcrypts > 400);
        CHECK(bcrypts < 600);
        CHECK(others > 20);
        CHECK(others < 120);
    }

    TEST_CASE("a mark holds while its name has that password or that token") {
        const auto tokens = [](std::string_view text) { return read_token_lines(text).by_digest; };
        const user_list users{{{"ann", "hash"}, {"bob", "other"}},
                              tokens("ann:0123456789abcdef\nbob:fedcba9876543210\n")};
        CHECK(users.holds(users.password_mark("ann")));
        CHECK(users.holds(users.token_mark("0123456789abcdef")));
        CHECK(users.password_mark("ann") != users.token_mark("0123456789abcdef"));
        CHECK(users.password_mark("eve") == secret_name{});
        CHECK(users.token_mark("0000000000000000") == secret_name{});
        CHECK_FALSE(users.holds({}));
        const user_list changed{{{"ann", "another"}, {"bob", "other"}, {"eve", "hash"}},
                                tokens("eve:0123456789abcdef\nbob:fedcba9876543210\n")};
        for (const auto* name : {"ann", "bob"}) {
            CAPTURE(name);
            CHECK(changed.holds(users.password_mark(name)) == (name[0] == 'b'));
        }
        CHECK_FALSE(changed.holds(users.token_mark("0123456789abcdef")));  // eve's now
        CHECK(changed.holds(users.token_mark("fedcba9876543210")));
    }

    TEST_CASE("tokens stand in clear or as their digest") {
        auto read = read_token_lines(
            "ann:0123456789abcdef\n"
            "bob:sha256:3465f6e6975baa864ca957f0914ecda9bf7eb601ac31ac20a5dc3d329279a843\n");
        CHECK(read.mistakes.empty());
        const user_list users{{}, std::move(read.by_digest)};
        CHECK(users.owner_of("0123456789abcdef") == "ann");
        CHECK(users.owner_of("fedcba9876543210") == "bob");
        CHECK(users.owner_of("0123456789abcdeg").empty());
        CHECK(read_token_lines("a:short").mistakes.size() == 1);
        CHECK(read_token_lines("a:sha256:zz").mistakes.size() == 1);
        CHECK(read_token_lines("a:0123456789 abcdef").mistakes.size() == 1);
        CHECK(read_token_lines("a:0123456789abcdef\nb:0123456789abcdef").mistakes.size() == 1);
    }

    TEST_CASE("a file's mistakes name the setting, the file and the line") {
        const temp_dir at;
        reprise::config::access_options access;
        CHECK(user_list::read(access).users == nullptr);
        access.users_file = at.write("users", "a:plain\n");
        const auto read = user_list::read(access);
        CHECK(read.users == nullptr);
        REQUIRE(read.mistakes.size() == 1);
        CHECK(read.mistakes[0].starts_with("access.users_file: " + access.users_file +
                                           ":1: is plain"));
        access.users_file = at.file("absent");
        CHECK(user_list::read(access).mistakes.size() == 1);
        access.users_file = at.write("users", "a:" + hashed("$6$", "x") + "\n");
        CHECK(user_list::read(access).users != nullptr);
    }
}
