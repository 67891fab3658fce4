#include "proxy/net/deadlines.hpp"
#include "tests/support/must.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

// Deadlines in a wheel against a list of all of them, of which each is looked at at each tick.

namespace reprise::proxy::net::test::of_deadlines {

namespace {

using namespace std::chrono_literals;
using wait = std::chrono::steady_clock::duration;

struct model {
    bool there = false;
    bool armed = false;
    bool expired = false;
    steady_time when{};
};

class trial {
public:
    explicit trial(std::uint64_t seed) : random_{seed}, seed_{seed} {}

    void play(unsigned steps) {
        for (unsigned i = 0; i < steps; ++i) {
            CAPTURE(seed_);
            CAPTURE(i);
            step();
            const auto armed = static_cast<std::size_t>(std::count_if(
                models_.begin(), models_.end(), [](const model& one) { return one.armed; }));
            MUST(all_.armed() == armed);
        }
        const auto armed = all_.armed();
        acted_.clear();
        ending_ = true;
        all_.stop();
        CHECK(acted_.size() == armed);
        CHECK(all_.armed() == 0);
    }

private:
    static constexpr std::size_t count = 60;

    std::size_t below(std::size_t bound) { return random_() % bound; }
    // Mostly seconds, as connections have them; some that are past, some that the wheel can't hold.
    steady_time some_time() {
        switch (below(8)) {
        case 0: return now_ - 1ms * static_cast<int>(below(2'000));
        case 1: return now_ + 1h + 1s * static_cast<int>(below(3'000));
        case 2: return steady_time::max();
        case 3: return now_ + 1ms * static_cast<int>(below(300));
        default: return now_ + 1ms * static_cast<int>(below(120'000));
        }
    }
    wait some_wait() {
        switch (below(10)) {
        case 0: return 1s * static_cast<int>(below(300));  // the loop was held
        case 1: return -1ms * static_cast<int>(below(500));
        case 2: return 0s;
        default: return 100ms + 1ms * static_cast<int>(below(20));
        }
    }
    void arm(std::size_t which, steady_time when) {
        deadlines_[which]->expire_at(when);
        models_[which].armed = true;
        models_[which].expired = false;
        models_[which].when = when;
    }
    void make(std::size_t which) {
        models_[which] = {.there = true};
        deadlines_[which] = std::make_unique<deadline>(all_, [this, which] {
            acted_.push_back(which);
            models_[which].armed = false;
            models_[which].expired = true;
            if (!ending_ && below(4) == 0) {
                arm(which, now_ + 1ms * static_cast<int>(below(100'000)) - 1s);
            }
        });
    }
    void step() {
        const auto which = below(count);
        const auto there = models_[which].there;
        switch (below(6)) {
        case 0:
            if (there) {
                deadlines_[which]->clear();
                models_[which].armed = false;
            }
            break;
        case 1:
            if (there && below(5) == 0) {
                deadlines_[which].reset();
                models_[which] = {};
            }
            break;
        case 2: tick(); break;
        default:
            if (!there) {
                make(which);
            }
            arm(which, some_time());
            break;
        }
        if (models_[which].there) {
            MUST(deadlines_[which]->armed() == models_[which].armed);
            MUST(deadlines_[which]->expired() == models_[which].expired);
        }
    }
    void tick() {
        now_ += some_wait();
        std::vector<std::size_t> due;
        for (std::size_t i = 0; i < count; ++i) {
            if (models_[i].armed && models_[i].when <= now_) {
                due.push_back(i);
            }
        }
        acted_.clear();
        all_.tick(now_);
        std::sort(acted_.begin(), acted_.end());
        MUST(acted_ == due);
    }

    std::mt19937_64 random_;
    std::uint64_t seed_;
    asio::io_context io_;
    deadlines all_{io_};
    steady_time now_ = steady_now();
    bool ending_ = false;
    std::vector<model> models_{count};
    std::vector<std::size_t> acted_;
    std::vector<std::unique_ptr<deadline>> deadlines_{count};
};

}  // namespace

TEST_SUITE_BEGIN("net/deadlines");

TEST_CASE(
    "at each tick those act whose time has come, whatever was armed, moved and cleared before") {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        trial{seed}.play(4'000);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::net::test::of_deadlines
