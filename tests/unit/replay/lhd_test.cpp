#include "tests/unit/cache/policy/workload.hpp"
#include "tools/replay/lhd.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

using namespace reprise::replay;
namespace proxy = reprise::proxy;
using proxy::cache::evictable;
using proxy::cache::test::key_of;

namespace {

/// What the paper's (1) says, term by term: hits expected from an age on, over the time expected.
double density_by_definition(const std::vector<double>& hits,
                             const std::vector<double>& left,
                             std::size_t age) {
    double to_come = 0, time = 0;
    for (auto later = age; later < hits.size(); ++later) {
        to_come += hits[later];
        time += (hits[later] + left[later]) * static_cast<double>(later - age + 1);
    }
    return time > 0 ? to_come / time : 0;
}

/// Hits of what a caller asks for in a cache of so many bytes.
class cache {
public:
    explicit cache(std::uint64_t capacity) : capacity_{capacity}, policy_{capacity} {}

    bool ask(std::uint64_t object, std::uint64_t bytes) {
        if (const auto found = in_.find(object); found != in_.end()) {
            policy_.used(*found->second);
            return true;
        }
        policy_.missed(key_of(object));
        auto& fresh = in_[object];
        fresh = std::make_unique<entry>();
        fresh->key = key_of(object);
        fresh->charge = bytes;
        fresh->object = object;
        bytes_ += bytes;
        policy_.inserted(*fresh);
        while (bytes_ > capacity_) {
            auto* gone = static_cast<entry*>(policy_.evict());
            REQUIRE(gone != nullptr);
            bytes_ -= gone->charge;
            REQUIRE(in_.erase(gone->object) == 1);
        }
        return false;
    }
    void remove(std::uint64_t object) {
        if (const auto found = in_.find(object); found != in_.end()) {
            policy_.removed(*found->second);
            bytes_ -= found->second->charge;
            in_.erase(found);
        }
    }
    [[nodiscard]] std::size_t count() const { return in_.size(); }
    void empty() {
        while (auto* gone = static_cast<entry*>(policy_.evict())) {
            REQUIRE(in_.erase(gone->object) == 1);
        }
    }

private:
    struct entry : evictable {
        std::uint64_t object = 0;
    };
    std::uint64_t capacity_, bytes_ = 0;
    lhd_policy policy_;
    std::map<std::uint64_t, std::unique_ptr<entry>> in_;
};

}  // namespace

TEST_SUITE("replay/lhd") {
    TEST_CASE("densities are what the paper defines, summed up the slow way") {
        std::mt19937_64 random{1};
        for (int round = 0; round < 50; ++round) {
            std::vector<double> hits(40), left(40), densities(40);
            for (std::size_t age = 0; age < hits.size(); ++age) {
                hits[age] = random() % 3 == 0 ? static_cast<double>(random() % 10) : 0;
                left[age] = random() % 3 == 0 ? static_cast<double>(random() % 10) : 0;
            }
            hit_densities(hits, left, densities);
            for (std::size_t age = 0; age < hits.size(); ++age) {
                CHECK(densities[age] ==
                      doctest::Approx(density_by_definition(hits, left, age)).epsilon(1e-9));
            }
        }
    }

    TEST_CASE("every entry leaves once, with removals between, and the last ones too") {
        cache in{5'000};
        for (const auto& one : proxy::cache::test::wishes(5, 40'000, 3'000)) {
            (void)in.ask(one.object, std::min<std::uint64_t>(one.bytes, 5'000));
            if (one.object % 17 == 0) {
                in.remove(one.object);
            }
        }
        in.empty();
        CHECK(in.count() == 0);
    }

    TEST_CASE("a loop larger than the room has hits, of which LRU would have none") {
        cache in{1'000'000};
        std::uint64_t hits = 0;
        for (std::uint64_t i = 0; i < 200'000; ++i) {
            hits += in.ask(i % 2'000, 1'000) && i >= 100'000 ? 1 : 0;
        }
        CHECK(hits > 30'000);  // half of the loop fits: 50,000 at most
    }

    TEST_CASE("a scan pushes out less than of LRU of what is asked for again and again") {
        cache in{500'000};
        std::mt19937_64 random{3};
        std::uint64_t hits = 0, asked = 0;
        for (std::uint64_t i = 0; i < 200'000; ++i) {
            if (i % 2 == 0) {
                (void)in.ask(1'000'000 + i, 1'000);
            } else {
                const bool hit = in.ask(random() % 400, 1'000);
                asked += i >= 100'000 ? 1 : 0;
                hits += hit && i >= 100'000 ? 1 : 0;
            }
        }
        CHECK(static_cast<double>(hits) > 0.75 * static_cast<double>(asked));  // LRU: 0.54
    }

    TEST_CASE("of two that are asked for alike the small one is kept") {
        cache in{500'000};
        std::mt19937_64 random{4};
        std::uint64_t small = 0, large = 0;
        for (std::uint64_t i = 0; i < 200'000; ++i) {
            const auto object = random() % 200;
            const bool is_large = object % 2 == 0;
            const bool hit = in.ask(object, is_large ? 20'000 : 1'000);
            (is_large ? large : small) += hit && i >= 100'000 ? 1 : 0;
        }
        CHECK(small > 45'000);
        CHECK(large < 25'000);
    }
}
