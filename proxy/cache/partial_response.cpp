#include "proxy/cache/partial_response.hpp"

#include "proxy/cache/recency.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/http/reuse.hpp"
#include "proxy/http/targeted.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

// A whole is taken for the one part that it is (parts_of), and parts that lack nothing become a
// whole (complete_if_whole): so combine() knows one case. The head that comes of it is
// updated_by()'s, the body with_part()'s.

namespace reprise::proxy::cache {

namespace {

using http::field_id;

constexpr std::string_view whole_status_line = "HTTP/1.1 200 OK\r\n";

// Fields of a 206, or of a stored part, that the whole would not have.
bool is_of_the_part(const http::field& line) noexcept {
    return line.id == field_id::content_range || line.id == field_id::content_length ||
           line.id == field_id::age || http::is_content_digest(line);
}

void write_head(response_draft& into, http::field_list lines, std::uint64_t length) {
    into.head = whole_status_line;
    for (const auto& line : lines) {
        if (!is_of_the_part(line)) {
            into.head.append(line.name).append(": ").append(line.value).append("\r\n");
        }
    }
    if (length != partial_body::unknown) {
        into.head.append("Content-Length: ").append(std::to_string(length)).append("\r\n");
    }
    index_head(into);
    into.status = 200;
}

/// A whole as the one part that it is.
partial_body parts_of(const stored_response& stored) {
    if (stored.parts()) {
        return *stored.parts();
    }
    partial_body all;
    all.total = stored.has_content() ? stored.size() : 0;
    if (all.total > 0) {
        all.held.push_back({0, stored.content()});
    }
    return all;
}

bool disagree(std::uint64_t a, std::uint64_t b) noexcept {
    return a != b && a != partial_body::unknown && b != partial_body::unknown;
}

}  // namespace

std::optional<part_place> part_place_of(http::field_list partial) {
    if (http::count(partial, field_id::content_range) != 1) {
        return std::nullopt;
    }
    const auto text = http::find(partial, field_id::content_range)->value;
    auto range = http::parse_content_range(text);
    if (range.total == 0 && text.ends_with("/*")) {
        // An unknown end is behind every other: so it reads as one that is the largest number.
        std::string ended{text.substr(0, text.size() - 1)};
        ended += std::to_string(partial_body::unknown);
        range = http::parse_content_range(ended);
    }
    if (range.total == 0) {
        return std::nullopt;
    }
    return part_place{{range.first, range.last}, range.total};
}

std::string_view strong_validator_of(http::field_list response, wall_time now) {
    if (const auto* etag = http::find(response, field_id::etag)) {
        const bool strong = http::count(response, field_id::etag) == 1 &&
                            http::is_strong(etag->value) && etag->value.size() >= 2 &&
                            etag->value.starts_with('"') && etag->value.ends_with('"');
        return strong ? etag->value : std::string_view{};
    }
    if (http::count(response, field_id::last_modified) != 1) {
        return {};
    }
    const auto* modified = http::find(response, field_id::last_modified);
    const http::field asked{field_id::if_range, "If-Range", modified->value};
    return http::if_range_holds({&asked, 1}, response, now) ? modified->value : std::string_view{};
}

bool are_of_one_representation(const stored_response& one, const stored_response& other) {
    const auto lines = one.validating_fields();
    const auto other_lines = other.validating_fields();
    const auto validator = strong_validator_of(lines, one.freshness().response_time);
    return !validator.empty() &&
           validator == strong_validator_of(other_lines, other.freshness().response_time);
}

response_draft made_of_part(std::string_view head, const part_place& place, body_ptr content) {
    std::vector<http::field> lines;
    head.remove_prefix(std::min(head.find("\r\n") + 2, head.size()));
    // We wrote the head from a parsed one, so it cannot fail to parse.
    (void)http::parse_field_lines(head, lines, std::numeric_limits<unsigned>::max());
    response_draft made;
    write_head(made, lines, place.total);
    auto parts = std::make_shared<partial_body>();
    parts->held.push_back({place.range.first, std::move(content)});
    parts->total = place.total;
    made.parts = std::move(parts);
    return made;
}

std::optional<response_draft> updated_by(const stored_response& stored,
                                         http::field_list partial,
                                         const http::freshness_facts& newer,
                                         const combining_rules& rules) {
    const auto old_lines = stored.fields();
    auto lines = http::freshen(old_lines, partial, rules.head_bytes, rules.head_fields);
    if (!lines) {
        return std::nullopt;
    }
    const auto freshness = http::is_personal({}, *lines) ? rules.freshness.for_one_client()
                                                         : rules.freshness;
    const auto directives = http::without(http::read_governing_directives(*lines, rules.targeted),
                                          freshness.set_aside);
    if (directives.no_cache_fields || directives.private_fields) {
        const http::withheld_names withheld{*lines};
        std::erase_if(*lines, [&](const http::field& line) { return withheld.has(line); });
    }
    std::optional<response_draft> made{std::in_place};
    const auto length = stored.parts() ? stored.parts()->total : stored.size();
    write_head(*made, *lines, length);
    made->directives = directives;
    // Age is in no stored head: what it said, and how far its Date lay back, is in the newer's
    // initial age.
    const auto* date = http::find(*lines, field_id::date);
    const auto dated = (date == nullptr ? std::nullopt
                                        : http::parse_date(date->value, newer.response_time))
                           .value_or(newer.response_time);
    made->freshness = http::freshness_of(200, *lines, made->directives, dated, dated, freshness);
    made->freshness.initial_age = newer.initial_age;
    made->freshness.response_time = newer.response_time;
    made->reusable_until = stored.parts() ? wall_time::min()
                                          : http::reusable_until(made->directives, made->freshness);
    made->weak_last_modified = stored.weak_last_modified();
    made->vary = stored.vary().spec();
    made->selecting = stored.selecting();
    made->content = stored.content();
    made->parts = stored.parts();
    return made;
}

combined_response combine(const stored_response& stored,
                          const stored_response& added,
                          const combining_rules& rules) {
    if (!added.parts()) {
        return {};  // complete_if_whole: it takes the other's place
    }
    const auto old_lines = stored.validating_fields();
    const auto new_lines = added.fields();
    const auto validating_lines = added.validating_fields();
    const auto validator = strong_validator_of(old_lines, stored.freshness().response_time);
    auto before = parts_of(stored);
    const auto total = added.parts()->total;
    if (stored.status() != 200 || validator.empty() || disagree(before.total, total) ||
        validator != strong_validator_of(validating_lines, added.freshness().response_time)) {
        return {};
    }
    const auto& part = added.parts()->held.front();
    const auto ends_at = before.held.empty() ? 0 : before.held.back().end();
    const bool beyond = (before.knows_total() && part.end() > before.total) || ends_at > total;
    if (beyond) {
        return {};
    }
    auto together = with_part(before, part, total, rules.most_bytes);
    if (!together) {
        return {combination::too_large, nullptr};
    }
    // What came to a part that was asked for before adds its bytes, and says nothing new.
    auto made = is_outdated_by(added, stored)
                    ? std::optional{stored.draft_without_content()}
                    : updated_by(stored, new_lines, added.freshness(), rules);
    if (!made) {
        return {};
    }
    made->weak_last_modified = stored.weak_last_modified() || added.weak_last_modified();
    const auto& last = added.asked_at() >= stored.asked_at() ? added : stored;
    made->asked_at = last.asked_at();
    made->asked_turn = last.asked_turn();
    made->wait = longer(stored.wait(), added.wait());
    if (total != partial_body::unknown && made->length_at == made->head.size()) {
        made->head.append("Content-Length: ").append(std::to_string(total)).append("\r\n");
    }
    made->content = nullptr;
    made->parts = std::make_shared<partial_body>(std::move(*together));
    made->reusable_until = wall_time::min();
    complete_if_whole(*made);
    return {combination::combined, stored_response::make(*made)};
}

void complete_if_whole(response_draft& response) {
    if (!response.parts || !response.parts->is_whole()) {
        return;
    }
    response.content = response.parts->held.front().bytes;
    response.parts.reset();
    response.reusable_until = http::reusable_until(response.directives, response.freshness);
}

std::string_view to_string(part_use use) noexcept {
    switch (use) {
    case part_use::none: return "none";
    case part_use::head: return "head";
    case part_use::held: return "held";
    case part_use::unsatisfiable: return "unsatisfiable";
    case part_use::gap: return "gap";
    }
    return "none";
}

part_plan plan_parts(const stored_response& stored,
                     std::string_view method,
                     http::field_list request,
                     wall_time now) {
    const auto& parts = *stored.parts();
    part_plan plan;
    if (method != "GET") {
        plan.use = method == "HEAD" ? part_use::head : part_use::none;
        return plan;
    }
    const auto lines = stored.validating_fields();
    plan.ranged = http::find(request, field_id::range) != nullptr;
    if (plan.ranged) {
        const auto asked = http::judge_ranges(method, request, lines, parts.total, now);
        if (asked.answer == http::range_answer::unsatisfiable && parts.knows_total()) {
            plan.use = part_use::unsatisfiable;
        }
        if (asked.answer != http::range_answer::part || asked.count != 1) {
            return plan;
        }
        plan.wanted = asked.parts[0];
    } else if (parts.knows_total() && parts.held.front().first == 0) {
        plan.wanted = {0, parts.total - 1};
    } else {
        return plan;
    }
    const auto gap = parts.gap_in(plan.wanted);
    if (!gap) {
        plan.use = part_use::held;
        return plan;
    }
    plan.validator = strong_validator_of(lines, now);
    // Where no end is known the range asked for may reach beyond it, and nothing may be promised. Without a validator
    // nothing that comes could be joined to what is held.
    if (*gap == plan.wanted || !parts.knows_total() || plan.validator.empty()) {
        return plan;
    }
    plan.use = part_use::gap;
    plan.gap = *gap;
    plan.open = gap->last + 1 == parts.total;
    return plan;
}

bool fills_gap(const part_plan& plan,
               std::uint64_t total,
               unsigned status,
               http::field_list fields,
               wall_time now) {
    if (status != 206 || plan.validator.empty() ||
        strong_validator_of(fields, now) != plan.validator) {
        return false;
    }
    const auto place = part_place_of(fields);
    return place && place->range == plan.gap && place->total == total;
}

bool ends_parts(const part_plan& plan,
                std::uint64_t total,
                unsigned status,
                http::field_list fields,
                wall_time now) {
    if (status == 404 || status == 410 || status == 416) {
        return true;
    }
    if (status < 200 || status > 299) {
        return false;
    }
    if (plan.validator.empty() || strong_validator_of(fields, now) != plan.validator) {
        return true;
    }
    const auto place = status == 206 ? part_place_of(fields) : std::nullopt;
    return place && disagree(place->total, total);
}

}  // namespace reprise::proxy::cache
