// See source.hpp.

#include "filter/c/source.hpp"

#include "filter/bit_words.hpp"
#include "filter/digest_wire.hpp"
#include "filter/estimators.hpp"
#include "filter/news_bound.hpp"
#include "filter/news_wire.hpp"
#include "filter/place_sum.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace reprise::filter::c {

namespace {

wire_ptr shared(std::vector<std::byte> bytes) {
    return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

// A generation of a million keys has some 80,000, of 19 places each: swept in a quarter of it. What
// is left, where objects are larger than was thought, is swept when the next one begins.
constexpr std::uint64_t swept_a_key = 1'024;

/// Those that turned an odd number of times, rising.
void keep_net(std::vector<std::uint64_t>& places) {
    std::sort(places.begin(), places.end());
    auto kept = places.begin();
    for (auto at = places.begin(); at != places.end();) {
        const auto place = *at;
        const auto end = std::find_if(at, places.end(), [&](auto one) { return one != place; });
        if ((end - at) % 2 != 0) {
            *kept++ = place;
        }
        at = end;
    }
    places.erase(kept, places.end());
}

}  // namespace

source::places_variant source::places_in(source_region& region) noexcept {
    const auto& shape = region.shape;
    if (shape.generations > 0) {
        return stamped_bloom{shape.size, shape.generations, region.places()};
    }
    return counting_bloom{shape.size, region.places()};
}

source::source(source_region& region)
    : region_{region},
      told_{region.told},
      seed_{identify(region.seed)},
      places_{places_in(region)},
      bits_{region.shape.size, region.bits(), region.published_bits()},
      turned_{region.turned()},
      steps_{region.steps()} {}

void source::begin(source_region& region, std::uint64_t room, std::optional<stamped_state> before) {
    source whole{region};
    if (auto* const ring = std::get_if<stamped_bloom>(&whole.places_)) {
        whole.told_.room = room;
        if (before) {
            *ring = before->filter;  // copied to where it lies
            whole.told_.room_found = before->room;
            whole.told_.room = before->room > 0 ? before->room : room;
            whole.told_.written = std::min(before->written, whole.each_generation() - 1);
        }
        const auto counted = ring->counted();
        whole.told_.current = counted.current;
        whole.told_.swept_or_stuck = counted.swept;
    }
    if (before) {
        whole.mend();  // counts them, and sets bits
    } else {
        whole.publish_bits();
    }
    whole.keep();
}

source::held_region::held_region(source& of) noexcept : lock_{of.region_}, of_{of} {
    of.resume();
    if (lock_.is_left()) {
        of.mend();
    }
}

void source::resume() noexcept {
    if (auto* const ring = std::get_if<stamped_bloom>(&places_)) {
        ring->resume({told_.on, told_.swept_or_stuck, told_.current});
    } else {
        std::get<counting_bloom>(places_).resume({told_.on, told_.swept_or_stuck});
    }
    bits_.resume(told_.changed);
}

void source::keep() noexcept {
    if (const auto* const ring = std::get_if<stamped_bloom>(&places_)) {
        const auto counted = ring->counted();
        told_.on = counted.on;
        told_.swept_or_stuck = counted.swept;
        told_.current = counted.current;
    } else {
        const auto counted = std::get<counting_bloom>(places_).counted();
        told_.on = counted.on;
        told_.swept_or_stuck = counted.stuck;
    }
    told_.changed = bits_.changed();
}

// The places are what is true, each changed by one write; all else goes by them. What was published may be half of two digests, so that
// its number is used no more.
void source::mend() noexcept {
    std::visit(
        [this](auto& each) {
            each.recount();
            for (std::uint64_t index = 0; index < bits_.now().size(); ++index) {
                bits_.put(index, each.bits_on(index));
            }
        },
        places_);
    told_.sum = region_.shape.news > 0 ? place_sum(bits_.now()) : 0;
    told_.turned += region_.shape.news + 1;  // beyond what any step remembers
    publish_bits();
}

void source::turn(std::uint64_t place) noexcept {
    bits_.turn(place);
    if (!turned_.empty()) {
        const bool is_on = (bits_.now()[place / 64] & bit_at(place)) != 0;
        told_.sum = turned(told_.sum, place, is_on);
        turned_[told_.turned % turned_.size()] = place;
        ++told_.turned;
    }
}

std::uint64_t source::each_generation() const noexcept {
    // Rounded up: all but the oldest are to have all that the store keeps.
    const auto parts = std::get<stamped_bloom>(places_).generations() - 1;
    return std::max<std::uint64_t>(1, told_.room / parts + (told_.room % parts != 0 ? 1 : 0));
}

void source::write(stamped_bloom& into, key_hash key, std::uint64_t bytes) noexcept {
    const auto on_change = [this](std::uint64_t place) { turn(place); };
    into.insert(key, on_change);
    into.sweep(swept_a_key, on_change);
    auto& written = told_.written;
    written += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - written);
    // An object may be larger than a generation; one larger than all of them leaves nothing.
    for (unsigned begun = 0; written >= each_generation() && begun <= into.generations(); ++begun) {
        written -= each_generation();
        into.advance(on_change);
        ++told_.begun;
        keep();  // before anything is stamped or swept by it: the process after a death goes by it
    }
    written = std::min(written, each_generation() - 1);
}

