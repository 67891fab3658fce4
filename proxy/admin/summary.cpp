#include "proxy/admin/summary.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

// make_summary() gathers the figures once, and the headline, the sentences and the large figures
// are made of those: so the page, the command and /stats say the same. Each look_at_ function finds
// what is not well in one part.

namespace reprise::proxy::admin {

namespace {

/// As intercept's own line in the log.
constexpr std::chrono::days warn_of_ca_before{30};

// "1 request", "2 requests".
std::string count_of_things(std::uint64_t count, std::string_view one, std::string_view many) {
    return grouped(count).append(" ").append(count == 1 ? one : many);
}

std::string with_digits(double value, int digits) {
    std::array<char, 32> text{};
    const auto size = std::snprintf(text.data(), text.size(), "%.*f", digits, value);
    return {text.data(), static_cast<std::size_t>(std::max(size, 0))};
}

/// "a.test (7), b.test (2) and others"; empty: none is known.
std::string most_frequent(const std::vector<failing_hosts::one>& hosts) {
    constexpr std::size_t most = 3;
    std::string names;
    for (std::size_t i = 0; i < std::min(hosts.size(), most); ++i) {
        names.append(i == 0 ? "" : ", ").append(hosts[i].host);
        names.append(" (").append(grouped(hosts[i].failures)).append(")");
    }
    return hosts.size() > most ? names + " and others" : names;
}

// A name mistyped once, or one origin of many that is down and hardly asked for, is not the proxy's
// being unwell.
bool are_many(std::uint64_t failures, std::uint64_t answered) {
    constexpr std::uint64_t least = 5, least_percent = 5;
    return failures >= least && failures * 100 >= (failures + answered) * least_percent;
}

void look_at_origins(const stats_inputs& inputs,
                     std::vector<std::string>& found,
                     std::vector<std::string>& notes) {
    const auto& minute = inputs.within_a_minute;
    const auto failures = minute.origin_failures();
    if (failures == 0) {
        return;
    }
    std::string how;
    const auto add = [&](std::uint64_t count, std::string_view what) {
        if (count != 0) {
            how.append(how.empty() ? "" : ", ").append(grouped(count)).append(" ").append(what);
        }
    };
    add(minute.unreached, "for want of a connection");
    add(minute.unresolved, "for want of an address");
    add(minute.untrusted, "by TLS");
    add(minute.ill_answered, "by a bad, broken or late answer");
    auto text = count_of_things(failures, "request", "requests") +
                " failed at the origin in the last minute, of " +
                grouped(failures + minute.requests) + ": " + how + ".";
    if (const auto hosts = most_frequent(inputs.failing); !hosts.empty()) {
        text += " Of these: " + hosts + ".";
    }
    (are_many(failures, minute.requests) ? found : notes).push_back(std::move(text));
}

std::string_view why_parent_is_down(failure_code trouble) {
    switch (trouble) {
    case failure_code::loop_detected:
        return " leads back here, or finds a loop itself; it is gone around.";
    case failure_code::parent_refused:
        return " does not take what it is told of us (407): see peers[].credentials_file.";
    case failure_code::parent_certificate: return " has a certificate that is not believed.";
    default: return " does not answer.";
    }
}

void look_at_peers(const peer::peer_report& peers, std::vector<std::string>& found) {
    using peer::follow_state;
    for (const auto& one : peers.siblings) {
        const auto& digest = one.digest.digest;
        // That it can't be had, and not merely that it has not been asked yet.
        const bool lost = digest.state == follow_state::failing ||
                          digest.state == follow_state::outdated ||
                          (digest.state == follow_state::never &&
                           digest.trouble != peer::follow_trouble::none);
        if (lost) {
            found.push_back("Sibling " + one.digest.name + " is lost: its digest can't be had" +
                            in_words(digest, steady_now()) +
                            (digest.state == follow_state::failing
                                 ? "; the one before is used meanwhile."
                                 : "; no object is asked of it."));
        }
    }
    for (const auto& one : peers.parents) {
        if (one.down) {
            found.push_back("Parent " + one.name + std::string{why_parent_is_down(one.trouble)});
        }
    }
}

void look_at_disk(const cache::disk::tier_figures& disk, std::vector<std::string>& found) {
    const auto why = disk.trouble.empty() ? std::string{"."} : ": " + disk.trouble + ".";
    switch (disk.state) {
    case cache::disk::tier_state::reading:
        found.push_back("The store on disk takes nothing new, since writing fails" + why);
        return;
    case cache::disk::tier_state::off: found.push_back("The store on disk is off" + why); return;
    case cache::disk::tier_state::loading:
    case cache::disk::tier_state::ready: return;
    }
}

void look_at_ca(double seconds_left, std::vector<std::string>& found) {
    constexpr double in_day = 24 * 60 * 60;
    if (seconds_left <= 0) {
        found.emplace_back("The CA for intercepted hosts has expired: nothing is opened.");
    } else if (seconds_left < in_day * warn_of_ca_before.count()) {
        found.push_back(
            "The CA for intercepted hosts expires in " +
            time_in_words(std::chrono::seconds{static_cast<std::int64_t>(seconds_left)}) + ".");
    }
}

// What it holds is preallocated in part: what counts is what its files have of the disk already.
void look_at_room(const disk_room& room, std::vector<std::string>& found) {
    if (room.is_short()) {
        found.push_back("The disk has less room than the store is yet to take: " +
                        bytes_in_words(room.free) + " are left at " + room.path +
                        ", where it may grow by " + bytes_in_words(room.size - room.held) +
                        " more, to disk.size " + bytes_in_words(room.size) + ".");
    }
}

std::vector<std::string> look_for_trouble(const stats_inputs& inputs,
                                          std::vector<std::string>& notes) {
    std::vector<std::string> found;
    switch (inputs.ready) {
    case readiness::ready: break;
    case readiness::starting: found.emplace_back("It is starting."); break;
    case readiness::draining:
        found.emplace_back("It is stopping: requests are finished, and no new ones taken.");
        break;
    }
    look_at_origins(inputs, found, notes);
    if (inputs.peers) {
        look_at_peers(*inputs.peers, found);
    }
    if (inputs.disk) {
        look_at_disk(*inputs.disk, found);
    }
    if (inputs.room) {
        look_at_room(*inputs.room, found);
    }
    if (inputs.leaves.ca_validity) {
        look_at_ca(*inputs.leaves.ca_validity, found);
    }
    if (const auto lost = inputs.within_a_minute.lines_dropped; lost != 0) {
        found.push_back(count_of_things(lost, "line was", "lines were") +
                        " dropped by the logs in the last minute: " +
                        (inputs.lines_refused.empty()
                             ? "what takes them is too slow, or refuses them (/log)."
                             : "log.access can't be written: " + inputs.lines_refused + "."));
    }
    return found;
}

/// "by siblings 17 (3.0 MiB), by shared fetches 345 (1.0 MiB)"; empty: nothing.
std::string spared_by_others(const summary& of) {
    std::string text;
    const auto add = [&](std::string_view whom, std::uint64_t times, std::uint64_t bytes) {
        if (times != 0) {
            text.append(text.empty() ? "" : ", ").append(whom).append(" ").append(grouped(times));
            text.append(" (").append(bytes_in_words(bytes)).append(")");
        }
    };
    add("by siblings", of.sibling_hits, of.sibling_bytes);
    add("by shared fetches", of.shared_fetches, of.shared_fetch_bytes);
    return text;
}

std::string in_sentences(const summary& of) {
    auto text = "In " + time_in_words(of.uptime) + " it answered " +
                count_of_things(of.requests, "request", "requests");
    if (of.requests == 0) {
        return "It has served for " + time_in_words(of.uptime) +
               ", and nothing that could be stored has been asked for yet.";
    }
    text += ", " + percent(of.hit_ratio) +
            " of them from what is stored here. Origins were spared " +
            count_of_things(of.requests_spared, "request", "requests") + " and " +
            bytes_in_words(of.bytes_spared);
    const auto others = spared_by_others(of);
    text += others.empty() ? "." : ", of that " + others + ".";
    if (of.seconds_spared >= 1) {
        text += " Clients were spared " +
                time_in_words(std::chrono::seconds{static_cast<std::int64_t>(of.seconds_spared)}) +
                " of waiting.";
    }
    if (of.writes_spared != 0) {
        text += " Admission kept " + count_of_things(of.writes_spared, "object", "objects") + " (" +
                bytes_in_words(of.written_bytes_spared) + ") " +
                (of.on_disk ? "off the disk" : "out of the store");
        text += of.hits_lost == 0   ? ", and no request missed one."
                : of.hits_lost == 1 ? "; 1 request went to its origin that would have been a hit "
                                      "without admission."
                                    : "; " + grouped(of.hits_lost) +
                                          " requests went to their origins that would have been "
                                          "hits without admission.";
    }
    return text;
}

std::string headline_of(const summary& of) {
    if (of.not_well.empty()) {
        return "All is well.";
    }
    return of.not_well.size() == 1 ? "One thing is not well."
                                   : grouped(of.not_well.size()) + " things are not well.";
}

std::array<large_figure, 4> figures_of(const summary& of) {
    large_figure hits{"Answered from the store", percent(of.hit_ratio), "", "spared"};
    if (of.requests == 0) {
        hits = {hits.label, "–", "of no requests since the start", "nothing"};
    } else {
        hits.more = "of " + count_of_things(of.requests, "request", "requests") +
                    " since the start" +
                    (of.byte_hit_ratio ? "; " + percent(of.byte_hit_ratio) + " of the bytes" : "");
    }

    large_figure bytes{"Spared the origins", bytes_in_words(of.bytes_spared), "", "spared"};
    if (of.requests_spared == 0) {
        bytes = {bytes.label, "–", "nothing since the start", "nothing"};
    } else {
        bytes.more = "in " + count_of_things(of.requests_spared, "request", "requests") +
                     " since the start";
        if (const auto others = spared_by_others(of); !others.empty()) {
            bytes.more += "; of that " + others;
        }
    }

    large_figure writes{of.on_disk ? "Writes spared the disk" : "Kept out of the store",
                        grouped(of.writes_spared),
                        bytes_in_words(of.written_bytes_spared) +
                            " of what was asked for once, since the start",
                        "spared"};
    if (of.writes_spared == 0) {
        writes = {writes.label, "–", "nothing since the start", "nothing"};
    }

    large_figure costs{"What it costs",
                       count_of_things(of.hits_lost, "hit", "hits"),
                       "that admission cost since the start; now " +
                           bytes_in_words(of.resident_bytes) + " of memory",
                       of.hits_lost == 0 ? "nothing" : "costs"};
    if (of.on_disk) {
        costs.more += ", " + bytes_in_words(of.disk_bytes) + " of disk";
    }
    // The start's own share would make a great figure of a few requests.
    if (of.requests >= 100 && of.cpu_seconds_per_1000_requests) {
        costs.more += "; " + short_time_in_words(*of.cpu_seconds_per_1000_requests) +
                      " of CPU per 1,000 requests since the start";
    }
    return {hits, bytes, writes, costs};
}

nlohmann::ordered_json figures_json(const summary& of) {
    auto all = nlohmann::ordered_json::array();
    for (const auto& one : of.figures) {
        all.push_back(
            {{"label", one.label}, {"value", one.value}, {"more", one.more}, {"kind", one.kind}});
    }
    return all;
}

nlohmann::ordered_json known_or_null(std::optional<double> value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

// The last day, as far as it is known: it is no day before the first one is over.
std::string day_in_words(const stats_inputs& in) {
    const auto known = std::chrono::floor<std::chrono::seconds>(in.day_covers);
    if (known >= std::chrono::hours{24}) {
        return "in the last day";
    }
    return "in the last " + time_in_words(known) +
           (in.over_upgrade ? ", since the start before an upgrade" : ", since the start");
}

nlohmann::ordered_json disk_json(const stats_inputs& in) {
    if (!in.disk) {
        return {};
    }
    nlohmann::ordered_json out{{"bytes", in.disk->bytes}, {"capacity_bytes", in.disk->capacity}};
    if (in.room) {
        out["path"] = in.room->path;
        out["free_bytes"] = in.room->free;
    }
    return out;
}

nlohmann::ordered_json siblings_in_short(const peer::peer_report& peers) {
    auto all = nlohmann::ordered_json::object();
    for (const auto& one : peers.siblings) {
        const auto hits = one.benefit.ended[static_cast<std::size_t>(peer::asking_end::true_hit)];
        all[one.digest.name] = {
            {"state", to_string(one.digest.digest.state)},
            {"asked", one.benefit.asked()},
            {"hits", hits},
            {"bytes", one.benefit.bytes},
            {"seconds_saved", (one.benefit.saved_ms - one.benefit.lost_ms) / 1000}};
    }
    return all;
}

}  // namespace

std::string grouped(std::uint64_t number) {
    const auto digits = std::to_string(number);
    std::string out;
    for (std::size_t at = 0; at < digits.size(); ++at) {
        if (at != 0 && (digits.size() - at) % 3 == 0) {
            out.push_back(',');
        }
        out.push_back(digits[at]);
    }
    return out;
}

std::string bytes_in_words(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 6> units{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        return count_of_things(bytes, "byte", "bytes");
    }
    auto value = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    while (value >= 1023.5 && unit + 1 < units.size()) {
        value /= 1024;
        ++unit;
    }
    return with_digits(value, value < 9.95 ? 1 : 0).append(" ").append(units[unit]);
}

std::string part_in_words(std::uint64_t bytes, std::uint64_t of) {
    auto part = bytes_in_words(bytes);
    const auto whole = bytes_in_words(of);
    const auto unit = whole.substr(whole.find(' '));
    if (part.ends_with(unit)) {
        part.resize(part.size() - unit.size());
    }
    return part + " of " + whole;
}

std::string short_time_in_words(double seconds) {
    const auto size = std::abs(seconds);
    const std::string sign = seconds < 0 && size >= 0.0005 ? "-" : "";
    if (size < 0.9995) {
        return sign + with_digits(size * 1000, 0) + " ms";
    }
    return sign + with_digits(size, size < 9.95 ? 1 : 0) + " s";
}

std::string time_in_words(std::chrono::seconds time) {
    const auto seconds = static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
    if (seconds >= 2 * 86'400) {
        return count_of_things(seconds / 86'400, "day", "days");
    }
    if (seconds >= 2 * 3'600) {
        return count_of_things(seconds / 3'600, "hour", "hours");
    }
    if (seconds >= 2 * 60) {
        return count_of_things(seconds / 60, "minute", "minutes");
    }
    return count_of_things(seconds, "second", "seconds");
}

std::string percent(std::optional<double> share) {
    if (!share) {
        return "none yet";
    }
    const auto value = *share * 100;
    return with_digits(value, value > 0 && value < 9.95 ? 1 : 0) + " %";
}

std::string utc(wall_time at) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(at);
    const auto day = std::chrono::floor<std::chrono::days>(whole);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss time{whole - day};
    std::array<char, 40> text{};
    const auto size = std::snprintf(text.data(),
                                    text.size(),
                                    "%04d-%02u-%02uT%02d:%02d:%02dZ",
                                    static_cast<int>(date.year()),
                                    static_cast<unsigned>(date.month()),
                                    static_cast<unsigned>(date.day()),
                                    static_cast<int>(time.hours().count()),
                                    static_cast<int>(time.minutes().count()),
                                    static_cast<int>(time.seconds().count()));
    return {text.data(), static_cast<std::size_t>(std::clamp(size, 0, 39))};
}

summary make_summary(const stats_inputs& in) {
    summary out;
    out.uptime = std::chrono::floor<std::chrono::seconds>(in.uptime);
    out.since = in.at - std::chrono::floor<std::chrono::milliseconds>(in.uptime);
    out.requests = answered_requests(in.counts);
    out.hit_ratio = in.since_start.hit_ratio();
    out.byte_hit_ratio = in.since_start.byte_hit_ratio();
    out.hits = hits(in.counts);
    out.store_bytes = in.counts.body_bytes_from_store;
    out.sibling_hits = in.counts.requests[static_cast<std::size_t>(outcome::sibling)];
    out.sibling_bytes = in.counts.body_bytes_from_siblings;
    out.shared_fetches = in.counts.requests[static_cast<std::size_t>(outcome::collapsed)];
    out.shared_fetch_bytes = in.counts.body_bytes_from_collapsing;
    out.requests_spared = out.hits + out.sibling_hits + out.shared_fetches;
    out.bytes_spared = out.store_bytes + out.sibling_bytes + out.shared_fetch_bytes;
    out.seconds_spared = static_cast<double>(in.counts.wait_spared) / 1e6;
    for (const auto& cells : in.counts.admission_by_policy) {
        out.writes_spared += cells.refused;
        out.written_bytes_spared += cells.bytes_refused;
    }
    const auto stored_after_all = in.memory.promoted + in.unadmitted.objects;
    const auto bytes_after_all = in.memory.promoted_bytes + in.unadmitted.bytes;
    out.writes_spared -= std::min(stored_after_all, out.writes_spared);
    out.written_bytes_spared -= std::min(bytes_after_all, out.written_bytes_spared);
    out.on_disk = in.disk.has_value();
    out.resident_bytes = in.process.resident_bytes;
    out.disk_bytes = in.disk ? in.disk->bytes : 0;
    if (out.requests != 0) {
        out.cpu_seconds_per_1000_requests = in.process.cpu_seconds * 1000 /
                                            static_cast<double>(out.requests);
    }
    out.hits_lost = in.counts.admission_hits_lost;
    out.hit_bytes_lost = in.counts.admission_hit_bytes_lost;
    out.day = day_in_words(in);
    out.not_well = look_for_trouble(in, out.notes);
    out.headline = headline_of(out);
    out.text = in_sentences(out);
    out.figures = figures_of(out);
    return out;
}

nlohmann::ordered_json summary_json(const stats_inputs& inputs) {
    const auto in_short = make_summary(inputs);
    nlohmann::ordered_json out;
    out["well"] = in_short.not_well.empty();
    out["headline"] = in_short.headline;
    out["not_well"] = in_short.not_well;
    out["notes"] = in_short.notes;
    out["text"] = in_short.text;
    out["figures"] = figures_json(in_short);
    out["since"] = utc(in_short.since);
    out["requests"] = in_short.requests;
    out["hit_ratio"] = known_or_null(in_short.hit_ratio);
    out["byte_hit_ratio"] = known_or_null(in_short.byte_hit_ratio);
    const auto& day = inputs.within_a_day;
    out["last_day"] = {
        {"period", in_short.day},
        {"seconds", std::chrono::floor<std::chrono::seconds>(inputs.day_covers).count()},
        {"requests", day.requests},
        {"hits", day.hits},
        {"requests_spared", day.spared()},
        {"bytes_spared", day.bytes_spared()},
        {"requests_by_siblings", day.by_siblings},
        {"bytes_by_siblings", day.bytes_by_siblings}};
    out["spared"] = {{"requests", in_short.requests_spared},
                     {"bytes", in_short.bytes_spared},
                     {"seconds", in_short.seconds_spared},
                     {"requests_by_store", in_short.hits},
                     {"bytes_by_store", in_short.store_bytes},
                     {"requests_by_siblings", in_short.sibling_hits},
                     {"bytes_by_siblings", in_short.sibling_bytes},
                     {"requests_by_shared_fetches", in_short.shared_fetches},
                     {"bytes_by_shared_fetches", in_short.shared_fetch_bytes}};
    out["disk"] = disk_json(inputs);
    out["writes_spared"] = {{"objects", in_short.writes_spared},
                            {"bytes", in_short.written_bytes_spared},
                            {"of", in_short.on_disk ? "disk" : "memory"}};
    out["costs"] = {
        {"resident_bytes", in_short.resident_bytes},
        {"cpu_seconds_per_1000_requests", known_or_null(in_short.cpu_seconds_per_1000_requests)},
        {"disk_bytes", in_short.disk_bytes},
        {"hits_lost", in_short.hits_lost},
        {"hit_bytes_lost", in_short.hit_bytes_lost}};
    out["siblings"] = inputs.peers ? siblings_in_short(*inputs.peers)
                                   : nlohmann::ordered_json::object();
    return out;
}

}  // namespace reprise::proxy::admin
