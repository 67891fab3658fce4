#include "proxy/peer/members_source.hpp"

#include "filter/estimators.hpp"

#include <algorithm>
#include <bit>

namespace reprise::proxy::peer {

namespace {

// Nobody counts them: of a key that several hold one would have to know.
std::uint64_t keys_in(const told_bits& bits) {
    const auto& shape = bits.shape();
    std::uint64_t on = 0;
    for (const auto word : bits.words()) {
        on += static_cast<unsigned>(std::popcount(word));
    }
    const auto keys = filter::estimate_keys({shape.bits, shape.probes}, on);
    return static_cast<std::uint64_t>(keys.keys);
}

}  // namespace

members_source::members_source(filter::seed_id seed,
                               std::chrono::seconds publish_after,
                               std::function<std::uint64_t()> random,
                               news_plan news)
    : publish_after_{publish_after},
      stir_{news.stir},
      told_{seed, std::move(random), std::move(news)} {}

bool members_source::put(unsigned slot, const filter::digest& its) {
    bool is_member = false;
    {
        const std::scoped_lock lock{guard_};
        std::erase(strangers_, slot);
        if (!union_.put(slot, its)) {
            strangers_.push_back(slot);
        }
        is_member = union_.is_in(slot);
    }
    stir_();
    return is_member;
}

bool members_source::flip(unsigned slot,
                          const filter::digest& its,
                          std::span<const std::uint64_t> places) {
    bool is_known = false, is_member = false;
    {
        const std::scoped_lock lock{guard_};
        const bool is_stranger = std::find(strangers_.begin(), strangers_.end(), slot) !=
                                 strangers_.end();
        if (is_stranger && !union_.fits(its)) {
            return false;
        }
        is_known = !is_stranger && union_.flip(slot, places);
        is_member = union_.is_in(slot);
    }
    if (!is_known) {
        return put(slot, its);
    }
    if (is_member) {
        stir_();
    }
    return is_member;
}

void members_source::remove(unsigned slot) {
    {
        const std::scoped_lock lock{guard_};
        std::erase(strangers_, slot);
        union_.remove(slot);
    }
    stir_();
}

// What has changed, bit by bit; of another size, or where too much has, all of it.
void members_source::take_over() {
    const std::scoped_lock lock{guard_};
    const auto& shape = union_.shape();
    if (!shape) {
        return;
    }
    const auto words = union_.words();
    if (!told_.any() || *shape != told_.shape()) {
        told_.begin_anew(*shape, words);
        (void)union_.take_changes();
    } else {
        const auto changed = union_.take_changes();
        for (const auto& one : changed.turned) {
            told_.turn(one.place, one.is_on);
        }
        for (std::size_t i = 0; changed.all && i < words.size(); ++i) {
            for (auto left = told_.words()[i] ^ words[i]; left != 0; left &= left - 1) {
                const auto bit = static_cast<unsigned>(std::countr_zero(left));
                told_.turn(i * 64 + bit, (words[i] >> bit & 1) != 0);
            }
        }
    }
}

void members_source::tick(steady_time steady, wall_time now) {
    told_.listen(steady);
    take_over();
    if (!told_.any()) {
        return;
    }
    const bool publishes = !published_ || steady - *published_ >= publish_after_;
    if (publishes) {
        published_ = steady;
        told_.count(keys_in(told_));
    }
    told_.tell(publishes, steady, now);
    told_bytes_.store(told_.bytes(), std::memory_order_relaxed);
}

members_figures members_source::figures() const {
    members_figures out;
    const auto newest = told_.digests().now();
    if (newest) {
        out.bits_on = newest->bits->bits_on();
        out.false_positive_rate = newest->bits->false_positive_rate();
    }
    const std::scoped_lock lock{guard_};
    out.members = union_.members();
    out.left_out = union_.left_out() + strangers_.size();
    out.bits = union_.shape() ? union_.shape()->bits : 0;
    out.bytes = union_.bytes() + told_bytes_.load(std::memory_order_relaxed);
    return out;
}

}  // namespace reprise::proxy::peer
