#pragma once
// As much of Traffic Server as the plug-ins call where threads meet: transactions that a test makes, statistics, ticks.

#include <array>
#include <cstdint>
#include <string>
#include <ts/ts.h>
#include <utility>
#include <vector>

namespace reprise::trafficserver::test {

/// A request; on one thread at a time, as the server has it.
struct fake_txn {
    std::uint64_t id = 0;
    std::string path;
    int found = TS_CACHE_LOOKUP_MISS;
    bool is_cacheable = true;
    bool is_refused = false;  ///< "no store"
    std::int64_t body = 1'000;
    std::array<void*, 4> slots{};
    std::vector<std::pair<TSHttpHookID, TSCont>> hooks{};
    unsigned reenabled = 0;

    TSHttpTxn as_txn() noexcept { return reinterpret_cast<TSHttpTxn>(this); }
    /// Calls what waits for this moment: of all transactions, and of this one.
    void reach(TSHttpHookID moment);
    /// Look-up, response, end.
    void run();
};

/// Fires at the plug-ins' continuations: of the task threads, and each second.
void threads_are_ready();
void second_passes();
void server_ends();
/// By as many seconds from what it is: time() says so from now on.
void set_clock_back(std::int64_t by);

[[nodiscard]] std::int64_t figure(const std::string& name);
void set_figure(const std::string& name, std::int64_t value);  ///< of the server's own

}  // namespace reprise::trafficserver::test
