#pragma once
// What plugin.config and remap.config say of a rule, as a value; or what is wrong with it, and what would be right.

#include <chrono>
#include <reprise/admission.h>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::trafficserver {

/// At which request an object is stored.
enum class policy {
    hits,    ///< at the second, or the one that hits= says
    always,  ///< at the first: the filter is told of each, and asked nothing
    never,   ///< at none
};

struct rule_options {
    std::string name = "default";
    policy when = policy::hits;
    /// Its `state` points into `state` below; use opened().
    reprise_admission_options filter = REPRISE_ADMISSION_OPTIONS_INIT;
    std::string state;  ///< absolute, or empty: nothing is kept
    std::chrono::seconds save{300};
    unsigned refresh = 8;              ///< one hit in so many tells the filter; 0: none does
    bool internal = false;             ///< requests that other plug-ins make are asked, too
    std::vector<std::string> matches;  ///< URLs with *; a first ! makes one an exception. None: all
    bool says_more_than_a_name = false;  ///< of what is shared by name

    [[nodiscard]] reprise_admission_options opened() const noexcept;
};

/// Reads "objects=10M", "policy=nth-hit" and so on, one a word. `runtime` is where a relative state lies.
/// @throws std::invalid_argument with the word and what would be right, std::bad_alloc
[[nodiscard]] rule_options parse_rule(std::span<const char* const> words, std::string_view runtime);

/// Whether two rules may share what a name stands for.
[[nodiscard]] bool same_filter(const rule_options& a, const rule_options& b) noexcept;

/// True when `pattern`, in which * stands for any run of characters, is the whole of `text`.
/// Time: O(pattern x text) at worst.
[[nodiscard]] bool matches_whole(std::string_view pattern, std::string_view text) noexcept;

/// Whether the rule is for this URL: any of its patterns matches, and no exception does. Rules of exceptions alone are
/// for all else.
[[nodiscard]] bool is_for(const rule_options& rule, std::string_view url) noexcept;

}  // namespace reprise::trafficserver
