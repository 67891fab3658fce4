#pragma once
// The parts of the bench: each measures the rows of it that are asked for, and names what it can't.

#include "tools/bench_proxy/result.hpp"
#include "tools/bench_proxy/servers.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reprise::bench {

struct found_rows {
    std::vector<row> rows;
    std::vector<std::string> skipped;
    std::vector<std::string> notes;  ///< what the rows can't say in numbers
};

/// Processor time a request, beside floors and peers. README.md says how each row is made.
[[nodiscard]] found_rows measure_costs(const lab& of);
/// The same of what https is: tunnels, opened and not, and misses over TLS.
[[nodiscard]] found_rows measure_https_costs(const lab& of);
/// Resident memory of tunnels that are opened: of stalled handshakes, many hosts, slow readers.
[[nodiscard]] found_rows measure_https_memory(const lab& of);
/// Resident memory of connections, of what is stored, and of the whole after the costs' load.
[[nodiscard]] found_rows measure_memory(const lab& of);
/// For how long a loop is held, and hits' latencies, in quiet and while something else is done.
[[nodiscard]] found_rows measure_tails(const lab& of);
/// Processor time a request with two threads beside one, and the locks that were waited for.
[[nodiscard]] found_rows measure_scale(const lab& of);
/// Whether what limits.client_rate lets a client have is what it gets.
[[nodiscard]] found_rows measure_rates(const lab& of);

/// What is left of a peak's memory: it begins before the other parts and is looked at after them.
class peak {
public:
    /// Half heads on plan.half_heads connections, which are then closed. Nothing where the row is
    /// not asked for.
    explicit peak(const lab& of);
    ~peak();
    /// Waits until plan.peak_wait seconds have passed since the connections were closed.
    [[nodiscard]] found_rows measure();

private:
    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace reprise::bench
