// See admission_state.hpp and ADMISSION_FORMAT.md. Decoding goes from the cheap refusals to the
// dear ones: header, length, checksum, settings, and only then memory.

#define XXH_INLINE_ALL
#include "filter/admission_state.hpp"

#include "filter/sizing.hpp"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <string>

namespace reprise::filter {

namespace {

constexpr std::array state_magic{std::byte{'R'},
                                 std::byte{'E'},
                                 std::byte{'P'},
                                 std::byte{'R'},
                                 std::byte{'S'},
                                 std::byte{'E'},
                                 std::byte{'E'},
                                 std::byte{'N'}};
constexpr std::uint32_t state_version = 1;
constexpr std::size_t facts_bytes = 104;  // of the header, without its checksum
constexpr std::size_t checksum_bytes = 8;
constexpr std::size_t header_bytes = facts_bytes + checksum_bytes;
constexpr std::size_t piece_bytes = std::size_t{64} * 1024;
constexpr std::int64_t latest_time = std::int64_t{1} << 40;  // some 34,000 years on
static_assert(piece_bytes % block_bytes == 0);

/// Layers are at most 15 and blocks below 2^32, so nothing here overflows.
constexpr std::uint64_t size_with(std::uint64_t layers, std::uint64_t blocks) noexcept {
    return header_bytes + 2 * layers * blocks * block_bytes + checksum_bytes;
}

template <class Unsigned>
void put(std::byte* at, Unsigned value) noexcept {
    for (std::size_t i = 0; i < sizeof value; ++i) {
        at[i] = static_cast<std::byte>(value >> (8 * i));
    }
}

template <class Unsigned>
Unsigned get(const std::byte* at) noexcept {
    Unsigned value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) {
        value |= static_cast<Unsigned>(static_cast<Unsigned>(at[i]) << (8 * i));
    }
    return value;
}

struct generation_header {
    std::int64_t since = 0;
    std::uint64_t keys = 0;
};

struct header {
    std::uint32_t layers = 0;
    std::uint64_t objects = 0;
    double false_positive_rate = 0;
    std::uint64_t blocks = 0;
    hash_seed seed{};
    generation_header young;
    generation_header old;
};

std::array<std::byte, header_bytes> write_header(const header& from) noexcept {
    std::array<std::byte, header_bytes> out{};
    std::copy(state_magic.begin(), state_magic.end(), out.begin());
    put(out.data() + 8, state_version);
    put(out.data() + 12, from.layers);
    put(out.data() + 16, from.objects);
    put(out.data() + 24, std::bit_cast<std::uint64_t>(from.false_positive_rate));
    put(out.data() + 32, from.blocks);
    std::copy(from.seed.begin(), from.seed.end(), out.begin() + 40);
    put(out.data() + 72, static_cast<std::uint64_t>(from.young.since));
    put(out.data() + 80, from.young.keys);
    put(out.data() + 88, static_cast<std::uint64_t>(from.old.since));
    put(out.data() + 96, from.old.keys);
    put(out.data() + facts_bytes, std::uint64_t{XXH3_64bits(out.data(), facts_bytes)});
    return out;
}

/// Whether the last 8 of these bytes are the checksum of the others. @pre at least 8 bytes
bool is_summed(std::span<const std::byte> bytes) noexcept {
    const auto summed = bytes.first(bytes.size() - checksum_bytes);
    return XXH3_64bits(summed.data(), summed.size()) ==
           get<std::uint64_t>(bytes.data() + summed.size());
}

/// The fields after magic and version, unjudged.
header read_header(const std::byte* in) noexcept {
    header read;
    read.layers = get<std::uint32_t>(in + 12);
    read.objects = get<std::uint64_t>(in + 16);
    read.false_positive_rate = std::bit_cast<double>(get<std::uint64_t>(in + 24));
    read.blocks = get<std::uint64_t>(in + 32);
    std::copy(in + 40, in + 72, read.seed.begin());
    read.young.since = static_cast<std::int64_t>(get<std::uint64_t>(in + 72));
    read.young.keys = get<std::uint64_t>(in + 80);
    read.old.since = static_cast<std::int64_t>(get<std::uint64_t>(in + 88));
    read.old.keys = get<std::uint64_t>(in + 96);
    return read;
}

bool has_sane_times(const header& read) noexcept {
    return read.old.since >= 0 && read.old.since <= read.young.since &&
           read.young.since <= latest_time;
}

// Boost's category has a protected destructor that is not virtual: nobody deletes one by its base.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class admission_errors final : public boost::system::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "admission state"; }

    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<admission_errc>(value)) {
        case admission_errc::truncated: return "cut short";
        case admission_errc::trailing_bytes: return "bytes follow its end";
        case admission_errc::bad_magic: return "not an admission state";
        case admission_errc::unknown_version: return "written in another version of the format";
        case admission_errc::corrupt: return "damaged";
        case admission_errc::bad_times: return "its times can't be right";
        case admission_errc::objects_differ: return "made for another number of objects";
        case admission_errc::rate_differs: return "made for another rate of false positives";
        case admission_errc::layers_differ: return "made for another highest number of hits";
        case admission_errc::size_differs: return "made by a release that sizes filters otherwise";
        }
        return "unknown error";
    }
};
#pragma GCC diagnostic pop