void source::came(key_hash key, std::uint64_t bytes) noexcept {
    const held_region held{*this};
    if (auto* const ring = std::get_if<stamped_bloom>(&places_)) {
        write(*ring, key, bytes);
        return;
    }
    std::get<counting_bloom>(places_).insert(key, [this](auto place) { turn(place); });
    ++told_.keys;
}

bool source::left(key_hash key) noexcept {
    const held_region held{*this};
    auto* const counting = std::get_if<counting_bloom>(&places_);
    if (counting == nullptr || !counting->erase(key, [this](auto place) { turn(place); })) {
        return false;
    }
    told_.keys -= told_.keys > 0 ? 1 : 0;
    return true;
}

bool source::set_room(std::uint64_t room) noexcept {
    const held_region held{*this};
    if (!std::holds_alternative<stamped_bloom>(places_)) {
        return false;
    }
    told_.room = told_.room_found = room;
    // What was written is counted in the new room's generations, of which it may be many: all of it lies in the current one, which
    // is then over with the next object, but no more than that one.
    told_.written = std::min(told_.written, each_generation() - 1);
    return true;
}

void source::clear() noexcept {
    const held_region held{*this};
    for (std::uint64_t word = 0; word < bits_.now().size(); ++word) {
        for (auto left = bits_.now()[word]; left != 0; left &= left - 1) {
            turn(word * 64 + static_cast<unsigned>(std::countr_zero(left)));
        }
    }
    std::visit([](auto& each) { each.clear(); }, places_);
    told_.keys = told_.written = 0;
}

std::uint64_t source::keys_now() const noexcept {
    const auto on = std::visit([](const auto& each) { return each.bits_on(); }, places_);
    if (told_.keys > 0 || on == 0) {
        return told_.keys;
    }
    // Nobody counts a ring's keys.
    const auto size = bits_.size();
    return size.bits > 1 ? static_cast<std::uint64_t>(std::llround(estimate_keys(size, on).keys))
                         : on;
}

void source::begin_generation() noexcept {
    ++told_.counter;
    if (!steps_.empty()) {
        steps_[told_.steps % steps_.size()] = {told_.counter, told_.turned, told_.sum};
        ++told_.steps;
    }
}

void source::publish_bits() noexcept {
    begin_generation();
    told_.published_keys = keys_now();
    bits_.mark_published();
    told_.published = told_.counter;
}

void source::make_newest() {
    line_words words(bits_.now().size());
    digest_stamp stamp{
        .seed = seed_, .generation = {.epoch = region_.epoch, .counter = 0}, .keys = 0};
    {
        const held_region held{*this};
        if (told_.published != told_.counter) {
            publish_bits();  // news went beyond it
        }
        std::copy(bits_.published().begin(), bits_.published().end(), words.begin());
        stamp.generation.counter = told_.counter;
        stamp.keys = told_.published_keys;
    }
    const auto size = bits_.size();
    const digest_shape shape{
        .layout = digest_layout::standard, .bits = size.bits, .probes = size.probes};
    published_.push_front({std::make_shared<digest>(shape, std::move(words), stamp), nullptr, {}});
    while (published_.size() > region_.shape.history + std::size_t{1}) {
        published_.pop_back();
    }
}

// News makes generations too, beyond what was published. What it told of may have turned back since: then the bits are those
// that were published, again, and not those that whoever took the news has. Their sums say so, which are kept in any case.
bool source::is_as_told() const noexcept {
    return steps_.empty() || steps_[(told_.steps - 1) % steps_.size()].sum == told_.sum;
}

