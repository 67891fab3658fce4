#pragma once
// Request traces of kinds that no trace in ../shared/traces is of, made from a seed: so that what was
// chosen on those can be tried on others, which nobody has chosen it on.
//
//     soon    what is asked for again is asked for within seconds, and then never: strict admission
//             asks its origin twice for all of it
//     huge    a few objects of 100 to 400 MB have two fifths of the bytes
//     drift   popularity moves: one request in twenty makes an object popular that was not there
//     scan    now and then somebody asks for everything, and mostly for something else the next time
//     origins a third of the hosts answer in about 5 ms, a third in 50, a third in 500: as popular as
//             each other, with objects of the same sizes, a tenth of the requests for new ones
//
// The laws are plain ones (Zipf's for popularity, log-normal sizes, exponential gaps), and their
// parameters are in the source. The same kind, seed and length give the same trace where the
// standard library is the same.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace reprise::tools {

enum class trace_kind : std::uint8_t { soon, huge, drift, scan, origins };

[[nodiscard]] std::optional<trace_kind> trace_kind_named(std::string_view name) noexcept;

/// A line of a trace, as tests/data/traces has it.
struct made_request {
    std::uint64_t second = 0;  ///< since the first
    std::uint64_t key = 0;     ///< 1 and up, by first appearance
    std::uint64_t bytes = 0;   ///< the same for all requests of a key
    /// Microseconds that a fetch would take at this moment; 0: the kind says nothing of that.
    std::uint64_t wait = 0;
    bool operator==(const made_request&) const = default;
};

/// In the order of time. Memory: some 60 bytes a key.
/// @throws what `to` throws
void make_trace(trace_kind kind,
                std::uint64_t seed,
                std::uint64_t requests,
                const std::function<void(const made_request&)>& to);

}  // namespace reprise::tools
