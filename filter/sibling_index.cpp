// See sibling_index.hpp. Why a column that changes hands is never taken for its last owner's: it is
// written only while the published view does not use it. A reader whose view still does and that
// reads one of the rows written (acquire, of a release) must then see, in its second look at the
// published pointer, that it has moved, for it moved before that row was written; the answer is
// thrown away. A digest that its owner's next one of the same size replaces is written over in
// place: the bits that turn are of no key that both hold.
//
// A view is freed when no reader pins it (Michael, "Hazard Pointers", 2004): a reader first pins
// and then looks whether the view is still published, a writer first publishes and then looks for
// pins, both in the single order of sequentially consistent operations, so one of them sees the
// other. Pins outlast a look-up, so that this is paid after a change and not at each look-up. A
// pinned view's address is not used again, so equal pointers are equal views.

#include "filter/sibling_index.hpp"

#include "filter/sibling_rows.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <set>

namespace reprise::filter {

namespace {

/// One table and whose digests are in it: sibling s in column s modulo the slice, which no two of
/// them share. Which siblings the columns found stand for takes no table then: the columns are
/// repeated over all 64 numbers, and the group's own siblings kept of them.
struct group {
    std::shared_ptr<sibling_rows> rows;
    sibling_mask siblings = 0;
    sibling_mask repeat;  // columns(slice)

    explicit group(std::shared_ptr<sibling_rows> table)
        : rows{std::move(table)},
          repeat{columns(rows->slice())} {}

    /// A one at each multiple of the slice.
    static sibling_mask columns(unsigned slice) noexcept {
        return UINT64_MAX / (UINT64_MAX >> (64 - slice));
    }

    [[nodiscard]] sibling_mask ask(key_hash key) const noexcept {
        return rows->ask(key) * repeat & siblings;
    }

    [[nodiscard]] bool has(unsigned sibling) const noexcept {
        return (siblings >> sibling & 1) != 0;
    }
    [[nodiscard]] unsigned column_of(unsigned sibling) const noexcept {
        return sibling % rows->slice();
    }

    /// With so many columns another sibling would be in this one's.
    [[nodiscard]] bool is_crowded_by(unsigned sibling, unsigned slice) const noexcept {
        const auto others = siblings & ~(sibling_mask{1} << sibling);
        return (others & columns(slice) << sibling % slice) != 0;
    }
    [[nodiscard]] bool has_room_for(unsigned sibling) const noexcept {
        return !is_crowded_by(sibling, rows->slice());
    }
};

/// The same group with twice the columns.
group widened(const group& narrow) {
    const auto slice = narrow.rows->slice();
    std::array<std::uint8_t, sibling_index::capacity> column_of{};
    std::iota(column_of.begin(), column_of.end(), std::uint8_t{0});
    for (unsigned sibling = 0; sibling < sibling_index::capacity; ++sibling) {
        if (narrow.has(sibling)) {
            column_of[narrow.column_of(sibling)] = static_cast<std::uint8_t>(sibling % (2 * slice));
        }
    }
    group wide{std::make_shared<sibling_rows>(*narrow.rows, std::span{column_of}.first(slice))};
    wide.siblings = narrow.siblings;
    return wide;
}

}  // namespace

/// What may be asked at one moment. Immutable once published; tables are shared with later views.
struct sibling_index::view {
    std::vector<group> groups;

    /// The group that the sibling's digest is in, or null.
    [[nodiscard]] const group* find(unsigned sibling) const noexcept {
        const auto found = std::find_if(
            groups.begin(), groups.end(), [&](const group& one) { return one.has(sibling); });
        return found == groups.end() ? nullptr : &*found;
    }

    /// The group of digests of this size, or null.
    [[nodiscard]] group* find(bloom_size size) noexcept {
        const auto found = std::find_if(groups.begin(), groups.end(), [&](const group& one) {
            return one.rows->size() == size;
        });
        return found == groups.end() ? nullptr : &*found;
    }

    void leave(unsigned sibling) noexcept {
        for (auto& one : groups) {
            one.siblings &= ~(sibling_mask{1} << sibling);
        }
    }

