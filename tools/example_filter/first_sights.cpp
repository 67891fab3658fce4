// Prints every line of its input that was not there before, like `sort -u` without the sorting and
// without keeping a line: a filter that grows remembers a few bytes of each. One new line in a
// thousand, at most, is taken for an old one and left out.

#include <reprise/filter/key_hash.hpp>
#include <reprise/filter/scalable.hpp>
#include <reprise/filter/split_block.hpp>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <string>

namespace filter = reprise::filter;

namespace {

filter::hash_secret random_secret() {
    std::random_device random;
    filter::hash_seed seed;
    for (auto& byte : seed) {
        byte = static_cast<std::byte>(random());
    }
    return filter::hash_secret::from_seed(seed);
}

filter::split_block_bloom filter_for(std::uint64_t keys, double rate) {
    return filter::split_block_bloom{filter::split_blocks_for(keys, rate)};
}

}  // namespace

int main() {
    const auto secret = random_secret();
    filter::scalable_filter<filter::split_block_bloom> seen{{.first_keys = 1'000, .rate = 0.001},
                                                            filter_for};
    std::uint64_t lines = 0;
    for (std::string line; std::getline(std::cin, line); ++lines) {
        if (!seen.insert_and_test(filter::hash_of(line, secret))) {
            std::cout << line << '\n';
        }
    }
    std::cerr << lines << " lines, " << seen.keys() << " different, remembered in " << seen.bytes()
              << " bytes\n";
}
