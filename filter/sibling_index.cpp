// See sibling_index.hpp. Why a look-up cannot see a mixture: a column is written only while the
// published view does not use it. A reader whose view still does and that reads one of the rows
// written (acquire, of a release) must then see, in its second look at the published pointer, that
// it has moved, for it moved before that row was written; the answer is thrown away.
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
#include <bit>
#include <cassert>
#include <set>

namespace reprise::filter {

namespace {

constexpr unsigned byte_bits = 8;

/// One table and whose digest each of its columns is. In one of 64 columns a sibling's is the one
/// of its own number, and the columns that were found are the answer; in narrower ones columns are
/// given as they are free, and the answer is looked up.
struct group {
    std::shared_ptr<sibling_rows> rows;
    std::uint64_t used = 0;  // columns
    std::array<std::uint8_t, sibling_index::capacity> sibling_of{};
    /// From columns to siblings, eight columns at a time; empty for 64. A loop over the bits that
    /// are on would branch on what memory said, and keep the next look-up from being begun.
    std::vector<std::array<sibling_mask, 1 << byte_bits>> siblings_of_byte;

    explicit group(std::shared_ptr<sibling_rows> table)
        : rows{std::move(table)},
          siblings_of_byte(is_widest() ? 0 : rows->slice() / byte_bits) {}

    [[nodiscard]] bool is_widest() const noexcept {
        return rows->slice() == sibling_rows::most_slice;
    }

    void use(unsigned column, unsigned sibling) noexcept {
        assert(!is_widest() || column == sibling);
        used |= std::uint64_t{1} << column;
        sibling_of[column] = static_cast<std::uint8_t>(sibling);
        stand_for(column, sibling_mask{1} << sibling);
    }

    void leave(unsigned column) noexcept {
        used &= ~(std::uint64_t{1} << column);
        stand_for(column, 0);
    }

    [[nodiscard]] sibling_mask ask(key_hash key) const noexcept {
        return siblings_in(rows->ask(key) & used);
    }

    [[nodiscard]] sibling_mask siblings() const noexcept { return siblings_in(used); }

    /// A column for the sibling that nobody uses, if there is one.
    [[nodiscard]] std::optional<unsigned> free_column(unsigned sibling) const noexcept {
        const auto column = is_widest() ? sibling : static_cast<unsigned>(std::countr_one(used));
        if (column >= rows->slice() || (used >> column & 1) != 0) {
            return std::nullopt;
        }
        return column;
    }

private:
    [[nodiscard]] sibling_mask siblings_in(std::uint64_t columns) const noexcept {
        if (siblings_of_byte.empty()) {
            return columns;
        }
        sibling_mask siblings = 0;
        for (const auto& of : siblings_of_byte) {
            siblings |= of[columns % of.size()];
            columns >>= byte_bits;
        }
        return siblings;
    }

    /// Makes `column` mean a sibling's bit, or nothing.
    void stand_for(unsigned column, sibling_mask bit) noexcept {
        if (is_widest()) {
            return;
        }
        auto& of = siblings_of_byte[column / byte_bits];
        const auto own = std::size_t{1} << (column % byte_bits);
        const auto before = of[own];
        for (std::size_t columns = 0; columns < of.size(); ++columns) {
            if ((columns & own) != 0) {
                of[columns] = (of[columns] & ~before) | bit;
            }
        }
    }
};

/// The same group with twice the columns.
group widened(const group& narrow) {
    const auto slice = narrow.rows->slice();
    std::array<std::uint8_t, sibling_index::capacity> column_of{};
    for (unsigned column = 0; column < slice; ++column) {
        column_of[column] = slice * 2 == sibling_rows::most_slice
                                ? narrow.sibling_of[column]
                                : static_cast<std::uint8_t>(column);
    }
    group wide{std::make_shared<sibling_rows>(*narrow.rows, std::span{column_of}.first(slice))};
    for (unsigned column = 0; column < slice; ++column) {
        wide.use(column_of[column], narrow.sibling_of[column]);
    }
    return wide;
}

}  // namespace

/// What may be asked at one moment. Immutable once published; tables are shared with later views.
struct sibling_index::view {
    std::vector<group> groups;

