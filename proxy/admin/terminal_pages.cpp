#include "proxy/admin/terminal_pages.hpp"

#include "proxy/admin/summary.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

// member() gives a null for whatever is missing, and the functions that read values have a word for
// that, so no page asks whether a name is there. Every text goes through for_terminal().

namespace reprise::proxy::admin {

namespace {

using nlohmann::json;

const json& member(const json& of, std::string_view name) {
    static const json nothing;
    if (!of.is_object()) {
        return nothing;
    }
    const auto found = of.find(name);
    return found == of.end() ? nothing : *found;
}

const json& member(const json& of, std::initializer_list<std::string_view> path) {
    const json* at = &of;
    for (const auto name : path) {
        at = &member(*at, name);
    }
    return *at;
}

std::string text_of(const json& value) {
    if (value.is_string()) {
        return for_terminal(value.get_ref<const std::string&>());
    }
    if (value.is_null()) {
        return {};
    }
    return for_terminal(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::uint64_t count_of(const json& value) {
    return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

std::optional<double> number_of(const json& value) {
    return value.is_number() ? std::optional{value.get<double>()} : std::nullopt;
}

bool is_true(const json& value) {
    return value.is_boolean() && value.get<bool>();
}

// Columns, where each character takes one: of what stands here none takes two.
std::size_t columns(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
}

// Lines behind the first begin with `indent`; as far in is where the first begins.
void append_wrapped(std::string& out,
                    std::string_view text,
                    std::size_t width,
                    std::string_view indent) {
    auto at = columns(indent);
    for (bool first = true; !text.empty(); first = false) {
        const auto end = std::min(text.find(' '), text.size());
        const auto word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!first && at + 1 + columns(word) > width) {
            out.append("\n").append(indent);
            at = columns(indent);
        } else if (!first) {
            out.append(" ");
            ++at;
        }
        out.append(word);
        at += columns(word);
    }
    out.append("\n");
}

using table_row = std::vector<std::string>;

// Each column as wide as its widest text; the last as it is, or broken between words at `width`, where the
// others leave it room. 0: nowhere.
void append_table(std::string& out, const std::vector<table_row>& rows, std::size_t width = 0) {
    constexpr std::size_t least_room = 24;
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], columns(row[i]));
        }
    }
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const auto before = columns(line);
            if (i + 1 == row.size() && before + least_room <= width) {
                append_wrapped(line, row[i], width, std::string(before, ' '));
                break;
            }
            line.append(row[i]);
            if (i + 1 < row.size()) {
                line.append(widths[i] - columns(row[i]) + 2, ' ');
            }
        }
        line.resize(line.find_last_not_of(" \n") + 1);
        out.append(line).append("\n");
    }
}

std::string seconds_of(const json& value) {
    const auto number = number_of(value);
    return number ? std::to_string(static_cast<std::int64_t>(std::llround(*number))) + " s" : "?";
}

std::string saved_time(const json& value) {
    const auto number = number_of(value);
    return number ? short_time_in_words(*number) : "?";
}

// "In the last 3 hours", and behind its figure since when.
table_row row_of_day(const json& day) {
    auto period = text_of(member(day, "period"));
    if (period.empty()) {
        period = "in the last day or since the start";  // told by a release that did not say
    }
    period[0] = period[0] == 'i' ? 'I' : period[0];
    const auto comma = period.find(',');
    const auto spared = member(day, "requests_spared").is_null() ? "hits" : "requests_spared";
    auto more = "spared the origins in " + grouped(count_of(member(day, spared))) + " of " +
                grouped(count_of(member(day, "requests"))) + " requests";
    if (const auto siblings = count_of(member(day, "requests_by_siblings")); siblings != 0) {
        more += "; of that by siblings " + grouped(siblings) + " (" +
                bytes_in_words(count_of(member(day, "bytes_by_siblings"))) + ")";
    }
    if (comma != std::string::npos) {
        more += period.substr(comma);
    }
    return {period.substr(0, comma), bytes_in_words(count_of(member(day, "bytes_spared"))), more};
}

