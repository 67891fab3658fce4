#include "proxy/net/password_checks.hpp"
#include "tests/unit/net/memory_ends.hpp"

#include <doctest/doctest.h>

#include <condition_variable>
#include <crypt.h>
#include <mutex>
#include <new>
#include <string>

using namespace reprise::proxy;
using namespace reprise::proxy::net;
using namespace std::chrono_literals;

namespace {

const steady_time first_try_at{1h};

user_list_ptr some_users() {
    crypt_data work{};
    const std::string hash = ::crypt_r("right", "$6$rounds=1000$saltsalt$", &work);
    return std::make_shared<const user_list>(password_hashes{{"ann", hash}}, token_owners{});
}

login_hash of(std::string_view text) {
    static login_hasher hasher;
    return *hasher(text);
}

address_bytes address(std::uint8_t last) {
    return reprise::proxy::net::canonical(boost::asio::ip::address_v4{{192, 0, 2, last}});
}

password_checks::order order_for(const user_list_ptr& users,
                                 const std::string& password,
                                 std::uint8_t from = 1) {
    return {of(password), address(from), users, "ann", password};
}

/// Waits for what the checks say.
struct answers {
    std::mutex guard;
    std::condition_variable came;
    std::vector<user_ptr> all;

    password_checks::call call() {
        return [this](user_ptr whose) {
            const std::lock_guard lock{guard};
            all.push_back(std::move(whose));
            came.notify_all();
        };
    }
    bool wait(std::size_t many) {
        std::unique_lock lock{guard};
        return came.wait_for(lock, 60s, [&] { return all.size() >= many; });
    }
};

}  // namespace

