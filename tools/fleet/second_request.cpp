#include "tools/fleet/second_request.hpp"

namespace reprise::fleet {

namespace {

// Longer than a publication and a pull take together.
constexpr std::uint32_t seconds_between = 120;

double fetches_an_object(fleet_plan plan, std::uint32_t objects) {
    plan.strict = true;
    plan.capacity = plan.nodes * std::uint64_t{objects} * 2;
    // A filter that a few objects fill to more than a trace of bits.
    plan.remember = filter::admission_settings{.objects = 4 * std::uint64_t{objects},
                                               .age = std::chrono::hours{24 * 365}};
    // First requests must not be taken for second ones by mistake.
    plan.remember->false_positive_rate = 1e-7;
    plan.exchange.source.false_positive_rate = 1e-4;
    fleet all{plan};
    std::uint32_t at = 0;
    for (unsigned round = 0; round < 2; ++round) {
        for (node_number node = 0; node < plan.nodes; ++node, at += seconds_between) {
            for (std::uint32_t object = 0; object < objects; ++object) {
                const auto low = (object + 1) * std::uint64_t{0x9e3779b97f4a7c15};
                all.ask({.key = {low, ~low}, .bytes = 1, .object = object, .seconds = at}, node);
            }
        }
    }
    return static_cast<double>(all.figures().misses()) / objects;
}

}  // namespace

std::vector<second_request_row> second_requests(const std::vector<node_number>& fleets,
                                                std::uint32_t objects) {
    std::vector<second_request_row> out;
    for (const auto nodes : fleets) {
        fleet_plan plan;
        plan.nodes = nodes;
        second_request_row row{.nodes = nodes};
        plan.how = finding::alone;
        row.alone = fetches_an_object(plan, objects);
        plan.how = finding::digests;
        row.digests = fetches_an_object(plan, objects);
        plan.exchange.seen = true;
        row.sights = fetches_an_object(plan, objects);
        out.push_back(row);
    }
    return out;
}

}  // namespace reprise::fleet