table_row row_of_disk(const json& disk) {
    auto more = std::string{"used now"};
    if (const auto path = text_of(member(disk, "path")); !path.empty()) {
        more += ", in " + path + "; " + bytes_in_words(count_of(member(disk, "free_bytes"))) +
                " are free there";
    }
    return {
        "Disk",
        part_in_words(count_of(member(disk, "bytes")), count_of(member(disk, "capacity_bytes"))),
        more};
}

/// Who is kept to limits.client_rate; empty where nobody was.
std::optional<table_row> row_of_limits(const json& clients) {
    const auto now = count_of(member(clients, "rate_known"));
    const auto waits = count_of(member(clients, "rate_waits"));
    if (now == 0 && waits == 0) {
        return std::nullopt;
    }
    return table_row{"Limited",
                     grouped(now) + (now == 1 ? " client" : " clients"),
                     "now, by limits.client_rate; " + grouped(waits) + " waits since the start"};
}

std::string described(const json& variant) {
    const auto& fresh = member(variant, "freshness");
    auto text = text_of(member(variant, "status")) + ", " +
                bytes_in_words(count_of(member(variant, "body_bytes"))) + ", age " +
                seconds_of(member(fresh, "age")) + ", fresh for " +
                seconds_of(member(fresh, "lifetime")) + " in all (" +
                text_of(member(fresh, "lifetime_from")) + ")";
    if (const auto left = number_of(member(fresh, "ttl"))) {
        text += *left > 0 ? ", " + seconds_of(member(fresh, "ttl")) + " of it left" : ", stale";
    }
    if (const auto vary = text_of(member(variant, "vary")); !vary.empty()) {
        text += "; by " + vary + ": " + text_of(member(variant, "selecting"));
    }
    if (is_true(member(variant, "purged_softly"))) {
        text += "; purged softly";
    }
    return text;
}

void append_stored(std::vector<table_row>& rows, const json& told) {
    const auto& stored = member(told, "stored");
    if (!stored.is_array()) {
        return;
    }
    if (stored.empty()) {
        rows.push_back({"stored", "nothing in memory"});
    }
    for (const auto& one : stored) {
        rows.push_back(
            {is_true(member(one, "selected")) ? "stored, this one" : "stored, another one",
             described(one)});
    }
}

std::string times_asked(const json& admission) {
    const auto seen = count_of(member(admission, "seen_before"));
    const auto most = count_of(member(admission, "counts_to"));
    if (is_true(member(admission, "seen_by_siblings"))) {
        return seen == 0 ? "asked for before, of a sibling" : "asked for before, of a sibling too";
    }
    if (seen == 0) {
        return "not asked for before";
    }
    if (most == 1) {
        return "asked for before";
    }
    return "asked for " + std::string{most > 0 && seen >= most ? "at least " : ""} +
           (seen == 1 ? "once" : grouped(seen) + " times") + " before";
}

// Whether its answer may be stored, and if so, whether admission lets it in. Admission is
// not asked of what may not be stored.
void append_storing(std::vector<table_row>& rows, const json& told) {
    const auto& storing = member(told, "storing");
    const auto& largest = member(told, "largest");
    const auto most = largest.is_object() ? bytes_in_words(count_of(member(largest, "bytes"))) +
                                                " (" + text_of(member(largest, "setting")) + ")"
                                          : std::string{};
    if (storing.is_object()) {
        const auto section = text_of(member(storing, "section"));
        const auto why = text_of(member(storing, "says")) + " (" +
                         text_of(member(storing, "reason")) +
                         (section.empty() ? ")" : ", " + section + ")") +
                         (section.empty() && !most.empty() ? ": at most " + most : "");
        const bool last = text_of(member(storing, "from")) == "last-answer";
        if (!member(storing, "may").is_null()) {
            rows.push_back({"storing", (last ? "its last answer was not stored: " : "no: ") + why});
            return;
        }
        rows.push_back({"storing", "only if the origin allows it; else: " + why});
    }
    const auto& admission = member(told, "admission");
    if (!admission.is_object()) {
        return;
    }
    auto text = text_of(member(admission, "policy")) + ": " + times_asked(admission) +
                (is_true(member(admission, "admits"))
                     ? ", would be stored now" + (most.empty() ? "" : " if no larger than " + most)
                     : ", would not be stored yet");
    if (const auto rule = text_of(member(admission, {"rule", "url"})); !rule.empty()) {
        text += ", by the rule " + rule;
    }
    rows.push_back({"admission", text});
}