TEST_SUITE("net/password_checks") {
    TEST_CASE("Basic and Bearer are read; other schemes and broken ones are not") {
        const auto basic = read_login("bAsIc  YW5uOnA6dw==");
        REQUIRE(basic);
        CHECK(basic->user == "ann");
        CHECK(basic->secret == "p:w");
        CHECK_FALSE(basic->by_token);
        const auto bearer = read_login("Bearer abc.def~+/=");
        REQUIRE(bearer);
        CHECK(bearer->by_token);
        CHECK(bearer->secret == "abc.def~+/=");
        for (const auto* const wrong : {"",
                                        "Basic",
                                        "Basic ",
                                        "Basic YW5u",
                                        "Basic YW5uOnA6dw=",
                                        "Basic =YW5",
                                        "Basic YW5u OnA=",
                                        "Digest x",
                                        "Bearer ",
                                        "Bearer a b",
                                        "Basic AGE6Yg=="}) {
            CAPTURE(wrong);
            CHECK_FALSE(read_login(wrong));
        }
        CHECK_FALSE(read_login("Bearer " + std::string(most_of_login, 'a')));
    }

    TEST_CASE("a login's hash is the same for the same text, and another for another") {
        CHECK(of("Basic a") == of("Basic a"));
        CHECK_FALSE(of("Basic a") == of("Basic b"));
    }

    TEST_CASE("what was found right is known for five minutes, while its name has that password") {
        const std::string token = "0123456789abcdef";
        const auto of_robot = read_token_lines("robot:" + token).by_digest;
        const user_list users{{{"ann", "hash"}, {"bob", "other"}}, of_robot};
        const user_list as_before{{{"ann", "hash"}, {"eve", "other"}}, of_robot};
        const user_list changed{{{"ann", "another hash"}, {"bob", "other"}},
                                read_token_lines("ann:" + token).by_digest};
        const user_list without{{{"bob", "hash"}}, {}};
        known_logins known;
        const auto ann = std::make_shared<const known_user>(
            known_user{"ann", users.password_mark("ann")});
        CHECK(known.find(of("x"), users, first_try_at) == nullptr);
        known.note(of("x"), users, ann, first_try_at);
        CHECK(known.find(of("x"), users, first_try_at + 299s) == ann);
        CHECK(known.find(of("x"), users, first_try_at + 300s) == nullptr);
        CHECK(known.find(of("y"), users, first_try_at) == nullptr);
        CHECK(known.find(of("x"), changed, first_try_at) == nullptr);
        CHECK(known.find(of("x"), without, first_try_at) == nullptr);
        CHECK(known.find(of("x"), as_before, first_try_at + 299s) == ann);
        CHECK(known.find(of("x"), as_before, first_try_at + 300s) == nullptr);
        CHECK(known.find(of("x"), changed, first_try_at) == nullptr);
        const auto robot = std::make_shared<const known_user>(
            known_user{"robot", users.token_mark(token)});
        known.note(of("t"), users, robot, first_try_at);
        CHECK(known.find(of("t"), users, first_try_at) == robot);
        CHECK(known.find(of("t"), without, first_try_at) == nullptr);
        CHECK(known.find(of("t"), changed, first_try_at) == nullptr);  // it is ann's there
        CHECK(known.find(of("t"), as_before, first_try_at) == robot);
    }

    TEST_CASE("a login that is tried as the users are read again is tried once") {
        const auto users = some_users();
        const auto read_again = some_users();
        password_checks checks;
        answers told;
        REQUIRE(checks.begin(order_for(users, "right"), told.call(), steady_now()));
        REQUIRE(checks.begin(order_for(read_again, "right"), told.call(), steady_now()));
        REQUIRE(told.wait(2));
        CHECK(told.all[0]);
        CHECK(told.all[1]);
    }

    TEST_CASE("more logins than there is room for push others out, and are never taken for them") {
        const user_list users{{{"ann", "hash"}}, {}};
        known_logins known;
        for (int i = 0; i < 5000; ++i) {
            const auto name = std::to_string(i);
            const auto whose = std::make_shared<const known_user>(known_user{name, {}});
            known.note(of(name), users, whose, first_try_at);
        }
        int kept = 0;
        for (int i = 0; i < 5000; ++i) {
            const auto name = std::to_string(i);
            if (const auto whose = known.find(of(name), users, first_try_at)) {
                CHECK(whose->name == name);
                ++kept;
            }
        }
        CHECK(kept > 500);
        CHECK(kept <= static_cast<int>(known_logins::sets * known_logins::ways));
    }

    TEST_CASE(
        "right is told from wrong, off the caller's thread, and what is right is known at once") {
        const auto users = some_users();
        password_checks checks;
        answers told;
        REQUIRE(checks.begin(order_for(users, "right"), told.call(), steady_now()));
        REQUIRE(checks.begin(order_for(users, "wrong"), told.call(), steady_now()));
        REQUIRE(told.wait(2));
        CHECK((told.all[0] == nullptr) != (told.all[1] == nullptr));
        answers again;
        REQUIRE(checks.begin(order_for(users, "right"), again.call(), steady_now()));
        REQUIRE(again.all.size() == 1);  // before begin() returned
        CHECK(again.all[0]->name == "ann");
        CHECK(again.all[0]->mark == users->password_mark("ann"));
    }

    TEST_CASE("one login of many connections is tried once, and all are told") {
        const auto users = some_users();
        password_checks checks;
        answers told;
        for (int i = 0; i < 50; ++i) {
            REQUIRE(checks.begin(order_for(users, "right"), told.call(), steady_now()));
        }
        REQUIRE(told.wait(50));
        for (const auto& whose : told.all) {
            CHECK(whose != nullptr);
        }
    }

    TEST_CASE("a login that could not be tried, for want of memory, is tried the next time") {
        const auto users = some_users();
        password_checks checks;
        answers told;
        REQUIRE(checks.begin(order_for(users, "right"), told.call(), steady_now()));  // its thread
        REQUIRE(told.wait(1));
        bool refused = true;
        std::size_t right = 1;
        for (unsigned still = 0; refused; ++still) {
            CAPTURE(still);
            REQUIRE(still < 20);
            auto one = order_for(users, "right");
            one.which = of("login " + std::to_string(still));
            auto same = one;
            auto call = told.call();
            bool begun = false;
            {
                const memory_ends now{still};
                try {
                    begun = checks.begin(std::move(one), std::move(call), steady_now());
                    refused = false;
                } catch (const std::bad_alloc&) {
                    refused = true;
                }
            }
            REQUIRE(begun != refused);
            right += begun ? 1 : 0;
            REQUIRE(checks.begin(std::move(same), told.call(), steady_now()));
            REQUIRE(told.wait(++right));
        }
        const std::lock_guard lock{told.guard};
        for (const auto& whose : told.all) {
            CHECK(whose != nullptr);
        }
    }

    TEST_CASE("few wait from one address, and few in all") {
        const auto users = some_users();
        password_checks checks;
        answers told;
        std::size_t from_one = 0;
        for (int i = 0; i < 1000; ++i) {
            from_one += checks.begin(order_for(users, "wrong" + std::to_string(i)),
                                     told.call(),
                                     steady_now())
                            ? 1
                            : 0;
        }
        // Some may have been done meanwhile; then the address has to wait.
        CHECK(from_one <= password_checks::most_of_address + try_limits::free_tries + 2);
        REQUIRE(told.wait(from_one));
        CHECK_FALSE(checks.begin(order_for(users, "another"), told.call(), steady_now()));
        CHECK(checks.begin(order_for(users, "another", 2), told.call(), steady_now()));
        REQUIRE(told.wait(from_one + 1));
    }

    TEST_CASE("an address waits longer for each wrong password, and not after a right one") {
        try_limits limits;
        const auto who = secret_name{"192.0.2.1", ""};
        auto now = first_try_at;
        for (unsigned i = 0; i < try_limits::free_tries; ++i) {
            limits.note(who, false, now);
            CHECK(limits.may_try(who, now));
        }
        limits.note(who, false, now);
        CHECK_FALSE(limits.may_try(who, now + 499ms));
        CHECK(limits.may_try(who, now + 500ms));
        CHECK(limits.may_try(secret_name{"192.0.2.2", ""}, now));
        limits.note(who, false, now);
        CHECK_FALSE(limits.may_try(who, now + 999ms));
        for (int i = 0; i < 40; ++i) {
            limits.note(who, false, now);
        }
        CHECK_FALSE(limits.may_try(who, now + 59s));
        CHECK(limits.may_try(who, now + 60s));
        limits.note(who, true, now + 60s);  // one's own, behind wrong ones for somebody else's name
        limits.note(who, false, now + 60s);
        CHECK_FALSE(limits.may_try(who, now + 119s));
        limits.note(who, false, now + 12min);  // long ago: begun anew
        CHECK(limits.may_try(who, now + 12min));
        limits.note(who, true, now + 12min);
        CHECK(limits.may_try(who, now + 12min));
    }

    TEST_CASE("behind an address that speaks for many each name waits for itself") {
        const auto users = some_users();
        for (const bool for_many : {false, true}) {
            CAPTURE(for_many);
            answers told;
            password_checks checks;
            // Before any wrong one is noted: of the wait that follows nothing has passed.
            const auto now = steady_now();
            const auto begin = [&](const std::string& name, const std::string& password) {
                return checks.begin({.which = of(name + ":" + password),
                                     .from = address(1),
                                     .users = users,
                                     .name = name,
                                     .password = password,
                                     .speaks_for_many = for_many},
                                    told.call(),
                                    now);
            };
            for (unsigned i = 0; i <= try_limits::free_tries; ++i) {
                REQUIRE(begin("bob", "old" + std::to_string(i)));
                REQUIRE(told.wait(i + 1));
            }
            CHECK_FALSE(begin("bob", "another"));
            CHECK(begin("ann", "right") == for_many);
        }
    }

    TEST_CASE("wrong ones from an IPv6 address hold up all of its network, and no other") {
        const auto users = some_users();
        answers told;
        password_checks checks;
        // Before any wrong one is noted: of the wait that follows nothing has passed.
        const auto now = steady_now();
        const auto begin = [&](const char* from, const std::string& password) {
            auto one = order_for(users, password);
            one.from = reprise::proxy::net::canonical(boost::asio::ip::make_address(from));
            return checks.begin(std::move(one), told.call(), now);
        };
        for (unsigned i = 0; i <= try_limits::free_tries; ++i) {
            REQUIRE(begin("2001:db8::1", "wrong" + std::to_string(i)));
            REQUIRE(told.wait(i + 1));
        }
        CHECK_FALSE(begin("2001:db8::2", "another"));
        CHECK(begin("2001:db8:0:1::1", "one more"));
        REQUIRE(told.wait(try_limits::free_tries + 2));
        checks.finish();
    }

    TEST_CASE("what a place tries that has sent wrong ones holds up nobody else's") {
        bool for_many = false;  // then the names they send are no way around it
        SUBCASE("of one client") {}
        SUBCASE("of many") {
            for_many = true;
        }
        const auto users = some_users();
        answers theirs;
        answers ours;
        password_checks checks;
        const auto wrong_one = [&](const std::string& password) {
            auto one = order_for(users, password, 2);
            one.speaks_for_many = for_many;
            one.name = for_many ? "ann" + password : "ann";
            return one;
        };
        // Times are the clock's throughout: by it the checks note when a wrong one was tried.
        for (const std::string wrong : {"1", "2"}) {
            REQUIRE(checks.begin(wrong_one(wrong), theirs.call(), steady_now()));
            REQUIRE(theirs.wait(wrong == "1" ? 1 : 2));
        }
        // Theirs is under way, and stays so, until ours is told.
        bool were_told = false;
        const auto held = [&, begins = theirs.call()](user_ptr whose) {
            begins(std::move(whose));
            were_told = ours.wait(1);
        };
        REQUIRE(checks.begin(wrong_one("3"), held, steady_now()));
        REQUIRE(theirs.wait(3));
        REQUIRE(checks.begin(order_for(users, "right", 1), ours.call(), steady_now()));
        REQUIRE(ours.wait(1));
        checks.finish();  // theirs has ended
        CHECK(were_told);
        CHECK(ours.all[0]);
    }

    TEST_CASE("what is under way at the end is waited for, and nothing begins after it") {
        const auto users = some_users();
        answers told;
        password_checks checks;
        for (int i = 0; i < 6; ++i) {
            (void)checks.begin(
                order_for(users, "wrong" + std::to_string(i)), told.call(), steady_now());
        }
        checks.finish();
        CHECK_FALSE(checks.begin(order_for(users, "right"), told.call(), steady_now()));
    }
}
