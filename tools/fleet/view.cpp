#include "tools/fleet/view.hpp"

#include <bit>

namespace reprise::fleet {

using filter::sibling_index;
using proxy::peer::digest_follower;

view::view(digest_number digests,
           const proxy::peer::follow_plan& plan,
           bool with_seen,
           std::uint64_t seed,
           proxy::steady_time now)
    : digests_{digests} {
    auto seen_plan = plan;
    seen_plan.layout = filter::digest_layout::blocked;
    for (digest_number of = 0; of < digests; ++of) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        followers_.push_back(std::make_unique<digest_follower>(plan, seed, now));
        if (with_seen) {
            seen_followers_.push_back(std::make_unique<digest_follower>(seen_plan, ~seed, now));
        }
    }
    for (digest_number first = 0; first < digests; first += sibling_index::capacity) {
        blocks_.push_back(std::make_unique<block>());
    }
    masks_.resize(blocks_.size());
}

digest_follower::change view::follow_up(digest_number of, bool seen) {
    using kind = digest_follower::change::kind;
    auto& from = follower(of, seen);
    auto change = from.take_change();
    const auto& held = from.held();
    auto& in = *blocks_[of / sibling_index::capacity];
    const auto slot = static_cast<unsigned>(of % sibling_index::capacity);
    if (change.what == kind::nothing) {
        return change;
    }
    if (seen) {
        (void)in.seen.put(slot, held);
    } else if (change.what == kind::gone || !held) {
        in.index.remove(slot);
    } else {
        const filter::bloom_size size{held->shape().bits, held->shape().probes};
        if (change.what == kind::replaced || !in.index.flip(slot, size, change.places)) {
            in.index.put(slot, size, held->words());
        }
    }
    return change;
}

void view::look_up(const filter::key_hash& key, node_number from, std::vector<digest_number>& out) {
    out.clear();
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
        masks_[i] = blocks_[i]->reader.may_hold(key);
    }
    const auto take = [&](digest_number first, digest_number end) {
        for (auto at = first; at < end;) {
            const auto mask = masks_[at / sibling_index::capacity] >>
                              (at % sibling_index::capacity);
            if (mask == 0) {
                at = (at / sibling_index::capacity + 1) * sibling_index::capacity;
                continue;
            }
            at += static_cast<digest_number>(std::countr_zero(mask));
            if (at < end) {
                out.push_back(at);
            }
            ++at;
        }
    };
    take(from + 1, digests_);
    take(0, from);
}

bool view::seen(const filter::key_hash& key) {
    for (const auto& one : blocks_) {
        if (one->seen_reader.may_contain(key)) {
            return true;
        }
    }
    return false;
}

}  // namespace reprise::fleet
