// The section of an object, a large object's head and a refresh: numbers first, at fixed places,
// then tags and texts. FORMAT.md has the table.

#include "proxy/cache/disk/record_front.hpp"
#include "proxy/cache/memory/tags.hpp"
#include "proxy/http/reuse.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>

namespace reprise::proxy::cache::disk {

namespace {

namespace at {
constexpr std::size_t length = 0, ban_epoch = 8, response_time = 16, initial_age = 24,
                      lifetime = 32, max_age = 40, s_maxage = 44, while_revalidate = 48,
                      if_error = 52, directives = 56, status = 60, source = 62, flags = 63,
                      extents = 64, extent_bytes = 68, url = 72, head = 76, selecting = 80,
                      names = 84, tags = 86, status_line = 88, length_line = 92;
}  // namespace at
constexpr std::size_t section_bytes = 96;

constexpr std::uint8_t purged_softly_flag = 1, weak_last_modified_flag = 2;
constexpr std::uint8_t known_flags = purged_softly_flag | weak_last_modified_flag;

// Bits of the directives, in this order; the times' presence follows.
constexpr std::array<bool http::response_directives::*, 12> flag_bits{
    &http::response_directives::no_store,
    &http::response_directives::no_cache,
    &http::response_directives::private_,
    &http::response_directives::public_,
    &http::response_directives::must_revalidate,
    &http::response_directives::proxy_revalidate,
    &http::response_directives::must_understand,
    &http::response_directives::immutable,
    &http::response_directives::no_transform,
    &http::response_directives::no_cache_fields,
    &http::response_directives::private_fields,
    &http::response_directives::targeted,
};
struct time_place {
    std::optional<http::seconds> http::response_directives::*member;
    std::size_t at;
};
constexpr std::array<time_place, 4> time_places{{
    {&http::response_directives::max_age, at::max_age},
    {&http::response_directives::s_maxage, at::s_maxage},
    {&http::response_directives::stale_while_revalidate, at::while_revalidate},
    {&http::response_directives::stale_if_error, at::if_error},
}};
constexpr std::uint32_t known_bits = (1u << (flag_bits.size() + time_places.size())) - 1;

/// Seconds that can be added to any plausible time, and to each other.
constexpr bool is_plausible(http::seconds span) noexcept {
    return span.count() >= 0 && span.count() < (std::int64_t{1} << 41);
}

std::uint64_t body_length(const object_source& what) noexcept {
    return what.kind == record_kind::object ? what.response.size() : what.length;
}

std::uint64_t extents_of(std::uint64_t length, std::uint32_t extent_bytes) noexcept {
    return extent_bytes == 0 ? 0 : (length + extent_bytes - 1) / extent_bytes;
}

std::uint64_t front_of(const object_source& what, std::uint64_t body) noexcept {
    const auto& response = what.response;
    const auto blocks = (body + block_bytes - 1) / block_bytes;
    return round_up(record_header_bytes + 8 * blocks + section_bytes + 8 * response.tags().size() +
                        what.url.size() + response.head().size() + response.vary().names.size() +
                        response.selecting().size(),
                    8);
}

bool has_plausible_numbers(const http::freshness_facts& facts,
                           const http::response_directives& directives) noexcept {
    const auto fits = [&](const time_place& place) {
        const auto& span = directives.*place.member;
        return !span || (span->count() >= 0 && span->count() <= UINT32_MAX);
    };
    return is_plausible_time(facts.response_time.time_since_epoch().count()) &&
           is_plausible(facts.initial_age) && is_plausible(facts.lifetime) &&
           std::all_of(time_places.begin(), time_places.end(), fits);
}

void put_directives(char* section, const http::response_directives& directives) noexcept {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < flag_bits.size(); ++i) {
        bits |= std::uint32_t{directives.*flag_bits[i]} << i;
    }
    for (std::size_t i = 0; i < time_places.size(); ++i) {
        const auto& span = directives.*time_places[i].member;
        bits |= std::uint32_t{span.has_value()} << (flag_bits.size() + i);
        store_at(section + time_places[i].at,
                 static_cast<std::uint32_t>(span.value_or(http::seconds{0}).count()));
    }
    store_at(section + at::directives, bits);
}

http::response_directives read_directives(const char* section) noexcept {
    const auto bits = load_at<std::uint32_t>(section + at::directives);
    http::response_directives read;
    for (std::size_t i = 0; i < flag_bits.size(); ++i) {
        read.*flag_bits[i] = ((bits >> i) & 1) != 0;
    }
    for (std::size_t i = 0; i < time_places.size(); ++i) {
        if (((bits >> (flag_bits.size() + i)) & 1) != 0) {
            read.*time_places[i].member = http::seconds{
                load_at<std::uint32_t>(section + time_places[i].at)};
        }
    }
    return read;
}

char* put_text(char* to, std::string_view text) noexcept {
    return std::copy(text.begin(), text.end(), to);
}

/// Lengths that have to agree with each other, by kind.
bool agrees(const object_view& view) noexcept {
    const auto& header = view.header;
    switch (header.kind) {
    case record_kind::object:
        return view.length == header.body_bytes && view.extents == 0 && view.extent_bytes == 0;
    case record_kind::large:
        return header.body_bytes == 0 && view.extent_bytes != 0 &&
               view.extents == extents_of(view.length, view.extent_bytes);
    case record_kind::refresh:
        return header.body_bytes == 0 && view.extents == 0 && view.extent_bytes == 0 &&
               header.subject != 0;
    case record_kind::extent:
    case record_kind::variants: return false;
    }
    return false;
}

}  // namespace

