#include "proxy/net/distrusted_origins.hpp"
#include "proxy/net/secret_name.hpp"

#include <doctest/doctest.h>

#include <concepts>
#include <set>
#include <string>

namespace reprise::proxy::net::test::of_secret_name_test {
namespace {

// What can be computed from outside is no name in a table that all share.
template <class Marks>
concept takes_any_hash = requires(Marks marks, std::uint64_t hash) {
    { marks.has(hash, steady_time{}) } -> std::same_as<bool>;
};
static_assert(!takes_any_hash<expiring_marks>);
static_assert(!takes_any_hash<distrusted_origins>);

}  // namespace

TEST_SUITE("net/secret_name") {

    TEST_CASE("a name is of both parts, and of where one ends") {
        CHECK(secret_name_of("ab", "c") == secret_name_of("ab", "c"));
        const std::set names{secret_name_of("ab", "c"),
                             secret_name_of("a", "bc"),
                             secret_name_of("c", "ab"),
                             secret_name_of("abc", ""),
                             secret_name_of("", "abc"),
                             secret_name_of("", "")};
        CHECK(names.size() == 6);
    }

    TEST_CASE("a name is not what its parts alone give") {
        // The hash of before, which a web server could choose a host by that was taken for another's.
        const auto of_before = [](std::string_view host, std::uint16_t port, bool tls) {
            std::uint64_t name = std::hash<std::string_view>{}(host);
            name ^= (std::uint64_t{port} << 1 | (tls ? 1 : 0)) * 0x9e37'79b9'7f4a'7c15;
            name ^= name >> 29;
            return name * 0xbf58'476d'1ce4'e5b9;
        };
        const auto name = distrusted_origins::name_of("deb.debian.org", 80, false);
        CHECK(static_cast<std::uint64_t>(name) != of_before("deb.debian.org", 80, false));
    }
}

}  // namespace reprise::proxy::net::test::of_secret_name_test
