#pragma once
// A request's preferences among languages, codings or charsets (RFC 9110 12.5.2 to 12.5.4), in an
// order of our own: two requests that prefer alike read alike.
// The weight alone ranks (12.4.2). Some recipients do take the order of members for a rank, "but
// this behavior cannot be relied upon" (12.5.4): so Accept-Language: "en, de" and "de, en" are one
// list here, which is what lets a cache serve both from one response. Browsers write weights.

#include "proxy/http/fields.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace reprise::proxy::http {

/// The members of all lines of one field. Views of the lines.
class preference_list {
public:
    static constexpr std::size_t most_members = 16;

    struct member {
        std::string_view name;    ///< a token as sent: its letters have no case
        std::string_view weight;  ///< "0", "0.5": no last zeros; empty: 1
    };

    /// Reads every line of `request` with this name. O(lines + bytes + members x most_members), no
    /// allocation.
    preference_list(field_list request, std::string_view name) noexcept;

    /// False when a member is not token [;q=weight] or there are more than most_members different
    /// ones: then the values must be compared as they stand.
    [[nodiscard]] bool is_plain() const noexcept { return plain_; }

    /// Sorted by name, then weight; each pair once.
    [[nodiscard]] std::span<const member> members() const noexcept {
        return {members_.data(), count_};
    }

private:
    /// False when there is no room for another.
    bool insert(const member& added) noexcept;

    std::array<member, most_members> members_{};
    std::size_t count_ = 0;
    bool plain_ = true;
};

}  // namespace reprise::proxy::http
