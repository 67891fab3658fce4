#include "proxy/cache/disk/large_body.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

// A reader holds two pieces at most: the one that is being given out (have_), without the blocks that
// have been, and the one that is being read (coming_). When that has come the segment's sequence is asked for again (core.hpp):
// what was reclaimed meanwhile is looked up and read anew, a few times.

namespace reprise::proxy::cache::disk {

namespace {

constexpr std::uint32_t piece_blocks = 4;
// So much a client that lagged takes in time before more than a block is read for it.
constexpr std::uint64_t in_time_again = 1u << 20;
constexpr std::uint32_t most_looked_for = 1024;
// An extent's front is a header and eight bytes per block: all of it in one read.
constexpr std::size_t front_guess = 512;

/// A run of an extent's blocks, to be read and verified.
class piece_read final : public read_job {
public:
    enum class found : std::uint8_t { none, good, not_cached, unreadable, damaged };

    piece_read(net::wakeup::signal sleeper,
               segment_table::view from,
               const index_entry& entry,
               const large_shape& shape,
               std::uint32_t part,
               std::uint32_t first,
               std::uint32_t blocks,
               std::uint64_t store_id,
               std::shared_ptr<const std::vector<char>> front)
        : read_job{std::move(sleeper)},
          from_{std::move(from)},
          entry_{entry},
          shape_{shape},
          part_{part},
          first_{first},
          blocks_{blocks},
          store_id_{store_id},
          front_{std::move(front)} {}

    [[nodiscard]] bool try_at_once() {
        read([](file& source, std::uint64_t at, file::places into) {
            const auto count = source.scatter_cached(at, into);
            return count && *count == size_of(into) ? found::good : found::not_cached;
        });
        return how_ != found::not_cached;
    }

    [[nodiscard]] found how() const noexcept { return how_; }
    [[nodiscard]] const index_entry& entry() const noexcept { return entry_; }
    [[nodiscard]] std::uint64_t sequence() const noexcept { return from_.sequence; }
    [[nodiscard]] std::uint32_t part() const noexcept { return part_; }
    [[nodiscard]] const auto& front() const noexcept { return front_; }
    /// @pre how() == good, as below
    [[nodiscard]] std::uint64_t begin() const noexcept {
        return std::uint64_t{part_} * shape_.extent_bytes + first_ * block_bytes;
    }
    [[nodiscard]] std::uint64_t end() const noexcept { return begin() + size_; }
    /// What is between `from` and `end`, `most` bytes at most, and then to the end of a block if it can be. What is given
    /// is held no longer. How much it is. @pre begin() <= from < this->end(), where the last one ended
    std::uint64_t give(std::uint64_t from,
                       std::uint64_t end,
                       std::uint64_t most,
                       std::vector<slice>& into) {
        auto at = from - begin();
        auto until = std::min(end - begin(), size_);
        if (until - at > most) {
            until = at + most;
            const auto whole = until - until % block_bytes;
            until = whole > at ? whole : until;
        }
        into.reserve(into.size() + piece_blocks);
        const auto size = until - at;
        while (at < until) {
            auto& memory = memory_[at / block_bytes];
            const auto of_it = std::min(block_bytes - at % block_bytes, until - at);
            into.push_back({memory,
                            static_cast<std::size_t>(at % block_bytes),
                            static_cast<std::size_t>(of_it)});
            at += of_it;
            if (at % block_bytes == 0 || at == size_) {
                memory = nullptr;
            }
        }
        return size;
    }
    /// Holds no more than is begun to be given, up to `from`.
    void let_go_behind(std::uint64_t from) noexcept {
        const auto kept = (from - begin() + block_bytes - 1) / block_bytes;
        for (auto i = kept; i < memory_.size(); ++i) {
            memory_[i] = nullptr;
        }
        size_ = std::min<std::uint64_t>(size_, kept * block_bytes);
    }

private:
    void run() noexcept override {
        try {
            read([](file& source, std::uint64_t at, file::places into) {
                return read_all(source, at, into) ? found::unreadable : found::good;
            });
        } catch (const std::bad_alloc&) {
            how_ = found::unreadable;
        }
    }

    using places = std::array<std::span<std::byte>, piece_blocks>;
    static std::size_t size_of(file::places of) noexcept {
        std::size_t sum = 0;
        for (const auto& place : of) {
            sum += place.size();
        }
        return sum;
    }

    template <class Read>
    found read_front(const Read& fill, std::vector<char>& into, std::uint64_t from) {
        const auto place = std::as_writable_bytes(std::span{into}.subspan(from));
        return fill(*from_.from, entry_.place.offset + from, file::places{&place, 1});
    }