/// Passes bytes on to the sink and sums them.
class summing_writer {
public:
    explicit summing_writer(const byte_sink& sink) : sink_{sink} { XXH3_64bits_reset(&sum_); }

    bool write(std::span<const std::byte> piece) {
        XXH3_64bits_update(&sum_, piece.data(), piece.size());
        return sink_(piece);
    }

    bool finish() {
        std::array<std::byte, checksum_bytes> out{};
        put(out.data(), std::uint64_t{XXH3_64bits_digest(&sum_)});
        return sink_(out);
    }

private:
    const byte_sink& sink_;
    XXH3_state_t sum_;
};

bool write_layer(const blocked_bloom& layer, std::span<std::byte> buffer, summing_writer& writer) {
    std::size_t used = 0;
    for (std::uint64_t block = 0; block < layer.blocks(); ++block) {
        for (const auto word : layer.read_block(block)) {
            put(buffer.data() + used, word);
            used += sizeof word;
        }
        if (used == buffer.size() || block + 1 == layer.blocks()) {
            if (!writer.write(buffer.first(used))) {
                return false;
            }
            used = 0;
        }
    }
    return true;
}

/// @pre `from` holds all of the layer. Returns what follows it.
const std::byte* read_layer(const std::byte* from, blocked_bloom& layer) noexcept {
    for (std::uint64_t block = 0; block < layer.blocks(); ++block) {
        std::array<std::uint64_t, lanes> words{};
        for (auto& word : words) {
            word = get<std::uint64_t>(from);
            from += sizeof word;
        }
        layer.write_block(block, words);
    }
    return from;
}

}  // namespace

/// The filter's inside, as encode and decode need it.
struct admission_state_access {
    static bool write(const admission_filter& filter, const hash_seed& seed, summing_writer& out) {
        const auto word = filter.state_->phase.load(std::memory_order_acquire);
        const auto epoch = admission_filter::phase::unpack(word).epoch;
        const auto& young = filter.generations_[epoch & 1];
        const auto& old = filter.generations_[(epoch & 1) ^ 1];
        const auto describe = [](const auto& one) {
            return generation_header{.since = one.counts->since.load(std::memory_order_relaxed),
                                     .keys = one.counts->keys.load(std::memory_order_relaxed)};
        };
        auto facts = header{.layers = filter.settings_.layers,
                            .objects = filter.settings_.objects,
                            .false_positive_rate = filter.settings_.false_positive_rate,
                            .blocks = filter.blocks_,
                            .seed = seed,
                            .young = describe(young),
                            .old = describe(old)};
        // The old one has the later start when the roles change just now, or the clock was set
        // back. Only the estimated rate of keys depends on it; a reader wants them in order.
        facts.old.since = std::min(facts.old.since, facts.young.since);
        const auto start = write_header(facts);
        if (!out.write(start)) {
            return false;
        }
        std::vector<std::byte> buffer(piece_bytes);
        for (const auto* one : {&young, &old}) {
            for (const auto& layer : one->layers) {
                if (!write_layer(layer, buffer, out)) {
                    return false;
                }
            }
        }
        return out.finish();
    }

