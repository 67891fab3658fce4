#include "proxy/peer/fleet_exchange.hpp"

#include "proxy/base/relaxed.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace reprise::proxy::peer {

namespace {

bool is_of_one_kind(const filter::digest_shape& one, const filter::digest_shape& other) noexcept {
    const auto least = std::min(one.bits, other.bits);
    const auto most = std::max(one.bits, other.bits);
    return one.probes == other.probes && most % least == 0 && std::has_single_bit(most / least);
}

}  // namespace

// The largest first, as union_estimate wants it.
filter::union_estimate::sum distinct_keys(
    const std::shared_ptr<const filter::digest>& own,
    const std::vector<digest_fetcher::figures_of_one>& siblings) {
    std::vector<const digest_fetcher::figures_of_one*> order;
    for (const auto& one : siblings) {
        // What a gateway's siblings hold is no node's.
        if (one.held && !one.members && one.digest.state != follow_state::itself) {
            order.push_back(&one);
        }
    }
    if (own) {
        order.push_back(nullptr);
    }
    const auto bits_of = [&own](const digest_fetcher::figures_of_one* one) {
        return one != nullptr ? one->bits : own->shape().bits;
    };
    std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
        return bits_of(a) > bits_of(b);
    });
    filter::union_estimate all;
    const auto add = [&](const filter::digest& its) {
        return (!own || is_of_one_kind(its.shape(), own->shape())) && all.add(its);
    };
    for (const auto* one : order) {
        (void)(one == nullptr ? add(*own) : one->held->read(add));
    }
    return all.now();
}

void fleet_exchange::begin(const follow_context& context) {
    fetcher_ = std::make_unique<fleet_fetcher>(context, table_);
}

void fleet_exchange::follow(const std::vector<followed>& siblings) {
    fetcher_->follow(siblings);
}

void fleet_exchange::stop() {
    if (fetcher_) {
        fetcher_->stop();
    }
}

wire_bytes fleet_exchange::told(steady_time now) {
    const std::scoped_lock lock{told_guard_};
    if (!wire_ || now >= tell_again_at_) {
        wire_ = std::make_shared<const std::vector<std::byte>>(table_.told(now + told_for));
        tell_again_at_ = now + told_for;
    }
    return wire_;
}

void fleet_exchange::count(const resource_answer& answer) noexcept {
    (answer.status == 200 ? told_ : refused_).fetch_add(1, relaxed);
    told_bytes_.fetch_add(answer.bytes(), relaxed);
}

fleet_report fleet_exchange::report(
    const std::shared_ptr<const filter::digest>& own,
    const std::vector<digest_fetcher::figures_of_one>& siblings) const {
    const auto now = steady_now();
    auto out = sum_up(table_.rows(now));
    {
        const std::scoped_lock lock{distinct_guard_};
        if (now >= count_again_at_) {
            distinct_ = distinct_keys(own, siblings);
            const auto ended = steady_now();
            count_again_at_ = ended + std::max<steady_time::duration>(
                                          20 * (ended - now), std::chrono::milliseconds{500});
        }
        out.distinct = distinct_.keys;
        out.digests = distinct_.digests;
        out.listed = distinct_.listed;
    }
    if (fetcher_) {
        out.asked = fetcher_->counted();
    }
    out.told = told_.load(relaxed);
    out.refused = refused_.load(relaxed);
    out.told_bytes = told_bytes_.load(relaxed);
    return out;
}

}  // namespace reprise::proxy::peer
