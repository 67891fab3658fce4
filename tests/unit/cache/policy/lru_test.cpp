#include "proxy/cache/policy/lru.hpp"
#include "tests/unit/cache/policy/workload.hpp"

#include <doctest/doctest.h>

#include <list>

using namespace reprise::proxy::cache;
using namespace reprise::proxy::cache::test;

namespace {

class slow_lru final : public slow_model {
public:
    bool ask(const wish& wanted, std::vector<std::uint64_t>& left) override {
        const auto at = find(wanted.object);
        if (at != entries_.end()) {
            entries_.splice(entries_.begin(), entries_, at);
            return true;
        }
        if (wanted.bytes > policy_capacity) {
            return false;
        }
        entries_.push_front(wanted);
        bytes_ += wanted.bytes;
        while (bytes_ > policy_capacity) {
            left.push_back(entries_.back().object);
            bytes_ -= entries_.back().bytes;
            entries_.pop_back();
        }
        return false;
    }
    void remove(std::uint64_t object) override {
        if (const auto at = find(object); at != entries_.end()) {
            bytes_ -= at->bytes;
            entries_.erase(at);
        }
    }

private:
    std::list<wish>::iterator find(std::uint64_t object) {
        return std::find_if(entries_.begin(), entries_.end(), [object](const wish& one) {
            return one.object == object;
        });
    }
    std::list<wish> entries_;
    std::uint64_t bytes_ = 0;
};

}  // namespace

TEST_SUITE_BEGIN("cache/policy/lru");

TEST_CASE("LRU does what a plain list of the last used does") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        CAPTURE(seed);
        owner fast{std::make_unique<lru_policy>(), policy_capacity};
        slow_lru slow;
        CHECK_FALSE(first_difference(fast, slow, wishes(seed, 4'000, 400)).has_value());
    }
}

TEST_CASE("a hit saves the oldest") {
    owner cache{std::make_unique<lru_policy>(), 300};
    cache.ask({1, 100});
    cache.ask({2, 100});
    cache.ask({3, 100});
    cache.ask({1, 100});
    cache.ask({4, 100});
    CHECK(cache.left == std::vector<std::uint64_t>{2});
}

TEST_SUITE_END();