    template <class Read>
    void read(const Read& fill) {
        how_ = found::damaged;
        if (!front_) {
            auto front = std::make_shared<std::vector<char>>(
                std::min<std::uint64_t>(entry_.bytes, front_guess));
            if ((how_ = read_front(fill, *front, 0)) != found::good) {
                return;
            }
            how_ = found::damaged;
            const auto unverified = read_header(*front);
            if (!unverified || unverified->front_bytes > entry_.bytes) {
                return;
            }
            if (const auto have = front->size(); unverified->front_bytes > have) {
                front->resize(unverified->front_bytes);
                if ((how_ = read_front(fill, *front, have)) != found::good) {
                    return;
                }
                how_ = found::damaged;
            }
            front_ = std::move(front);
        }
        const auto header = check_front(*front_, store_id_, from_.sequence);
        if (!header || header->kind != record_kind::extent || header->subject != shape_.id ||
            header->part != part_ || header->body_bytes != wanted_bytes()) {
            return;
        }
        const auto begin = first_ * block_bytes;
        size_ = std::min<std::uint64_t>(header->body_bytes - begin, blocks_ * block_bytes);
        const auto into = room();
        how_ = fill(*from_.from, entry_.place.offset + header->front_bytes + begin, into);
        for (std::uint32_t i = 0; i < into.size() && how_ == found::good; ++i) {
            const std::span<const char> one{memory_[i]->data(), into[i].size()};
            if (!check_block(*front_, first_ + i, one, store_id_)) {
                how_ = found::damaged;
            }
        }
    }

    /// A place for each block: apart, so that each may be let go of by itself.
    file::places room() {
        std::uint32_t blocks = 0;
        for (std::uint64_t at = 0; at < size_; at += block_bytes, ++blocks) {
            const auto size = static_cast<std::size_t>(std::min(block_bytes, size_ - at));
            auto& memory = memory_[blocks];
            if (!memory) {
                memory = block::make(size);
            }
            places_[blocks] = std::as_writable_bytes(std::span{memory->data(), size});
        }
        return {places_.data(), blocks};
    }

    /// Bytes of this extent.
    [[nodiscard]] std::uint64_t wanted_bytes() const noexcept {
        return std::min<std::uint64_t>(shape_.extent_bytes,
                                       shape_.length - std::uint64_t{part_} * shape_.extent_bytes);
    }

    const segment_table::view from_;
    const index_entry entry_;
    const large_shape shape_;
    const std::uint32_t part_, first_, blocks_;
    const std::uint64_t store_id_;
    std::shared_ptr<const std::vector<char>> front_;  // verified anew for each piece: it is short
    std::array<block_ptr, piece_blocks> memory_;
    places places_{};
    std::uint64_t size_ = 0;
    found how_ = found::none;
};

class large_reader final : public disk_body_reader {
public:
    large_reader(std::shared_ptr<core> from,
                 const large_shape& shape,
                 std::uint64_t offset,
                 net::wakeup::signal sleeper)
        : core_{std::move(from)},
          shape_{shape},
          offset_{offset},
          sleeper_{std::move(sleeper)} {}
    ~large_reader() override {
        if (coming_) {
            coming_->abandon();
        }
    }

    read_result next(std::uint64_t end, std::size_t most, std::vector<slice>& into) override {
        if (ended_ != read_result::data || core_->closed.load(std::memory_order_acquire)) {
            return ended_ != read_result::data ? ended_ : read_result::refused;
        }
        end = std::min(end, shape_.length);
        for (;;) {
            if (have_ && offset_ >= have_->begin() && offset_ < have_->end()) {
                offset_ += have_->give(offset_, end, most, into);
                if (was_pooled_ && !coming_ && have_->end() < end && !is_lagging()) {
                    (void)ask(have_->end(), end, false);  // while the client takes what it got
                }
                return read_result::data;
            }
            if (!coming_) {
                if (const auto asked = ask(offset_, end, true); asked != read_result::waiting) {
                    return ended_ = asked;
                }
            }
            if (coming_ && pooled_) {
                const auto stage = coming_->what();
                if (stage == read_job::stage::waiting) {
                    return read_result::waiting;
                }
                if (stage == read_job::stage::late) {
                    core_->counts.read_errors.fetch_add(1, std::memory_order_relaxed);
                    return ended_ = read_result::refused;
                }
            }
            if (const auto came = take_what_came(); came != read_result::data) {
                return ended_ = came;
            }
        }
    }

    void client_lags() noexcept override {
        in_time_from_ = offset_ + in_time_again;
        if (coming_) {
            coming_->abandon();
            coming_ = nullptr;
        }
        if (have_ && offset_ >= have_->begin()) {
            have_->let_go_behind(offset_);
        }
    }

    std::uint64_t offset() const noexcept override { return offset_; }

private:
    [[nodiscard]] bool is_lagging() const noexcept { return offset_ < in_time_from_; }

    static constexpr unsigned most_tries = 3;

