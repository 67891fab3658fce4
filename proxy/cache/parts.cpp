#include "proxy/cache/parts.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

namespace reprise::proxy::cache {

namespace {

constexpr std::size_t small = 4u << 10;

// A block that is mostly other bytes costs the store more than one copy now.
bool wastes(const slice& piece) noexcept {
    return piece.memory->capacity() > piece.size + piece.size / 8 + 64;
}

slice copy_of(const slice& a, const slice* b) {
    const auto size = a.size + (b != nullptr ? b->size : 0);
    slice exact{block::make(size), 0, size};
    std::memcpy(exact.memory->data(), a.view().data(), a.size);
    if (b != nullptr) {
        std::memcpy(exact.memory->data() + a.size, b->view().data(), b->size);
    }
    return exact;
}

void append(body& into, const slice& piece) {
    into.size += piece.size;
    if (!into.slices.empty() && into.slices.back().size + piece.size <= small) {
        into.slices.back() = copy_of(into.slices.back(), &piece);
    } else {
        into.slices.push_back(wastes(piece) ? copy_of(piece, nullptr) : piece);
    }
}

/// The parts [from, to) of `held` and `added`, which touches or overlaps each of them, as one.
part joined(std::span<const part> touched, const part& added) {
    if (touched.size() == 1 && touched.front().first <= added.first &&
        added.end() <= touched.front().end()) {
        return touched.front();
    }
    auto all = std::make_shared<body>();
    std::size_t slices = added.bytes->slices.size();
    for (const auto& one : touched) {
        slices += one.bytes->slices.size();
    }
    all->slices.reserve(slices);
    const auto first = touched.empty() ? added.first : std::min(touched.front().first, added.first);
    auto at = first;
    const auto take = [&](const slice& piece, std::size_t skip, std::size_t size) {
        append(*all, slice{piece.memory, piece.begin + skip, size});
    };
    for (const auto& one : touched) {
        if (at < one.first) {
            each_slice(added, {at, one.first - 1}, take);
        }
        each_slice(one, {one.first, one.end() - 1}, take);
        at = one.end();
    }
    if (at < added.end()) {
        each_slice(added, {at, added.end() - 1}, take);
    }
    all->slices.shrink_to_fit();
    return {first, std::move(all)};
}

}  // namespace

std::uint64_t partial_body::bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& one : held) {
        sum += one.bytes->size;
    }
    return sum;
}

bool partial_body::is_whole() const noexcept {
    return held.size() == 1 && held.front().first == 0 && held.front().end() == total;
}

bool partial_body::holds(http::byte_range wanted) const noexcept {
    const auto* one = at_or_before(wanted.first);
    return one != nullptr && wanted.last < one->end();
}

std::optional<http::byte_range> partial_body::gap_in(http::byte_range wanted) const noexcept {
    auto gap = wanted;
    if (const auto* one = at_or_before(wanted.first); one && wanted.first < one->end()) {
        if (wanted.last < one->end()) {
            return std::nullopt;
        }
        gap.first = one->end();
    }
    // A part that holds the last byte begins behind the gap's first: it is not the one above.
    if (const auto* one = at_or_before(wanted.last); one && wanted.last < one->end()) {
        gap.last = one->first - 1;
    }
    return gap;
}

const part* partial_body::at_or_before(std::uint64_t offset) const noexcept {
    const auto behind = std::upper_bound(
        held.begin(), held.end(), offset, [](std::uint64_t wanted, const part& one) {
            return wanted < one.first;
        });
    return behind == held.begin() ? nullptr : &*std::prev(behind);
}

std::size_t partial_body::footprint() const noexcept {
    std::size_t sum = held.capacity() == 0 ? 0 : heap_cost(held.capacity() * sizeof(part));
    for (const auto& one : held) {
        sum += one.bytes->footprint();
    }
    return sum;
}

std::optional<partial_body> with_part(const partial_body& before,
                                      const part& added,
                                      std::uint64_t total,
                                      std::uint64_t most_bytes) {
    const auto& held = before.held;
    const auto from = std::find_if(
        held.begin(), held.end(), [&](const part& one) { return one.end() >= added.first; });
    const auto to = std::find_if(
        from, held.end(), [&](const part& one) { return one.first > added.end(); });
    partial_body all;
    all.total = before.knows_total() ? before.total : total;
    all.held.reserve(static_cast<std::size_t>(held.size() - (to - from)) + 1);
    all.held.assign(held.begin(), from);
    const auto place = all.held.size();
    all.held.push_back(joined({from, to}, added));
    all.held.insert(all.held.end(), to, held.end());
    if (all.held.size() > partial_body::most_parts) {
        auto least = place == 0 ? std::size_t{1} : std::size_t{0};
        for (std::size_t i = 0; i < all.held.size(); ++i) {
            if (i != place && all.held[i].bytes->size < all.held[least].bytes->size) {
                least = i;
            }
        }
        all.held.erase(all.held.begin() + static_cast<std::ptrdiff_t>(least));
    }
    if (all.bytes() > most_bytes) {
        return std::nullopt;
    }
    return all;
}

}  // namespace reprise::proxy::cache
