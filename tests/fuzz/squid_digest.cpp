// Whatever bytes a Squid sends, they make a digest or a reason within the reader's limit, and a
// digest is the same once it is sent on. Any text has a form in Squid, and that form is its own.

#include "filter/squid_digest.hpp"

#include "filter/squid_key.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

namespace {

namespace filter = reprise::filter;

constexpr std::uint64_t most_bytes = 1 << 16;

void must(bool holds) {
    if (!holds) {
        std::abort();
    }
}

void try_decode(std::span<const std::byte> wire) {
    const auto read = filter::squid_digest::decode(wire, most_bytes);
    if (read.has_error()) {
        must(read.error().category() == filter::squid_category());
        must(read.error().message() != "unknown error");
        return;
    }
    must(read->bytes() <= most_bytes);
    must(wire.size() == filter::squid_block_bytes + read->bytes());
    must(read->fill() <= 0.65);
    must(std::isfinite(read->estimated_keys()) && read->estimated_keys() >= 0);
    const auto again = filter::encode_squid_digest(read->size(), read->reported(), read->mask());
    must(again.has_value());
    const auto decoded = filter::squid_digest::decode(*again, most_bytes);
    must(decoded.has_value() && decoded->size() == read->size());
    must(std::equal(read->mask().begin(), read->mask().end(), decoded->mask().begin()));
}

void try_url(std::string_view text) {
    const auto form = filter::squid_url(text);
    must(filter::squid_url(form) == form);
    must(form.size() <= text.size() + 1);
    must(filter::squid_key_of(text) == filter::squid_raw_key(form));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try_decode(std::as_bytes(std::span{data, size}));
    try_url({reinterpret_cast<const char*>(data), size});
    return 0;
}