// The freshness rule in force; or that of those there are none is, and which of them nearly were.
void append_rules(std::vector<table_row>& rows, const json& told) {
    if (const auto& rule = member(told, "freshness_rule"); rule.is_object()) {
        auto text = text_of(member(rule, "name")) + ", " + text_of(member(rule, "url"));
        if (const auto least = count_of(member(rule, "at_least")); least > 0) {
            text += "; fresh for at least " + grouped(least) + " s";
        }
        if (const auto& most = member(rule, "at_most"); !most.is_null()) {
            text += "; for at most " + grouped(count_of(most)) + " s";
        }
        std::string aside;
        for (const auto& one : member(rule, "overrides")) {
            aside.append(aside.empty() ? "" : ", ").append(text_of(one));
        }
        text += aside.empty() ? "" : "; overrides the origin's " + aside;
        text += is_true(member(rule, "ignores_reload")) ? "; a client's reload is a hit too" : "";
        rows.push_back({"freshness rule", text});
    } else if (const auto count = count_of(member(told, {"rules", "freshness"})); count > 0) {
        rows.push_back({"freshness rule", "none of " + grouped(count) + " is for this URL"});
    }
    for (const auto& one : member(told, {"rules", "near"})) {
        rows.push_back({"not for it",
                        text_of(member(one, "rule")) + ", " + text_of(member(one, "url")) + ": " +
                            text_of(member(one, "but"))});
    }
}

std::string verdict_in_words(const json& verdict) {
    auto text = text_of(member(verdict, "ruling")) + ", by " + text_of(member(verdict, "rule"));
    if (const auto section = text_of(member(verdict, "section")); !section.empty()) {
        text += " (" + section + ")";
    }
    if (const auto why = text_of(member(verdict, "why")); !why.empty()) {
        text += ": " + why;
    }
    if (const auto detail = text_of(member(verdict, "detail")); !detail.empty()) {
        text += " " + detail;
    }
    return text;
}

}  // namespace

std::string for_terminal(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const bool c1 = byte == 0xc2 && i + 1 < text.size() &&
                        static_cast<unsigned char>(text[i + 1]) < 0xa0;
        if (byte < 0x20 || byte == 0x7f || c1) {
            out.push_back('?');
            i += c1 ? 1 : 0;
        } else {
            out.push_back(text[i]);
        }
    }
    return out;
}

bool says_well(const json& stats) {
    return is_true(member(stats, {"summary", "well"}));
}

std::string status_page(const json& stats, std::size_t width) {
    const auto& in_short = member(stats, "summary");
    auto out = text_of(member(in_short, "headline")) + "\n";
    for (const auto& one : member(in_short, "not_well")) {
        out.append("  ! ");
        append_wrapped(out, text_of(one), width, "    ");
    }
    for (const auto& one : member(in_short, "notes")) {
        out.append("  - ");
        append_wrapped(out, text_of(one), width, "    ");
    }
    out.append("\n");
    append_wrapped(out, text_of(member(in_short, "text")), width, "");
    out.append("\n");
    std::vector<table_row> rows;
    for (const auto& one : member(in_short, "figures")) {
        rows.push_back({text_of(member(one, "label")),
                        text_of(member(one, "value")),
                        text_of(member(one, "more"))});
    }
    if (const auto& day = member(in_short, "last_day"); day.is_object()) {
        rows.push_back(row_of_day(day));
    }
    if (const auto& disk = member(in_short, "disk"); disk.is_object()) {
        rows.push_back(row_of_disk(disk));
    }
    if (auto limits = row_of_limits(member(stats, "clients"))) {
        rows.push_back(std::move(*limits));
    }
    append_table(out, rows, width);
    const auto& siblings = member(in_short, "siblings");
    if (siblings.is_object() && !siblings.empty()) {
        rows.assign({{"Sibling", "digest now", "asked", "hits", "bytes", "time saved"}});
        for (const auto& [name, one] : siblings.items()) {
            rows.push_back({for_terminal(name),
                            text_of(member(one, "state")),
                            grouped(count_of(member(one, "asked"))),
                            grouped(count_of(member(one, "hits"))),
                            bytes_in_words(count_of(member(one, "bytes"))),
                            saved_time(member(one, "seconds_saved"))});
        }
        out.append("\nSiblings, since the start:\n");
        append_table(out, rows);
    }
    out.append("\nSince ").append(text_of(member(in_short, "since")));
    if (const auto version = text_of(member(stats, "version")); !version.empty()) {
        out.append("; version ").append(version);
    }
    return out.append("\n");
}

