#pragma once
// Closes the steps of a journal at their pace, and puts on the shelf what is asked for.

#include "filter/news_wire.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/peer/change_journal.hpp"
#include "proxy/peer/news_pace.hpp"
#include "proxy/peer/news_shelf.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace reprise::proxy::peer {

/// How news is told; none where `every` is 0.
struct news_plan {
    std::chrono::milliseconds every{0};
    unsigned most_saved = 1;  ///< as news_pace has it
    filter::key_by_name key_of{};
    std::function<void()> stir = [] {};  ///< as source_signals has them
    std::function<void()> told = [] {};
    std::function<std::size_t()> readers = [] { return std::size_t{0}; };
};

struct teller_figures {
    std::uint64_t steps = 0;     ///< generations told of as news
    std::uint64_t messages = 0;  ///< made of them, one for all who ask from the same
    std::uint64_t message_bytes = 0;
    std::uint64_t places = 0, names = 0;  ///< in them
    std::uint64_t journal_bytes = 0;
};

/// Threads   the keeper's; the shelf any. `told` is called on the keeper's when there is a new
///           generation, or a message or a whole that was wished for.
class news_teller {
public:
    /// @param plan  its `every`: from a step's first change to its end, at most
    explicit news_teller(news_plan plan)
        : pace_{plan.every, plan.most_saved},
          key_of_{std::move(plan.key_of)},
          told_{std::move(plan.told)},
          readers_{std::move(plan.readers)},
          shelf_{std::move(plan.stir)} {}

    [[nodiscard]] news_shelf& shelf() noexcept { return shelf_; }
    [[nodiscard]] const news_shelf& shelf() const noexcept { return shelf_; }

    /// Takes what is wished for. First of all in a tick.
    void listen(steady_time now);
    [[nodiscard]] bool wants_whole() const noexcept { return whole_; }
    void whole_is_there() noexcept {
        whole_is_news_ = std::exchange(whole_, false) || whole_is_news_;
    }
    /// Somebody lately asked who follows by whole digests and deltas.
    [[nodiscard]] bool has_plain_readers(steady_time now) const noexcept;

    /// Whether what is open in the journal is to be told now.
    [[nodiscard]] bool is_due(const change_journal& journal, steady_time now) const noexcept {
        return now >= due_at(journal);
    }
    /// When it is; max: nothing is open.
    [[nodiscard]] steady_time due_at(const change_journal& journal) const noexcept {
        return journal.is_open() ? next(journal.of_step()) : steady_time::max();
    }
    /// Before that nothing new is told.
    [[nodiscard]] steady_time next(urgency what) const noexcept {
        return pace_.next(what, readers_());
    }
    /// A step was closed, in whatever way.
    void stepped(steady_time now) noexcept;

    /// What was wished for leads from generations of an epoch that is over.
    void forget_bases() noexcept {
        bases_.clear();
        awaited_ = false;
    }

    /// Puts on the shelf what is wished for. `stamp` is of the journal's newest generation; `words`
    /// are the bits as they are, ahead of it by what is open in the journal: then no key is told by
    /// its name, since whether its places are on is not known of that generation.
    /// @throws std::bad_alloc; the next call goes on
    void tell(const change_journal& journal,
              const filter::digest_shape& shape,
              const filter::digest_stamp& stamp,
              std::span<const std::uint64_t> words);

    [[nodiscard]] teller_figures figures(const change_journal& journal) const noexcept;

private:
    news_pace pace_;
    filter::key_by_name key_of_;
    std::function<void()> told_;
    std::function<std::size_t()> readers_;
    news_shelf shelf_;
    std::optional<steady_time> plain_at_;
    std::vector<std::uint64_t> bases_;  // wished for, and not put yet
    bool awaited_ = false;              // somebody who knows the newest waits for more
    bool whole_ = false;
    bool whole_is_news_ =
        false;          // it was wished for, and those that wait for it have not been told
    bool new_ = false;  // a generation that is not on the shelf
    teller_figures figures_;
};

}  // namespace reprise::proxy::peer
