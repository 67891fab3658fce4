#pragma once
// How much is measured. The form of three minutes and the test's form differ from the whole one in
// these numbers alone.

#include <cstddef>
#include <string>
#include <vector>

namespace reprise::bench {

struct plan {
    std::string form = "whole";
    unsigned rounds = 5;   ///< of each row, all servers in turn in each
    unsigned seconds = 2;  ///< of load for each server in a round
    unsigned tail_rounds = 3;
    unsigned memory_rounds = 3;
    unsigned scale_rounds = 5, lock_rounds = 3;
    double tail_seconds = 5;  ///< of requests at a fixed rate, in a round
    unsigned rate_rounds = 2;
    double rate_seconds = 5;           ///< of a client that is limited, in a round
    double tail_rate = 5000;           ///< requests a second
    std::size_t idle = 3000;           ///< connections held open
    std::size_t half_heads = 8000;     ///< or half hellos
    std::size_t asked_once = 100'000;  ///< hosts whose tunnels are opened
    std::size_t slow_readers = 500;
    unsigned peak_wait = 60;         ///< seconds from the peak's end to the look at what is left
    std::size_t stored = 100'000;    ///< objects whose memory is counted
    std::size_t purged = 100'000;    ///< objects purged by tag
    std::size_t shrunk = 100'000;    ///< objects of 10,000 bytes that a smaller store drops
    std::size_t listed = 1'000'000;  ///< objects of which a digest is published
    std::size_t seen = 300'000;      ///< keys in a generation of the admission filter

    std::string program;  ///< the proxy under measurement
    std::string before;   ///< another build of it, or empty
    std::string shim;     ///< the preloaded library
    std::string folder;   ///< for all that is written meanwhile; goes at the end
    std::string profile;  ///< folder for profiles of what holds a loop in the tails; empty: none
    std::vector<std::string> only;  ///< parts or rows; none: all

    /// Whether a row is asked for: its own name, that of its part, or nothing in particular.
    [[nodiscard]] bool wants(const std::string& part, const std::string& row) const {
        if (only.empty()) {
            return true;
        }
        for (const auto& name : only) {
            if (name == part || row.rfind(name, 0) == 0) {
                return true;
            }
        }
        return false;
    }
    /// Whether anything may be asked for of a part whose rows' names begin so.
    [[nodiscard]] bool wants_any(const std::string& part,
                                 const std::vector<std::string>& beginnings) const {
        if (only.empty()) {
            return true;
        }
        for (const auto& name : only) {
            for (const auto& beginning : beginnings) {
                if (name == part || name.rfind(beginning, 0) == 0) {
                    return true;
                }
            }
        }
        return false;
    }
};

}  // namespace reprise::bench