    struct home {
        std::size_t group;
        unsigned column;
    };

    [[nodiscard]] std::optional<home> find(unsigned sibling) const noexcept {
        for (std::size_t g = 0; g < groups.size(); ++g) {
            for (unsigned column = 0; column < groups[g].rows->slice(); ++column) {
                if ((groups[g].used >> column & 1) != 0 &&
                    groups[g].sibling_of[column] == sibling) {
                    return home{g, column};
                }
            }
        }
        return std::nullopt;
    }

    [[nodiscard]] std::size_t find(bloom_size size) const noexcept {
        const auto found = std::find_if(groups.begin(), groups.end(), [&](const group& one) {
            return one.rows->size() == size;
        });
        return static_cast<std::size_t>(found - groups.begin());
    }

    void drop_empty_groups() noexcept {
        std::erase_if(groups, [](const group& one) { return one.used == 0; });
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
    views_.reserve(views_.size() + 2);
    auto next = copy_of_now();
    const auto home = next->find(sibling);
    const auto g = next->find(size);
    if (g == next->groups.size()) {
        next->groups.emplace_back(std::make_shared<sibling_rows>(size, sibling_rows::least_slice));
    }
    // Free in the view that is published now: readers may be using what `next` will leave.
    auto column = next->groups[g].free_column(sibling);
    if (!column && home && home->group == g) {
        auto without = copy_of_now();
        without->groups[g].leave(home->column);
        publish(std::move(without));
        next->groups[g].rows->write(home->column, words);
        publish(std::move(next));
        return;
    }
    if (!column) {
        next->groups[g] = widened(next->groups[g]);
        column = next->groups[g].free_column(sibling);
    }
    next->groups[g].rows->write(*column, words);
    if (home) {
        next->groups[home->group].leave(home->column);
    }
    next->groups[g].use(*column, sibling);
    next->drop_empty_groups();
    publish(std::move(next));
}

bool sibling_index::flip(unsigned sibling, bloom_size size, std::span<const std::uint64_t> places) {
    assert(sibling < capacity);
    const std::lock_guard lock{writers_};
    const auto home = now().find(sibling);
    if (!home || now().groups[home->group].rows->size() != size ||
        std::any_of(places.begin(), places.end(), [&](auto place) { return place >= size.bits; })) {
        return false;
    }
    views_.reserve(views_.size() + 2);
    auto without = copy_of_now();
    auto with = copy_of_now();
    without->groups[home->group].leave(home->column);
    publish(std::move(without));
    with->groups[home->group].rows->flip(home->column, places);
    publish(std::move(with));
    return true;
}

bool sibling_index::remove(unsigned sibling) {
    assert(sibling < capacity);
    const std::lock_guard lock{writers_};
    const auto home = now().find(sibling);
    if (!home) {
        return false;
    }
    views_.reserve(views_.size() + 1);
    auto next = copy_of_now();
    next->groups[home->group].leave(home->column);
    next->drop_empty_groups();
    publish(std::move(next));
    return true;
}

sibling_mask sibling_index::siblings() const {
    const std::lock_guard lock{writers_};
    sibling_mask all = 0;
    for (const auto& one : now().groups) {
        all |= one.siblings();
    }
    return all;
}

std::optional<bloom_size> sibling_index::size_of(unsigned sibling) const {
    assert(sibling < capacity);
    const std::lock_guard lock{writers_};
    const auto home = now().find(sibling);
    if (!home) {
        return std::nullopt;
    }
    return now().groups[home->group].rows->size();
}

std::vector<std::uint64_t> sibling_index::words_of(unsigned sibling) const {
    assert(sibling < capacity);
    const std::lock_guard lock{writers_};
    const auto home = now().find(sibling);
    if (!home) {
        return {};
    }
    return now().groups[home->group].rows->read(home->column);
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
