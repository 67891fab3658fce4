#pragma once
// The requests that are played, both through the proxy and to the replay tool.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace reprise::tests {

struct played_request {
    std::uint32_t object = 0;  ///< by first appearance, from 0
    std::uint32_t bytes = 0;   ///< of its body, the same in every request
};

struct played_trace {
    std::string name;
    std::vector<played_request> requests;
    std::uint32_t objects = 0;
    std::uint64_t unique_bytes = 0;
};

/// The first `most` requests of a file in the format of tests/data/traces, plain or zstd, each size
/// divided by `scale` (and at least 1).
/// @throws std::runtime_error
[[nodiscard]] played_trace read_trace(const std::string& path,
                                      std::uint64_t most,
                                      std::uint64_t scale);

/// A trace of its own making, the same each time: Zipf popularity, most objects asked for once, and
/// log-normal sizes up to 200 KB.
[[nodiscard]] played_trace made_trace(std::uint32_t requests);

/// Writes it in the same format, a second a request. `charge` turns an object's size into what the
/// file says it has. @throws std::runtime_error
void write_trace(const played_trace& trace,
                 const std::string& path,
                 const std::function<std::uint64_t(std::uint32_t)>& charge);

}  // namespace reprise::tests
