#pragma once
// What a proxy that runs knows of other settings: its ghosts' figures (proxy/cache/policy/what_if.hpp), of
// the last hour, asked of /stats and told as an answer is.
//
// A ghost differs from what is in force in one thing: admission, the policy, or the room. So what is
// recommended of two kinds was measured one by one, and the answer says so.

#include "tools/replay/results.hpp"
#include "tools/replay/setup.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::replay {

/// What one ghost had.
struct live_row {
    enum class kind : std::uint8_t { admission, policy, room };
    kind of = kind::admission;
    std::string name;       ///< "second-hit with probation 10%", "gdsf", "x2"
    bool in_force = false;  ///< of `admission` one at most is
    double hit_ratio = 0, byte_hit_ratio = 0;
    double wait_hit_ratio = 0;        ///< of all waiting, what hits spare; 0 where nobody timed any
    std::uint64_t written_bytes = 0;  ///< admitted within the span, of all keys
    std::uint64_t room = 0;           ///< of `room` and what is in force: bytes of all tiers
};

struct live_report {
    std::string version;
    double span = 0;                     ///< seconds that the figures cover
    std::uint64_t requests = 0;          ///< of these, sampled
    double sample = 0;                   ///< share of all keys
    std::uint64_t memory = 0, disk = 0;  ///< bytes of room, as set
    std::string advice;                  ///< the proxy's own sentence
    std::vector<live_row> rows;
};

/// @param stats  the body of /stats
/// @throws std::runtime_error naming what is not there, or not as it should be
[[nodiscard]] live_report read_live(std::string_view stats);

/// What `rows` say about.
struct live_answer {
    const live_row* in_force = nullptr;  ///< null: too little was seen to say anything
    const live_row* admission =
        nullptr;                       ///< better than what is in force by a point; null: none is
    const live_row* policy = nullptr;  ///< likewise
    std::uint64_t enough =
        0;                 ///< the least room from which on all more brings less than a point; 0:
                           ///< more than the largest that is known
    std::string settings;  ///< JSON of the two, as reprise --check-config takes them; empty: none
};
/// @pre `of` outlives the answer
[[nodiscard]] live_answer answer_of(const live_report& of, objective wanted);

void print_live(std::ostream& out, const live_report& of, objective wanted);
void print_live_page(std::ostream& out, const live_report& of, objective wanted);
void print_live_json(std::ostream& out, const live_report& of, objective wanted);

/// Asks the proxy at `where` ("http://127.0.0.1:3180", "127.0.0.1:3180", the path of its Unix socket)
/// for /stats, 30 seconds at most. `token`: for an address that wants one; may be empty.
/// @throws std::runtime_error saying what may be done
[[nodiscard]] std::string stats_of(const std::string& where, const std::string& token);

}  // namespace reprise::replay
