// Whatever bytes stand in the state file of a ring, decode yields a filter that works or a reason.
// The checksums would keep a fuzzer out of everything behind them, so each input is tried as it is
// and once more with both made right.

#include "filter/stamped_state.hpp"

#include "tests/fuzz/require.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <span>
#include <vector>

namespace {

using namespace reprise::fuzz;
namespace filter = reprise::filter;

constexpr filter::bloom_size size{100, 3};
constexpr unsigned generations = 5;
constexpr std::size_t summed_bytes = 64;  // of the header

void try_decode(std::span<const std::byte> wire) {
    auto read = filter::decode_stamped(wire, size, generations, filter::seed_id{});
    if (read.has_error()) {
        require(read.error().category() == filter::stamped_category());
        require(!read.error().message().empty());
        return;
    }
    require(wire.size() == filter::encoded_stamped_size(size));
    auto& filter = read->filter;
    require(filter.bits_on() == filter.snapshot().bits_on());
    const auto again = filter::decode_stamped(
        filter::encode(*read, filter::seed_id{}), size, generations, filter::seed_id{});
    require(again.has_value() && again->filter == filter);
    filter.insert({.low = 1, .high = 2});
    for (unsigned i = 0; i < generations; ++i) {
        require(filter.may_contain({.low = 1, .high = 2}));
        filter.advance();
    }
    filter.sweep();
    require(filter.bits_on() == 0);
}

void put_sum(std::vector<std::byte>& wire, std::size_t bytes) {
    const auto sum = std::uint64_t{XXH3_64bits(wire.data(), bytes)};
    for (unsigned i = 0; i < 8; ++i) {
        wire[bytes + i] = static_cast<std::byte>(sum >> (8 * i));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
    const auto wire = std::as_bytes(std::span{data, bytes});
    try_decode(wire);
    if (bytes >= summed_bytes + 16) {
        std::vector<std::byte> summed(wire.begin(), wire.end());
        put_sum(summed, summed_bytes);
        put_sum(summed, bytes - 8);
        try_decode(summed);
    }
    return 0;
}
