#pragma once
// A filter's bits as siblings are told of them: generation after generation, whole and as news.
//
// Whoever owns the filter says which bits turned; they and the keys that came go into a journal
// (change_journal.hpp). A step of it is told as news (news_teller.hpp); a whole generation is made
// when somebody wants it, and at the owner's pace while somebody asks who does not follow by news.
// Bits of another size are another epoch, which begins with a whole.
//
// A wish waits, as does a new size, until publish_gap is over since the last whole: what turns may be for
// others to say (of a gateway's union it is each sibling's), and each step that no journal holds would be
// a whole for everybody. News goes on meanwhile; of a new size it begins with the whole, and what was
// told of the old one is there till then. A whole that there is no memory for waits as long for the next attempt: it is a
// copy of all bits.

#include "filter/digest.hpp"
#include "filter/line_words.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/peer/change_journal.hpp"
#include "proxy/peer/news_teller.hpp"
#include "proxy/peer/publication.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace reprise::proxy::peer {

/// Memory    the bits, an eighth of them for the journal, and what is published.
/// Threads   one, the keeper's; what news() and digests() have: any.
class told_bits {
public:
    told_bits(filter::seed_id seed, std::function<std::uint64_t()> random, news_plan news);

    /// First of all in a tick: takes what is wished for.
    void listen(steady_time steady);

    /// There are bits.
    [[nodiscard]] bool any() const noexcept { return shape_.bits != 0; }
    [[nodiscard]] const filter::digest_shape& shape() const noexcept { return shape_; }
    [[nodiscard]] std::span<const std::uint64_t> words() const noexcept { return words_; }

    /// Others in their place. @throws std::bad_alloc, or what `random` throws, and then nothing has changed
    void begin_anew(const filter::digest_shape& shape, std::span<const std::uint64_t> words);
    /// Begins to fetch the bit's word, and waits for nothing. @pre any()
    void prefetch(std::uint64_t place) const noexcept {
        __builtin_prefetch(&words_[place / 64], 1);
    }
    /// The bit at `place` is so now. False: it was.
    bool turn(std::uint64_t place, bool is_on) noexcept;
    /// A key came, and `its` places, the last that turned, turned for it.
    void came(url_name name, std::size_t its) noexcept { journal_.came(name, its); }
    /// How many keys they stand for, as is told.
    void count(std::uint64_t keys) noexcept { keys_ = keys; }
    [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }

    /// Last of all in a tick: tells what has turned. `publishes`: it is time for a whole generation,
    /// for those who do not follow by news, by a pace of the owner's. `rides`: a step of what is told along with this has
    /// just ended, so that whoever waits for both is sent an answer in any case. @pre any()
    /// @throws std::bad_alloc; the next call goes on. Where it was for a whole, news was told all the same.
    void tell(bool publishes, steady_time steady, wall_time now, bool rides = false);

    [[nodiscard]] news_shelf* news() noexcept { return teller_ ? &teller_->shelf() : nullptr; }
    /// From when on tell() would tell what came.
    [[nodiscard]] steady_time next_news() const noexcept {
        return teller_ ? teller_->next(urgency::ordinary) : steady_time{};
    }
    /// When tell() will have something to tell, but for a whole that is wished for; max: nothing.
    [[nodiscard]] steady_time due_at() const noexcept;
    [[nodiscard]] const publication& digests() const noexcept { return digests_; }
    [[nodiscard]] std::uint64_t bytes() const;

private:
    bool end_step(steady_time steady);
    void publish(steady_time steady, wall_time now);
    void tell_news();
    /// Before that a wish waits.
    [[nodiscard]] steady_time next_whole() const noexcept;
    [[nodiscard]] filter::digest_stamp stamp() const;

    filter::seed_id seed_;
    std::function<std::uint64_t()> random_;
    std::uint64_t epoch_, counter_ = 0;
    filter::digest_shape shape_{};
    filter::line_words words_;
    std::uint64_t keys_ = 0;
    change_journal journal_{0};
    std::optional<news_teller> teller_;
    std::optional<steady_time> tried_;  // to publish
    bool owes_ = false;  // a whole for those who follow by none, since there was no memory for it
    publication digests_;
};

}  // namespace reprise::proxy::peer