    /// @pre the filter is new, and `body` what a filter of its size has
    static void restore(admission_filter& filter,
                        const header& read,
                        const std::byte* body,
                        std::chrono::sys_seconds now) noexcept {
        const auto latest = now.time_since_epoch().count();
        const auto fill = [&](admission_filter::generation& one, const generation_header& facts) {
            one.counts->since.store(std::min(facts.since, latest), std::memory_order_relaxed);
            one.counts->keys.store(facts.keys, std::memory_order_relaxed);
            for (auto& layer : one.layers) {
                body = read_layer(body, layer);
            }
        };
        const auto [young, old] = filter.roles_in(0);
        fill(young, read.young);
        fill(old, read.old);
    }
};

const boost::system::error_category& admission_category() noexcept {
    static const admission_errors instance;
    return instance;
}

boost::system::error_code make_error_code(admission_errc code) noexcept {
    return {static_cast<int>(code), admission_category()};
}

bool encode(const admission_filter& filter, const hash_seed& seed, const byte_sink& sink) {
    summing_writer out{sink};
    return admission_state_access::write(filter, seed, out);
}

std::vector<std::byte> encode(const admission_filter& filter, const hash_seed& seed) {
    std::vector<std::byte> all;
    all.reserve(encoded_size(filter));
    encode(filter, seed, [&](std::span<const std::byte> piece) {
        all.insert(all.end(), piece.begin(), piece.end());
        return true;
    });
    return all;
}

std::uint64_t encoded_size(const admission_settings& settings) noexcept {
    return size_with(settings.layers, admission_blocks(settings));
}

std::uint64_t encoded_size(const admission_filter& filter) noexcept {
    return size_with(filter.settings().layers, filter.blocks());
}

boost::system::result<admission_state> decode(std::span<const std::byte> wire,
                                              const admission_settings& settings,
                                              std::chrono::sys_seconds now,
                                              std::span<std::byte> memory) {
    if (wire.size() < header_bytes) {
        return admission_errc::truncated;
    }
    if (!std::equal(state_magic.begin(), state_magic.end(), wire.begin())) {
        return admission_errc::bad_magic;
    }
    if (get<std::uint32_t>(wire.data() + 8) != state_version) {
        return admission_errc::unknown_version;
    }
    if (!is_summed(wire.first(header_bytes))) {
        return admission_errc::corrupt;
    }
    const auto read = read_header(wire.data());
    if (!has_sane_times(read)) {
        return admission_errc::bad_times;
    }
    if (read.objects != settings.objects) {
        return admission_errc::objects_differ;
    }
    if (read.false_positive_rate != settings.false_positive_rate) {
        return admission_errc::rate_differs;
    }
    if (read.layers != settings.layers) {
        return admission_errc::layers_differ;
    }
    if (read.blocks != admission_blocks(settings)) {
        return admission_errc::size_differs;
    }
    const auto size = size_with(read.layers, read.blocks);
    if (wire.size() != size) {
        return wire.size() < size ? admission_errc::truncated : admission_errc::trailing_bytes;
    }
    if (!is_summed(wire)) {
        return admission_errc::corrupt;
    }
    admission_state state{.seed = read.seed,
                          .filter = std::make_unique<admission_filter>(settings, now, memory)};
    admission_state_access::restore(*state.filter, read, wire.data() + header_bytes, now);
    return state;
}

}  // namespace reprise::filter
