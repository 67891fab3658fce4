// Whatever bytes a Squid sends, they make a digest or a reason within the reader's limit, and a
// digest is the same once it is sent on. Any text has a form in Squid, and that form is its own.

#include "filter/squid_digest.hpp"

#include "filter/squid_key.hpp"
#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

namespace {

using namespace reprise::fuzz;
namespace filter = reprise::filter;

constexpr std::uint64_t most_bytes = 1 << 16;

void try_decode(std::span<const std::byte> wire) {
    const auto read = filter::squid_digest::decode(wire, most_bytes);
    if (read.has_error()) {
        require(read.error().category() == filter::squid_category());
        require(read.error().message() != "unknown error");
        return;
    }
    require(read->bytes() <= most_bytes);
    require(wire.size() == filter::squid_block_bytes + read->bytes());
    require(read->fill() <= 0.65);
    require(std::isfinite(read->estimated_keys()) && read->estimated_keys() >= 0);
    const auto again = filter::encode_squid_digest(read->size(), read->reported(), read->mask());
    require(again.has_value());
    const auto decoded = filter::squid_digest::decode(*again, most_bytes);
    require(decoded.has_value() && decoded->size() == read->size());
    require(std::equal(read->mask().begin(), read->mask().end(), decoded->mask().begin()));
}

void try_url(std::string_view text) {
    const auto form = filter::squid_url(text);
    require(filter::squid_url(form) == form);
    require(form.size() <= text.size() + 1);
    require(filter::squid_key_of(text) == filter::squid_raw_key(form));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try_decode(std::as_bytes(std::span{data, size}));
    try_url(text_of(data, size));
    return 0;
}
