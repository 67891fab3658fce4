#include "proxy/peer/secret.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer::test::of_secret {
namespace {

std::vector<std::byte> unhex(std::string_view text) {
    std::vector<std::byte> out;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
        out.push_back(
            static_cast<std::byte>(std::stoul(std::string{text.substr(i, 2)}, nullptr, 16)));
    }
    return out;
}

std::vector<std::byte> run(std::size_t from, std::size_t count) {
    std::vector<std::byte> out;
    for (std::size_t i = 0; i < count; ++i) {
        out.push_back(static_cast<std::byte>(from + i));
    }
    return out;
}

std::vector<std::byte> derived(const std::vector<std::byte>& secret,
                               const std::vector<std::byte>& salt,
                               const std::vector<std::byte>& info,
                               std::size_t bytes) {
    std::vector<std::byte> out(bytes);
    hkdf_sha256(secret, salt, info, out);
    return out;
}

bool is(const std::array<std::byte, 32>& code, std::string_view hex) {
    const auto expected = unhex(hex);
    return std::equal(code.begin(), code.end(), expected.begin(), expected.end());
}

std::vector<std::byte> text(std::string_view from) {
    const auto bytes = std::as_bytes(std::span{from.data(), from.size()});
    return {bytes.begin(), bytes.end()};
}

const std::string good(48, 'k');

}  // namespace

TEST_SUITE("peer/secret") {
    TEST_CASE("HKDF gives what RFC 5869 A.1 to A.3 say") {
        const std::vector<std::byte> secret(22, std::byte{0x0b});
        CHECK(derived(secret, run(0, 13), run(0xf0, 10), 42) ==
              unhex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
                    "34007208d5b887185865"));
        CHECK(derived(run(0, 80), run(0x60, 80), run(0xb0, 80), 82) ==
              unhex("b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
                    "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
                    "cc30c58179ec3e87c14c01d5c1f3434f1d87"));
        CHECK(derived(secret, {}, {}, 42) ==
              unhex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
                    "9d201395faa4b61a96c8"));
    }

    TEST_CASE("HMAC gives what RFC 4231 4.2, 4.3, 4.4 and 4.7 say") {
        const std::vector<std::byte> first(20, std::byte{0x0b});
        CHECK(is(hmac_sha256(first, text("Hi There")),
                 "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"));
        CHECK(is(hmac_sha256(text("Jefe"), text("what do ya want for nothing?")),
                 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"));
        const std::vector<std::byte> third(20, std::byte{0xaa});
        const std::vector<std::byte> fifty(50, std::byte{0xdd});
        CHECK(is(hmac_sha256(third, fifty),
                 "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"));
        const std::vector<std::byte> long_key(131, std::byte{0xaa});
        CHECK(is(
            hmac_sha256(long_key, text("Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"));
    }

    TEST_CASE("HMAC gives the same under a key that was the last one, and was not") {
        const std::vector<std::byte> key(32, std::byte{0x0b}), other(32, std::byte{0x0c});
        const std::vector<std::byte> shorter(31, std::byte{0x0b});
        const auto* const of_key =
            "198a607eb44bfbc69903a0f1cf2bbdc5ba0aa3f3d9ae3c1c7a3b1696a0b68cf7";
        const auto first = hmac_sha256(key, text("Hi There"));
        CHECK(is(first, of_key));
        CHECK(is(hmac_sha256(key, text("Hi There")), of_key));
        const auto of_other = hmac_sha256(other, text("Hi There"));
        CHECK(of_other != first);
        CHECK(hmac_sha256(other, text("Hi There")) == of_other);
        CHECK(is(hmac_sha256(key, text("Hi There")), of_key));
        CHECK(hmac_sha256(shorter, text("Hi There")) != first);
        CHECK(is(hmac_sha256(key, text("Hi There")), of_key));
        CHECK(is(hmac_sha256(key, text("Hi There")), of_key));
    }

    TEST_CASE("one content gives one pair of keys, whatever wrote its last line end") {
        const auto first = fleet_secret::from_content(good);
        REQUIRE(first.has_value());
        CHECK(first->has_file());
        for (const auto* end : {"\n", "\r\n"}) {
            const auto again = fleet_secret::from_content(good + end);
            REQUIRE(again.has_value());
            CHECK(again->id() == first->id());
            CHECK(std::equal(again->message_signing().begin(),
                             again->message_signing().end(),
                             first->message_signing().begin()));
            CHECK(std::equal(again->old_signing().begin(),
                             again->old_signing().end(),
                             first->old_signing().begin()));
        }
        const auto other = fleet_secret::from_content(good + "x");
        CHECK(other->id() != first->id());
        CHECK_FALSE(std::equal(other->message_signing().begin(),
                               other->message_signing().end(),
                               first->message_signing().begin()));
    }

    TEST_CASE("the keys and the name have nothing in common to be seen") {
        const auto made = fleet_secret::from_content(good);
        const std::span<const std::byte, 32> keys[] = {
            made->message_signing(), made->old_signing(), made->hashing().seed()};
        for (std::size_t i = 0; i < std::size(keys); ++i) {
            const auto& next = keys[(i + 1) % std::size(keys)];
            CHECK_FALSE(std::equal(keys[i].begin(), keys[i].end(), next.begin()));
        }
        CHECK(made->id() == filter::identify(made->hashing().seed()));
    }

    TEST_CASE("too little and too much is refused by name") {
        CHECK(fleet_secret::from_content("").error() == secret_errc::too_short);
        CHECK(fleet_secret::from_content(std::string(31, 'a') + "\n").error() ==
              secret_errc::too_short);
        CHECK(fleet_secret::from_content(std::string(32, 'a')).has_value());
        CHECK(fleet_secret::from_content(std::string(4096, 'a')).has_value());
        CHECK(fleet_secret::from_content(std::string(4097, 'a')).error() == secret_errc::too_long);
        CHECK(make_error_code(secret_errc::unreadable).message().find("read") != std::string::npos);
    }

    TEST_CASE("without a file all share a key that is none, and sign nothing") {
        const auto none = fleet_secret::none();
        CHECK_FALSE(none.has_file());
        CHECK(none.id() == fleet_secret::none().id());
        CHECK(none.id() != fleet_secret::from_content(good)->id());
    }

    TEST_CASE("a file is read; what is none, or a folder, is refused") {
        const tests::temp_dir dir;
        const auto path = dir.write("secret", good + "\n");
        const auto read = load_secret(path);
        REQUIRE(read.has_value());
        CHECK(read->id() == fleet_secret::from_content(good)->id());
        CHECK(load_secret(dir.file("absent")).error() == secret_errc::unreadable);
        CHECK(load_secret(dir.path()).error() == secret_errc::unreadable);
        CHECK(load_secret(dir.write("long", std::string(9000, 'a'))).error() ==
              secret_errc::too_long);
    }

    TEST_CASE("a URL's key is the hash of its name, and its name half of its own hash") {
        const auto made = fleet_secret::from_content(good);
        const auto hash = filter::hash_of("http://a/b", made->hashing());
        const auto name = name_of("http://a/b", *made);
        CHECK(name == hash.low);
        std::string eight;
        for (unsigned i = 0; i < 8; ++i) {
            eight += static_cast<char>(name >> (8 * i));
        }
        CHECK(key_of(name, *made) == filter::hash_of(eight, made->hashing()));
        CHECK(key_of(name, *made) != key_of(name, fleet_secret::none()));
    }
}

}  // namespace reprise::proxy::peer::test::of_secret
