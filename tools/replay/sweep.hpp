#pragma once
// What is to be tried, from the words of the command line to setups: every combination of what the
// options list.

#include "tools/replay/setup.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace reprise::replay {

struct sweep_words {
    /// The sizes of all tiers together; with them `memory` is a share.
    std::vector<std::string> sizes;
    /// The sizes of each tier, in bytes: every memory with every disk.
    std::vector<std::string> memory, disks;
    std::vector<std::string> policies{"lru", "sieve", "s3-fifo", "w-tinylfu", "gdsf"};
    std::vector<std::string> admissions{"always", "second-hit"};
    std::vector<std::string> probations{"0%"};
    std::string wanted = "requests";
    std::string write = "eviction";
    disk_choice disk;
    bool scaled = false;
    bool counts_overhead = false;
    bool remembers_automatically = false;
    std::uint64_t objects = 0;  ///< that the filter remembers; 0: it follows the store
};

/// A value that an option's text stands for. @throws std::runtime_error naming both, when it is none
template <class T>
[[nodiscard]] T must(std::optional<T> value, const std::string& option, const std::string& text) {
    if (!value) {
        throw std::runtime_error{option + ": \"" + text + "\" is not one of its values (--help)"};
    }
    return *std::move(value);
}

[[nodiscard]] std::optional<objective> objective_of(const std::string& text);

/// @throws std::runtime_error when it is no number of bytes
[[nodiscard]] std::uint64_t bytes_named(const std::string& text, const std::string& option);

/// Each setup once. @throws std::runtime_error naming the option that is wrong
[[nodiscard]] std::vector<setup> setups_of(const sweep_words& asked);

}  // namespace reprise::replay
