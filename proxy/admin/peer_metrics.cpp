// What is told to peers and known of them, as rows of the table of metrics. Without peers they are
// zeros.

#include "proxy/admin/metrics_table.hpp"

#include <cmath>

namespace reprise::proxy::admin {

namespace {

const peer::peer_report& peers_of(in from) {
    static const peer::peer_report none;
    return from.peers ? *from.peers : none;
}

peer::members_figures members_of(in from) {
    return peers_of(from).members.value_or(peer::members_figures{});
}

bool is_usable(const peer::sibling_report& one) noexcept {
    return one.digest.digest.state == peer::follow_state::current ||
           one.digest.digest.state == peer::follow_state::failing;
}

std::optional<double> since(const std::optional<steady_time>& at) {
    return at ? std::optional{std::chrono::duration<double>(steady_now() - *at).count()}
              : std::nullopt;
}

std::optional<double> age_of(const peer::sibling_report& one) {
    return since(one.digest.digest.good_at);
}

std::optional<double> share(std::uint64_t some, std::uint64_t all) {
    return all == 0 ? std::nullopt
                    : std::optional{static_cast<double>(some) / static_cast<double>(all)};
}

using sibling = const peer::sibling_report&;

/// A number of each sibling; `value` captures nothing.
template <class Value>
consteval metric per_sibling(std::string_view name,
                             std::string_view json,
                             std::string_view help,
                             Value) {
    return by_label(name, json, "sibling", help, [](in from, out sink) {
        for (const auto& one : peers_of(from).siblings) {
            draw(sink, Value{}(one), one.digest.name);
        }
    });
}

constexpr metric peer_rows[] = {
    plain("reprise_digest_objects",
          "digest.objects",
          "Keys that some tier holds, or soon will.",
          [](in from) { return peers_of(from).own.known; }),
    plain("reprise_digest_listed",
          "digest.listed",
          "Of those, listed in this instance's digest: fresh for a while yet.",
          [](in from) { return peers_of(from).own.listed; }),
    plain("reprise_digest_under_way",
          "digest.under_way",
          "Of those, keys that a fetch under way brings: siblings are told of them before they are "
          "stored.",
          [](in from) { return peers_of(from).own.under_way; }),
    plain("reprise_digest_capacity",
          "digest.capacity",
          "Keys that its filter is made for; it is made anew, in steps, when there are more.",
          [](in from) { return peers_of(from).own.capacity; }),
    plain("reprise_digest_filter_bytes",
          "digest.filter_bytes",
          "The digest's bits, in bytes.",
          [](in from) { return peers_of(from).own.bits / 8; }),
    plain("reprise_digest_fill_ratio",
          "digest.fill",
          "Share of its bits that are on.",
          [](in from) { return share(peers_of(from).own.bits_on, peers_of(from).own.bits); }),
    plain(
        "reprise_digest_false_positive_ratio",
        "digest.false_positive_rate",
        "Chance that it names what is not here, from its bits: its share of siblings' false hits.",
        [](in from) {
            const auto& own = peers_of(from).own;
            const auto fill = share(own.bits_on, own.bits);
            return fill ? std::optional{std::pow(*fill, own.probes)} : std::nullopt;
        }),
    plain("reprise_digest_squid_capacity",
          "digest.squid.capacity",
          "Keys that the digest in Squid's form is made for; 0 where digest.squid is off.",
          [](in from) { return peers_of(from).own.squid.capacity; }),
    plain("reprise_digest_squid_entry_bytes",
          "digest.squid.entry_bytes",
          "Of its mask for each of these: 1 is 8 bits an entry. Squid's own have 5 bits.",
          [](in from) { return peers_of(from).own.squid.bits_per_entry / 8.0; }),
    plain("reprise_digest_squid_mask_bytes",
          "digest.squid.mask_bytes",
          "Its mask.",
          [](in from) { return peers_of(from).own.squid.mask_bytes; }),
    plain("reprise_digest_squid_fill_ratio",
          "digest.squid.fill",
          "Share of its bits that are on; above 0.65 Squids do not use it.",
          [](in from) { return peers_of(from).own.squid.fill; }),
    plain("reprise_digest_squid_false_positive_ratio",
          "digest.squid.false_positive_rate",
          "Chance that it names what is not here, from its bits: the fourth power of its fill.",
          [](in from) {
              const auto& fill = peers_of(from).own.squid.fill;
              return fill ? std::optional{std::pow(*fill, 4)} : std::nullopt;
          }),
    plain("reprise_digest_stuck_counters",
          "digest.stuck_counters",
          "Counters that reached 15 and stay until the filter is made anew.",
          [](in from) { return peers_of(from).own.stuck; }),
    plain("reprise_digest_published_total",
          "digest.published",
          "Generations published.",
          [](in from) { return peers_of(from).own.generations; }),
    plain("reprise_digest_resizes_total",
          "digest.resizes",
          "Times the filter was made anew.",
          [](in from) { return peers_of(from).own.resizes; }),
    plain("reprise_digest_lost_events_total",
          "digest.lost_events",
          "Changes of the store that there was no memory to note.",
          [](in from) { return peers_of(from).own.lost; }),
    plain("reprise_digest_ready",
          "digest.ready",
          "1 when all that was on disk at the start is in it; nothing is published before.",
          [](in from) { return from.peers && from.peers->own.loaded; }),
    plain("reprise_digest_memory_bytes",
          "digest.memory_bytes",
          "Memory of the table of keys, the filter and what is published.",
          [](in from) { return peers_of(from).own.bytes; }),
    by_label("reprise_digest_served_total",
             "digest.served",
             "how",
             "Answers to peers that asked for a digest.",
             [](in from, out sink) {
                 const auto& served = peers_of(from).served;
                 for (std::size_t i = 0; i < served.size(); ++i) {
                     sink.number(served[i].answers, to_string(static_cast<peer::answered>(i)));
                 }
             }),
    by_label("reprise_digest_served_bytes_total",
             "digest.served_bytes",
             "how",
             "Their bytes.",
             [](in from, out sink) {
                 const auto& served = peers_of(from).served;
                 for (std::size_t i = 0; i < served.size(); ++i) {
                     sink.number(served[i].bytes, to_string(static_cast<peer::answered>(i)));
                 }
             }),
    plain("reprise_digest_news_steps_total",
          "digest.news.steps",
          "Generations of which siblings that follow by news were told, or could have been.",
          [](in from) { return peers_of(from).own.news.steps; }),
    plain("reprise_digest_news_messages_total",
          "digest.news.messages",
          "Pieces of news made; one serves all siblings that ask from the same generation. Those "
          "sent "
          "are reprise_digest_served_total.",
          [](in from) { return peers_of(from).own.news.messages; }),
    plain("reprise_digest_news_message_bytes_total",
          "digest.news.message_bytes",
          "Their bytes.",
          [](in from) { return peers_of(from).own.news.message_bytes; }),
    plain("reprise_digest_news_journal_bytes",
          "digest.news.journal_bytes",
          "Memory of what changed lately, from which news is made.",
          [](in from) { return peers_of(from).own.news.journal_bytes; }),
    plain("reprise_digest_news_waiting",
          "digest.news.waiting",
          "Requests of siblings that are kept open until there is news.",
          [](in from) { return peers_of(from).waiting; }),
    plain("reprise_members_joined",
          "members.joined",
          "Siblings whose digests are in what other sites are told (peering.gateway_for).",
          [](in from) { return members_of(from).members; }),
    plain("reprise_members_left_out",
          "members.left_out",
          "Siblings whose digests are not: of another rate, or far smaller than two others'.",
          [](in from) { return members_of(from).left_out; }),
    plain("reprise_members_filter_bytes",
          "members.filter_bytes",
          "The bits of what other sites are told, in bytes.",
          [](in from) { return members_of(from).bits / 8; }),
    plain(
        "reprise_members_false_positive_ratio",
        "members.false_positive_rate",
        "Chance that it names what no sibling holds, from the bits last published whole: the more "
        "siblings, the higher.",
        [](in from) { return members_of(from).false_positive_rate; }),
    plain("reprise_members_memory_bytes",
          "members.memory_bytes",
          "Memory of it, and of the siblings' digests that it is made of.",
          [](in from) { return members_of(from).bytes; }),
    plain("reprise_peering_misses_total",
          "peering.misses",
          "Misses that siblings might have answered.",
          [](in from) { return from.counts.peering_misses; }),
    plain("reprise_peering_icp_messages_total",
          "peering.icp_messages",
          "Queries and replies that ICP would have sent for these misses.",
          [](in from) { return from.counts.icp_messages; }),
    plain("reprise_peering_icp_bytes_total",
          "peering.icp_bytes",
          "Their bytes, IP and UDP included.",
          [](in from) { return from.counts.icp_bytes; }),
    plain("reprise_peering_asked_beside_total",
          "peering.asked_beside",
          "Questions that went to a sibling while another that was asked before it said nothing.",
          [](in from) { return from.counts.siblings_asked_beside; }),
    plain("reprise_peering_caught_up_first_total",
          "peering.caught_up_first",
          "Fetches that waited, peering.budget at most, for what siblings hold to be known: just "
          "after a start, or "
          "after the process was stopped for a while.",
          [](in from) { return from.counts.caught_up_first; }),
    plain("reprise_peering_index_bytes",
          "peering.index_bytes",
          "Memory of the siblings' digests.",
          [](in from) { return peers_of(from).index_bytes; }),
    plain("reprise_peering_seen_objects",
          "peering.seen_objects",
          "Objects asked for that siblings are told of, at least (admission.share).",
          [](in from) { return peers_of(from).seen_objects; }),
    per_sibling("reprise_sibling_usable",
                "siblings.usable",
                "1 when its digest is used.",
                [](sibling one) { return std::uint64_t{is_usable(one)}; }),
    {"reprise_sibling_in_state",
     gauge,
     "siblings.in_state",
     "sibling",
     "state",
     "1 for the state that its digest is in. Of a peer that is this instance itself there is "
     "nothing else.",
     [](in from, out sink) {
         for (const auto& one : peers_of(from).siblings) {
             sink.number(1, one.digest.name, to_string(one.digest.digest.state));
         }
         for (const auto& name : peers_of(from).itself) {
             sink.number(1, name, to_string(peer::follow_state::itself));
         }
     }},
    {"reprise_sibling_in_trouble",
     gauge,
     "siblings.in_trouble",
     "sibling",
     "trouble",
     "1 for why its digest, or its last answer, is not used; for none when all is well.",
     [](in from, out sink) {
         for (const auto& one : peers_of(from).siblings) {
             sink.number(1, one.digest.name, to_string(one.digest.digest.trouble));
         }
     }},
    per_sibling("reprise_sibling_generation",
                "siblings.generation",
                "Counter of the generation of its digest that is held.",
                [](sibling one) { return one.digest.generation.counter; }),
    per_sibling("reprise_sibling_digest_age_seconds",
                "siblings.digest_age_seconds",
                "Since its digest was last confirmed.",
                [](sibling one) { return age_of(one); }),
    per_sibling(
        "reprise_sibling_by_news",
        "siblings.by_news",
        "1 when it tells what changes as it happens (peering.news), so that what is known of "
        "it is as old as that and no older; 0 when it is asked for that now and then.",
        [](sibling one) { return std::uint64_t{one.digest.digest.by_news}; }),
    per_sibling("reprise_sibling_news_age_seconds",
                "siblings.news_age_seconds",
                "Since it last told of a change.",
                [](sibling one) { return since(one.digest.digest.news_at); }),
    per_sibling("reprise_sibling_seen_news_total",
                "siblings.seen_news",
                "Pieces of news of what it saw (admission.share).",
                [](sibling one) { return one.digest.seen.news; }),
    per_sibling("reprise_sibling_seen_news_bytes_total",
                "siblings.seen_news_bytes",
                "Their bytes.",
                [](sibling one) { return one.digest.seen.news_bytes; }),
    per_sibling("reprise_sibling_filter_bytes",
                "siblings.filter_bytes",
                "Its digest's bits, in bytes.",
                [](sibling one) { return one.digest.bits / 8; }),
    per_sibling("reprise_sibling_fill_ratio",
                "siblings.fill",
                "Share of them that are on.",
                [](sibling one) { return share(one.digest.bits_on, one.digest.bits); }),
    per_sibling("reprise_sibling_estimated_objects",
                "siblings.estimated_objects",
                "Objects in its digest, from its bits.",
                [](sibling one) { return one.digest.estimated_objects; }),
    per_sibling(
        "reprise_sibling_estimated_overlap",
        "siblings.estimated_overlap",
        "Objects that both hold, from the bits of both; unknown of a Squid, and where rates "
        "differ.",
        [](sibling one) { return one.overlap; }),
    per_sibling("reprise_sibling_false_positive_rate",
                "siblings.false_positive_rate",
                "Chance that its digest names what it lacks, from its bits.",
                [](sibling one) { return one.digest.false_positive_rate; }),
    {"reprise_sibling_digest_answers_total",
     counter_kind,
     "siblings.digest_answers",
     "sibling",
     "how",
     "Its answers when its digest was asked for.",
     [](in from, out sink) {
         for (const auto& one : peers_of(from).siblings) {
             sink.number(one.digest.digest.wholes, one.digest.name, "whole");
             sink.number(one.digest.digest.deltas, one.digest.name, "delta");
             sink.number(one.digest.digest.news, one.digest.name, "news");
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
         for (const auto& one : peers_of(from).siblings) {
             sink.number(one.digest.digest.whole_bytes, one.digest.name, "whole");
             sink.number(one.digest.digest.delta_bytes, one.digest.name, "delta");
             sink.number(one.digest.digest.news_bytes, one.digest.name, "news");
         }
     }},
    per_sibling("reprise_sibling_named_total",
                "siblings.named",
                "Look-ups that its digest said yes to.",
                [](sibling one) { return one.benefit.named; }),
    per_sibling("reprise_sibling_held_back_total",
                "siblings.held_back",
                "Of those, not asked because asking it had not paid.",
                [](sibling one) { return one.benefit.held_back; }),
    {"reprise_sibling_asked_total",
     counter_kind,
     "siblings.asked",
     "sibling",
     "result",
     "Questions to it, by what came of them.",
     [](in from, out sink) {
         for (const auto& one : peers_of(from).siblings) {
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
    per_sibling(
        "reprise_sibling_expected_false_hits",
        "siblings.expected_false_hits",
        "False hits to be expected of its digest's rate, among the answers that it gave.",
        [](sibling one) { return one.benefit.expected_false(one.digest.false_positive_rate); }),
    per_sibling("reprise_sibling_bytes_total",
                "siblings.bytes",
                "Body bytes that it answered with.",
                [](sibling one) { return one.benefit.bytes; }),
    per_sibling("reprise_sibling_lost_bytes_total",
                "siblings.lost_bytes",
                "Bytes sent to it and received in vain.",
                [](sibling one) { return one.benefit.lost_bytes; }),
    per_sibling("reprise_sibling_saved_seconds_total",
                "siblings.saved_seconds",
                "Time that its hits saved, against what origins take.",
                [](sibling one) { return one.benefit.saved_ms / 1000; }),
    per_sibling("reprise_sibling_lost_seconds_total",
                "siblings.lost_seconds",
                "Time that asking it in vain, or late, cost.",
                [](sibling one) { return one.benefit.lost_ms / 1000; }),
    per_sibling("reprise_sibling_latency_p50_seconds",
                "siblings.latency_p50_seconds",
                "Half of its hits began within this, to a power of two of a millisecond.",
                [](sibling one) { return one.benefit.quantile_ms(0.5) / 1000; }),
    per_sibling("reprise_sibling_latency_p99_seconds",
                "siblings.latency_p99_seconds",
                "99 % of its hits began within this.",
                [](sibling one) { return one.benefit.quantile_ms(0.99) / 1000; }),
    per_sibling("reprise_sibling_asked_one_in",
                "siblings.asked_one_in",
                "It is asked at one chance in so many.",
                [](sibling one) { return std::uint64_t{one.benefit.one_in}; }),
    by_label("reprise_parent_up",
             "parents.up",
             "parent",
             "0 from a failure until it has answered again. One that leads back here has failed.",
             [](in from, out sink) {
                 for (const auto& one : peers_of(from).parents) {
                     sink.number(one.down ? 0 : 1, one.name);
                 }
             }),
    {"reprise_parent_in_trouble",
     gauge,
     "parents.in_trouble",
     "parent",
     "trouble",
     "1 for what it failed by last, as in the access log's reasons (loop_detected: it leads back "
     "here, or finds a loop itself); for none when all is well.",
     [](in from, out sink) {
         for (const auto& one : peers_of(from).parents) {
             sink.number(1, one.name, one.down ? facts_of(one.trouble).name : "none");
         }
     }},
};

}  // namespace

std::span<const metric> peer_metrics() noexcept {
    return peer_rows;
}

}  // namespace reprise::proxy::admin
