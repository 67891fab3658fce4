#include "proxy/peer/told_bits.hpp"

#include "filter/bit_words.hpp"
#include "filter/news_bound.hpp"
#include "filter/place_sum.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace reprise::proxy::peer {

namespace {

// Places and names; a key is eight places and a name in what was seen. A filter that is still small must
// do with what a busy second brings, some thousands of keys, as far as news may tell that of it: a step
// that does not fit is told as the whole, to everybody, and a delta is made beside it.
std::size_t most_in_journal(std::uint64_t bits) noexcept {
    const auto of_a_second = std::min<std::uint64_t>(filter::most_news_places(bits), 1 << 16);
    return static_cast<std::size_t>(std::max({bits / 64, std::uint64_t{1} << 14, of_a_second}));
}

}  // namespace

told_bits::told_bits(filter::seed_id seed, std::function<std::uint64_t()> random, news_plan news)
    : seed_{seed},
      random_{std::move(random)},
      epoch_{random_()} {
    if (news.every.count() > 0) {
        teller_.emplace(std::move(news));
    }
}

filter::digest_stamp told_bits::stamp() const {
    return {.seed = seed_, .generation = {.epoch = epoch_, .counter = counter_}, .keys = keys_};
}

void told_bits::listen(steady_time steady) {
    if (teller_) {
        teller_->listen(steady);
    }
}

void told_bits::begin_anew(const filter::digest_shape& shape,
                           std::span<const std::uint64_t> words) {
    filter::line_words next(words.begin(), words.end());
    const auto epoch = counter_ == 0 ? epoch_ : random_();
    // Nothing throws from here on.
    words_ = std::move(next);
    shape_ = shape;
    epoch_ = epoch;
    counter_ = 0;
    journal_.begin(0, filter::place_sum(words_), most_in_journal(shape.bits));
}

bool told_bits::turn(std::uint64_t place, bool is_on) noexcept {
    auto& word = words_[place / 64];
    const bool was = (word & filter::bit_at(place)) != 0;
    if (was == is_on) {
        return false;
    }
    word ^= filter::bit_at(place);
    journal_.turned(place, is_on);
    return true;
}

// Whatever fails behind it: what was closed is a generation, and is put on the shelf.
bool told_bits::end_step(steady_time steady) {
    if (!journal_.is_open() || !journal_.close(counter_ + 1)) {
        return false;
    }
    ++counter_;
    if (teller_) {
        teller_->stepped(steady);
    }
    return true;
}

// A new size has a first generation when there is the whole of it: whoever follows has nothing else to begin from.
void told_bits::publish(steady_time steady, wall_time now) {
    tried_ = steady;
    const bool is_first = counter_ == 0;
    if (!is_first) {
        (void)end_step(steady);
    }
    auto as = stamp();
    as.generation.counter = is_first ? 1 : counter_;
    digests_.publish(filter::digest{shape_, words_, as}, now);
    // Nothing throws from here on.
    owes_ = false;
    if (is_first) {
        counter_ = 1;
        journal_.begin(1);
    }
    if (teller_) {
        if (is_first) {
            teller_->stepped(steady);
        }
        teller_->whole_is_there();
    }
}

steady_time told_bits::next_whole() const noexcept {
    return tried_ ? *tried_ + publish_gap(shape_.bits) : steady_time{};
}

steady_time told_bits::due_at() const noexcept {
    if (!teller_ || !any()) {
        return steady_time::max();
    }
    return counter_ == 0 ? next_whole() : teller_->due_at(journal_);
}

// Of a size of which nothing was told yet there is none; who waits will need the whole.
void told_bits::tell_news() {
    if (!teller_) {
        return;
    }
    if (counter_ == 0) {
        teller_->forget_bases();
    } else {
        teller_->tell(journal_, shape_, stamp(), words_);
    }
}

void told_bits::tell(bool publishes, steady_time steady, wall_time now, bool rides) {
    const auto newest = digests_.now();
    const bool is_whole_of_now = newest && !journal_.is_open() &&
                                 newest->bits->stamp().generation == stamp().generation;
    const bool is_new = counter_ == 0;  // of this size
    const bool may_try = steady >= next_whole();
    const bool is_wanted = is_new || (teller_ && teller_->wants_whole() && !is_whole_of_now);
    const bool is_due = (publishes || (owes_ && may_try)) && !is_whole_of_now &&
                        (!teller_ || teller_->has_plain_readers(steady));
    if (is_due || (is_wanted && may_try)) {
        try {
            publish(steady, now);
        } catch (const std::bad_alloc&) {
            owes_ = owes_ || is_due;
            tell_news();  // which needs a few kilobytes
            throw;
        }
    } else if (teller_ && !is_new && (rides || teller_->is_due(journal_, steady))) {
        (void)end_step(steady);
    }
    tell_news();
}

std::uint64_t told_bits::bytes() const {
    return words_.capacity() * 8 + journal_.bytes() + digests_.bytes();
}

}  // namespace reprise::proxy::peer
