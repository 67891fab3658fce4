// Whatever bytes a sibling sends as the fleet's figures, they make a set or a named reason; a set that
// came through is within its bounds, and the same once it is sent on. A table that takes it is no larger
// than it may be, knows nothing of its own node by hearsay, and tells what others take.

#include "proxy/peer/fleet_table.hpp"
#include "proxy/peer/fleet_wire.hpp"
#include "tests/fuzz/require.hpp"

#include <chrono>
#include <span>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy::peer;
using namespace std::chrono_literals;

constexpr reprise::proxy::steady_time now{1h};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto read = decode_fleet(std::as_bytes(std::span{data, size}));
    if (read.has_error()) {
        require(to_string(read.error()) != "?");
        return 0;
    }
    require(read->size() <= most_fleet_nodes);
    const auto wire = encode_fleet(*read);
    require(wire.size() <= most_fleet_bytes_written && wire.size() <= size);
    const auto again = decode_fleet(wire);
    require(again.has_value() && *again == *read);

    fleet_table table{"ann", 7};
    table.note_own({.up_ms = 1, .requests = 5}, now);
    table.take(*read, 3ms, now);
    const auto rows = table.rows(now);
    require(!rows.empty() && rows.size() <= most_fleet_nodes);
    for (const auto& row : rows) {
        require(row.is_own == (row.name == "ann"));
        require(!row.is_own || (row.figures.requests == 5 && row.alive));
        require(row.age <= fleet_table::kept_for);
    }
    const auto told = decode_fleet(table.told(now));
    require(told.has_value() && told->size() == rows.size());
    return 0;
}