result<std::size_t> sized(const object_source& what) noexcept {
    const auto& response = what.response;
    const auto length = body_length(what);
    const auto body = what.kind == record_kind::object ? length : 0;
    constexpr auto text_most = std::numeric_limits<std::uint16_t>::max();
    if (body > largest_segment || front_of(what, body) > front_most ||
        response.vary().names.size() > text_most || response.tags().size() > most_tags ||
        response.status() > text_most ||
        (what.kind == record_kind::object && length != 0 && !response.has_content()) ||
        extents_of(length, what.extent_bytes) > std::numeric_limits<std::uint32_t>::max() ||
        (what.kind == record_kind::large && what.extent_bytes == 0) ||
        response.status_line_size() > response.head().size() ||
        response.length_at() > response.head().size() || response.parts() || response.vary().any ||
        !has_plausible_numbers(response.freshness(), response.directives())) {
        return format_errc::too_large;
    }
    return round_up(front_of(what, body) + body, alignment);
}

record_header encode(const object_source& what,
                     const record_stamp& stamp,
                     std::uint64_t store_id,
                     std::span<char> into) noexcept {
    const auto& response = what.response;
    const bool has_body = what.kind == record_kind::object;
    record_header header;
    header.kind = what.kind;
    header.carried = what.carried;
    header.sequence = stamp.sequence;
    header.primary = what.primary;
    header.discriminator = what.discriminator;
    header.id = stamp.id;
    header.subject = what.subject;
    header.body_bytes = has_body ? static_cast<std::uint32_t>(response.size()) : 0;
    header.front_bytes = static_cast<std::uint32_t>(front_of(what, header.body_bytes));
    header.written = stamp.now;
    header.wait = response.wait();
    header.expiry = response.purged_softly()
                        ? std::uint16_t{0}
                        : coarse_time(http::fresh_until(response.freshness()), stamp.now);

    char* const section = into.data() + section_at(header);
    const auto facts = response.freshness();
    store_at(section + at::length, body_length(what));
    store_at(section + at::ban_epoch, what.ban_epoch);
    store_at(section + at::response_time,
             std::int64_t{facts.response_time.time_since_epoch().count()});
    store_at(section + at::initial_age, std::int64_t{facts.initial_age.count()});
    store_at(section + at::lifetime, std::int64_t{facts.lifetime.count()});
    put_directives(section, response.directives());
    store_at(section + at::status, static_cast<std::uint16_t>(response.status()));
    store_at(section + at::source, static_cast<std::uint8_t>(facts.source));
    const unsigned flags = (response.purged_softly() ? purged_softly_flag : 0u) |
                           (response.weak_last_modified() ? weak_last_modified_flag : 0u);
    store_at(section + at::flags, static_cast<std::uint8_t>(flags));
    const bool large = what.kind == record_kind::large;
    store_at(section + at::extents,
             large ? static_cast<std::uint32_t>(extents_of(what.length, what.extent_bytes)) : 0u);
    store_at(section + at::extent_bytes, large ? what.extent_bytes : 0u);
    store_at(section + at::url, static_cast<std::uint32_t>(what.url.size()));
    store_at(section + at::head, static_cast<std::uint32_t>(response.head().size()));
    store_at(section + at::selecting, static_cast<std::uint32_t>(response.selecting().size()));
    store_at(section + at::names, static_cast<std::uint16_t>(response.vary().names.size()));
    store_at(section + at::tags, static_cast<std::uint16_t>(response.tags().size()));
    store_at(section + at::status_line, static_cast<std::uint32_t>(response.status_line_size()));
    store_at(section + at::length_line, static_cast<std::uint32_t>(response.length_at()));

    char* to = section + section_bytes;
    for (const auto tag : response.tags()) {
        store_at(to, tag);
        to += sizeof tag;
    }
    to = put_text(to, what.url);
    to = put_text(to, response.head());
    to = put_text(to, response.vary().names);
    to = put_text(to, response.selecting());
    std::fill(to, into.data() + header.front_bytes, '\0');

    if (has_body && response.has_content()) {
        char* place = into.data() + header.front_bytes;
        response.each_piece([&place](std::string_view piece) {
            place = std::copy(piece.begin(), piece.end(), place);
        });
    }
    finish_body(header, store_id, into);
    seal(header, store_id, into);
    return header;
}

