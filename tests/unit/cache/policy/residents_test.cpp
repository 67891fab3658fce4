#include "proxy/cache/policy/residents.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

using namespace reprise;
using namespace reprise::proxy::cache;
using filter::test::nth_key;

namespace {

/// Says what it is told.
class listening_policy final : public eviction_policy {
public:
    void set_capacity(std::uint64_t bytes) override { capacity = bytes; }
    void missed(const filter::key_hash&) noexcept override { ++misses; }
    void inserted(evictable& entry) override {
        if (fails) {
            throw std::bad_alloc{};
        }
        in.push_back(&entry);
        misses_at_insertion = misses;
    }
    void used(evictable&) noexcept override { ++uses; }
    void removed(evictable& entry) noexcept override { std::erase(in, &entry); }
    [[nodiscard]] evictable* evict() noexcept override {
        if (in.empty()) {
            return nullptr;
        }
        auto* first = in.front();
        in.erase(in.begin());
        return first;
    }

    std::vector<evictable*> in;
    std::uint64_t capacity = 0;
    unsigned misses = 0, uses = 0, misses_at_insertion = 0;
    bool fails = false;
};

struct tier {
    explicit tier(double probation, std::uint64_t capacity = 1'000)
        : policy{new listening_policy},
          held{std::unique_ptr<eviction_policy>{policy}, capacity, probation} {}

    evictable& make(std::uint64_t charge = 10) {
        auto& one = *entries.emplace_back(std::make_unique<evictable>());
        one.key = nth_key(1, entries.size());
        one.charge = charge;
        return one;
    }

    std::vector<std::unique_ptr<evictable>> entries;
    listening_policy* policy;
    residents held;
};

}  // namespace

TEST_SUITE("cache/policy/residents") {
    TEST_CASE("what is admitted goes to the policy, what waits does not") {
        tier t{0.1};
        auto& admitted = t.make();
        auto& waiting = t.make();
        t.held.enter(admitted, standing::admitted);
        t.held.enter(waiting, standing::probation);
        CHECK(t.policy->in == std::vector{&admitted});
        CHECK(residents::standing_of(admitted) == standing::admitted);
        CHECK(residents::standing_of(waiting) == standing::probation);
        CHECK(t.held.admitted_bytes() == 10);
        CHECK(t.held.probation_bytes() == 10);
        CHECK(t.held.count() == 2);
    }

    TEST_CASE("the policy plans for what probation leaves") {
        tier t{0.1};
        CHECK(t.policy->capacity == 900);
        t.held.set_probation(0.5);
        CHECK(t.policy->capacity == 500);
        t.held.set_capacity(10'000);
        CHECK(t.policy->capacity == 5'000);
    }

    TEST_CASE("a use admits what waits, and the policy sees a miss and then a newcomer") {
        tier t{0.1};
        auto& waiting = t.make();
        t.held.missed(waiting.key);
        t.held.enter(waiting, standing::probation);
        CHECK(t.held.use(waiting));
        CHECK(t.policy->in == std::vector{&waiting});
        CHECK(t.policy->misses_at_insertion == 2);
        CHECK(t.policy->uses == 0);
        CHECK(t.held.probation_bytes() == 0);
        CHECK(t.held.admitted_bytes() == 10);
        CHECK_FALSE(t.held.use(waiting));
        CHECK(t.policy->uses == 1);
    }

    TEST_CASE("a rule that wants several requests admits at the last of them") {
        tier t{0.1};
        auto& waiting = t.make();
        t.held.enter(waiting, standing::probation, 3);
        CHECK_FALSE(t.held.use(waiting));
        CHECK_FALSE(t.held.use(waiting));
        CHECK(t.held.use(waiting));
    }

    TEST_CASE("what waits leaves first while it takes more than its share, the oldest first") {
        tier t{0.02};
        auto& admitted = t.make();
        t.held.enter(admitted, standing::admitted);
        std::vector<evictable*> waiting;
        for (int i = 0; i < 4; ++i) {
            waiting.push_back(&t.make());
            t.held.enter(*waiting.back(), standing::probation);
        }
        CHECK(t.held.evict() == waiting[0]);
        CHECK(t.held.evict() == waiting[1]);
        CHECK(t.held.evict() == &admitted);  // 20 of 1,000 bytes wait: within the share
        CHECK(t.held.evict() == waiting[2]);
        CHECK(t.held.evict() == waiting[3]);
        CHECK(t.held.evict() == nullptr);
        CHECK(t.held.count() == 0);
        CHECK(t.held.bytes() == 0);
    }

    TEST_CASE("an owner of several says itself whether those that wait leave first") {
        tier t{0.5};
        auto& admitted = t.make();
        auto& waiting = t.make();
        t.held.enter(admitted, standing::admitted);
        t.held.enter(waiting, standing::probation);
        CHECK(t.held.evict(true) == &waiting);
        CHECK(t.held.evict(true) == &admitted);
        CHECK(t.held.evict(false) == nullptr);
    }

    TEST_CASE("without a share one may wait all the same, and is the first to leave") {
        tier t{0};
        auto& admitted = t.make();
        auto& waiting = t.make();
        t.held.enter(admitted, standing::admitted);
        t.held.enter(waiting, standing::probation);
        CHECK(t.held.evict() == &waiting);
    }

    TEST_CASE("what leaves by itself leaves its own line") {
        tier t{0.1};
        auto& admitted = t.make();
        t.held.enter(admitted, standing::admitted);
        std::vector<evictable*> waiting;
        for (int i = 0; i < 3; ++i) {
            waiting.push_back(&t.make());
            t.held.enter(*waiting.back(), standing::probation);
        }
        t.held.leave(*waiting[1]);
        t.held.leave(admitted);
        CHECK(t.policy->in.empty());
        CHECK(t.held.evict() == waiting[0]);
        CHECK(t.held.evict() == waiting[2]);
        CHECK(t.held.bytes() == 0);
    }

    TEST_CASE("without memory for the policy's own what waits goes on waiting") {
        tier t{0.1};
        auto& waiting = t.make();
        t.held.enter(waiting, standing::probation);
        t.policy->fails = true;
        CHECK_FALSE(t.held.use(waiting));
        CHECK(residents::standing_of(waiting) == standing::probation);
        CHECK(t.held.probation_bytes() == 10);
        t.policy->fails = false;
        CHECK(t.held.use(waiting));
        CHECK(t.held.probation_bytes() == 0);
    }

    TEST_CASE(
        "with all of the capacity what waits is in the policy's order, and is admitted there") {
        tier t{1};
        CHECK(t.policy->capacity == 1'000);
        auto& waiting = t.make();
        auto& admitted = t.make();
        auto& other = t.make();
        t.held.enter(waiting, standing::probation, 2);
        t.held.enter(admitted, standing::admitted);
        t.held.enter(other, standing::probation);
        CHECK(t.policy->in == std::vector{&waiting, &admitted, &other});
        CHECK(residents::standing_of(waiting) == standing::probation);
        CHECK(t.held.probation_bytes() == 20);
        CHECK_FALSE(t.held.use(waiting));
        CHECK(t.held.use(waiting));
        CHECK(t.policy->uses == 2);
        CHECK(t.policy->misses == 0);
        CHECK(t.held.probation_bytes() == 10);
        CHECK(t.held.admitted_bytes() == 20);
        CHECK(t.held.evict() == &waiting);
        t.held.leave(other);
        CHECK(t.held.probation_bytes() == 0);
        CHECK(t.held.evict() == &admitted);
        CHECK(t.held.evict() == nullptr);
    }

    TEST_CASE("what waits leaves right when the share has changed between line and order") {
        tier t{1};
        auto& in_order = t.make();
        t.held.enter(in_order, standing::probation);
        t.held.set_probation(0.001);
        auto& in_line = t.make();
        t.held.enter(in_line, standing::probation);
        CHECK(t.policy->in == std::vector{&in_order});
        CHECK(t.held.evict() == &in_line);
        CHECK(t.held.evict() == &in_order);
        CHECK(t.held.bytes() == 0);
        auto& last = t.make();
        t.held.enter(last, standing::probation);
        t.held.set_probation(1);
        CHECK(t.held.use(last));
        CHECK(t.policy->in == std::vector{&last});
        t.held.leave(last);
        CHECK(t.held.bytes() == 0);
    }

    TEST_CASE("what waits in the policy's order takes nothing of the share of a line that begins") {
        tier t{1, 100};
        for (int i = 0; i < 9; ++i) {
            t.held.enter(t.make(), standing::probation);
        }
        t.held.set_probation(0.2);
        auto& in_line = t.make();
        t.held.enter(in_line, standing::probation);
        // 90 bytes wait in the order, 10 in a line of 20: what came first in the order leaves.
        CHECK(t.held.line_bytes() == 10);
        CHECK(t.held.probation_bytes() == 100);
        CHECK(t.held.evict() == t.entries.front().get());
        for (int i = 0; i < 2; ++i) {
            t.held.enter(t.make(), standing::probation);
        }
        CHECK(t.held.evict() == &in_line);
        CHECK(t.held.line_bytes() == 20);
    }

    TEST_CASE("what is left of a line that is no more leaves before all else") {
        tier at{0.5};
        auto& waits = at.make();
        at.held.enter(waits, standing::probation);
        auto& admitted = at.make();
        at.held.enter(admitted, standing::admitted);
        at.held.set_probation(1);
        auto& next = at.make();
        at.held.enter(next, standing::probation);
        CHECK(at.held.evict() == &waits);
        CHECK(at.held.evict() == &admitted);
        CHECK(at.held.evict() == &next);
    }

    TEST_CASE("under every policy the sums are exact, and everything that entered leaves once") {
        for (const auto& [name, kind] : config::eviction_names) {
            CAPTURE(to_string(kind));
            std::mt19937_64 random{7};
            residents held{kind, 10'000, 0.1};
            std::vector<std::unique_ptr<evictable>> all;
            std::vector<evictable*> in;
            std::uint64_t bytes = 0;
            for (std::uint64_t step = 0; step < 5'000; ++step) {
                const auto which = random() % 8;
                if (which < 3 || in.empty()) {
                    auto& one = *all.emplace_back(std::make_unique<evictable>());
                    one.key = nth_key(1, random() % 500);
                    one.charge = 1 + random() % 300;
                    held.missed(one.key);
                    held.set_probation(random() % 50 == 0 ? 1 : 0.1);
                    held.enter(one, random() % 2 == 0 ? standing::admitted : standing::probation);
                    in.push_back(&one);
                    bytes += one.charge;
                } else if (which < 7) {
                    (void)held.use(*in[random() % in.size()]);
                } else {
                    const auto at = in.begin() + static_cast<std::ptrdiff_t>(random() % in.size());
                    bytes -= (*at)->charge;
                    held.leave(**at);
                    in.erase(at);
                }
                while (held.bytes() > 10'000) {
                    auto* gone = held.evict();
                    REQUIRE(gone != nullptr);
                    REQUIRE(std::erase(in, gone) == 1);
                    bytes -= gone->charge;
                }
                REQUIRE(held.bytes() == bytes);
                REQUIRE(held.count() == in.size());
            }
            while (auto* gone = held.evict()) {
                REQUIRE(std::erase(in, gone) == 1);
            }
            CHECK(in.empty());
            CHECK(held.bytes() == 0);
        }
    }
}
