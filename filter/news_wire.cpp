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
                    const key_by_name& key_of) {
    const auto divisor = golomb_divisor(changes.places.size(), shape.bits);
    const auto bits_of_place = static_cast<std::size_t>(std::bit_width(divisor)) + 1;
    split_changes out;
    std::vector<bool> said(changes.places.size());
    std::vector<std::size_t> its;
    for (const auto name : changes.names) {
        its.clear();
        bool all_on = true;
        for_each_place(shape, key_of(name), [&](std::uint64_t place) {
            all_on = all_on && (words[place / 64] & bit_at(place)) != 0;
            const auto at = std::lower_bound(changes.places.begin(), changes.places.end(), place);
            if (at != changes.places.end() && *at == place) {
                const auto index = static_cast<std::size_t>(at - changes.places.begin());
                if (!said[index] && std::find(its.begin(), its.end(), index) == its.end()) {
                    its.push_back(index);
                }
            }
        });
        if (all_on && its.size() * bits_of_place > bits_of_name) {
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
    assert(is_valid(span.shape) && words.size() == words_for(span.shape.bits));
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
    auto places = code_places(changes.places, span.shape.bits);
    head.listed = changes.places.size();
    head.divisor = places.divisor;
    auto body = std::move(places.bytes);
    // Few names are worth the look at all of them.
    if (!changes.names.empty() && body.size() > 16) {
        const auto parts = split(span.shape, changes, words, key_of);
        const auto rest = code_places(parts.places, span.shape.bits);
        const auto turns = parts.names.size() * span.shape.probes + parts.places.size();
        if (turns <= most && 8 + parts.names.size() * 8 + rest.bytes.size() < body.size()) {
            head.encoding = digest_encoding::names;
            head.listed = parts.places.size();
            head.divisor = rest.divisor;
            body = body_of_names(parts.names, rest);
        }
    }
    if (body.size() >= (span.shape.bits + 7) / 8) {
        return std::nullopt;
    }
    return write_digest(head, body);
}

}  // namespace reprise::filter
