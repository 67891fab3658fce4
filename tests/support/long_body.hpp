#pragma once
// Bodies too long to hold: made and checked piece by piece.
// The bytes repeat with a period that no buffer size divides, so that a piece lost, doubled or out
// of place shows at once.

#include "tests/support/message.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::tests {

/// Immutable after construction: any number of threads may draw pieces.
class long_body {
public:
    explicit long_body(std::uint64_t size, std::uint64_t seed = 1)
        : size_{size},
          twice_{patterned(period, seed)} {
        twice_ += twice_;  // so that no piece wraps
    }

    [[nodiscard]] std::uint64_t size() const { return size_; }

    /// Bytes from `offset`, at most `most`, fewer at the end.
    [[nodiscard]] std::string_view piece(std::uint64_t offset, std::size_t most) const {
        const auto left = size_ - std::min(offset, size_);
        const auto length = static_cast<std::size_t>(
            std::min<std::uint64_t>({left, most, static_cast<std::uint64_t>(period)}));
        return std::string_view{twice_}.substr(static_cast<std::size_t>(offset % period), length);
    }

private:
    static constexpr std::size_t period = (std::size_t{1} << 20) + 7;
    std::uint64_t size_;
    std::string twice_;
};

/// Compares what comes, in order, with what should.
class long_body_check {
public:
    explicit long_body_check(const long_body& expected) : expected_{expected} {}

    void feed(std::string_view bytes) {
        while (!bytes.empty()) {
            const auto want = expected_.piece(seen_, bytes.size());
            if (want.empty() || bytes.substr(0, want.size()) != want) {
                right_ = false;
                return;
            }
            seen_ += want.size();
            bytes.remove_prefix(want.size());
        }
    }
    [[nodiscard]] std::uint64_t seen() const { return seen_; }
    /// What came so far is a prefix of what should.
    [[nodiscard]] bool is_right() const { return right_; }
    [[nodiscard]] bool is_whole() const { return right_ && seen_ == expected_.size(); }

private:
    const long_body& expected_;
    std::uint64_t seen_ = 0;
    bool right_ = true;
};

}  // namespace reprise::tests
