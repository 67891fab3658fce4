#include "proxy/cache/policy/s3_fifo.hpp"
#include "tests/unit/cache/policy/workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <vector>

using namespace reprise::proxy::cache;
using namespace reprise::proxy::cache::test;

namespace {

class slow_s3_fifo final : public slow_model {
public:
    bool ask(const wish& wanted, std::vector<std::uint64_t>& left) override {
        if (uses_.contains(wanted.object)) {
            uses_[wanted.object] = std::min(3, uses_[wanted.object] + 1);
            return true;
        }
        if (wanted.bytes > policy_capacity) {
            return false;
        }
        uses_[wanted.object] = 0;
        (erase(ghosts_, wanted.object) ? main_ : small_).push_front(wanted);
        while (sum(small_) + sum(main_) > policy_capacity) {
            evict(left);
        }
        return false;
    }
    void remove(std::uint64_t object) override {
        erase(small_, object);
        erase(main_, object);
        uses_.erase(object);
    }

private:
    using fifo = std::deque<wish>;

    static std::uint64_t sum(const fifo& queue) {
        std::uint64_t bytes = 0;
        for (const auto& one : queue) {
            bytes += one.bytes;
        }
        return bytes;
    }
    static bool erase(fifo& queue, std::uint64_t object) {
        return std::erase_if(queue, [object](const wish& one) { return one.object == object; }) !=
               0;
    }
    void evict(std::vector<std::uint64_t>& left) {
        for (;;) {
            if (!small_.empty() && (sum(small_) > policy_capacity / 10 || main_.empty())) {
                const auto oldest = small_.back();
                small_.pop_back();
                if (uses_[oldest.object] >= 2) {
                    uses_[oldest.object] = 0;
                    main_.push_front(oldest);
                    continue;
                }
                uses_.erase(oldest.object);
                left.push_back(oldest.object);
                if (oldest.bytes > policy_capacity - policy_capacity / 10) {
                    return;
                }
                ghosts_.push_front(oldest);
                while (sum(ghosts_) > policy_capacity - policy_capacity / 10) {
                    ghosts_.pop_back();
                }
                return;
            }
            const auto oldest = main_.back();
            main_.pop_back();
            if (uses_[oldest.object] > 0) {
                --uses_[oldest.object];
                main_.push_front(oldest);
                continue;
            }
            uses_.erase(oldest.object);
            left.push_back(oldest.object);
            return;
        }
    }

    fifo small_, main_, ghosts_;
    std::map<std::uint64_t, int> uses_;
};

}  // namespace

TEST_SUITE_BEGIN("cache/policy/s3_fifo");

TEST_CASE("S3-FIFO does what the paper's three queues do") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        CAPTURE(seed);
        owner fast{std::make_unique<s3_fifo_policy>(policy_capacity), policy_capacity};
        slow_s3_fifo slow;
        CHECK_FALSE(first_difference(fast, slow, wishes(seed, 3'000, 400)).has_value());
    }
}

TEST_CASE("what comes back soon after it left the small queue goes to main") {
    owner cache{std::make_unique<s3_fifo_policy>(1'000), 1'000};
    for (std::uint64_t object = 1; object <= 11; ++object) {
        cache.ask({object, 100});
    }
    CHECK(cache.left == std::vector<std::uint64_t>{1});
    cache.ask({1, 100});  // its ghost is known: into main
    for (std::uint64_t object = 20; object < 40; ++object) {
        cache.ask({object, 100});
    }
    CHECK(cache.holds(1));
}

TEST_CASE("what is expected counts as small: a small one goes for it, not one of main") {
    for (const std::uint64_t expected : {0, 100}) {
        owner cache{std::make_unique<s3_fifo_policy>(1'000), 1'000};
        for (std::uint64_t object = 1; object <= 11; ++object) {
            cache.ask({object, 100});
        }
        cache.ask({1, 100});  // its ghost is known: into main
        for (std::uint64_t object = 20; object < 28; ++object) {
            cache.ask({object, 100});
        }
        cache.policy().set_capacity(10'000);  // so that small is within its share
        cache.policy().expect(8 * expected);
        CHECK((cache.evict() == 1) == (expected == 0));
    }
}

TEST_CASE("an entry that was removed leaves no ghost") {
    owner cache{std::make_unique<s3_fifo_policy>(1'000), 1'000};
    for (std::uint64_t object = 1; object <= 10; ++object) {
        cache.ask({object, 100});
    }
    cache.remove(1);
    cache.ask({1, 100});  // to small again, so it goes like the others
    for (std::uint64_t object = 20; object < 40; ++object) {
        cache.ask({object, 100});
    }
    CHECK_FALSE(cache.holds(1));
}

TEST_CASE("ghosts take memory that is counted") {
    s3_fifo_policy policy{1'000};
    const auto before = policy.overhead();
    owner cache{std::make_unique<s3_fifo_policy>(1'000), 1'000};
    for (std::uint64_t object = 1; object <= 100; ++object) {
        cache.ask({object, 100});
    }
    CHECK(cache.policy().overhead() > before);
}

TEST_CASE("one eviction passes over no more than so many that are in use, in either queue") {
    std::vector<evictable> entries(20 * most_passed);
    s3_fifo_policy policy{0};  // nothing is within small's share
    for (auto& entry : entries) {
        entry.charge = 1;
        policy.inserted(entry);
        policy.used(entry);
        policy.used(entry);
    }
    const auto in_use = [&entries] {
        return std::count_if(
            entries.begin(), entries.end(), [](const evictable& one) { return one.uses != 0; });
    };
    auto before = in_use();
    CHECK(policy.evict() == &entries[0]);  // main's oldest, as it has become
    CHECK(before - in_use() == most_passed);
    // And where all are in main.
    for (unsigned i = 1; in_use() != 0; ++i) {
        REQUIRE(i < 100);
        REQUIRE(policy.evict() == &entries[i]);
    }
    for (auto& entry : entries) {
        entry.uses = 1;
    }
    before = in_use();
    CHECK(policy.evict()->uses == 1);
    CHECK(before - in_use() == most_passed);
}

TEST_SUITE_END();
