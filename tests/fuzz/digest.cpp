// Whatever bytes a sibling sends, they make a digest or a reason, as a whole, as a delta and as news,
// within the memory that the reader allows; news that is refused has changed nothing. The checksums would keep a fuzzer out of everything behind
// them, so each input is tried as it is and once more with all of them made right: those of header
// and body, that of a delta's base, and that of the content, which needs a decoder without
// refusals.

#define XXH_INLINE_ALL
#include "filter/digest_replica.hpp"
#include "filter/digest_wire.hpp"
#include "filter/gap_code.hpp"
#include "filter/key_places.hpp"
#include "filter/little_endian.hpp"
#include "filter/place_sum.hpp"
#include "tests/fuzz/require.hpp"

#include <xxhash.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace {

using namespace reprise::fuzz;
namespace filter = reprise::filter;

constexpr filter::digest_limits limits{.bytes = 1 << 16, .false_positive_rate = 0.9};
constexpr std::size_t seed_at = 32, checksum_at = 64, base_checksum_at = 80, body_bytes_at = 104,
                      body_sum_at = 112, header_sum_at = 120;

template <class Result>
void require_named(const Result& refused) {
    require(refused.error().category() == filter::digest_category());
    require(refused.error().message() != "unknown error");
}

filter::seed_id seed_of(std::span<const std::byte> wire) {
    filter::seed_id seed{};
    if (wire.size() >= filter::digest_header_bytes) {
        std::copy_n(wire.begin() + seed_at, seed.size(), seed.begin());
    }
    return seed;
}

/// A digest that came through: usable, within limits, and the same once it is sent on.
void use(const filter::digest& read) {
    require(read.bytes() <= limits.bytes);
    require(read.false_positive_rate() <= limits.false_positive_rate);
    require(read.estimated_keys() >= 0);
    (void)read.may_contain({.low = 1, .high = 2});
    const auto wire = filter::encode(read);
    const auto again = filter::decode_digest(wire, read.stamp().seed, limits);
    require(again.has_value() && again->stamp() == read.stamp());
    require(std::equal(read.words().begin(), read.words().end(), again->words().begin()));
}

/// A digest such as the delta in `head` names as its base, but for the checksum of its bits.
filter::digest base_for(const filter::digest_head& head) {
    std::vector<std::uint64_t> words((head.shape.bits + 63) / 64);
    words.front() = 1;
    auto stamp = head.stamp;
    stamp.generation.counter = head.base_counter;
    return {head.shape, std::move(words), stamp};
}

filter::key_hash by_name(std::uint64_t name) {
    return {.low = name * 0x9e3779b97f4a7c15, .high = ~name};
}

void try_news(std::span<const std::byte> wire, const filter::digest_head& head) {
    filter::digest_replica held{base_for(head)};
    const std::vector<std::uint64_t> before(held.now().words().begin(), held.now().words().end());
    const auto sum = held.sum();
    const auto turned = held.apply(wire, by_name, limits);
    require(held.sum() == filter::place_sum(held.now().words()));
    if (turned.has_error()) {
        require_named(turned);
        require(held.sum() == sum);
        require(std::equal(before.begin(), before.end(), held.now().words().begin()));
        require(held.now().stamp() == base_for(head).stamp());
        return;
    }
    require(head.form == filter::digest_form::news && held.now().stamp() == head.stamp);
    require(turned->size() <= wire.size() * 64);
    held.read([](const filter::digest& now) {
        require(filter::encode(now).size() <= filter::digest_header_bytes + now.bytes());
    });
}

void try_all(std::span<const std::byte> wire) {
    const auto head = filter::read_digest_head(wire);
    const auto whole = filter::decode_digest(wire, seed_of(wire), limits);
    if (head.has_error()) {
        require_named(head);
        require(whole.error() == head.error());
        return;
    }
    if (whole.has_error()) {
        require_named(whole);
    } else {
        use(*whole);
    }
    if (head->shape.bits > limits.bytes * 8) {
        return;
    }
    try_news(wire, *head);
    const auto base = base_for(*head);
    const auto next = filter::apply_delta(wire, base, limits);
    if (next.has_error()) {
        require_named(next);
        return;
    }
    use(*next);
    const auto delta = filter::encode_delta(base, *next);
    require(delta.has_value() && filter::apply_delta(*delta, base, limits).has_value());
}

