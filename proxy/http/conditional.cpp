#include "proxy/http/conditional.hpp"

#include "proxy/http/characters.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/http/range.hpp"

#include <algorithm>
#include <charconv>

// An entity-tag goes before a date in both directions: where both sides have one, no date is asked.
// judge_head() is stricter than the others: any difference that it finds outdates what is stored.

namespace reprise::proxy::http {

namespace {

std::string_view without_weakness(std::string_view etag) noexcept {
    return etag.starts_with("W/") ? etag.substr(2) : etag;
}

/// Calls `each(tag)` for the members of an If-None-Match line until it returns false. Not
/// for_each_member: a backslash in an entity-tag is itself (RFC 9110 8.8.3), not an escape.
template <class Each>
void for_each_tag(std::string_view line, Each&& each) {
    std::size_t at = 0;
    while (at < line.size()) {
        if (line[at] == ',' || is_blank(line[at])) {
            ++at;
            continue;
        }
        const auto begin = at;
        const auto open = line.substr(at).starts_with("W/") ? at + 2 : at;
        if (open < line.size() && line[open] == '"') {
            const auto close = line.find('"', open + 1);
            at = close == std::string_view::npos ? line.size() : close + 1;
        }
        at = std::min(line.find(',', at), line.size());
        auto tag = line.substr(begin, at - begin);
        while (is_blank(tag.back())) {
            tag.remove_suffix(1);
        }
        if (!each(tag)) {
            return;
        }
    }
}

std::string_view first_value(field_list fields, field_id id) noexcept {
    for (const auto& line : fields) {
        if (line.id == id && !line.value.empty()) {
            return line.value;
        }
    }
    return {};
}

bool any_tag_matches(field_list request, std::string_view stored_etag) noexcept {
    bool matched = false;
    for (const auto& line : request) {
        if (line.id == field_id::if_none_match && !matched) {
            for_each_tag(line.value, [&](std::string_view tag) {
                matched = tag == "*" || equal_weak(tag, stored_etag);
                return !matched;
            });
        }
    }
    return matched;
}

/// What If-Modified-Since is measured against (RFC 9111 4.3.2), to the second.
wall_time modification_time(field_list stored, wall_time response_time, wall_time now) noexcept {
    for (const auto id : {field_id::last_modified, field_id::date}) {
        if (const auto* line = find(stored, id)) {
            if (const auto when = parse_date(line->value, now)) {
                return *when;
            }
        }
    }
    return std::chrono::floor<std::chrono::seconds>(response_time);
}

bool same_name(const field& a, const field& b) noexcept {
    if (a.id != field_id::unknown || b.id != field_id::unknown) {
        return a.id == b.id;
    }
    return iequals(a.name, b.name);
}

/// Lines of a 304 that describe the bytes of a body; the stored body's own stay. A Content-MD5 was the whole
/// entity's in each answer (RFC 2616 14.15), and the public suite of caches has it updated.
bool describes_stored_bytes(const field& line) noexcept {
    return line.id == field_id::content_length || line.id == field_id::content_encoding ||
           line.id == field_id::content_range ||
           (is_content_digest(line) && line.id != field_id::content_md5);
}

bool has_other_length(field_list not_modified, std::uint64_t stored_length) noexcept {
    return std::any_of(not_modified.begin(), not_modified.end(), [&](const field& line) {
        if (line.id != field_id::content_length) {
            return false;
        }
        std::uint64_t stated = 0;
        const auto* const end = line.value.data() + line.value.size();
        const auto [stop, error] = std::from_chars(line.value.data(), end, stated);
        return error != std::errc{} || stop != end || stated != stored_length;
    });
}

bool has_prefix(std::string_view name, std::string_view prefix) noexcept {
    return name.size() >= prefix.size() && iequals(name.substr(0, prefix.size()), prefix);
}

}  // namespace

bool is_strong(std::string_view etag) noexcept {
    return etag.size() >= 2 && etag.front() == '"' && etag.back() == '"';
}

bool equal_weak(std::string_view a, std::string_view b) noexcept {
    return !a.empty() && !b.empty() && without_weakness(a) == without_weakness(b);
}

bool equal_strong(std::string_view a, std::string_view b) noexcept {
    return is_strong(a) && a == b;
}

validators validators_of(field_list response, wall_time now) noexcept {
    validators known;
    known.etag = first_value(response, field_id::etag);
    for (const auto& line : response) {
        if (line.id == field_id::last_modified && parse_date(line.value, now)) {
            known.last_modified = line.value;
            break;
        }
    }
    return known;
}

std::string_view to_string(precondition verdict) noexcept {
    switch (verdict) {
    case precondition::none: return "none";
    case precondition::not_modified: return "not-modified";
    case precondition::serve: return "serve";
    case precondition::forward: return "forward";
    }
    return "none";
}

precondition judge_preconditions(field_list request,
                                 unsigned stored_status,
                                 field_list stored,
                                 wall_time response_time,
                                 wall_time now) noexcept {
    bool only_origin_can_tell = false;
    bool has_none_match = false;
    std::size_t modified_since_lines = 0;
    const field* modified_since = nullptr;
    for (const auto& line : request) {
        switch (line.id) {
        case field_id::if_match:
        case field_id::if_unmodified_since: only_origin_can_tell = true; break;
        case field_id::if_none_match: has_none_match = true; break;
        case field_id::if_modified_since:
            modified_since = &line;
            ++modified_since_lines;
            break;
        default: break;
        }
    }
    if (stored_status < 200 || stored_status > 299) {
        return precondition::none;
    }
    if (only_origin_can_tell) {
        return precondition::forward;
    }
    if (has_none_match) {
        const bool current = any_tag_matches(request, first_value(stored, field_id::etag));
        return current ? precondition::not_modified : precondition::serve;
    }
    if (modified_since_lines == 1) {
        if (const auto since = parse_date(modified_since->value, now)) {
            const bool current = modification_time(stored, response_time, now) <= *since;
            return current ? precondition::not_modified : precondition::serve;
        }
    }
    return precondition::none;
}

bool belongs_in_not_modified(const field& stored) noexcept {
    return !has_prefix(stored.name, "content-") || stored.id == field_id::content_location ||
           has_prefix(stored.name, "content-security-policy");
}

void append_validation(std::string& head, const validators& known) {
    if (!known.etag.empty()) {
        head.append("If-None-Match: ").append(known.etag).append("\r\n");
    }
    if (!known.last_modified.empty()) {
        head.append("If-Modified-Since: ").append(known.last_modified).append("\r\n");
    }
}

std::string_view to_string(validation verdict) noexcept {
    switch (verdict) {
    case validation::confirmed: return "confirmed";
    case validation::other_validator: return "other-validator";
    case validation::other_length: return "other-length";
    }
    return "other-validator";
}

validation judge_validation(field_list stored,
                            std::uint64_t stored_length,
                            field_list not_modified,
                            wall_time now) noexcept {
    const auto old_etag = first_value(stored, field_id::etag);
    const auto new_etag = first_value(not_modified, field_id::etag);
    const auto old_date = first_value(stored, field_id::last_modified);
    const auto new_date = first_value(not_modified, field_id::last_modified);

    const bool same_strong_date = !old_date.empty() && old_date == new_date &&
                                  has_strong_last_modified(stored, now);
    if (!old_etag.empty() && !new_etag.empty()) {
        const bool same = is_strong(new_etag)
                              ? equal_strong(old_etag, new_etag) ||
                                    (same_strong_date && tag_was_weakened(stored, not_modified))
                              : equal_weak(old_etag, new_etag);
        if (!same) {
            return validation::other_validator;
        }
    } else if (!new_etag.empty()) {
        const bool same = !old_date.empty() && old_date == new_date;
        if (!same || (is_strong(new_etag) && !same_strong_date)) {
            return validation::other_validator;
        }
    } else if (!old_date.empty() && !new_date.empty() && old_date != new_date) {
        return validation::other_validator;
    }
    if (!equal_strong(old_etag, new_etag) && has_other_length(not_modified, stored_length)) {
        return validation::other_length;
    }
    return validation::confirmed;
}

bool tag_was_weakened(field_list stored, field_list not_modified) noexcept {
    const auto old_etag = first_value(stored, field_id::etag);
    const auto new_etag = first_value(not_modified, field_id::etag);
    return is_strong(new_etag) && !is_strong(old_etag) && equal_weak(old_etag, new_etag);
}

std::string_view to_string(head_effect effect) noexcept {
    switch (effect) {
    case head_effect::nothing: return "nothing";
    case head_effect::freshen: return "freshen";
    case head_effect::outdate: return "outdate";
    }
    return "nothing";
}

head_effect judge_head(unsigned stored_status,
                       field_list stored,
                       std::uint64_t stored_length,
                       unsigned head_status,
                       field_list head_response) noexcept {
    if (head_status != 200 || stored_status != 200) {
        return head_effect::nothing;
    }
    const auto old_etag = first_value(stored, field_id::etag);
    const auto new_etag = first_value(head_response, field_id::etag);
    const bool same_etag = is_strong(new_etag) ? equal_strong(old_etag, new_etag)
                                               : equal_weak(old_etag, new_etag);
    const auto old_date = first_value(stored, field_id::last_modified);
    const auto new_date = first_value(head_response, field_id::last_modified);
    if (!old_date.empty() && old_date == new_date && tag_was_weakened(stored, head_response)) {
        return head_effect::nothing;  // of the bytes before they were compressed
    }
    if ((!new_etag.empty() && !same_etag) || (!new_date.empty() && old_date != new_date) ||
        has_other_length(head_response, stored_length)) {
        return head_effect::outdate;
    }
    return new_etag.empty() && new_date.empty() ? head_effect::nothing : head_effect::freshen;
}

namespace {

// Meant only for the client whose request this was.
bool is_cookie(field_id id) noexcept {
    return id == field_id::set_cookie || id == field_id::set_cookie2;
}

}  // namespace

std::optional<std::vector<field>> freshen(field_list stored,
                                          field_list not_modified,
                                          std::size_t most_bytes,
                                          std::size_t most_lines) {
    const connection_options named{not_modified};
    std::vector<field> updates;
    for (const auto& line : not_modified) {
        if (!describes_stored_bytes(line) && !is_cookie(line.id) && !is_hop_by_hop(line, named)) {
            updates.push_back(line);
        }
    }
    std::vector<field> result;
    result.reserve(stored.size() + updates.size());
    for (const auto& line : stored) {
        const bool replaced = line.id == field_id::date || line.id == field_id::age ||
                              std::any_of(updates.begin(), updates.end(), [&](const field& update) {
                                  return same_name(line, update);
                              });
        if (!replaced) {
            result.push_back(line);
        }
    }
    result.insert(result.end(), updates.begin(), updates.end());

    std::size_t bytes = 0;
    for (const auto& line : result) {
        bytes += line.name.size() + line.value.size() + 4;
    }
    if (bytes > most_bytes || result.size() > most_lines) {
        return std::nullopt;
    }
    return result;
}

}  // namespace reprise::proxy::http
