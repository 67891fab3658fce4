// What is told to peers and known of them, as rows of the table of metrics. Without peers they are
// zeros.

#include "proxy/admin/metrics_table.hpp"

#include <cmath>

namespace reprise::proxy {

namespace {

using in = const stats_inputs&;
using out = sample_sink&;

constexpr auto counter_kind = metric_kind::counter;
constexpr auto gauge = metric_kind::gauge;

const peer::peer_report& of(in from) {
    static const peer::peer_report none;
    return from.peers ? *from.peers : none;
}

bool is_usable(const peer::sibling_report& one) noexcept {
    return one.digest.digest.state == peer::follow_state::current ||
           one.digest.digest.state == peer::follow_state::failing;
}

std::optional<double> age_of(const peer::sibling_report& one) {
    const auto& good = one.digest.digest.good_at;
    return good ? std::optional{std::chrono::duration<double>(steady_now() - *good).count()}
                : std::nullopt;
}

std::optional<double> share(std::uint64_t some, std::uint64_t all) {
    return all == 0 ? std::nullopt
                    : std::optional{static_cast<double>(some) / static_cast<double>(all)};
}

constexpr metric table[] = {
    {"reprise_digest_objects",
     gauge,
     "digest.objects",
     "",
     "",
     "Keys that some tier holds.",
     [](in from, out sink) { sink.number(of(from).own.known); }},
    {"reprise_digest_listed",
     gauge,
     "digest.listed",
     "",
     "",
     "Of those, listed in this instance's digest: fresh for a while yet.",
     [](in from, out sink) { sink.number(of(from).own.listed); }},
    {"reprise_digest_capacity",
     gauge,
     "digest.capacity",
     "",
     "",
     "Keys that its filter is made for; it is made anew, in steps, when there are more.",
     [](in from, out sink) { sink.number(of(from).own.capacity); }},
    {"reprise_digest_filter_bytes",
     gauge,
     "digest.filter_bytes",
     "",
     "",
     "The digest's bits, in bytes.",
     [](in from, out sink) { sink.number(of(from).own.bits / 8); }},
    {"reprise_digest_fill_ratio",
     gauge,
     "digest.fill",
     "",
     "",
     "Share of its bits that are on.",
     [](in from, out sink) { sink.real(share(of(from).own.bits_on, of(from).own.bits)); }},
    {"reprise_digest_false_positive_ratio",
     gauge,
     "digest.false_positive_rate",
     "",
     "",
     "Chance that it names what is not here, from its bits: its share of siblings' false hits.",
     [](in from, out sink) {
         const auto& own = of(from).own;
         const auto fill = share(own.bits_on, own.bits);
         sink.real(fill ? std::optional{std::pow(*fill, own.probes)} : std::nullopt);
     }},
    {"reprise_digest_squid_capacity",
     gauge,
     "digest.squid.capacity",
     "",
     "",
     "Keys that the digest in Squid's form is made for; 0 where digest.squid is off.",
     [](in from, out sink) { sink.number(of(from).own.squid.capacity); }},
    {"reprise_digest_squid_entry_bytes",
     gauge,
     "digest.squid.entry_bytes",
     "",
     "",
     "Of its mask for each of these: 1 is 8 bits an entry. Squid's own have 5 bits.",
     [](in from, out sink) { sink.real(of(from).own.squid.bits_per_entry / 8.0); }},
    {"reprise_digest_squid_mask_bytes",
     gauge,
     "digest.squid.mask_bytes",
     "",
     "",
     "Its mask.",
     [](in from, out sink) { sink.number(of(from).own.squid.mask_bytes); }},
    {"reprise_digest_squid_fill_ratio",
     gauge,
     "digest.squid.fill",
     "",
     "",
     "Share of its bits that are on; above 0.65 Squids do not use it.",
     [](in from, out sink) { sink.real(of(from).own.squid.fill); }},
    {"reprise_digest_squid_false_positive_ratio",
     gauge,
     "digest.squid.false_positive_rate",
     "",
     "",
     "Chance that it names what is not here, from its bits: the fourth power of its fill.",
     [](in from, out sink) {
         const auto& fill = of(from).own.squid.fill;
         sink.real(fill ? std::optional{std::pow(*fill, 4)} : std::nullopt);
     }},
    {"reprise_digest_stuck_counters",
     gauge,
     "digest.stuck_counters",
     "",
     "",
     "Counters that reached 15 and stay until the filter is made anew.",
     [](in from, out sink) { sink.number(of(from).own.stuck); }},
    {"reprise_digest_published_total",
     counter_kind,
     "digest.published",
     "",
     "",
     "Generations published.",
     [](in from, out sink) { sink.number(of(from).own.generations); }},
    {"reprise_digest_resizes_total",
     counter_kind,
     "digest.resizes",
     "",
     "",
     "Times the filter was made anew.",
     [](in from, out sink) { sink.number(of(from).own.resizes); }},
    {"reprise_digest_lost_events_total",
     counter_kind,
     "digest.lost_events",
     "",
     "",
     "Changes of the store that there was no memory to note.",
     [](in from, out sink) { sink.number(of(from).own.lost); }},
    {"reprise_digest_ready",
     gauge,
     "digest.ready",
     "",
     "",
     "1 when all that was on disk at the start is in it; nothing is published before.",
     [](in from, out sink) { sink.truth(from.peers && from.peers->own.loaded); }},
    {"reprise_digest_memory_bytes",
     gauge,
     "digest.memory_bytes",
     "",
     "",
     "Memory of the table of keys, the filter and what is published.",
     [](in from, out sink) { sink.number(of(from).own.bytes); }},
    {"reprise_digest_served_total",
     counter_kind,
     "digest.served",
     "how",
     "",
     "Answers to peers that asked for a digest.",
     [](in from, out sink) {
         const auto& served = of(from).served;
         for (std::size_t i = 0; i < served.size(); ++i) {
             sink.number(served[i].answers, to_string(static_cast<peer::answered>(i)));
         }
     }},
    {"reprise_digest_served_bytes_total",
     counter_kind,
     "digest.served_bytes",
     "how",
     "",
     "Their bytes.",
     [](in from, out sink) {
         const auto& served = of(from).served;
         for (std::size_t i = 0; i < served.size(); ++i) {
             sink.number(served[i].bytes, to_string(static_cast<peer::answered>(i)));
         }
     }},
    {"reprise_peering_misses_total",
     counter_kind,
     "peering.misses",
     "",
     "",
     "Misses that siblings might have answered.",
     [](in from, out sink) { sink.number(of(from).misses); }},
    {"reprise_peering_icp_messages_total",
     counter_kind,
     "peering.icp_messages",
     "",
     "",
     "Queries and replies that ICP would have sent for these misses.",
     [](in from, out sink) { sink.number(of(from).icp_messages); }},
    {"reprise_peering_icp_bytes_total",
     counter_kind,
     "peering.icp_bytes",
     "",
     "",
     "Their bytes, IP and UDP included.",
     [](in from, out sink) { sink.number(of(from).icp_bytes); }},
    {"reprise_peering_index_bytes",
     gauge,
     "peering.index_bytes",
     "",
     "",
     "Memory of the siblings' digests.",
     [](in from, out sink) { sink.number(of(from).index_bytes); }},
    {"reprise_peering_seen_objects",
     gauge,
     "peering.seen_objects",
     "",
     "",
     "Objects asked for that siblings are told of, at least (admission.share).",
     [](in from, out sink) { sink.number(of(from).seen_objects); }},
    {"reprise_sibling_usable",
     gauge,
     "siblings.usable",
     "sibling",
     "",
     "1 when its digest is used.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(std::uint64_t{is_usable(one)}, one.digest.name);
         }
     }},
    {"reprise_sibling_in_state",
     gauge,
     "siblings.in_state",
     "sibling",
     "state",
     "1 for the state that its digest is in.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(1, one.digest.name, to_string(one.digest.digest.state));
         }
     }},
    {"reprise_sibling_in_trouble",
     gauge,
     "siblings.in_trouble",
     "sibling",
     "trouble",
     "1 for why its digest, or its last answer, is not used; for none when all is well.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(1, one.digest.name, to_string(one.digest.digest.trouble));
         }
     }},
    {"reprise_sibling_generation",
     gauge,
     "siblings.generation",
     "sibling",
     "",
     "Counter of the generation of its digest that is held.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(one.digest.generation.counter, one.digest.name);
         }
     }},
    {"reprise_sibling_digest_age_seconds",
     gauge,
     "siblings.digest_age_seconds",
     "sibling",
     "",
     "Since its digest was last confirmed.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.real(age_of(one), one.digest.name);
         }
     }},
    {"reprise_sibling_filter_bytes",
     gauge,
     "siblings.filter_bytes",
     "sibling",
     "",
     "Its digest's bits, in bytes.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(one.digest.bits / 8, one.digest.name);
         }
     }},
    {"reprise_sibling_fill_ratio",
     gauge,
     "siblings.fill",
     "sibling",
     "",
     "Share of them that are on.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.real(share(one.digest.bits_on, one.digest.bits), one.digest.name);
         }
     }},
    {"reprise_sibling_estimated_objects",
     gauge,
     "siblings.estimated_objects",
     "sibling",
     "",
     "Objects in its digest, from its bits.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.real(one.digest.estimated_objects, one.digest.name);
         }
     }},
    {"reprise_sibling_estimated_overlap",
     gauge,
     "siblings.estimated_overlap",
     "sibling",
     "",
     "Objects that both hold, from the bits of both; unknown of a Squid, and where rates differ.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.real(one.overlap, one.digest.name);
         }
     }},
    {"reprise_sibling_false_positive_rate",
     gauge,
     "siblings.false_positive_rate",
     "sibling",
     "",
     "Chance that its digest names what it lacks, from its bits.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.real(one.digest.false_positive_rate, one.digest.name);
         }
     }},
    {"reprise_sibling_digest_answers_total",
     counter_kind,
     "siblings.digest_answers",
     "sibling",
     "how",
     "Its answers when its digest was asked for.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(one.digest.digest.wholes, one.digest.name, "whole");
             sink.number(one.digest.digest.deltas, one.digest.name, "delta");
             sink.number(one.digest.digest.unchanged, one.digest.name, "unchanged");
             sink.number(one.digest.digest.failed, one.digest.name, "failed");
         }
     }},
    {"reprise_sibling_digest_bytes_total",
     counter_kind,
     "siblings.digest_bytes",
     "sibling",
     "how",
     "Bytes of those answers.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(one.digest.digest.whole_bytes, one.digest.name, "whole");
             sink.number(one.digest.digest.delta_bytes, one.digest.name, "delta");
         }
     }},
    {"reprise_sibling_named_total",
     counter_kind,
     "siblings.named",
     "sibling",
     "",
     "Look-ups that its digest said yes to.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(one.benefit.named, one.digest.name);
         }
     }},
    {"reprise_sibling_held_back_total",
     counter_kind,
     "siblings.held_back",
     "sibling",
     "",
     "Of those, not asked because asking it had not paid.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(one.benefit.held_back, one.digest.name);
         }
     }},
    {"reprise_sibling_asked_total",
     counter_kind,
     "siblings.asked",
     "sibling",
     "result",
     "Questions to it, by what came of them.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(one.benefit.ended[static_cast<std::size_t>(peer::asking_end::true_hit)],
                         one.digest.name,
                         "true-hit");
             sink.number(one.benefit.ended[static_cast<std::size_t>(peer::asking_end::false_hit)],
                         one.digest.name,
                         "false-hit");
             sink.number(one.benefit.ended[static_cast<std::size_t>(peer::asking_end::timed_out)],
                         one.digest.name,
                         "late");
             sink.number(one.benefit.ended[static_cast<std::size_t>(peer::asking_end::failed)],
                         one.digest.name,
                         "failed");
         }
     }},
    {"reprise_sibling_expected_false_hits",
     gauge,
     "siblings.expected_false_hits",
     "sibling",
     "",
     "False hits to be expected of its digest's rate, among the answers that it gave.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.real(one.benefit.expected_false(one.digest.false_positive_rate), one.digest.name);
         }
     }},
    {"reprise_sibling_bytes_total",
     counter_kind,
     "siblings.bytes",
     "sibling",
     "",
     "Body bytes that it answered with.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(one.benefit.bytes, one.digest.name);
         }
     }},
    {"reprise_sibling_lost_bytes_total",
     counter_kind,
     "siblings.lost_bytes",
     "sibling",
     "",
     "Bytes sent to it and received in vain.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(one.benefit.lost_bytes, one.digest.name);
         }
     }},
    {"reprise_sibling_saved_seconds_total",
     counter_kind,
     "siblings.saved_seconds",
     "sibling",
     "",
     "Time that its hits saved, against what origins take.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.real(one.benefit.saved_ms / 1000, one.digest.name);
         }
     }},
    {"reprise_sibling_lost_seconds_total",
     counter_kind,
     "siblings.lost_seconds",
     "sibling",
     "",
     "Time that asking it in vain, or late, cost.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.real(one.benefit.lost_ms / 1000, one.digest.name);
         }
     }},
    {"reprise_sibling_latency_p50_seconds",
     gauge,
     "siblings.latency_p50_seconds",
     "sibling",
     "",
     "Half of its hits began within this, to a power of two of a millisecond.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.real(one.benefit.quantile_ms(0.5) / 1000, one.digest.name);
         }
     }},
    {"reprise_sibling_latency_p99_seconds",
     gauge,
     "siblings.latency_p99_seconds",
     "sibling",
     "",
     "99 % of its hits began within this.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.real(one.benefit.quantile_ms(0.99) / 1000, one.digest.name);
         }
     }},
    {"reprise_sibling_asked_one_in",
     gauge,
     "siblings.asked_one_in",
     "sibling",
     "",
     "It is asked at one chance in so many.",
     [](in from, out sink) {
         for (const auto& one : of(from).siblings) {
             sink.number(std::uint64_t{one.benefit.one_in}, one.digest.name);
         }
     }},
    {"reprise_parent_up",
     gauge,
     "parents.up",
     "parent",
     "",
     "0 from a failure until it has answered again. One that leads back here has failed.",
     [](in from, out sink) {
         for (const auto& one : of(from).parents) {
             sink.number(one.down ? 0 : 1, one.name);
         }
     }},
};

}  // namespace

std::span<const metric> peer_metrics() noexcept {
    return table;
}

}  // namespace reprise::proxy