void put(std::vector<std::byte>& wire, std::size_t at, std::uint64_t value) {
    filter::put_little_endian(wire.data() + at, value);
}

void sum(std::vector<std::byte>& wire) {
    const auto body = std::span{wire}.subspan(filter::digest_header_bytes);
    put(wire, body_sum_at, XXH3_64bits(body.data(), body.size()));
    put(wire, header_sum_at, XXH3_64bits(wire.data(), header_sum_at));
}

/// Turns the places that a Golomb body lists, as far as it goes.
void turn_listed(std::span<const std::byte> body,
                 const filter::digest_head& head,
                 std::vector<std::uint64_t>& words) {
    filter::gap_reader in{body, head.divisor};
    std::uint64_t expected = 0;
    for (std::uint64_t i = 0; i < head.listed && expected < head.shape.bits; ++i) {
        const auto gap = in.next(head.shape.bits - 1 - expected);
        if (!gap) {
            break;
        }
        words[(expected + *gap) / 64] ^= std::uint64_t{1} << ((expected + *gap) % 64);
        expected += *gap + 1;
    }
}

/// place_sum of what news makes of `words`, as far as it goes.
std::uint64_t news_sum(std::span<const std::byte> body,
                       const filter::digest_head& head,
                       std::vector<std::uint64_t> words) {
    if (head.encoding == filter::digest_encoding::names) {
        const auto said = filter::get_little_endian<std::uint64_t>(body.data());
        body = body.subspan(8);
        for (auto left = std::min<std::uint64_t>(said, body.size() / 8); left > 0; --left) {
            const auto name = filter::get_little_endian<std::uint64_t>(body.data());
            filter::for_each_place(head.shape, by_name(name), [&](std::uint64_t place) {
                words[place / 64] |= std::uint64_t{1} << (place % 64);
            });
            body = body.subspan(8);
        }
    }
    turn_listed(body, head, words);
    return filter::place_sum(words);
}

/// Checksum of what `body` makes of `words`, as far as it goes.
std::uint64_t content_sum(std::span<const std::byte> body,
                          const filter::digest_head& head,
                          std::vector<std::uint64_t> words) {
    if (head.encoding == filter::digest_encoding::raw) {
        auto bytes = std::as_writable_bytes(std::span{words});
        for (std::size_t i = 0; i < std::min(body.size(), bytes.size()); ++i) {
            bytes[i] ^= body[i];
        }
    } else {
        turn_listed(body, head, words);
    }
    return XXH3_64bits(words.data(), (head.shape.bits + 7) / 8);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto wire = std::as_bytes(std::span{data, size});
    try_all(wire);
    if (size < filter::digest_header_bytes) {
        return 0;
    }
    std::vector<std::byte> summed(wire.begin(), wire.end());
    put(summed, body_bytes_at, size - filter::digest_header_bytes);
    sum(summed);
    const auto head = filter::read_digest_head(summed);
    if (head.has_error() || head->shape.bits > limits.bytes * 8) {
        try_all(summed);
        return 0;
    }
    std::vector<std::uint64_t> words((head->shape.bits + 63) / 64);
    if (head->form == filter::digest_form::delta) {
        const auto base = base_for(*head);
        words.assign(base.words().begin(), base.words().end());
        put(summed, base_checksum_at, base.checksum());
    }
    const auto body = std::span{summed}.subspan(filter::digest_header_bytes);
    if (head->form == filter::digest_form::news) {
        const auto base = base_for(*head);
        words.assign(base.words().begin(), base.words().end());
        put(summed, base_checksum_at, filter::place_sum(words));
        put(summed, checksum_at, news_sum(body, *head, std::move(words)));
    } else {
        put(summed, checksum_at, content_sum(body, *head, std::move(words)));
    }
    sum(summed);
    try_all(summed);
    return 0;
}
