#include "proxy/net/distrusted_origins.hpp"
#include "proxy/net/secret_name.hpp"

#include <doctest/doctest.h>
#include <xxhash.h>

#include <concepts>
#include <set>
#include <string>

namespace reprise::proxy::net::test::of_secret_name_test {
namespace {

// What can be computed from outside is no name in a table that all share, and no such name can be made of it.
template <class Marks>
concept takes_any_hash = requires(Marks marks, std::uint64_t hash) {
    { marks.has(hash, steady_time{}) } -> std::same_as<bool>;
};
static_assert(!takes_any_hash<expiring_marks>);
static_assert(!takes_any_hash<distrusted_origins>);
static_assert(!std::constructible_from<secret_name, std::uint64_t>);

}  // namespace

TEST_SUITE("net/secret_name") {

    TEST_CASE("a name is of both parts, and of where one ends") {
        CHECK(secret_name{"ab", "c"} == secret_name{"ab", "c"});
        const std::set names{secret_name{"ab", "c"},
                             secret_name{"a", "bc"},
                             secret_name{"c", "ab"},
                             secret_name{"abc", ""},
                             secret_name{"", "abc"},
                             secret_name{"", ""}};
        CHECK(names.size() == 6);
    }

    TEST_CASE("a name is not what its parts alone give") {
        const auto without_secret = [](std::string_view text) {
            return XXH3_64bits(text.data(), text.size());
        };
        const std::uint64_t both[] = {without_secret("deb.debian.org"), without_secret("80")};
        CHECK(secret_name{"deb.debian.org", "80"}.bits() != XXH3_64bits(both, sizeof both));
    }
}

}  // namespace reprise::proxy::net::test::of_secret_name_test
