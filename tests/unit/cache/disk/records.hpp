#pragma once
// Records and segments for tests, made from a few words.

#include "proxy/cache/disk/recovery.hpp"
#include "proxy/cache/disk/segment.hpp"
#include "proxy/cache/disk/variants.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::disk::test {

using cache::test::bytes_of;
using cache::test::drafted;
using cache::test::key_of;

inline constexpr std::uint64_t store_id = 0x1234567890abcdef;
inline constexpr wall_time now{std::chrono::hours{24 * 365 * 50}};

inline record_stamp stamp(std::uint64_t sequence, std::uint64_t id = 77) {
    return {.sequence = sequence, .id = id, .now = now};
}

inline body_ptr random_body(std::size_t bytes, std::uint64_t seed) {
    std::mt19937_64 random{seed};
    std::string text(bytes, '\0');
    for (auto& c : text) {
        c = static_cast<char>(random());
    }
    return cache::test::body_of(text);
}

/// A response in which nothing that is stored has its default.
inline drafted rich_response(body_ptr content) {
    using std::chrono::seconds;
    drafted made;
    made->head = "HTTP/1.1 203 Well\r\nVary: A, B\r\nSurrogate-Key: one two\r\nContent-Length: " +
                 std::to_string(content->size) + "\r\n";
    index_head(made);
    made->status = 203;
    made->freshness = {.response_time = now - seconds{7},
                       .initial_age = seconds{3},
                       .lifetime = seconds{7200},
                       .source = http::lifetime_source::expires};
    auto& directives = made->directives;
    directives.max_age = seconds{7200};
    directives.stale_if_error = http::longest_delta;
    directives.public_ = true;
    directives.immutable = true;
    directives.targeted = true;
    made->vary.names = "a,b";
    made->selecting = "=x\n-\n";
    made->wait = packed_wait{std::chrono::milliseconds{70}};
    made->content = std::move(content);
    made->reusable_until = now + seconds{7190};
    return made;
}

inline object_source source_of(std::string_view url, const stored_response& response) {
    return {.kind = record_kind::object,
            .primary = key_of(url),
            .discriminator = 0,
            .url = url,
            .response = response,
            .ban_epoch = 9};
}

template <class Source>
std::vector<char> record_of(const Source& what, const record_stamp& stamp) {
    const auto bytes = sized(what);
    REQUIRE(bytes.has_value());
    std::vector<char> record(*bytes, '\x5a');
    const auto header = encode(what, stamp, store_id, record);
    REQUIRE(header.record_bytes() == record.size());
    return record;
}

/// A segment in memory, as a writer would fill it.
class filled_segment {
public:
    explicit filled_segment(std::uint64_t sequence, std::uint32_t number = 3)
        : sequence_{sequence},
          number_{number} {
        begin(sequence);
    }

    /// The next round, in the same bytes.
    void begin(std::uint64_t sequence) {
        sequence_ = sequence;
        fill_ = segment_fill{bytes_.size()};
        const auto image = encode(segment_header{.number = number_,
                                                 .sequence = sequence,
                                                 .segment_bytes = bytes_.size(),
                                                 .begun = now},
                                  store_id);
        std::copy(image.begin(), image.end(), bytes_.begin());
    }
    template <class Source>
    footer_entry add(const Source& what) {
        const auto record = record_of(what, stamp(sequence_, ++last_id_));
        REQUIRE(fill_.has_room(record.size()));
        std::copy(record.begin(),
                  record.end(),
                  bytes_.begin() + static_cast<std::ptrdiff_t>(fill_.offset()));
        return fill_.note(*read_header(record));
    }
    footer_entry add(std::string_view url, std::string_view content) {
        const auto made = cache::test::response({.content = content});
        return add(source_of(url, *made));
    }
    void close() {
        const auto footer = fill_.footer(store_id, sequence_, now);
        std::copy(footer.begin(),
                  footer.end(),
                  bytes_.begin() + static_cast<std::ptrdiff_t>(fill_.footer_offset()));
    }

    [[nodiscard]] recovered_segment recovered() const { return recovered_from(bytes_, number_); }
    [[nodiscard]] static recovered_segment recovered_from(const std::vector<char>& bytes,
                                                          std::uint32_t number = 3) {
        const auto read = [&](std::uint64_t offset, std::span<char> into) {
            if (offset > bytes.size() || into.size() > bytes.size() - offset) {
                return false;
            }
            std::copy_n(
                bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
            return true;
        };
        return recover(read,
                       {.store_id = store_id, .number = number, .segment_bytes = smallest_segment});
    }

    [[nodiscard]] std::vector<char>& bytes() { return bytes_; }
    [[nodiscard]] const segment_fill& fill() const { return fill_; }
    [[nodiscard]] std::uint64_t sequence() const { return sequence_; }

private:
    std::uint64_t sequence_;
    std::uint32_t number_;
    std::uint64_t last_id_ = 1000;
    std::vector<char> bytes_ = std::vector<char>(smallest_segment);
    segment_fill fill_{smallest_segment};
};

}  // namespace reprise::proxy::cache::disk::test
