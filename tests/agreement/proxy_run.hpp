#pragma once
// A trace, played through the program itself, one request after another.

#include "tests/agreement/played_trace.hpp"
#include "tests/support/proxy_process.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace reprise::tests {

struct proxy_outcome {
    std::uint64_t requests = 0;
    std::uint64_t reached_origin = 0;
    std::uint64_t origin_bytes = 0;
    std::uint64_t wrong = 0;  ///< answers without their whole, right body
    double seconds = 0;
    // Of the proxy's process, from when it was ready until all it had to write was written.
    std::uint64_t io_written = 0;       ///< wchar of /proc/PID/io: what write calls took
    std::uint64_t io_written_back = 0;  ///< write_bytes: what became dirty pages of a disk's files
    json stats;                         ///< at the end
};

/// Plays all of it on one connection, in order.
/// @throws std::runtime_error when the proxy does not start or ends
[[nodiscard]] proxy_outcome play(const played_trace& trace, json settings);

/// What the memory tier charges for a response with a body of so many bytes, as a running proxy
/// says it of a few sizes; between these it is taken for linear.
class memory_charge {
public:
    /// Asks a proxy. @throws std::runtime_error
    [[nodiscard]] static memory_charge measured(std::uint32_t largest);
    [[nodiscard]] std::uint64_t operator()(std::uint32_t bytes) const;

private:
    std::vector<std::pair<std::uint32_t, std::uint64_t>> known_;  // size and charge, ascending
};

}  // namespace reprise::tests
