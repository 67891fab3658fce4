#include "tools/replay/object_table.hpp"

#include <algorithm>
#include <stdexcept>

namespace reprise::replay {

namespace {

constexpr std::size_t first_slots = 1u << 12;
constexpr std::uint32_t none = ~std::uint32_t{0};

std::uint32_t piece_of(const filter::key_hash& key) noexcept {
    return static_cast<std::uint32_t>(key.high);
}

}  // namespace

object_table::object_table() : slots_(first_slots) {}

object_number object_table::note(const filter::key_hash& key, std::uint64_t bytes) {
    const auto mask = slots_.size() - 1;
    const auto piece = piece_of(key);
    for (auto at = key.low & mask;; at = (at + 1) & mask) {
        auto& place = slots_[at];
        if (place.number == none) {
            if (objects_.size() == none) {
                throw std::length_error{"more than 2^32 - 2 different keys"};
            }
            place = {static_cast<std::uint32_t>(objects_.size()), piece};
            objects_.push_back({key, bytes, 1, {}});
            if (2 * objects_.size() > slots_.size()) {
                grow();
            }
            return static_cast<object_number>(objects_.size() - 1);
        }
        if (place.piece == piece && objects_[place.number].key == key) {
            auto& known = objects_[place.number];
            known.bytes = std::max(known.bytes, bytes);
            known.requests += known.requests != none ? 1 : 0;
            return place.number;
        }
    }
}

void object_table::grow() {
    std::vector<slot> larger(2 * slots_.size());
    const auto mask = larger.size() - 1;
    for (std::uint32_t number = 0; number < objects_.size(); ++number) {
        const auto& key = objects_[number].key;
        auto at = key.low & mask;
        while (larger[at].number != none) {
            at = (at + 1) & mask;
        }
        larger[at] = {number, piece_of(key)};
    }
    slots_ = std::move(larger);
}

object_table::totals object_table::sum(std::size_t first) const noexcept {
    totals out;
    for (auto i = first; i < objects_.size(); ++i) {
        const auto& one = objects_[i];
        ++out.objects;
        out.bytes += one.bytes;
        if (one.requests == 1) {
            ++out.asked_once;
            out.asked_once_bytes += one.bytes;
        }
    }
    return out;
}

}  // namespace reprise::replay
