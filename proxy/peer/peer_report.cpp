#include "proxy/peer/peer_report.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace reprise::proxy::peer {
namespace {

// What strangers say may come to more than there is.
void add_to(std::uint64_t& sum, std::uint64_t more) noexcept {
    const auto room = std::numeric_limits<std::uint64_t>::max() - sum;
    sum += std::min(room, more);
}

}  // namespace

fleet_report sum_up(std::vector<fleet_row> nodes) {
    fleet_report out;
    for (const auto& row : nodes) {
        if (!row.alive) {
            continue;
        }
        ++out.alive;
        const auto& of = row.figures;
        auto& sums = out.sums;
        add_to(sums.requests, of.requests);
        add_to(sums.hits, of.hits);
        add_to(sums.siblings, of.siblings);
        add_to(sums.joined, of.joined);
        add_to(sums.bytes, of.bytes);
        add_to(sums.bytes_from_store, of.bytes_from_store);
        add_to(sums.bytes_from_siblings, of.bytes_from_siblings);
        add_to(sums.bytes_joined, of.bytes_joined);
        add_to(sums.objects, of.objects);
        add_to(sums.listed, of.listed);
        add_to(sums.sights_told, of.sights_told);
    }
    out.nodes = std::move(nodes);
    return out;
}

}  // namespace reprise::proxy::peer
