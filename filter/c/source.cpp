// See source.hpp.

#include "filter/c/source.hpp"

#include "filter/bit_words.hpp"
#include "filter/c/memory_piece.hpp"
#include "filter/digest_wire.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace reprise::filter::c {

namespace {

using places_variant = std::variant<counting_bloom, stamped_bloom>;

places_variant places_for(bloom_size size,
                          const std::optional<source::ring>& stamped,
                          std::pmr::memory_resource* memory) {
    if (stamped) {
        return stamped_bloom{size, stamped->generations, memory};
    }
    return counting_bloom{size, memory};
}

wire_ptr shared(std::vector<std::byte> bytes) {
    return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

// A generation of a million keys has some 80,000, of 19 places each: swept in a quarter of it. What
// is left, where objects are larger than was thought, is swept when the next one begins.
constexpr std::uint64_t swept_a_key = 1'024;

}  // namespace

std::uint64_t source::memory_for(bloom_size size) noexcept {
    const auto words = words_for(size.bits);
    const auto bits = piece_resource::lines_of(words * 8);
    return piece_resource::lines_of(words * 32) + 2 * bits;  // as they are, and as published
}

source::source(bloom_size size,
               std::optional<ring> stamped,
               const seed_id& seed,
               std::uint64_t epoch,
               std::size_t history,
               std::optional<stamped_state> before,
               std::pmr::memory_resource* memory)
    : places_{places_for(size, stamped, memory)},
      bits_{before ? bit_changes{before->filter.snapshot(), memory} : bit_changes{size, memory}},
      room_{stamped ? stamped->room : 0},
      stamp_{.seed = seed, .generation = {.epoch = epoch, .counter = 0}, .keys = 0},
      history_{history} {
    if (before) {
        // Where they are in lent memory that is a copy, to where they lie: of equal size, without more.
        std::get<stamped_bloom>(places_) = std::move(before->filter);
        room_found_ = before->room;
        room_ = room_found_ > 0 ? room_found_ : room_;
        written_ = std::min(before->written, each_generation() - 1);
    }
    publish_locked();
}

std::uint64_t source::each_generation() const noexcept {
    // Rounded up: all but the oldest are to have all that the store keeps.
    const auto parts = std::get<stamped_bloom>(places_).generations() - 1;
    return std::max<std::uint64_t>(1, room_ / parts + (room_ % parts != 0 ? 1 : 0));
}

void source::write(stamped_bloom& into, key_hash key, std::uint64_t bytes) noexcept {
    const auto turn = [this](std::uint64_t place) { bits_.turn(place); };
    into.insert(key, turn);
    into.sweep(swept_a_key, turn);
    written_ += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - written_);
    // An object may be larger than a generation; one larger than all of them leaves nothing.
    for (unsigned begun = 0; written_ >= each_generation() && begun <= into.generations();
         ++begun) {
        written_ -= each_generation();
        into.advance(turn);
        ++begun_;
    }
    written_ = std::min(written_, each_generation() - 1);
}

void source::came(key_hash key, std::uint64_t bytes) noexcept {
    const std::scoped_lock lock{changing_};
    if (auto* const ring = std::get_if<stamped_bloom>(&places_)) {
        write(*ring, key, bytes);
        return;
    }
    std::get<counting_bloom>(places_).insert(key, [this](auto place) { bits_.turn(place); });
    ++keys_;
}

bool source::left(key_hash key) noexcept {
    const std::scoped_lock lock{changing_};
    auto* const counting = std::get_if<counting_bloom>(&places_);
    if (counting == nullptr || !counting->erase(key, [this](auto place) { bits_.turn(place); })) {
        return false;
    }
    keys_ -= keys_ > 0 ? 1 : 0;
    return true;
}

bool source::set_room(std::uint64_t room) noexcept {
    const std::scoped_lock lock{changing_};
    if (!std::holds_alternative<stamped_bloom>(places_)) {
        return false;
    }
    room_ = room_found_ = room;
    return true;
}

void source::clear() noexcept {
    const std::scoped_lock lock{changing_};
    for (std::uint64_t word = 0; word < bits_.now().size(); ++word) {
        for (auto left = bits_.now()[word]; left != 0; left &= left - 1) {
            bits_.turn(word * 64 + static_cast<unsigned>(std::countr_zero(left)));
        }
    }
    std::visit([](auto& each) { each.clear(); }, places_);
    keys_ = written_ = 0;
}

void source::publish_locked() {
    auto stamp = stamp_;
    auto bits = [&] {
        const std::scoped_lock lock{changing_};
        stamp.keys = keys_;
        is_owed_ = true;  // until all of it is done, whatever there is no memory for
        return bits_.publish();
    }();
    ++stamp.generation.counter;
    auto made = digest::of(bits, stamp);
    if (stamp.keys == 0 && made.bits_on() != 0) {
        // Nobody counts a ring's keys. A digest has its stamp from the beginning, so it is made once more.
        stamp.keys = static_cast<std::uint64_t>(std::llround(made.estimated_keys()));
        made = digest::of(bits, stamp);
    }
    published_.push_front({std::make_shared<digest>(std::move(made)), nullptr, {}});
    stamp_ = stamp;
    is_owed_ = false;
    {
        const std::scoped_lock lock{changing_};
        newest_ = stamp.generation;
    }
    while (published_.size() > history_ + 1) {
        published_.pop_back();
    }
}

bool source::publish() {
    const std::scoped_lock publishing{publishing_};
    {
        const std::scoped_lock lock{changing_};
        if (bits_.changed() == 0 && !is_owed_) {
            return false;
        }
    }
    publish_locked();
    return true;
}

wire_ptr source::serve(digest_generation held) {
    const std::scoped_lock lock{publishing_};
    auto& newest = published_.front();
    if (held == stamp_.generation) {
        return nullptr;
    }
    if (!newest.whole) {
        newest.whole = shared(encode(*newest.made));
    }
    const auto known = std::find_if(newest.deltas.begin(), newest.deltas.end(), [&](auto& one) {
        return one.first == held.counter;
    });
    if (held.epoch != stamp_.generation.epoch) {
        return newest.whole;
    }
    if (known != newest.deltas.end()) {
        return known->second;
    }
    const auto base = std::find_if(published_.begin(), published_.end(), [&](auto& one) {
        return one.made->stamp().generation == held;
    });
    if (base == published_.end()) {
        return newest.whole;
    }
    auto delta = encode_delta(*base->made, *newest.made);
    auto answer = newest.whole;
    if (delta && delta->size() < newest.whole->size()) {
        answer = shared(std::move(*delta));
    }
    newest.deltas.emplace_back(held.counter, answer);
    return answer;
}

std::optional<stamped_state> source::state() const {
    const std::scoped_lock lock{changing_};
    if (const auto* const ring = std::get_if<stamped_bloom>(&places_)) {
        return stamped_state{*ring, written_, room_found_};
    }
    return std::nullopt;
}

source::reading source::read() const {
    const std::scoped_lock lock{changing_};
    return std::visit(
        [&](const auto& each) {
            return reading{.size = each.size(),
                           .on = each.bits_on(),
                           .changed = bits_.changed(),
                           .memory = each.bytes() + bits_.bytes(),
                           .rate = each.false_positive_rate(),
                           .published = newest_,
                           .room = room_,
                           .written = written_,
                           .generations_begun = begun_};
        },
        places_);
}

}  // namespace reprise::filter::c
