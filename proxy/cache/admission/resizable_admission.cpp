#include "proxy/cache/admission/resizable_admission.hpp"

#include <algorithm>
#include <functional>
#include <thread>
#include <utility>

namespace reprise::proxy::cache {

namespace {

/// Both generations as if they were one.
filter::admission_figures::generation as_one(const filter::admission_figures& of) noexcept {
    return {.since = of.old.keys > 0 ? of.old.since : of.young.since,
            .keys = of.young.keys + of.old.keys,
            .estimated_keys = of.young.estimated_keys + of.old.estimated_keys,
            .fill = (of.young.fill + of.old.fill) / 2,
            .false_positive_rate = of.false_positive_rate};
}

}  // namespace

// Registering comes before the look at view_, and publishing before the look at the desks, all in
// one order (seq_cst): a desk found at rest after publishing has only readers, from then on, that
// see what was published.
class resizable_admission::reading {
public:
    explicit reading(const resizable_admission& of) noexcept : desk_{of.desks_[my_desk()]} {
        desk_.readers.fetch_add(1, std::memory_order_seq_cst);
        seen_ = of.view_.load(std::memory_order_seq_cst);
    }
    ~reading() { desk_.readers.fetch_sub(1, std::memory_order_release); }
    reading(const reading&) = delete;
    reading& operator=(const reading&) = delete;

    const view* operator->() const noexcept { return seen_; }
    const view& operator*() const noexcept { return *seen_; }

    /// The former filter while it counts.
    [[nodiscard]] const filter::admission_filter* former() const noexcept {
        return seen_->asks_former() ? seen_->former.get() : nullptr;
    }

private:
    static std::size_t my_desk() noexcept {
        static std::atomic<std::size_t> next{0};
        thread_local const auto mine = next.fetch_add(1, std::memory_order_relaxed) % desks;
        return mine;
    }
    desk& desk_;
    const view* seen_;
};

resizable_admission::resizable_admission(std::unique_ptr<filter::admission_filter> first)
    : owned_{std::make_unique<const view>(view{.current = std::move(first), .former = nullptr})} {
    view_.store(owned_.get(), std::memory_order_seq_cst);
    note_generation(*owned_);
}

resizable_admission::~resizable_admission() = default;

void resizable_admission::note_generation(const view& now) noexcept {
    const auto generation = now.generations_before + now.current->generations();
    // Threads that write at once may leave an older one for a moment: a hit more is told.
    if (generation_.load(std::memory_order_relaxed) != generation) {
        generation_.store(generation, std::memory_order_relaxed);
    }
}

unsigned resizable_admission::note(const filter::key_hash& key,
                                   std::chrono::sys_seconds now) noexcept {
    const reading in{*this};
    auto before = in->current->note(key, now);
    if (const auto* former = in.former()) {
        const auto known = std::min(former->peek(key), in->current->settings().layers);
        for (auto told = before; told < known; ++told) {
            (void)in->current->note(key, now);
        }
        before = std::max(before, known);
    }
    note_generation(*in);
    return before;
}

unsigned resizable_admission::peek(const filter::key_hash& key) const noexcept {
    const reading in{*this};
    const auto* former = in.former();
    return std::max(in->current->peek(key), former != nullptr ? former->peek(key) : 0);
}

void resizable_admission::refresh(const filter::key_hash& key,
                                  std::chrono::sys_seconds now) noexcept {
    const reading in{*this};
    in->current->refresh(key, now);
    note_generation(*in);
}

std::uint64_t resizable_admission::turns() const {
    const std::lock_guard lock{guard_};
    return owned_->generations_before + owned_->current->generations();
}

bool resizable_admission::changing() const {
    const std::lock_guard lock{guard_};
    return owned_->former != nullptr;
}

void resizable_admission::change_to(const filter::admission_settings& settings,
                                    std::chrono::sys_seconds now) {
    auto next = std::make_unique<view>();
    next->current = std::make_shared<filter::admission_filter>(settings, now);
    const std::lock_guard lock{guard_};
    next->former = owned_->current;
    next->generations_before = owned_->generations_before + owned_->current->generations() + 1;
    publish(std::move(next));
}

void resizable_admission::publish(std::unique_ptr<const view> next) {
    retired_.reserve(retired_.size() + 1);
    view_.store(next.get(), std::memory_order_seq_cst);
    note_generation(*next);
    retired_.push_back({.what = std::exchange(owned_, std::move(next))});
}

void resizable_admission::tidy() noexcept {
    const std::lock_guard lock{guard_};
    if (owned_->former && !owned_->asks_former()) {
        try {
            publish(std::make_unique<const view>(
                view{.current = owned_->current,
                     .former = nullptr,
                     .generations_before = owned_->generations_before}));
        } catch (const std::bad_alloc&) {
            return;  // another time
        }
    }
    std::uint32_t at_rest = 0;
    for (std::size_t i = 0; i < desks; ++i) {
        if (desks_[i].readers.load(std::memory_order_seq_cst) == 0) {
            at_rest |= 1u << i;
        }
    }
    std::erase_if(retired_, [at_rest](retired& one) {
        one.seen_at_rest |= at_rest;
        return one.seen_at_rest == (1u << desks) - 1;
    });
}

std::shared_ptr<const filter::admission_filter> resizable_admission::current() const {
    const std::lock_guard lock{guard_};
    return owned_->current;
}

resizable_admission::asked resizable_admission::now_asked() const {
    const std::lock_guard lock{guard_};
    return {.current = owned_->current, .former = owned_->asks_former() ? owned_->former : nullptr};
}

filter::admission_figures resizable_admission::figures(std::chrono::sys_seconds now) const {
    const auto in = now_asked();
    auto made = in.current->figures(now);
    if (in.former && made.swaps == 0) {  // its first generation may have ended since
        made.old = as_one(in.former->figures(now));
        made.false_positive_rate = 1 - (1 - made.young.false_positive_rate) *
                                           (1 - made.old.false_positive_rate);
    }
    return made;
}

filter::digest resizable_admission::recent_digest(filter::digest_stamp stamp) const {
    const auto in = now_asked();
    const bool fits = in.former && in.former->blocks() == in.current->blocks();
    return in.current->recent_digest(stamp, fits ? in.former.get() : nullptr);
}

std::uint64_t resizable_admission::memory() const {
    const std::lock_guard lock{guard_};
    const auto bytes = [](const filter::admission_filter& one) {
        return 2 * one.settings().layers * one.blocks() * filter::block_bytes;
    };
    std::uint64_t all = bytes(*owned_->current) + (owned_->former ? bytes(*owned_->former) : 0);
    for (const auto& one : retired_) {
        // A view's filters that the next one has too are counted there.
        for (const auto& each : {one.what->current, one.what->former}) {
            if (each && each != owned_->current && each != owned_->former) {
                all += bytes(*each);
            }
        }
    }
    return all;
}

}  // namespace reprise::proxy::cache
