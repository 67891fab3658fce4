#include "proxy/admin/windows.hpp"

#include <algorithm>

namespace reprise::proxy::admin {

namespace {

std::optional<double> ratio(std::uint64_t part, std::uint64_t whole) noexcept {
    if (whole == 0) {
        return std::nullopt;
    }
    return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::optional<double> window_figures::hit_ratio() const noexcept {
    return ratio(hits, requests);
}

std::optional<double> window_figures::byte_hit_ratio() const noexcept {
    return ratio(body_bytes_from_store, body_bytes);
}

ratio_windows::ratio_windows(steady_time start) noexcept : start_{start} {
    ring_[0].at = start;
}

void ratio_windows::tick(steady_time now, const totals& counts) noexcept {
    if (now - ring_[newest_].at < every) {
        return;
    }
    newest_ = (newest_ + 1) % ring_.size();
    ring_[newest_] = read(now, counts);
    kept_ = std::min(kept_ + 1, ring_.size());
}

window_figures ratio_windows::since_start(steady_time now, const totals& counts) const noexcept {
    return between(reading{.at = start_}, read(now, counts));
}

window_figures ratio_windows::last(std::chrono::seconds wanted,
                                   steady_time now,
                                   const totals& counts) const noexcept {
    const auto begin = now - std::min(wanted, longest);
    // The youngest reading that is old enough; failing that, the oldest there is.
    auto at = newest_;
    for (std::size_t looked = 1; looked < kept_ && ring_[at].at > begin; ++looked) {
        at = (at + ring_.size() - 1) % ring_.size();
    }
    return between(ring_[at], read(now, counts));
}

ratio_windows::reading ratio_windows::read(steady_time at, const totals& counts) noexcept {
    return {.at = at,
            .requests = answered_requests(counts),
            .hits = hits(counts),
            .body_bytes = counts.body_bytes_to_clients,
            .body_bytes_from_store = counts.body_bytes_from_store};
}

window_figures ratio_windows::between(const reading& first, const reading& second) noexcept {
    return {.span = second.at - first.at,
            .requests = second.requests - first.requests,
            .hits = second.hits - first.hits,
            .body_bytes = second.body_bytes - first.body_bytes,
            .body_bytes_from_store = second.body_bytes_from_store - first.body_bytes_from_store};
}

}  // namespace reprise::proxy::admin
