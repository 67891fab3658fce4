#pragma once
// Which sibling is asked next for the fleet's figures (FLEET.md): all in turn, in an order drawn anew
// for each round, but for those that failed lately. No socket, no clock.
//
// One that does not answer takes as long as may be waited for it. So whoever is asked next is one that has answered:
// else a fleet of which most are gone would hear so seldom of those that live that they pass for dead.

#include "proxy/base/clock.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::peer {

/// Threads   one.
class fleet_rounds {
public:
    static constexpr std::chrono::seconds first_rest{2}, longest_rest{60};

    explicit fleet_rounds(std::uint64_t seed)
        : random_{static_cast<std::minstd_rand::result_type>(seed)} {}

    /// From now on these; one that was there before has failed as often as before.
    void set(const std::vector<std::string>& names);

    /// Whom to ask now; none: there is nobody, or all rest. O(siblings).
    [[nodiscard]] std::optional<std::string> next(steady_time now);

    /// What came of it: whoever failed rests, twice as long each time.
    void ended(std::string_view name, bool well, steady_time now);

private:
    struct member {
        std::string name;
        bool is_well = false;  // it answered well, last
        unsigned failures = 0;
        steady_time rests_until{};
    };

    [[nodiscard]] const member* one_that_is_well();

    std::vector<member> members_;
    std::size_t turn_ = 0;      // those before it had theirs in this round
    bool last_failed_ = false;  // whoever was asked last
    std::minstd_rand random_;
};

}  // namespace reprise::proxy::peer
