#include "filter/c/fleet_keys.hpp"

#include "filter/sha256.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace reprise::filter::c {

namespace {

// Those of proxy/peer/secret: each use of the secret has a label of its own.
constexpr std::string_view hashing_label{"reprise digest hash seed, version 1"};
constexpr std::string_view signing_label{"reprise http message signature, version 1"};

constexpr std::size_t hmac_block = 64;

std::span<const std::byte> octets_of(std::string_view text) noexcept {
    return std::as_bytes(std::span{text.data(), text.size()});
}

sha256_code hmac_of_octets(std::span<const std::byte> key, std::span<const std::byte> text) {
    std::array<std::byte, hmac_block> padded{};
    if (key.size() > hmac_block) {
        const auto shorter = sha256(key);
        std::copy(shorter.begin(), shorter.end(), padded.begin());
    } else {
        std::copy(key.begin(), key.end(), padded.begin());
    }
    const auto masked = [&padded](std::byte by, std::span<const std::byte> behind) {
        std::vector<std::byte> out(hmac_block + behind.size());
        std::transform(
            padded.begin(), padded.end(), out.begin(), [by](std::byte one) { return one ^ by; });
        std::copy(behind.begin(), behind.end(), out.begin() + hmac_block);
        const auto code = sha256(out);
        wipe(std::span{out}.first(hmac_block));
        return code;
    };
    const auto code = masked(std::byte{0x5c}, masked(std::byte{0x36}, text));
    wipe(padded);
    return code;
}

// RFC 5869 2.2, 2.3, of one block: no salt, and a label shorter than a block.
sha256_code derive(std::span<const std::byte> secret, std::string_view label) {
    auto extracted = hmac_of_octets({}, secret);
    std::string info{label};
    info += '\1';
    const auto code = hmac_of_octets(extracted, octets_of(info));
    wipe(extracted);
    return code;
}

}  // namespace

sha256_code hmac_of(std::span<const std::byte> key, std::string_view text) {
    return hmac_of_octets(key, octets_of(text));
}

std::string base64_of_code(const sha256_code& code) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < code.size(); i += 3) {
        std::uint32_t three = 0;
        for (std::size_t j = i; j < i + 3; ++j) {
            three = three << 8 | (j < code.size() ? std::to_integer<std::uint32_t>(code[j]) : 0);
        }
        for (int shift = 18; shift >= 0; shift -= 6) {
            out += digits[three >> shift & 63];
        }
    }
    out.back() = '=';  // of 32 bytes the last three are two
    return out;
}

bool are_same(std::string_view a, std::string_view b) noexcept {
    if (a.size() != b.size()) {
        return false;
    }
    unsigned differences = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        differences |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^
                                             static_cast<unsigned char>(b[i]));
    }
    return differences == 0;
}

void wipe(std::span<std::byte> bytes) noexcept {
    ::explicit_bzero(bytes.data(), bytes.size());
}

fleet_keys keys_from(std::span<const std::byte> secret) {
    fleet_keys out;
    out.hashing = derive(secret, hashing_label);
    out.signing = derive(secret, signing_label);
    return out;
}

key_hash key_of_name(std::uint64_t name, const hash_secret& secret) noexcept {
    std::array<char, sizeof name> text;
    for (std::size_t i = 0; i < text.size(); ++i) {
        text[i] = static_cast<char>(name >> (8 * i));  // little-endian, on every machine
    }
    return hash_of({text.data(), text.size()}, secret);
}

}  // namespace reprise::filter::c
