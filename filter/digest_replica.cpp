// See digest_replica.hpp.

#define XXH_INLINE_ALL
#include "filter/digest_replica.hpp"

#include "filter/bit_words.hpp"
#include "filter/gap_code.hpp"
#include "filter/key_places.hpp"
#include "filter/little_endian.hpp"
#include "filter/news_bound.hpp"
#include "filter/place_sum.hpp"

#include <atomic>

namespace reprise::filter {

std::uint64_t digest_replica::sum() {
    if (!summed_) {
        sum_ = place_sum(now_.words());
        summed_ = true;
    }
    return sum_;
}

bool digest_replica::is_on(std::uint64_t place) const noexcept {
    return (now_.words_[place / 64] & bit_at(place)) != 0;
}

// Written by one thread; others read whole words at any time.
void digest_replica::turn(std::uint64_t place) noexcept {
    auto& word = now_.words_[place / 64];
    const auto next = word ^ bit_at(place);
    std::atomic_ref<std::uint64_t>{word}.store(next, std::memory_order_relaxed);
    const bool on = (next & bit_at(place)) != 0;
    now_.bits_on_ += on ? 1 : std::uint64_t{0} - 1;
    sum_ = turned(sum_, place, on);
}

boost::system::error_code digest_replica::turn_all(std::span<const std::byte> body,
                                                   const digest_head& head,
                                                   const key_by_name& key_of,
                                                   std::vector<std::uint64_t>& turned) {
    const auto flip = [&](std::uint64_t place) {
        turned.push_back(place);  // first: it may need memory, and what turned must be known
        turn(place);
    };
    auto most = most_news_places(head.shape.bits);
    if (head.encoding == digest_encoding::names) {
        const auto count = get_little_endian<std::uint64_t>(body.data());
        body = body.subspan(8);
        if (count > body.size() / 8) {
            return digest_errc::bad_body;
        }
        if (count > most / head.shape.probes) {
            return digest_errc::over_limit;
        }
        most -= count * head.shape.probes;
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto name = get_little_endian<std::uint64_t>(body.data());
            body = body.subspan(8);
            for_each_place(now_.shape(), key_of(name), [&](std::uint64_t place) {
                if (!is_on(place)) {
                    flip(place);
                }
            });
        }
    }
    // All are read before the first is turned, so that the waits for their words overlap.
    if (head.listed > most) {
        return digest_errc::over_limit;
    }
    const auto first = turned.size();
    turned.reserve(first + head.listed);  // so that no place is among them that did not turn
    gap_reader in{body, head.divisor};
    std::uint64_t expected = 0;
    bool is_good = true;
    for (std::uint64_t i = 0; i < head.listed && is_good; ++i) {
        const auto gap = expected == head.shape.bits ? std::nullopt
                                                     : in.next(head.shape.bits - 1 - expected);
        is_good = gap.has_value();
        if (is_good) {
            expected += *gap + 1;
            turned.push_back(expected - 1);
        }
    }
    if (!is_good || !in.is_at_end()) {
        turned.resize(first);
        return digest_errc::bad_body;
    }
    constexpr std::size_t ahead = 16;
    for (auto at = first; at < turned.size(); ++at) {
        if (at + ahead < turned.size()) {
            __builtin_prefetch(&now_.words_[turned[at + ahead] / 64], 1);
        }
        turn(turned[at]);
    }
    return {};
}

boost::system::result<std::vector<std::uint64_t>> digest_replica::apply(
    std::span<const std::byte> news,
    const key_by_name& key_of,
    const digest_limits& limits,
    hold held) {
    const auto head = read_digest_head(news);
    if (head.has_error()) {
        return head.error();
    }
    if (head->form != digest_form::news) {
        return head->form == digest_form::whole ? digest_errc::is_whole : digest_errc::is_delta;
    }
    const auto& stamp = now_.stamp();
    if (head->stamp.seed != stamp.seed) {
        return digest_errc::other_seed;
    }
    const digest_generation from{.epoch = head->stamp.generation.epoch,
                                 .counter = head->base_counter};
    if (head->shape != now_.shape() || from != stamp.generation || head->base_checksum != sum()) {
        return digest_errc::wrong_base;
    }
    if (const auto refusal = judge_digest(news, *head, limits)) {
        return refusal;
    }
    if (!held) {
        held = hold{guard_};
    }
    settled_ = false;
    std::vector<std::uint64_t> turned;
    const auto undo = [&] {
        for (const auto place : turned) {
            turn(place);
        }
    };
    boost::system::error_code error;
    try {
        error = turn_all(news.subspan(digest_header_bytes), *head, key_of, turned);
    } catch (...) {
        undo();
        throw;
    }
    if (!error && sum_ != head->checksum) {
        error = digest_errc::corrupt;
    }
    const auto rate = rate_of_fill(now_.shape(), now_.fill());
    if (!error && !(rate <= limits.false_positive_rate)) {
        error = digest_errc::saturated;
    }
    if (error) {
        undo();
        return error;
    }
    now_.rate_ = rate;
    now_.stamp_ = head->stamp;
    return turned;
}

const digest& digest_replica::settled() {
    if (!settled_) {
        const std::scoped_lock lock{guard_};
        now_.settle();
        settled_ = true;
    }
    return now_;
}

}  // namespace reprise::filter
