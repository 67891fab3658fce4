#include "proxy/http/preferences.hpp"

#include "proxy/http/characters.hpp"

#include <algorithm>
#include <optional>

namespace reprise::proxy::http {

namespace {

using member = preference_list::member;

/// RFC 9110 12.4.2: 0 to 1 with at most three decimals, in its shortest spelling.
std::optional<std::string_view> shortest_weight(std::string_view text) noexcept {
    const bool is_one = text.starts_with('1');
    const auto fraction = text.substr(std::min<std::size_t>(text.size(), 2));
    const bool is_weight = !text.empty() && (is_one || text.front() == '0') &&
                           (text.size() < 2 || text[1] == '.') && fraction.size() <= 3 &&
                           std::all_of(fraction.begin(), fraction.end(), [&](char c) {
                               return is_one ? c == '0' : is_digit(c);
                           });
    if (!is_weight) {
        return std::nullopt;
    }
    if (is_one) {
        return std::string_view{};
    }
    while (text.size() > 1 && (text.back() == '0' || text.back() == '.')) {
        const bool was_point = text.back() == '.';
        text.remove_suffix(1);
        if (was_point) {
            break;
        }
    }
    return text;
}

std::optional<member> read_member(std::string_view text) noexcept {
    const auto semicolon = text.find(';');
    member found{trimmed(text.substr(0, semicolon)), {}};
    if (found.name.empty() || !std::all_of(found.name.begin(), found.name.end(), is_tchar)) {
        return std::nullopt;
    }
    if (semicolon != std::string_view::npos) {
        const auto parameter = trimmed(text.substr(semicolon + 1));
        if (parameter.size() < 2 || lower(parameter[0]) != 'q' || parameter[1] != '=') {
            return std::nullopt;
        }
        const auto weight = shortest_weight(parameter.substr(2));
        if (!weight) {
            return std::nullopt;
        }
        found.weight = *weight;
    }
    return found;
}

/// By name without case, then by weight.
int compare(const member& a, const member& b) noexcept {
    const auto common = std::min(a.name.size(), b.name.size());
    for (std::size_t i = 0; i < common; ++i) {
        if (const int difference = lower(a.name[i]) - lower(b.name[i]); difference != 0) {
            return difference;
        }
    }
    return a.name.size() != b.name.size() ? (a.name.size() < b.name.size() ? -1 : 1)
                                          : a.weight.compare(b.weight);
}

}  // namespace

preference_list::preference_list(field_list request, std::string_view name) noexcept {
    for (const auto& line : request) {
        if (!iequals(line.name, name)) {
            continue;
        }
        for_each_member(line.value, [&](std::string_view text) {
            const auto found = read_member(text);
            plain_ = found && insert(*found);
            return plain_;
        });
        if (!plain_) {
            return;
        }
    }
}

// From the back, for lists are short and often sorted.
bool preference_list::insert(const member& added) noexcept {
    std::size_t place = count_;
    for (; place > 0; --place) {
        const int order = compare(members_[place - 1], added);
        if (order == 0) {
            return true;
        }
        if (order < 0) {
            break;
        }
    }
    if (count_ == most_members) {
        return false;
    }
    const auto at = members_.begin() + static_cast<std::ptrdiff_t>(place);
    const auto end = members_.begin() + static_cast<std::ptrdiff_t>(count_);
    std::copy_backward(at, end, end + 1);
    *at = added;
    ++count_;
    return true;
}

}  // namespace reprise::proxy::http
