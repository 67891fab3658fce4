#include "proxy/peer/seen_source.hpp"

#include "filter/bit_words.hpp"
#include "filter/key_places.hpp"
#include "filter/place_sum.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

namespace reprise::proxy::peer {

seen_source::seen_source(filter::seed_id seed,
                         std::chrono::seconds publish_after,
                         snapshot take,
                         std::function<std::uint64_t()> random,
                         seen_news news)
    : seed_{seed},
      publish_after_{publish_after},
      take_{std::move(take)},
      random_{std::move(random)},
      epoch_{random_()},
      key_of_{news.key_of},
      stir_{news.stir} {
    if (news.every.count() > 0) {
        teller_.emplace(news.every, news.key_of, std::move(news.stir), std::move(news.told));
    }
}

void seen_source::noted(url_name name) noexcept {
    if (!teller_) {
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

filter::digest_stamp seen_source::stamp() const {
    return {.seed = seed_, .generation = {.epoch = epoch_, .counter = counter_}, .keys = keys_};
}

void seen_source::take_noted() {
    in_hand_.clear();
    {
        const std::scoped_lock lock{inbox_guard_};
        std::swap(in_hand_, inbox_);
    }
    if (!journal_) {
        return;
    }
    for (const auto name : in_hand_) {
        bool is_new = false;
        filter::for_each_place(shape_, key_of_(name), [&](std::uint64_t place) {
            auto& word = words_[place / 64];
            if ((word & filter::bit_at(place)) == 0) {
                word |= filter::bit_at(place);
                journal_->turned(place, true);
                is_new = true;
            }
        });
        if (is_new) {
            journal_->came(name);
            ++keys_;
        }
    }
}

// What the filter forgot, and what nobody could note.
void seen_source::look_at_filter() {
    const auto next = take_(stamp());
    if (!next) {
        return;
    }
    keys_ = next->stamp().keys;
    const auto now = next->words();
    if (!journal_ || next->shape() != shape_) {
        // A key is eight places and a name.
        const auto most = std::max<std::uint64_t>(next->shape().bits / 64, 1 << 14);
        std::vector<std::uint64_t> words{now.begin(), now.end()};
        words_ = std::move(words);
        shape_ = next->shape();
        epoch_ = counter_ == 0 ? epoch_ : random_();
        counter_ = 0;
        journal_.emplace(static_cast<std::size_t>(most));
        journal_->begin(0, filter::place_sum(words_));
        return;
    }
    for (std::size_t i = 0; i < words_.size(); ++i) {
        for (auto left = words_[i] ^ now[i]; left != 0; left &= left - 1) {
            const auto place = i * 64 + static_cast<unsigned>(std::countr_zero(left));
            words_[i] ^= filter::bit_at(place);
            journal_->turned(place, (words_[i] & filter::bit_at(place)) != 0);
        }
    }
}

void seen_source::publish_whole(wall_time now) {
    if (counter_ == 0) {
        counter_ = 1;
        journal_->begin(1);
    } else if (journal_->is_open() && journal_->close(counter_ + 1)) {
        ++counter_;
    }
    digests_.publish(filter::digest{shape_, words_, stamp()}, now);
    teller_->whole_is_there();
}

void seen_source::tick(steady_time steady, wall_time now) {
    if (!teller_) {
        publish_plainly(steady, now);
        return;
    }
    teller_->listen(steady);
    take_noted();
    const bool looks = !any_ || steady - last_ >= publish_after_;
    if (looks) {
        last_ = steady;
        any_ = true;
        look_at_filter();
    }
    if (!journal_) {
        return;
    }
    const auto newest = digests_.now();
    const bool is_whole_of_now = newest && !journal_->is_open() &&
                                 newest->bits->stamp().generation == stamp().generation;
    const bool is_wanted = teller_->wants_whole() && !is_whole_of_now;
    if (counter_ == 0 || is_wanted ||
        (looks && !is_whole_of_now && teller_->has_plain_readers(steady))) {
        publish_whole(now);
        teller_->stepped(steady);
    } else if (teller_->is_due(*journal_, steady) && journal_->close(counter_ + 1)) {
        ++counter_;
        teller_->stepped(steady);
    }
    teller_->tell(*journal_, shape_, stamp(), words_);
}

void seen_source::publish_plainly(steady_time steady, wall_time now) {
    if (any_ && steady - last_ < publish_after_) {
        return;
    }
    last_ = steady;
    any_ = true;
    auto next = take_({.seed = seed_, .generation = {.epoch = epoch_, .counter = counter_ + 1}});
    if (!next) {
        return;
    }
    if (counter_ != 0 && next->shape() == shape_ && next->checksum() == checksum_) {
        return;
    }
    if (counter_ != 0 && next->shape() != shape_) {
        epoch_ = random_();
        counter_ = 0;
        next = take_({.seed = seed_, .generation = {.epoch = epoch_, .counter = 1}});
        if (!next) {
            return;
        }
    }
    ++counter_;
    shape_ = next->shape();
    checksum_ = next->checksum();
    digests_.publish(std::move(*next), now);
}

void seen_elsewhere::put(unsigned sibling, std::shared_ptr<const filter::digest> seen) {
    const std::scoped_lock lock{guard_};
    by_slot_[sibling] = std::move(seen);
    std::vector<std::shared_ptr<const filter::digest>> there;
    std::copy_if(by_slot_.begin(), by_slot_.end(), std::back_inserter(there), [](const auto& one) {
        return one != nullptr;
    });
    set_ = std::make_shared<const filter::digest_set>(std::move(there));
    version_.fetch_add(1, std::memory_order_release);
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
