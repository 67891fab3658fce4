#include "proxy/cache/memory/entry_table.hpp"
#include "tests/support/must.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

// A table that grows and shrinks, against a map, and what it takes at each of its sizes.

namespace reprise::proxy::cache::test::of_entry_tables {

namespace {

filter::key_hash key(std::uint64_t number) {
    return filter::test::nth_key(9, number);
}

class trial {
public:
    explicit trial(std::uint64_t seed) : random_{seed} {}

    /// Adds and takes until there are about `count`.
    void go_to(std::size_t count) {
        while (all_.size() < count) {
            below(8) == 0 && !all_.empty() ? take() : add();
        }
        while (all_.size() > count) {
            below(8) == 0 ? add() : take();
        }
        // Four bytes an entry, an eighth more, the first pieces and the directory.
        const auto most = all_.size() * entry_table::bytes_an_entry + largest_ / 32 + 8'192;
        CHECK(table_.memory() <= most);
    }
    void check_all() {
        for (const auto& [number, entries] : model_) {
            std::vector<const memory_entry*> found;
            for (const auto& one : table_.find(key(number))) {
                found.push_back(&one);
            }
            MUST(found == entries);
        }
        for (std::uint64_t other = 0; other < 100; ++other) {
            MUST(table_.find(key(numbers + other)).empty());
        }
    }

private:
    static constexpr std::uint64_t numbers = 20'000;

    std::size_t below(std::size_t bound) { return random_() % bound; }
    void add() {
        const auto number = below(numbers);
        auto& added = table_.add(memory_entry::make(key(number), "http://a/"));
        model_[number].push_back(&added);
        all_.push_back({number, &added});
        largest_ = std::max(largest_, all_.size());
    }
    void take() {
        const auto at = below(all_.size());
        const auto [number, entry] = all_[at];
        all_[at] = all_.back();
        all_.pop_back();
        auto& of_key = model_[number];
        of_key.erase(std::find(of_key.begin(), of_key.end(), entry));
        if (of_key.empty()) {
            model_.erase(number);
        }
        MUST(table_.take(*entry).get() == entry);
    }

    struct known {
        std::uint64_t number;
        memory_entry* entry;
    };
    std::mt19937_64 random_;
    entry_table table_;
    std::unordered_map<std::uint64_t, std::vector<const memory_entry*>> model_;
    std::vector<known> all_;
    std::size_t largest_ = 0;
};

}  // namespace

TEST_SUITE_BEGIN("cache/memory/entry_table");

TEST_CASE("a table finds what is in it, grown and shrunk however often, and takes memory for that "
          "alone") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 random{seed};
        trial one{seed};
        for (int turn = 0; turn < 8; ++turn) {
            one.go_to(random() % 12'000);
            one.check_all();
            one.go_to(random() % 50);
            one.check_all();
        }
        one.go_to(0);
        one.check_all();
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::cache::test::of_entry_tables
