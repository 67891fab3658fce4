#pragma once
// One thing wrong with a file of settings, told so that the operator can put it right.
// A file's mistakes are gathered, not thrown at the first: a report holds them, and a place says
// where in the file the reader stands. What a mistake quotes came from the file, so it is
// shortened, and its control characters are escaped.

#include "config/json.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::config {

struct mistake {
    std::string path;   ///< "listeners[1].upstream"; "line 3, column 7" where the text is no JSON
    std::string value;  ///< as JSON text of at most about 60 characters; empty: none to show
    std::string right;  ///< what is wrong with it and what would be right
    bool operator==(const mistake&) const = default;
};

/// `listeners[1].upstream: "htp://b": the scheme must be http: write http://host[:port]`
[[nodiscard]] std::string to_string(const mistake& wrong);

/// What a mistake's `right` ends with, where a word is near to one that would be right: "; did you mean NAME?".
[[nodiscard]] std::string did_you_mean(std::string_view name);

/// Gathers mistakes. The first `most` are kept, the rest only counted, so that a hostile file
/// cannot make a report larger than itself.
class report {
public:
    static constexpr std::size_t most = 100;

    void add(mistake wrong);
    [[nodiscard]] std::size_t count() const noexcept { return kept_.size() + further_; }
    [[nodiscard]] bool is_full() const noexcept { return kept_.size() >= most; }
    /// What was kept; a last entry counts the rest.
    [[nodiscard]] std::vector<mistake> take() &&;

private:
    std::vector<mistake> kept_;
    std::size_t further_ = 0;
};

/// Where in the file a reader stands, and the report it adds to, which must outlive it.
class place {
public:
    explicit place(report& found) : found_{&found} {}

    /// A member's place. A name that is none of ours is quoted and shortened.
    [[nodiscard]] place member(std::string_view name) const;
    [[nodiscard]] place element(std::size_t index) const;

    /// Reports `value`. Returns nullopt, so that a reader can `return here.wrong(...)`.
    std::nullopt_t wrong(const json_value& value, std::string right) const;
    /// Reports something that has no value to show.
    std::nullopt_t wrong(std::string right) const;

    [[nodiscard]] const report& found() const noexcept { return *found_; }

private:
    report* found_;
    std::string path_;
};

}  // namespace reprise::config
