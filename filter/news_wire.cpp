// See news_wire.hpp and DIGEST_FORMAT.md.

#include "filter/news_wire.hpp"

#include "filter/bit_words.hpp"
#include "filter/digest_wire.hpp"
#include "filter/gap_code.hpp"
#include "filter/key_places.hpp"
#include "filter/little_endian.hpp"
#include "filter/news_bound.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace reprise::filter {

namespace {

constexpr std::size_t bits_of_name = 64;

struct coded_places {
    std::uint64_t divisor = 1;
    std::vector<std::byte> bytes;
};

std::size_t bits_of_place(std::uint64_t divisor) noexcept {
    return static_cast<std::size_t>(std::bit_width(divisor)) + 1;
}

coded_places code_places(std::span<const std::uint64_t> places, std::uint64_t bits) {
    coded_places out{.divisor = golomb_divisor(places.size(), bits), .bytes = {}};
    gap_writer writer{out.divisor};
    std::uint64_t expected = 0;
    for (const auto place : places) {
        writer.put(place - expected);
        expected = place + 1;
    }
    out.bytes = writer.finish();
    return out;
}

/// Names that say more than their places would, and the places that these leave to be said.
struct split_changes {
    std::vector<std::uint64_t> names, places;
};

split_changes split(const digest_shape& shape,
                    const net_changes& changes,
                    std::span<const std::uint64_t> words,
                    const key_by_name& key_of,
                    std::size_t place_bits) {
    split_changes out;
    std::vector<bool> said(changes.places.size());
    std::vector<std::size_t> its;
    for (const auto name : changes.names) {
        its.clear();
        bool all_on = true;
        auto at = changes.places.end();
        std::uint64_t before = 0;
        for_each_place(shape, key_of(name), [&](std::uint64_t place) {
            all_on = all_on && (words[place / 64] & bit_at(place)) != 0;
            // In a blocked layout the next is a step away; else it may be anywhere.
            const bool is_near = at != changes.places.end() && place > before &&
                                 place - before < 2 * lane_bits;
            if (is_near) {
                while (at != changes.places.end() && *at < place) {
                    ++at;
                }
            } else {
                at = std::lower_bound(changes.places.begin(), changes.places.end(), place);
            }
            before = place;
            if (at != changes.places.end() && *at == place) {
                const auto index = static_cast<std::size_t>(at - changes.places.begin());
                if (!said[index] && std::find(its.begin(), its.end(), index) == its.end()) {
                    its.push_back(index);
                }
            }
        });
        if (all_on && its.size() * place_bits > bits_of_name) {
            out.names.push_back(name);
            for (const auto index : its) {
                said[index] = true;
            }
        }
    }
    for (std::size_t i = 0; i < said.size(); ++i) {
        if (!said[i]) {
            out.places.push_back(changes.places[i]);
        }
    }
    return out;
}

std::vector<std::byte> body_of_names(const std::vector<std::uint64_t>& names,
                                     const coded_places& places) {
    std::vector<std::byte> body((1 + names.size()) * 8);
    auto* at = body.data();
    put_little_endian(at, std::uint64_t{names.size()});
    for (const auto name : names) {
        put_little_endian(at += 8, name);
    }
    body.insert(body.end(), places.bytes.begin(), places.bytes.end());
    return body;
}

}  // namespace

std::optional<std::vector<std::byte>> encode_news(const news_span& span,
                                                  const net_changes& changes,
                                                  std::span<const std::uint64_t> words,
                                                  const key_by_name& key_of) {
    assert(is_valid(span.shape));
    assert(changes.names.empty() || words.size() == words_for(span.shape.bits));
    const auto most = most_news_places(span.shape.bits);
    if (changes.places.size() > most) {
        return std::nullopt;
    }
    digest_head head{.form = digest_form::news,
                     .encoding = digest_encoding::golomb,
                     .shape = span.shape,
                     .stamp = span.stamp,
                     .checksum = span.sum,
                     .base_counter = span.base_counter,
                     .base_checksum = span.base_sum};
    const auto& listed = changes.places;
    head.listed = listed.size();
    head.divisor = golomb_divisor(listed.size(), span.shape.bits);
    std::vector<std::byte> body;
    if (changes.names_say_all && !listed.empty()) {
        if (!changes.names.empty() && changes.names.size() * span.shape.probes <= most &&
            8 * (1 + changes.names.size()) <
                least_code_bytes(listed.size(),
                                 *std::max_element(listed.begin(), listed.end()),
                                 head.divisor)) {
            const auto none = code_places({}, span.shape.bits);
            head.encoding = digest_encoding::names;
            head.listed = 0;
            head.divisor = none.divisor;
            return write_digest(head, body_of_names(changes.names, none));
        }
        auto in_order = changes;  // places may be shorter, and are coded by their gaps
        in_order.names_say_all = false;
        std::sort(in_order.places.begin(), in_order.places.end());
        return encode_news(span, in_order, words, key_of);
    }
    // By arithmetic first: where no name is shorter than all of its places, nobody looks for one; and
    // where names are shorter than all places in any case, these are not coded.
    const auto place_bits = bits_of_place(head.divisor);
    if (!changes.names.empty() && !listed.empty() &&
        span.shape.probes * place_bits > bits_of_name) {
        const auto parts = split(span.shape, changes, words, key_of, place_bits);
        const auto turns = parts.names.size() * span.shape.probes + parts.places.size();
        if (!parts.names.empty() && turns <= most) {
            auto rest = code_places(parts.places, span.shape.bits);
            const auto by_name = 8 + parts.names.size() * 8 + rest.bytes.size();
            if (by_name >= least_code_bytes(listed.size(), listed.back(), head.divisor)) {
                body = code_places(listed, span.shape.bits).bytes;
            }
            if (body.empty() || by_name < body.size()) {
                head.encoding = digest_encoding::names;
                head.listed = parts.places.size();
                head.divisor = rest.divisor;
                body = body_of_names(parts.names, rest);
            }
        }
    }
    if (head.encoding == digest_encoding::golomb && body.empty()) {
        body = code_places(listed, span.shape.bits).bytes;
    }
    if (body.size() >= (span.shape.bits + 7) / 8) {
        return std::nullopt;
    }
    return write_digest(head, body);
}

}  // namespace reprise::filter
