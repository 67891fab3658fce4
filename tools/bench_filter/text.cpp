// From a URL's text to the answer. Hashing costs as much as asking, and MD5 far more.

#include "filter/key_hash.hpp"
#include "filter/sizing.hpp"
#include "filter/split_block.hpp"
#include "filter/squid_key.hpp"
#include "filter/standard.hpp"
#include "tools/bench_filter/subjects.hpp"

#include <cstdio>
#include <cstring>

namespace reprise::bench {

namespace {

using namespace filter;

/// A URL of 80 characters that differs from key to key; made by one copy of 16 bytes.
class url {
public:
    explicit url(key_hash key) noexcept { std::memcpy(text_.data() + 60, &key, sizeof key); }
    [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), text_.size()}; }

private:
    static constexpr std::string_view example =
        "http://www.example.com/a/path/of/some/length/to/an/image.png?a-query=0123456789a";
    static_assert(example.size() == 80);

    std::array<char, 80> text_ = [] {
        std::array<char, 80> made{};
        example.copy(made.data(), made.size());
        return made;
    }();
};

const hash_secret& secret() {
    static const auto made = hash_secret::from_seed(hash_seed{});
    return made;
}

/// Squid's mask: MD5, four words of it modulo the bits.
class squid_mask {
public:
    squid_mask(std::uint64_t keys, unsigned bits_a_key) : words_((keys * bits_a_key + 63) / 64) {}

    void insert(const squid_key& key) noexcept {
        for (const auto place : squid_places(key, words_.size() * 64)) {
            words_[place / 64] |= std::uint64_t{1} << (place % 64);
        }
    }
    [[nodiscard]] bool may_contain(const squid_key& key) const noexcept {
        for (const auto place : squid_places(key, words_.size() * 64)) {
            if ((words_[place / 64] >> (place % 64) & 1) == 0) {
                return false;
            }
        }
        return true;
    }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return words_.size() * 8; }

private:
    std::vector<std::uint64_t> words_;
};

template <class Make>
subject hashed(std::string name, Make make) {
    return growing(
        std::move(name),
        make,
        [](auto& filter, key_hash key) { filter.insert(hash_of(url{key}.text(), secret())); },
        [](const auto& filter, key_hash key) {
            return filter.may_contain(hash_of(url{key}.text(), secret()));
        });
}

subject squid(std::string name, unsigned bits_a_key) {
    return growing(
        std::move(name),
        [=](std::uint64_t keys, double) {
            return squid_mask{keys, bits_a_key};
        },
        [](auto& filter, key_hash key) { filter.insert(squid_raw_key(url{key}.text())); },
        [](const auto& filter, key_hash key) {
            return filter.may_contain(squid_raw_key(url{key}.text()));
        });
}

}  // namespace

std::vector<subject> from_text() {
    return {
        hashed("XXH3, standard",
               [](auto keys, auto rate) { return standard_bloom{classic_size(keys, rate)}; }),
        hashed(
            "XXH3, split block",
            [](auto keys, auto rate) { return split_block_bloom{split_blocks_for(keys, rate)}; }),
        squid("Squid's way: MD5, 4 places, 5 bits a key", 5),
        squid("the same with 13 bits a key", 13),
    };
}

void print_hashes() {
    std::printf(
        "Hashing a text of so many bytes, ns:\n\n| bytes | XXH3 | MD5 |\n|---:|---:|---:|\n");
    for (const std::size_t length : {16, 40, 80, 120, 200, 400, 1000}) {
        std::string text(length, 'x');
        constexpr std::size_t count = 100'000;
        const auto time = [&](auto hash) {
            return middle_of([&] {
                       return seconds([&] {
                           std::uint64_t sum = 0;
                           for (std::size_t i = 0; i < count; ++i) {
                               text[i % length] = static_cast<char>(i);
                               sum += hash(text);
                           }
                           sink(sum);
                       });
                   }) *
                   1e9 / count;
        };
        std::printf("| %zu | %.1f | %.1f |\n",
                    length,
                    time([](const std::string& of) { return hash_of(of, secret()).low; }),
                    time([](const std::string& of) {
                        return std::to_integer<unsigned>(squid_raw_key(of)[0]);
                    }));
    }
    std::printf("\n");
}

}  // namespace reprise::bench
