#include "tests/judge/worlds.hpp"

namespace reprise::tests::judge {

const std::vector<world_kind>& all_worlds() {
    static const std::vector<world_kind> all{
        {"crowd", "clients of many speeds on one fetch", play_crowd},
        {"followers", "fast followers, one loop starved", play_starved_followers},
        {"ends", "ends that are not the end", play_ends},
        {"steady", "slow and steady readers", play_steady_readers},
        {"parts", "gaps that an origin does not fill", play_parts},
        {"recency", "slow answers, reloads, Dates to come", play_recency},
        {"late", "late 304s for what is on disk alone", play_late_answers_on_disk},
        {"restarts", "two tiers, two versions", play_restarts},
        {"clock", "a wall clock that is set back", play_clock},
        {"surplus", "more bytes than were announced", play_surplus},
        {"uploads", "long uploads and early answers", play_uploads},
        {"recovery", "many requests after one error", play_recovery},
        {"validations", "refusals behind the client's back", play_validations},
        {"conditions", "clients that have it already", play_conditions},
        {"accelerator", "one upstream, two schemes", play_accelerator},
        {"strangers", "one client holds an origin's connections", play_strangers},
        {"stalled", "announced bodies that do not come", play_stalled_answers},
        {"mixture", "everything at once, in memory", play_mixture},
        {"disk", "the same with a disk that fails, and ends of the program", play_disk},
    };
    return all;
}

}  // namespace reprise::tests::judge