std::string status_line(const json& stats) {
    const auto& in_short = member(stats, "summary");
    return std::string{says_well(stats) ? "well" : "not well"} + "  requests " +
           grouped(count_of(member(in_short, "requests"))) + "  hit ratio " +
           percent(number_of(member(in_short, "hit_ratio"))) + "  spared " +
           bytes_in_words(count_of(member(in_short, {"spared", "bytes"}))) + "  writes spared " +
           grouped(count_of(member(in_short, {"writes_spared", "objects"}))) + "  memory " +
           bytes_in_words(count_of(member(in_short, {"costs", "resident_bytes"}))) +
           " now; the rest since " + text_of(member(in_short, "since")) + "\n";
}

std::string explanation_page(const json& told) {
    auto out = text_of(member(told, "method")) + " " + text_of(member(told, "url")) + "\n";
    const auto& verdict = member(told, "verdict");
    std::vector<table_row> rows{{"ruling", verdict_in_words(verdict)}};
    if (const auto status = text_of(member(verdict, "cache_status")); !status.empty()) {
        rows.push_back({"cache-status", status});
    } else if (const auto forward = text_of(member(verdict, "fwd")); !forward.empty()) {
        rows.push_back({"forwarded for", forward});
    }
    append_stored(rows, told);
    if (is_true(member(told, "on_disk"))) {
        rows.push_back({"on disk", "something of this URL"});
    }
    if (is_true(member(told, "fetch_under_way"))) {
        rows.push_back({"fetched", "just now, for somebody else"});
    }
    if (text_of(member(verdict, "ruling")) != "refused") {
        append_storing(rows, told);
    }
    append_rules(rows, told);
    if (const auto& siblings = member(told, "siblings"); siblings.is_object()) {
        std::string names;
        for (const auto& one : member(siblings, "claims")) {
            names.append(names.empty() ? "" : ", ").append(text_of(one));
        }
        auto text = text_of(member(siblings, "why_none_is_asked"));
        if (text.empty()) {
            text = (names.empty() ? "no digest says that one has it"
                                  : "by their digests these may have it: " + names) +
                   " (" + text_of(member(siblings, "note")) + ")";
        }
        rows.push_back({"siblings", std::move(text)});
    }
    if (const auto& opened = member(told, "opened"); opened.is_object()) {
        rows.push_back({"intercepted",
                        is_true(member(opened, "would"))
                            ? "yes, by " + text_of(member(opened, "by"))
                            : "no: " + text_of(member(opened, "why"))});
    }
    for (const auto& one : member(told, "assumes")) {
        rows.push_back({"if", text_of(one)});
    }
    append_table(out, rows);
    return out;
}

std::string purge_page(const json& told) {
    const auto soft = text_of(member(told, "mode")) == "soft";
    const std::string what = soft ? "made stale: " : "dropped: ";
    if (const auto url = text_of(member(told, "url")); !url.empty()) {
        const auto variants = count_of(member(told, "variants"));
        return variants == 0 ? "nothing was stored of " + url + "\n"
                             : what + url + " (" + grouped(variants) +
                                   (variants == 1 ? " response)\n" : " responses)\n");
    }
    if (const auto prefix = text_of(member(told, "prefix")); !prefix.empty()) {
        return what + "all that begins with " + prefix + "\n";
    }
    std::string tags;
    for (const auto& one : member(told, "tags")) {
        tags.append(tags.empty() ? "" : ", ").append(text_of(one));
    }
    return what + "what " + text_of(member(told, "origin")) + " tagged " + tags + "\n";
}

}  // namespace reprise::proxy::admin
