// Whatever bytes stand in the state file, decode yields a filter that works or a reason, and takes
// no more memory than the settings ask for. The checksums would keep a fuzzer out of everything
// behind them, so each input is tried as it is and once more with both made right.

#include "filter/admission_state.hpp"

#include "tests/fuzz/require.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <chrono>
#include <span>
#include <vector>

namespace {

using namespace reprise::fuzz;
namespace filter = reprise::filter;

constexpr filter::admission_settings settings{
    .objects = 40, .age = std::chrono::seconds{60}, .false_positive_rate = 0.01, .layers = 2};
constexpr std::chrono::sys_seconds now{std::chrono::seconds{1'700'000'000}};
constexpr std::size_t header_bytes = 112;

void put(std::byte* at, std::uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) {
        at[i] = static_cast<std::byte>(value >> (8 * i));
    }
}

void try_decode(std::span<const std::byte> wire) {
    const auto read = filter::decode(wire, settings, now);
    if (read.has_error()) {
        require(read.error().category() == filter::admission_category());
        require(!read.error().message().empty());
        return;
    }
    require(wire.size() == filter::encoded_size(settings));
    const auto known = filter::decode(filter::encode(*read->filter, read->seed), settings, now);
    require(known.has_value() && known->seed == read->seed);
    const filter::key_hash key{.low = 1, .high = 2};
    const auto before = read->filter->peek(key);
    require(before == known->filter->peek(key));
    read->filter->note(key, now);
    require(read->filter->peek(key) >= 1);
    (void)read->filter->figures(now);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto wire = std::as_bytes(std::span{data, size});
    try_decode(wire);
    if (size >= header_bytes + 8) {
        std::vector<std::byte> summed(wire.begin(), wire.end());
        put(summed.data() + header_bytes - 8, XXH3_64bits(summed.data(), header_bytes - 8));
        put(summed.data() + size - 8, XXH3_64bits(summed.data(), size - 8));
        try_decode(summed);
    }
    return 0;
}