    void drop_empty_groups() noexcept {
        std::erase_if(groups, [](const group& one) { return one.siblings == 0; });
    }
};

/// The view that a reader may be reading. On a line of its own: each reader writes only its own.
struct alignas(64) sibling_index::pin {
    std::atomic<const view*> seen{nullptr};
};

sibling_index::sibling_index() {
    views_.push_back(std::make_unique<const view>());
    published_.store(views_.back().get());
}

sibling_index::~sibling_index() {
    assert(pins_.empty());
}

const sibling_index::view& sibling_index::now() const noexcept {
    return *views_.back();
}

std::unique_ptr<sibling_index::view> sibling_index::copy_of_now() const {
    return std::make_unique<view>(now());
}

void sibling_index::publish(std::unique_ptr<view> next) noexcept {
    assert(views_.size() < views_.capacity());  // so that this cannot fail half way
    views_.push_back(std::move(next));
    published_.store(views_.back().get(), std::memory_order_seq_cst);
    reclaim_locked();
}

void sibling_index::reclaim_locked() noexcept {
    const auto is_pinned = [&](const view* one) {
        return std::any_of(pins_.begin(), pins_.end(), [&](const auto& each) {
            return each->seen.load(std::memory_order_seq_cst) == one;
        });
    };
    const auto retired = views_.end() - 1;
    views_.erase(std::remove_if(views_.begin(),
                                retired,
                                [&](const auto& one) { return !is_pinned(one.get()); }),
                 retired);
}

void sibling_index::reclaim() {
    const std::lock_guard lock{writers_};
    reclaim_locked();
}

void sibling_index::put(unsigned sibling, bloom_size size, std::span<const std::uint64_t> words) {
    assert(sibling < capacity && size.bits > 0 && size.probes > 0);
    assert(words.size() == (size.bits + 63) / 64);
    const std::lock_guard lock{writers_};
    views_.reserve(views_.size() + 1);
    auto next = copy_of_now();
    auto* home = next->find(size);
    if (home == nullptr) {
        home = &next->groups.emplace_back(
            std::make_shared<sibling_rows>(size, sibling_rows::least_slice));
    }
    if (home->has(sibling)) {
        home->rows->write(home->column_of(sibling),
                          words);  // its own column is the only one for it
        return;
    }
    while (!home->has_room_for(sibling)) {
        *home = widened(*home);
    }
    home->rows->write(home->column_of(sibling), words);  // nobody's in the view published now
    next->leave(sibling);
    home->siblings |= sibling_mask{1} << sibling;
    next->drop_empty_groups();
    publish(std::move(next));
}

bool sibling_index::flip(unsigned sibling,
                         bloom_size size,
                         std::span<const std::uint64_t> places) noexcept {
    assert(sibling < capacity);
    const std::lock_guard lock{writers_};
    const auto* home = now().find(sibling);
    if (home == nullptr || home->rows->size() != size ||
        std::any_of(places.begin(), places.end(), [&](auto place) { return place >= size.bits; })) {
        return false;
    }
    home->rows->flip(home->column_of(sibling), places);
    return true;
}

bool sibling_index::remove(unsigned sibling) {
    assert(sibling < capacity);
    const std::lock_guard lock{writers_};
    views_.reserve(views_.size() + 1);
    auto next = copy_of_now();
    if (next->find(sibling) == nullptr) {
        return false;
    }
    next->leave(sibling);
    next->drop_empty_groups();
    publish(std::move(next));
    return true;
}

sibling_mask sibling_index::siblings() const {
    const std::lock_guard lock{writers_};
    sibling_mask all = 0;
    for (const auto& one : now().groups) {
        all |= one.siblings;
    }
    return all;
}

std::optional<bloom_size> sibling_index::size_of(unsigned sibling) const {
    assert(sibling < capacity);
    const std::lock_guard lock{writers_};
    const auto* home = now().find(sibling);
    return home == nullptr ? std::nullopt : std::optional{home->rows->size()};
}

std::vector<std::uint64_t> sibling_index::words_of(unsigned sibling) const {
    assert(sibling < capacity);
    const std::lock_guard lock{writers_};
    const auto* home = now().find(sibling);
    return home == nullptr ? std::vector<std::uint64_t>{}
                           : home->rows->read(home->column_of(sibling));
}

std::size_t sibling_index::groups() const {
    const std::lock_guard lock{writers_};
    return now().groups.size();
}

std::uint64_t sibling_index::bytes() const {
    const std::lock_guard lock{writers_};
    std::set<const sibling_rows*> tables;  // views share them
    std::uint64_t bytes = 0;
    for (const auto& one : views_) {
        for (const auto& each : one->groups) {
            bytes += tables.insert(each.rows.get()).second ? each.rows->bytes() : 0;
        }
    }
    return bytes;
}

std::uint64_t sibling_index::bytes_with(unsigned sibling, bloom_size size) const {
    assert(sibling < capacity);
    const std::lock_guard lock{writers_};
    std::uint64_t bytes = 0;
    bool is_new = true;
    for (const auto& one : now().groups) {
        const bool fits = one.rows->size() == size;
        if (!fits && one.siblings == sibling_mask{1} << sibling) {
            continue;  // it goes
        }
        // put() widens until the sibling has a column of its own.
        auto slice = one.rows->slice();
        while (fits && one.is_crowded_by(sibling, slice)) {
            slice *= 2;
        }
        bytes += one.rows->size().bits * (slice / 8);
        is_new = is_new && !fits;
    }
    return bytes + (is_new ? size.bits * (sibling_rows::least_slice / 8) : 0);
}

sibling_index::reader::reader(sibling_index& index)
    : index_{index},
      pin_{[&]() -> pin& {
          const std::lock_guard lock{index.writers_};
          return *index.pins_.emplace_back(std::make_unique<pin>());
      }()} {}

sibling_index::reader::~reader() {
    const std::lock_guard lock{index_.writers_};
    std::erase_if(index_.pins_, [&](const auto& each) { return each.get() == &pin_; });
    index_.reclaim_locked();
}

void sibling_index::reader::rest() noexcept {
    pin_.seen.store(nullptr, std::memory_order_seq_cst);
}

sibling_mask sibling_index::reader::may_hold(key_hash key) noexcept {
    while (true) {
        const auto* current = index_.published_.load(std::memory_order_acquire);
        if (current != pin_.seen.load(std::memory_order_relaxed)) {
            pin_.seen.store(current, std::memory_order_seq_cst);
            if (index_.published_.load(std::memory_order_seq_cst) != current) {
                continue;  // it may be freed already
            }
        }
        sibling_mask siblings = 0;
        for (const auto& group : current->groups) {
            siblings |= group.ask(key);
        }
        // Relaxed: the rows were read with acquire, so this load comes after them.
        if (index_.published_.load(std::memory_order_relaxed) == current) {
            return siblings;
        }
    }
}

}  // namespace reprise::filter
