#include "tools/fleet/results.hpp"

#include <array>
#include <cstdio>
#include <ostream>

namespace reprise::fleet {

namespace {

double ratio(double part, double of) noexcept {
    return of == 0 ? 0 : part / of;
}

std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return text;
}

bool pulls(const fleet_run& what) noexcept {
    return !what.big && (what.plan.how == finding::digests || what.plan.how == finding::sites ||
                         what.plan.how == finding::hints);
}

// Something goes between nodes that exact knowledge would not need.
bool exchanges(const fleet_run& what) noexcept {
    return !what.big && what.plan.how != finding::alone && what.plan.how != finding::oracle;
}

std::string_view name_of(cache_node::keep copies) noexcept {
    switch (copies) {
    case cache_node::keep::if_admitted: return "admitted";
    case cache_node::keep::always: return "always";
    case cache_node::keep::never: return "never";
    }
    return "?";
}

}  // namespace

double percent(std::uint64_t part, std::uint64_t of) noexcept {
    return 100 * ratio(static_cast<double>(part), static_cast<double>(of));
}

std::string fixed(double value, int digits) {
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
}

std::string name_of(const fleet_run& what) {
    std::string out = what.big ? "one big cache" : std::string{to_string(what.plan.how)};
    if (!what.big && what.plan.under_way) {
        out += " + under way";
    }
    if (!pulls(what)) {
        return out;
    }
    switch (what.plan.exchange.how) {
    case delivery::pull: break;
    case delivery::push: out += ", pushed"; break;
    case delivery::instant: out += ", instant"; break;
    case delivery::news: out += ", news"; break;
    }
    if (what.plan.exchange.seen) {
        out += " + seen";
    }
    return out;
}

std::string seconds_of(const fleet_run& what) {
    if (!pulls(what)) {
        return {};
    }
    return short_number(static_cast<double>(what.plan.exchange.period.count()) / 1000);
}

bool same_fleet(const fleet_run& a, const fleet_run& b) noexcept {
    return a.of_nodes == b.of_nodes && a.cache == b.cache && a.size == b.size &&
           a.plan.copies == b.plan.copies && a.split == b.split;
}

double hit_percent(const fleet_tally& of) noexcept {
    return percent(of.hits(), of.requests);
}

std::optional<judgement> judge(const run_result& one, const std::vector<run_result>& all) {
    if (!exchanges(one.what)) {
        return std::nullopt;
    }
    for (const auto& other : all) {
        if (!other.what.big && other.what.plan.how == finding::oracle &&
            same_fleet(other.what, one.what)) {
            const auto& icp = other.counted;
            const auto& ours = one.counted;
            const auto over = [](std::uint64_t a, std::uint64_t b) {
                return ratio(static_cast<double>(a), static_cast<double>(b));
            };
            return judgement{
                .points_lost = hit_percent(icp) - hit_percent(ours),
                .times_fewer = over(icp.icp_messages, ours.messages),
                .share_of_bytes = over(ours.wire_bytes, icp.icp_bytes),
                .share_of_bytes_of_paper = over(ours.paper_bytes, icp.icp_bytes_of_paper)};
        }
    }
    return std::nullopt;
}

void print_table(std::ostream& out, const std::vector<run_result>& results) {
    out << "| nodes | size | cache | finding | period, s | change | hits, % | of these local | "
           "points "
           "lost | missed, % | false, % | messages a request | times fewer than ICP | bytes of "
           "ICP's, % "
           "| as the paper counts, % | claim |\n"
           "|---:|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n";
    for (const auto& one : results) {
        const auto& what = one.what;
        const auto& counted = one.counted;
        out << "| " << what.of_nodes << " | " << what.size << " | " << what.cache << " | "
            << name_of(what) << " | " << seconds_of(what) << " | ";
        if (pulls(what)) {
            out << short_number(100 * what.plan.exchange.source.publish_after_change) << " %";
        }
        out << " | " << fixed(hit_percent(counted), 2) << " | "
            << fixed(percent(counted.local_hits, counted.requests), 2) << " | ";
        const auto verdict = judge(one, results);
        out << (verdict ? fixed(verdict->points_lost, 2) : "") << " | "
            << fixed(percent(counted.missed, counted.requests), 2) << " | "
            << fixed(percent(counted.false_hits, counted.requests), 2) << " | ";
        if (verdict) {
            out << fixed(ratio(static_cast<double>(counted.messages),
                               static_cast<double>(counted.requests)),
                         3)
                << " | " << fixed(verdict->times_fewer, 1) << " | "
                << fixed(100 * verdict->share_of_bytes, 1) << " | "
                << fixed(100 * verdict->share_of_bytes_of_paper, 1) << " | "
                << (verdict->holds() ? "holds" : "no");
        } else if (!what.big && what.plan.how == finding::oracle) {
            out << fixed(ratio(static_cast<double>(counted.icp_messages),
                               static_cast<double>(counted.requests)),
                         3)
                << " | (ICP) | | | ";
        } else {
            out << " | | | | ";
        }
        out << " |\n";
    }
}

