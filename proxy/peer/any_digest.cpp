#include "proxy/peer/any_digest.hpp"

#include "filter/digest_wire.hpp"
#include "filter/estimators.hpp"
#include "filter/squid_key.hpp"
#include "proxy/peer/publication.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <utility>

namespace reprise::proxy::peer {
namespace {

using ours = std::shared_ptr<const filter::digest>;
using squids = std::shared_ptr<const filter::squid_digest>;

std::string number(double value, int digits = 0) {
    std::array<char, 64> text{};
    const auto size = std::snprintf(text.data(), text.size(), "%.*f", digits, value);
    return {text.data(), std::min(static_cast<std::size_t>(size), text.size() - 1)};
}

std::string percent(double share) {
    return number(share * 100, 3) + " %";
}

std::string hex(std::span<const std::byte> bytes) {
    std::string out;
    for (const auto byte : bytes) {
        out += "0123456789abcdef"[std::to_integer<unsigned>(byte) >> 4];
        out += "0123456789abcdef"[std::to_integer<unsigned>(byte) & 15];
    }
    return out;
}

std::string estimate(const filter::key_estimate& keys) {
    return number(keys.keys) + " +- " + number(1.96 * keys.standard_error);
}

bool is_standard(const filter::digest& of) {
    return of.shape().layout == filter::digest_layout::standard;
}

std::vector<digest_line> described(const filter::digest& of, const fleet_secret& secret) {
    const filter::bloom_size size{of.shape().bits, of.shape().probes};
    return {{"kind", "Reprise"},
            {"layout", is_standard(of) ? "standard" : "blocked"},
            {"generation", to_text(of.stamp().generation)},
            {"bits", std::to_string(size.bits)},
            {"probes", std::to_string(size.probes)},
            {"bits on", std::to_string(of.bits_on()) + " (" + percent(of.fill()) + ")"},
            {"keys, as its owner says", std::to_string(of.stamp().keys)},
            {"keys, estimated",
             is_standard(of) && size.bits > 1 ? estimate(filter::estimate_keys(size, of.bits_on()))
                                              : number(of.estimated_keys())},
            {"false positives", percent(of.false_positive_rate())},
            {"secret", hex(of.stamp().seed)},
            {"secret is the one given", of.stamp().seed == secret.id() ? "yes" : "no"}};
}

std::vector<digest_line> described(const filter::squid_digest& of) {
    return {
        {"kind", "Squid"},
        {"capacity", std::to_string(of.size().capacity)},
        {"bits an entry", std::to_string(of.size().bits_per_entry)},
        {"bits", std::to_string(of.size().bits())},
        {"probes", "4"},
        {"bits on", std::to_string(of.bits_on()) + " (" + percent(of.fill()) + ")"},
        {"keys, as its owner says", std::to_string(of.reported().added)},
        {"keys, estimated", estimate(filter::estimate_keys({of.size().bits(), 4}, of.bits_on()))},
        {"false positives", percent(of.false_positive_rate())}};
}

// A mask's bytes as words, bit n where a filter has it: both count from the lowest bit.
std::vector<std::uint64_t> words_of(std::span<const std::byte> mask) {
    std::vector<std::uint64_t> words((mask.size() + 7) / 8);
    for (std::size_t i = 0; i < mask.size(); ++i) {
        words[i / 8] |= std::to_integer<std::uint64_t>(mask[i]) << (8 * (i % 8));
    }
    return words;
}

}  // namespace

boost::system::result<any_digest> read_any(std::span<const std::byte> bytes) {
    const auto head = filter::read_digest_head(bytes);
    const bool is_ours = head.has_value() || (head.error() != filter::digest_errc::bad_magic &&
                                              head.error() != filter::digest_errc::truncated);
    if (is_ours) {
        if (head.has_error()) {
            return head.error();
        }
        // Nobody is to be asked by it: a full one is worth looking at too.
        const filter::digest_limits limits{.bytes = std::uint64_t{4} << 30,
                                           .false_positive_rate = 1};
        auto read = filter::decode_digest(bytes, head->stamp.seed, limits);
        if (read.has_error()) {
            return read.error();
        }
        return any_digest{std::make_shared<const filter::digest>(std::move(*read))};
    }
    auto read = filter::squid_digest::decode(bytes, std::numeric_limits<std::int32_t>::max());
    if (read.has_error()) {
        return read.error();
    }
    return any_digest{std::make_shared<const filter::squid_digest>(std::move(*read))};
}

std::vector<digest_line> describe(const any_digest& digest, const fleet_secret& secret) {
    if (const auto* const of = std::get_if<ours>(&digest)) {
        return described(**of, secret);
    }
    return described(*std::get<squids>(digest));
}

std::optional<bool> lists(const any_digest& digest,
                          std::string_view url,
                          const fleet_secret& secret) {
    if (const auto* const of = std::get_if<ours>(&digest)) {
        if ((*of)->stamp().seed != secret.id()) {
            return std::nullopt;
        }
        return (*of)->may_contain(key_of(name_of(url, secret), secret));
    }
    return std::get<squids>(digest)->may_contain(filter::squid_key_of(url));
}

std::optional<std::vector<digest_line>> compare(const any_digest& a, const any_digest& b) {
    filter::filter_pair pair;
    if (const auto* const first = std::get_if<ours>(&a)) {
        const auto* const second = std::get_if<ours>(&b);
        const auto both = second != nullptr ? filter::compare(**first, **second) : std::nullopt;
        if (!both) {
            return std::nullopt;
        }
        pair = *both;
    } else {
        const auto* const second = std::get_if<squids>(&b);
        const auto& one = *std::get<squids>(a);
        if (second == nullptr || one.size().bits() != (*second)->size().bits()) {
            return std::nullopt;
        }
        pair = filter::compare(
            {one.size().bits(), 4}, words_of(one.mask()), words_of((*second)->mask()));
    }
    auto turned = pair;
    std::swap(turned.a_on, turned.b_on);
    return std::vector<digest_line>{
        {"keys in either", estimate(filter::estimate_union(pair))},
        {"keys in both", estimate(filter::estimate_intersection(pair))},
        {"in the first alone", estimate(filter::estimate_difference(pair))},
        {"in the second alone", estimate(filter::estimate_difference(turned))}};
}

}  // namespace reprise::proxy::peer
