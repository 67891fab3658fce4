#include "proxy/http/targeted.hpp"

#include "proxy/http/structured_fields.hpp"

#include <algorithm>

namespace reprise::proxy::http {

namespace {

/// A time as Cache-Control would have it: what is none is zero.
seconds time_of(const sf_value& value) noexcept {
    if (value.kind != sf_kind::integer || value.number < 0) {
        return seconds{0};
    }
    return std::min(seconds{value.number}, longest_delta);
}

bool is_meant(const sf_value& value) noexcept {
    return value.kind != sf_kind::boolean || value.number != 0;
}

bool names_fields(const sf_value& value) noexcept {
    return value.kind == sf_kind::string || value.kind == sf_kind::token ||
           value.kind == sf_kind::inner_list;
}

/// A member without "=" is true (RFC 9651 3.2): the plain form.
bool has_argument(const sf_value& value) noexcept {
    return value.kind != sf_kind::boolean;
}

void apply(response_directives& into, const sf_member& member) noexcept {
    const auto& [key, value] = member;
    const bool meant = is_meant(value);
    if (key == "max-age") {
        into.max_age = time_of(value);
    } else if (key == "s-maxage") {
        into.s_maxage = time_of(value);
    } else if (key == "stale-while-revalidate") {
        into.stale_while_revalidate = time_of(value);
    } else if (key == "stale-if-error") {
        into.stale_if_error = time_of(value);
    } else if (key == "no-store") {
        into.no_store = meant;
    } else if (key == "no-cache") {
        into.no_cache = meant;
        into.no_cache_fields = names_fields(value);
        into.no_cache_argument = has_argument(value);
    } else if (key == "private") {
        into.private_ = meant;
        into.private_fields = names_fields(value);
        into.private_argument = has_argument(value);
    } else if (key == "public") {
        into.public_ = meant;
    } else if (key == "must-revalidate") {
        into.must_revalidate = meant;
    } else if (key == "proxy-revalidate") {
        into.proxy_revalidate = meant;
    } else if (key == "must-understand") {
        into.must_understand = meant;
    } else if (key == "immutable") {
        into.immutable = meant;
    } else if (key == "no-transform") {
        into.no_transform = meant;
    }
}

bool has_members(std::string_view line) noexcept {
    dictionary_reader reader{line};
    const bool any = reader.next().has_value();
    while (reader.next()) {
    }
    return any && !reader.failed();
}

/// There are lines of `name`, and joined they are a dictionary with members. An empty one beside
/// others would leave a comma without a member.
bool is_valid(field_list response, std::string_view name) noexcept {
    bool any = false;
    for (const auto& line : response) {
        if (iequals(line.name, name)) {
            if (!has_members(line.value)) {
                return false;
            }
            any = true;
        }
    }
    return any;
}

}  // namespace

response_directives read_governing_directives(field_list response,
                                              std::span<const std::string> targets) noexcept {
    const auto governs = std::find_if(targets.begin(), targets.end(), [&](const std::string& name) {
        return is_valid(response, name);
    });
    if (governs == targets.end()) {
        return read_response_directives(response);
    }
    response_directives allowed;
    allowed.targeted = true;
    for (const auto& line : response) {
        if (iequals(line.name, *governs)) {
            dictionary_reader reader{line.value};
            while (const auto member = reader.next()) {
                apply(allowed, *member);
            }
        }
    }
    return allowed;
}

}  // namespace reprise::proxy::http