void print_csv(std::ostream& out,
               const std::string& trace,
               const std::vector<run_result>& results) {
    out << "trace,nodes,size,cache,finding,copies,period_s,publish_after_s,change,rate,"
           "requests,fetched,joined,"
           "bytes,local_hits,sibling_hits,hit_percent,byte_hit_percent,points_lost,missed,"
           "questions,false_hits,hint_queries,handed_on,handed_in_vain,written,from_the_seen,"
           "published,wholes,"
           "deltas,unchanged,refused,whole_bytes,delta_bytes,digest_messages,digest_wire_bytes,"
           "seen_messages,seen_wire_bytes,messages,wire_bytes,paper_bytes,icp_messages,"
           "icp_wire_bytes,icp_paper_bytes,times_fewer,bytes_share,bytes_share_of_paper,holds,"
           "seconds,sites,site_nodes,across_messages,across_bytes,across_members_messages,"
           "across_members_bytes,across_questions,across_in_vain,across_hits,across_hit_bytes,"
           "for_sites_questions,for_sites_in_vain,between_messages,between_bytes,members_rate\n";
    for (const auto& one : results) {
        const auto& what = one.what;
        const auto& n = one.counted;
        const auto& e = n.exchange;
        const auto verdict = judge(one, results);
        const auto j = verdict.value_or(judgement{});
        const auto& rules = what.plan.exchange.source;
        out << trace << ',' << what.of_nodes << ',' << what.size << ',' << what.cache << ",\""
            << name_of(what) << "\"," << name_of(what.plan.copies) << ',' << seconds_of(what) << ','
            << rules.publish_after.count() << ',' << rules.publish_after_change << ','
            << rules.false_positive_rate;
        const auto hit_bytes = n.local_hit_bytes + n.sibling_hit_bytes;
        out << ',' << n.requests << ',' << n.fetched << ',' << n.joined << ',' << n.bytes << ','
            << n.local_hits << ',' << n.sibling_hits << ',' << fixed(hit_percent(n), 4) << ','
            << fixed(percent(hit_bytes, n.bytes), 4) << ','
            << (verdict ? fixed(j.points_lost, 4) : "");
        for (const auto value : {n.missed,
                                 n.questions,
                                 n.false_hits,
                                 n.hint_queries,
                                 n.handed_on,
                                 n.handed_in_vain,
                                 n.written,
                                 n.from_the_seen,
                                 e.published,
                                 e.wholes,
                                 e.deltas,
                                 e.unchanged,
                                 e.refused,
                                 e.whole_bytes,
                                 e.delta_bytes,
                                 e.messages,
                                 e.bytes,
                                 e.seen_messages,
                                 e.seen_bytes,
                                 n.messages,
                                 n.wire_bytes,
                                 n.paper_bytes,
                                 n.icp_messages,
                                 n.icp_bytes,
                                 n.icp_bytes_of_paper}) {
            out << ',' << value;
        }
        if (verdict) {
            out << ',' << fixed(j.times_fewer, 3) << ',' << fixed(j.share_of_bytes, 5) << ','
                << fixed(j.share_of_bytes_of_paper, 5) << ',' << (j.holds() ? "yes" : "no");
        } else {
            out << ",,,,";
        }
        out << ',' << fixed(one.seconds, 1) << ',' << what.plan.exchange.sites << ','
            << rules.site_nodes;
        for (const auto value : {e.across.messages,
                                 e.across.bytes,
                                 e.across_of_members.messages,
                                 e.across_of_members.bytes,
                                 n.across.questions,
                                 n.across.in_vain,
                                 n.across_hits,
                                 n.across_hit_bytes,
                                 n.for_sites.questions,
                                 n.for_sites.in_vain,
                                 n.between.messages,
                                 n.between.bytes}) {
            out << ',' << value;
        }
        out << ',' << fixed(e.members_rate, 6) << '\n';
    }
}

void print_table(std::ostream& out, const std::vector<second_request_row>& rows) {
    out << "| nodes | alone | with digests | with digests and sights |\n|---:|---:|---:|---:|\n";
    for (const auto& row : rows) {
        out << "| " << row.nodes << " | " << fixed(row.alone, 2) << " | " << fixed(row.digests, 2)
            << " | " << fixed(row.sights, 2) << " |\n";
    }
}

}  // namespace reprise::fleet
