// The section of a directory: URL, then each list of names once, then the variants.

#include "proxy/cache/disk/variants.hpp"

#include "proxy/cache/disk/record_front.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace reprise::proxy::cache::disk {

namespace {

// url_bytes u32, variants u32, URL; then for each variant what follows, and its names.
constexpr std::size_t directory_bytes = 8;
namespace variant_at {
constexpr std::size_t discriminator = 0, id = 8, response_time = 16, expiry = 24, names = 26;
}  // namespace variant_at
constexpr std::size_t variant_bytes = 28;

constexpr auto most_variants = memory_tier::most_variants;

std::uint64_t front_of(const variant_directory& directory) noexcept {
    std::uint64_t bytes = record_header_bytes + directory_bytes + directory.url.size();
    for (const auto& one : directory.variants) {
        bytes += variant_bytes + one.names.size();
    }
    return round_up(bytes, 8);
}

}  // namespace

std::optional<listed_variant> variant_directory::add(listed_variant added) {
    std::optional<listed_variant> gone;
    const auto same = std::find_if(variants.begin(), variants.end(), [&](const auto& one) {
        return one.discriminator == added.discriminator;
    });
    const auto leaving = same != variants.end()             ? same
                         : variants.size() == most_variants ? variants.begin()
                                                            : variants.end();
    if (leaving != variants.end()) {
        gone = std::move(*leaving);
        variants.erase(leaving);
    }
    variants.push_back(std::move(added));
    return gone;
}

bool variant_directory::remove(std::uint64_t discriminator) {
    return std::erase_if(variants,
                         [&](const auto& one) { return one.discriminator == discriminator; }) != 0;
}

const listed_variant* select(const variant_directory& from,
                             const filter::key_hash& primary,
                             http::field_list request) {
    const listed_variant* best = nullptr;
    std::array<std::pair<std::string_view, std::uint64_t>, most_variants> asked;
    std::size_t made = 0;
    for (const auto& one : from.variants) {
        const auto known = std::find_if(asked.begin(), asked.begin() + made, [&](const auto& pair) {
            return pair.first == one.names;
        });
        std::uint64_t discriminator = 0;
        if (known != asked.begin() + made) {
            discriminator = known->second;
        } else {
            const http::vary_spec spec{.names = one.names};
            discriminator = variant_discriminator(
                primary, one.names, http::selecting_values(spec, request));
            if (made < asked.size()) {
                asked[made++] = {one.names, discriminator};
            }
        }
        if (discriminator == one.discriminator &&
            (best == nullptr || one.response_time >= best->response_time)) {
            best = &one;
        }
    }
    return best;
}

result<std::size_t> sized(const directory_source& what) noexcept {
    const auto& all = what.directory.variants;
    const auto fits = [](const listed_variant& one) {
        return one.names.size() <= std::numeric_limits<std::uint16_t>::max() &&
               is_plausible_time(one.response_time.time_since_epoch().count());
    };
    const auto front = front_of(what.directory);
    if (front > front_most || all.size() > most_variants ||
        !std::all_of(all.begin(), all.end(), fits)) {
        return format_errc::too_large;
    }
    return round_up(front, alignment);
}

record_header encode(const directory_source& what,
                     const record_stamp& stamp,
                     std::uint64_t store_id,
                     std::span<char> into) noexcept {
    const auto& directory = what.directory;
    record_header header;
    header.kind = record_kind::variants;
    header.sequence = stamp.sequence;
    header.primary = what.primary;
    header.id = stamp.id;
    header.front_bytes = static_cast<std::uint32_t>(front_of(directory));
    header.written = stamp.now;

    char* to = into.data() + record_header_bytes;
    store_at(to, static_cast<std::uint32_t>(directory.url.size()));
    store_at(to + 4, static_cast<std::uint32_t>(directory.variants.size()));
    to = std::copy(directory.url.begin(), directory.url.end(), to + directory_bytes);
    for (const auto& one : directory.variants) {
        store_at(to + variant_at::discriminator, one.discriminator);
        store_at(to + variant_at::id, one.id);
        store_at(to + variant_at::response_time,
                 std::int64_t{one.response_time.time_since_epoch().count()});
        store_at(to + variant_at::expiry, one.expiry);
        store_at(to + variant_at::names, static_cast<std::uint16_t>(one.names.size()));
        to = std::copy(one.names.begin(), one.names.end(), to + variant_bytes);
        if (is_later(one.expiry, header.expiry, stamp.now)) {
            header.expiry = one.expiry;
        }
    }
    std::fill(to, into.data() + into.size(), '\0');
    seal(header, store_id, into);
    return header;
}

result<std::string_view> read_variants_url(std::span<const char> front) noexcept {
    const auto header = read_header(front);
    if (header.has_error()) {
        return header.error();
    }
    if (front.size() < header->front_bytes) {
        return format_errc::truncated;
    }
    if (header->body_bytes != 0 || header->front_bytes < record_header_bytes + directory_bytes) {
        return format_errc::bad_length;
    }
    const char* const section = front.data() + record_header_bytes;
    const auto bytes = load_at<std::uint32_t>(section);
    if (bytes > header->front_bytes - record_header_bytes - directory_bytes) {
        return format_errc::bad_length;
    }
    return std::string_view{section + directory_bytes, bytes};
}

result<variant_directory> read_variants(std::span<const char> front) {
    const auto url = read_variants_url(front);
    if (url.has_error()) {
        return url.error();
    }
    const auto header = *read_header(front);
    const auto count = load_at<std::uint32_t>(front.data() + record_header_bytes + 4);
    if (count > most_variants) {
        return format_errc::bad_field;
    }
    const char* const end = front.data() + header.front_bytes;
    std::string_view rest{url->data() + url->size(), end};
    variant_directory read{.url = std::string{*url}, .variants = {}};
    read.variants.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (rest.size() < variant_bytes) {
            return format_errc::bad_length;
        }
        const char* const from = rest.data();
        const auto time = load_at<std::int64_t>(from + variant_at::response_time);
        const std::size_t names = load_at<std::uint16_t>(from + variant_at::names);
        rest.remove_prefix(variant_bytes);
        if (names > rest.size()) {
            return format_errc::bad_length;
        }
        if (!is_plausible_time(time)) {
            return format_errc::bad_field;
        }
        read.variants.push_back(
            {.names = std::string{rest.substr(0, names)},
             .discriminator = load_at<std::uint64_t>(from + variant_at::discriminator),
             .id = load_at<std::uint64_t>(from + variant_at::id),
             .response_time = wall_time{std::chrono::milliseconds{time}},
             .expiry = load_at<std::uint16_t>(from + variant_at::expiry)});
        rest.remove_prefix(names);
    }
    if (rest.size() >= 8) {
        return format_errc::bad_length;
    }
    return read;
}

}  // namespace reprise::proxy::cache::disk