    /// Begins to read the piece at `at`; `waiting` if it did. What is not `needed` yet is asked for
    /// again when the pool refused it, or there was no memory for it.
    read_result ask(std::uint64_t at, std::uint64_t end, bool needed) {
        const auto part = static_cast<std::uint32_t>(at / shape_.extent_bytes);
        const auto key = extent_key(shape_.primary, shape_.id, part);
        auto there = core_->locate(key);
        if (!there || !there->from.from) {
            return read_result::lost;
        }
        const auto& entry = there->entry;
        auto& view = there->from;
        const auto begin_of_part = std::uint64_t{part} * shape_.extent_bytes;
        const auto first = (at - begin_of_part) / block_bytes;
        const std::uint64_t at_once = is_lagging() ? 1 : piece_blocks;
        const auto last = (std::min<std::uint64_t>(end - begin_of_part, shape_.extent_bytes) - 1) /
                          block_bytes;
        const bool same = have_ && have_->part() == part && have_->entry().place == entry.place &&
                          have_->sequence() == view.sequence;
        if (!have_ || have_->part() != part) {
            (void)core_->index.count_use(key, entry.place);
        }
        const auto blocks = static_cast<std::uint32_t>(std::min(last - first + 1, at_once));
        try {
            auto piece = std::make_shared<piece_read>(sleeper_,
                                                      std::move(view),
                                                      entry,
                                                      shape_,
                                                      part,
                                                      static_cast<std::uint32_t>(first),
                                                      blocks,
                                                      core_->super.store_id,
                                                      same ? have_->front() : nullptr);
            pooled_ = !needed || !piece->try_at_once();
            coming_ = std::move(piece);
        } catch (const std::bad_alloc&) {
            return read_result::refused;
        }
        if (!pooled_) {
            core_->counts.in_place.fetch_add(1, std::memory_order_relaxed);
            return read_result::waiting;
        }
        if (!core_->pool.submit(coming_, needed)) {
            core_->counts.refused.fetch_add(1, std::memory_order_relaxed);
            coming_ = nullptr;
            return read_result::refused;
        }
        core_->counts.pooled.fetch_add(1, std::memory_order_relaxed);
        return read_result::waiting;
    }

    /// What was read takes the place of what is used up, or is to be read anew; `data` if so.
    read_result take_what_came() {
        const auto again = [this] {
            return ++tries_ < most_tries ? read_result::data : read_result::refused;
        };
        const auto came = std::exchange(coming_, nullptr);
        switch (came->how()) {
        case piece_read::found::good:
            if (core_->segments.sequence(came->entry().place.segment) == came->sequence()) {
                have_ = came;
                was_pooled_ = pooled_;
                tries_ = 0;
                return read_result::data;
            }
            return again();  // reclaimed meanwhile; perhaps it was carried
        case piece_read::found::unreadable:
            core_->counts.read_errors.fetch_add(1, std::memory_order_relaxed);
            return read_result::refused;
        case piece_read::found::none:
        case piece_read::found::not_cached:
        case piece_read::found::damaged: break;
        }
        const auto key = extent_key(shape_.primary, shape_.id, came->part());
        const auto now = core_->index.find(key);
        if (!now || now->place != came->entry().place ||
            core_->segments.sequence(now->place.segment) != came->sequence()) {
            return again();
        }
        core_->counts.damaged.fetch_add(1, std::memory_order_relaxed);
        core_->note_unlisted(shape_.primary);  // its head goes too, and a start may have both
        (void)core_->erase(key, *now);
        return read_result::lost;
    }

    const std::shared_ptr<core> core_;
    const large_shape shape_;
    std::uint64_t offset_;
    const net::wakeup::signal sleeper_;
    std::shared_ptr<piece_read> have_, coming_;
    std::uint64_t in_time_from_ = 0;         // behind that nothing is held against the client
    bool pooled_ = false;                    // coming_ is the pool's
    bool was_pooled_ = false;                // have_ was
    read_result ended_ = read_result::data;  // until it is lost or refused
    unsigned tries_ = 0;
};

class large_body final : public disk_body {
public:
    large_body(std::shared_ptr<core> from, const large_shape& shape)
        : core_{std::move(from)},
          shape_{shape} {}

    std::uint64_t size() const noexcept override { return shape_.length; }
    std::unique_ptr<disk_body_reader> read_from(std::uint64_t offset,
                                                net::wakeup::signal sleeper) const override {
        return std::make_unique<large_reader>(core_, shape_, offset, std::move(sleeper));
    }

private:
    std::shared_ptr<core> core_;
    large_shape shape_;
};

}  // namespace

bool has_extents(const record_index& index, const large_shape& shape) {
    const auto looked_for = std::min(shape.extents, most_looked_for);
    for (std::uint64_t i = 0; i < looked_for; ++i) {
        // The first and the last are among them.
        const auto part = looked_for == 1 ? 0 : i * (shape.extents - 1) / (looked_for - 1);
        if (!index.find(extent_key(shape.primary, shape.id, static_cast<std::uint32_t>(part)))) {
            return false;
        }
    }
    return true;
}

std::shared_ptr<const disk_body> make_large_body(std::shared_ptr<core> from,
                                                 const large_shape& shape) {
    return std::make_shared<large_body>(std::move(from), shape);
}

}  // namespace reprise::proxy::cache::disk
