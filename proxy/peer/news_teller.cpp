#include "proxy/peer/news_teller.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace reprise::proxy::peer {
namespace {

constexpr std::chrono::minutes plain_for{5};

}  // namespace

void news_teller::listen(steady_time now) {
    auto wishes = shelf_.take_wishes();
    awaited_ = awaited_ || wishes.current;
    whole_ = whole_ || wishes.whole;
    if (wishes.plain) {
        plain_at_ = now;
    }
    if (bases_.empty()) {
        std::swap(bases_, wishes.bases);  // which takes no memory
    } else {
        bases_.insert(bases_.end(), wishes.bases.begin(), wishes.bases.end());
    }
}

bool news_teller::has_plain_readers(steady_time now) const noexcept {
    return plain_at_ && now - *plain_at_ < plain_for;
}

void news_teller::stepped(steady_time now) noexcept {
    pace_.stepped(now, readers_());
    new_ = true;
    ++figures_.steps;
}

void news_teller::tell(const change_journal& journal,
                       const filter::digest_shape& shape,
                       const filter::digest_stamp& stamp,
                       std::span<const std::uint64_t> words) {
    const bool only_whole = std::exchange(whole_is_news_, false);
    if (!new_ && bases_.empty()) {
        if (only_whole) {
            told_();
        }
        return;
    }
    const auto known = shelf_.newest();
    const bool is_newer = known != stamp.generation;
    if (is_newer && awaited_ && known.epoch == stamp.generation.epoch) {
        bases_.push_back(known.counter);
    }
    // The newest first, from which nearly all ask: those beyond the bound are the oldest.
    std::sort(bases_.begin(), bases_.end(), std::greater{});
    bases_.erase(std::unique(bases_.begin(), bases_.end()), bases_.end());
    constexpr std::size_t beyond_no_bound = 2;  // the newest that is known, and the one before it
    bases_.resize(std::min(bases_.size(), news_shelf::most_bases + beyond_no_bound));
    std::vector<news_shelf::form> forms;
    for (const auto base : bases_) {
        if (base == stamp.generation.counter) {
            continue;
        }
        auto& form = forms.emplace_back(news_shelf::form{.base = base, .wire = nullptr});
        if (!journal.knows(base)) {
            continue;
        }
        auto merged = journal.since(base);
        if (journal.is_open()) {
            merged.changes.names.clear();
        }
        auto wire = filter::encode_news({.shape = shape,
                                         .stamp = stamp,
                                         .sum = journal.sum(),
                                         .base_counter = base,
                                         .base_sum = merged.base_sum},
                                        merged.changes,
                                        words,
                                        key_of_);
        if (wire) {
            ++figures_.messages;
            figures_.message_bytes += wire->size();
            figures_.places += merged.changes.places.size();
            figures_.names += merged.changes.names.size();
            form.wire = std::make_shared<const std::vector<std::byte>>(std::move(*wire));
        }
    }
    shelf_.put(stamp.generation, journal.oldest(), std::move(forms));
    bases_.clear();
    awaited_ = awaited_ && !is_newer;
    new_ = false;
    told_();
}

teller_figures news_teller::figures(const change_journal& journal) const noexcept {
    auto out = figures_;
    out.journal_bytes = journal.bytes();
    return out;
}

}  // namespace reprise::proxy::peer
