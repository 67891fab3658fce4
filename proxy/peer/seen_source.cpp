#include "proxy/peer/seen_source.hpp"

#include "filter/key_places.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace reprise::proxy::peer {

seen_source::seen_source(filter::seed_id seed,
                         std::chrono::seconds publish_after,
                         snapshot take,
                         std::function<std::uint64_t()> random,
                         news_plan news)
    : publish_after_{publish_after},
      take_{std::move(take)},
      seed_{seed},
      key_of_{news.key_of},
      stir_{news.stir},
      told_{seed, std::move(random), std::move(news)} {}

void seen_source::noted(url_name name) noexcept {
    if (told_.news() == nullptr) {
        return;
    }
    bool is_first = false;
    {
        const std::scoped_lock lock{inbox_guard_};
        is_first = inbox_.empty();
        try {
            if (inbox_.size() < most_noted) {
                inbox_.push_back(name);
            }
        } catch (const std::bad_alloc&) {
            return;  // it is told when the filter is looked at
        }
    }
    if (is_first) {
        stir_();
    }
}

void seen_source::take_noted() {
    in_hand_.clear();
    {
        const std::scoped_lock lock{inbox_guard_};
        std::swap(in_hand_, inbox_);
    }
    if (!told_.any()) {
        return;
    }
    // A key's places are in a line that nobody has looked at for long: those of the next sixty-four are
    // on their way before the first is waited for.
    std::array<filter::key_hash, 64> keys;
    for (std::span rest{in_hand_}; !rest.empty();) {
        const auto some = rest.first(std::min(rest.size(), keys.size()));
        for (std::size_t i = 0; i < some.size(); ++i) {
            keys[i] = key_of_(some[i]);
            filter::for_each_place(
                told_.shape(), keys[i], [this](std::uint64_t place) { told_.prefetch(place); });
        }
        for (std::size_t i = 0; i < some.size(); ++i) {
            std::size_t turned = 0;
            filter::for_each_place(told_.shape(), keys[i], [&](std::uint64_t place) {
                turned += told_.turn(place, true) ? 1 : 0;
            });
            if (turned != 0) {
                told_.came(some[i], turned);
                told_.count(told_.keys() + 1);
            }
        }
        rest = rest.subspan(some.size());
    }
}

// What the filter forgot, and what nobody could note.
void seen_source::look_at_filter() {
    const auto next = take_({.seed = seed_, .generation = {}});
    if (!next) {
        return;
    }
    told_.count(next->stamp().keys);
    const auto now = next->words();
    if (!told_.any() || next->shape() != told_.shape()) {
        told_.begin_anew(next->shape(), now);
        return;
    }
    const auto before = told_.words();
    for (std::size_t i = 0; i < now.size(); ++i) {
        for (auto left = before[i] ^ now[i]; left != 0; left &= left - 1) {
            const auto bit = static_cast<unsigned>(std::countr_zero(left));
            told_.turn(i * 64 + bit, (now[i] >> bit & 1) != 0);
        }
    }
}

void seen_source::tick(steady_time steady, wall_time now, bool rides) {
    told_.listen(steady);
    take_noted();
    const bool looks = !looked_ || steady - *looked_ >= publish_after_;
    if (looks) {
        looked_ = steady;
        look_at_filter();
    }
    if (told_.any()) {
        told_.tell(looks, steady, now, rides);
    }
}

bool seen_elsewhere::put(unsigned sibling, std::shared_ptr<const filter::digest> seen) {
    const std::scoped_lock lock{guard_};
    std::vector<std::shared_ptr<const filter::digest>> there;
    std::uint64_t others = 0;
    for (unsigned slot = 0; slot < most_slots; ++slot) {
        if (slot != sibling && by_slot_[slot]) {
            others += by_slot_[slot]->bytes();
            there.push_back(by_slot_[slot]);
        }
    }
    const bool has_room = !seen || (others <= most_ && seen->bytes() <= most_ - others);
    if (seen && has_room) {
        there.push_back(seen);
    }
    auto set = std::make_shared<const filter::digest_set>(std::move(there));
    // Nothing throws from here on.
    by_slot_[sibling] = has_room ? std::move(seen) : nullptr;
    set_ = std::move(set);
    version_.fetch_add(1, std::memory_order_release);
    return has_room;
}

bool seen_elsewhere::reader::may_contain(filter::key_hash key) {
    if (const auto version = of_.version_.load(std::memory_order_acquire); version != version_) {
        const std::scoped_lock lock{of_.guard_};
        held_ = of_.set_;
        version_ = of_.version_.load(std::memory_order_relaxed);
    }
    const bool is_told = held_ != nullptr && held_->may_contain(key);
    told_.add(is_told ? 1 : 0);
    return is_told;
}

}  // namespace reprise::proxy::peer