result<object_view> read_object(std::span<const char> front) noexcept {
    const auto header = read_header(front);
    if (header.has_error()) {
        return header.error();
    }
    if (front.size() < header->front_bytes) {
        return format_errc::truncated;
    }
    const auto begin = section_at(*header);
    if (begin + section_bytes > header->front_bytes) {
        return format_errc::bad_length;
    }
    const char* const section = front.data() + begin;
    object_view view;
    view.header = *header;

    // Sums of 16- and 32-bit numbers: nothing here can overflow 64 bits.
    std::string_view rest{section + section_bytes, header->front_bytes - begin - section_bytes};
    const std::uint64_t tags = std::uint64_t{load_at<std::uint16_t>(section + at::tags)} * 8;
    const std::uint64_t url = load_at<std::uint32_t>(section + at::url);
    const std::uint64_t head = load_at<std::uint32_t>(section + at::head);
    const std::uint64_t names = load_at<std::uint16_t>(section + at::names);
    const std::uint64_t selecting = load_at<std::uint32_t>(section + at::selecting);
    const auto texts = tags + url + head + names + selecting;
    if (texts > rest.size() || rest.size() - texts >= 8) {
        return format_errc::bad_length;
    }
    const auto take = [&](std::uint64_t bytes) {
        const auto taken = rest.substr(0, bytes);
        rest.remove_prefix(bytes);
        return taken;
    };
    view.tags = take(tags);
    view.url = take(url);
    view.head = take(head);
    view.vary_names = take(names);
    view.selecting = take(selecting);

    view.length = load_at<std::uint64_t>(section + at::length);
    view.ban_epoch = load_at<std::uint64_t>(section + at::ban_epoch);
    view.extents = load_at<std::uint32_t>(section + at::extents);
    view.extent_bytes = load_at<std::uint32_t>(section + at::extent_bytes);
    view.status = load_at<std::uint16_t>(section + at::status);
    view.status_line_size = load_at<std::uint32_t>(section + at::status_line);
    view.length_at = load_at<std::uint32_t>(section + at::length_line);
    // A large object's extents are counted by dividing its length, rounded up.
    constexpr auto length_most = std::numeric_limits<std::uint64_t>::max() >> 1;
    if (view.length > length_most || view.status_line_size > head || view.length_at > head ||
        !agrees(view)) {
        return format_errc::bad_length;
    }

    const auto flags = load_at<std::uint8_t>(section + at::flags);
    const auto source = load_at<std::uint8_t>(section + at::source);
    const auto bits = load_at<std::uint32_t>(section + at::directives);
    auto& facts = view.freshness;
    const auto response_time = load_at<std::int64_t>(section + at::response_time);
    facts.initial_age = http::seconds{load_at<std::int64_t>(section + at::initial_age)};
    facts.lifetime = http::seconds{load_at<std::int64_t>(section + at::lifetime)};
    if ((flags & ~known_flags) != 0 ||
        source > static_cast<std::uint8_t>(http::lifetime_source::none) || bits > known_bits ||
        !is_plausible_time(response_time) || !is_plausible(facts.initial_age) ||
        !is_plausible(facts.lifetime)) {
        return format_errc::bad_field;
    }
    facts.response_time = wall_time{std::chrono::milliseconds{response_time}};
    facts.source = static_cast<http::lifetime_source>(source);
    view.purged_softly = (flags & purged_softly_flag) != 0;
    view.weak_last_modified = (flags & weak_last_modified_flag) != 0;
    view.directives = read_directives(section);
    return view;
}

response_draft make_response(const object_view& view) {
    response_draft made;
    made.head = view.head;
    made.status_line_size = view.status_line_size;
    made.length_at = view.length_at;
    made.status = view.status;
    made.freshness = view.freshness;
    made.directives = view.directives;
    made.vary.names = view.vary_names;
    made.selecting = view.selecting;
    made.disk_record = view.header.kind == record_kind::refresh ? view.header.subject
                                                                : view.header.id;
    made.wait = view.header.wait;
    made.purged_softly = view.purged_softly;
    made.weak_last_modified = view.weak_last_modified;
    made.reusable_until = view.purged_softly
                              ? wall_time::min()
                              : http::reusable_until(view.directives, view.freshness);
    made.tags.resize(view.tags.size() / sizeof made.tags[0]);
    if (!made.tags.empty()) {
        std::memcpy(made.tags.data(), view.tags.data(), view.tags.size());
    }
    return made;
}

}  // namespace reprise::proxy::cache::disk
