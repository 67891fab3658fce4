#include "tools/replay/model.hpp"

#include <algorithm>
#include <utility>

namespace reprise::replay {

tally tally::since(const tally& earlier) const noexcept {
    auto out = *this;
    for (const auto member : {&tally::requests,
                              &tally::bytes,
                              &tally::hits,
                              &tally::hit_bytes,
                              &tally::disk_hits,
                              &tally::written,
                              &tally::written_bytes,
                              &tally::carried_bytes,
                              &tally::refused,
                              &tally::refused_bytes,
                              &tally::too_large}) {
        out.*member -= earlier.*member;
    }
    out.waiting -= earlier.waiting;
    out.waited -= earlier.waited;
    return out;
}

counted_late::counted_late(std::unique_ptr<model> played, std::uint64_t skipped)
    : played_{std::move(played)},
      left_{skipped} {}

void counted_late::feed(std::span<const request> requests, std::size_t objects) {
    const auto early = requests.first(std::min<std::uint64_t>(left_, requests.size()));
    if (!early.empty()) {
        played_->feed(early, objects);
        left_ -= early.size();
        before_ = left_ == 0 ? played_->figures() : before_;
    }
    if (early.size() < requests.size()) {
        played_->feed(requests.subspan(early.size()), objects);
    }
}

tally counted_late::figures() const {
    const auto now = played_->figures();
    return left_ == 0 ? now.since(before_) : now.since(now);
}

}  // namespace reprise::replay