bool source::publish() {
    const std::scoped_lock publishing{publishing_};
    {
        const held_region held{*this};
        if (bits_.changed() != 0 || !is_as_told()) {
            publish_bits();
        } else if (!published_.empty() &&
                   published_.front().made->stamp().generation.counter == told_.published) {
            return false;
        }
    }
    make_newest();  // also what could not be made before, and what another process published
    return true;
}

wire_ptr source::serve(digest_generation held) {
    const std::scoped_lock publishing{publishing_};
    const auto newest_one = [this] {
        const held_region locked{*this};
        return digest_generation{.epoch = region_.epoch, .counter = told_.counter};
    }();
    if (held == newest_one) {
        return nullptr;
    }
    if (published_.empty() || published_.front().made->stamp().generation != newest_one) {
        make_newest();
    }
    auto& newest = published_.front();
    const auto generation = newest.made->stamp().generation;
    if (!newest.whole) {
        newest.whole = shared(encode(*newest.made));
    }
    if (held.epoch != generation.epoch) {
        return newest.whole;
    }
    const auto known = std::find_if(newest.deltas.begin(), newest.deltas.end(), [&](auto& one) {
        return one.first == held.counter;
    });
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

bool source::is_told(const source_region::step& one) const noexcept {
    return one.counter != 0 && told_.turned - one.turned <= region_.shape.news;
}

bool source::look_back(digest_generation held, turns& out) {
    const held_region locked{*this};
    const auto newest = steps_[(told_.steps - 1) % steps_.size()];
    out.found = tidings::ask_whole;
    if (held.epoch != region_.epoch) {
        return true;
    }
    const auto from = std::find_if(
        steps_.begin(), steps_.end(), [&](auto& one) { return one.counter == held.counter; });
    if (from == steps_.end() || !is_told(*from)) {
        return true;
    }
    out.from = *from;  // before it may be written over
    const auto count = told_.turned - out.from.turned;
    if (count > 2 * most_news_places(bits_.size().bits)) {
        return true;  // some turn back again, but not half of them
    }
    if (out.places.capacity() < count) {
        return false;
    }
    if (newest.turned != told_.turned) {
        begin_generation();
    } else if (out.from.counter == told_.counter) {
        out.found = tidings::none;
        return true;
    }
    out.found = tidings::told;
    out.to = {told_.counter, told_.turned, told_.sum};
    out.keys = keys_now();
    out.places.clear();
    for (auto at = out.from.turned; at != told_.turned; ++at) {
        out.places.push_back(turned_[at % turned_.size()]);
    }
    return true;
}

source::tidings source::news(digest_generation held, std::vector<std::byte>& out) {
    turns found;
    // Places are turned while there is no lock; what is remembered of them bounds it.
    std::uint64_t room = 1'024;
    for (found.places.reserve(room); !look_back(held, found); found.places.reserve(room)) {
        room = std::min(2 * room, std::max<std::uint64_t>(region_.shape.news, room));
    }
    if (found.found != tidings::told) {
        return found.found;
    }
    keep_net(found.places);
    const auto size = bits_.size();
    const digest_shape shape{
        .layout = digest_layout::standard, .bits = size.bits, .probes = size.probes};
    const digest_stamp stamp{.seed = seed_,
                             .generation = {.epoch = region_.epoch, .counter = found.to.counter},
                             .keys = found.keys};
    const auto wire = encode_news({.shape = shape,
                                   .stamp = stamp,
                                   .sum = found.to.sum,
                                   .base_counter = found.from.counter,
                                   .base_sum = found.from.sum},
                                  {std::move(found.places), {}},
                                  {},
                                  {});
    if (!wire) {
        return tidings::ask_whole;
    }
    out = *wire;
    return tidings::told;
}

std::optional<stamped_state> source::state() {
    const held_region held{*this};
    if (const auto* const ring = std::get_if<stamped_bloom>(&places_)) {
        return stamped_state{*ring, told_.written, told_.room_found};
    }
    return std::nullopt;
}

source::reading source::read() {
    const held_region held{*this};
    return std::visit(
        [&](const auto& each) {
            return reading{.size = each.size(),
                           .on = each.bits_on(),
                           .changed = bits_.changed(),
                           .memory = region_.bytes,
                           .rate = each.false_positive_rate(),
                           .published = {.epoch = region_.epoch, .counter = told_.counter},
                           .room = told_.room,
                           .written = told_.written,
                           .generations_begun = told_.begun};
        },
        places_);
}

}  // namespace reprise::filter::c
