#include "proxy/cache/memory/entry_table.hpp"

#include <bit>
#include <utility>

namespace reprise::proxy::cache {

entry_table::~entry_table() {
    for (std::size_t at = 0; at < buckets_.size(); ++at) {
        auto* first = buckets_[at];
        while (first != nullptr) {
            const memory_entry_ptr gone{std::exchange(first, first->next())};
        }
    }
}

// By as many of the hash's bits as tell all buckets apart; those that are not there yet have their
// entries where one bit less leads.
std::size_t entry_table::bucket_of(const filter::key_hash& key) const noexcept {
    const auto places = std::bit_ceil(buckets_.size());
    const auto at = static_cast<std::size_t>(key.low) & (places - 1);
    return at < buckets_.size() ? at : at - places / 2;
}

entry_table::variants entry_table::find(const filter::key_hash& key) const noexcept {
    return variants{buckets_.empty() ? nullptr : same_key(buckets_[bucket_of(key)], key)};
}

// Where an entry is told that another is next: a bucket, or the entry before.
class entry_table::place {
public:
    explicit place(memory_entry*& bucket) noexcept : bucket_{&bucket} {}
    [[nodiscard]] memory_entry* get() const noexcept {
        return before_ == nullptr ? *bucket_ : before_->next();
    }
    void set(memory_entry* one) noexcept {
        if (before_ == nullptr) {
            *bucket_ = one;
        } else {
            before_->set_next(one);
        }
    }
    void step() noexcept { before_ = get(); }
    void step_to(const memory_entry* one) noexcept {
        while (get() != one) {
            step();
        }
    }

private:
    memory_entry** bucket_;
    memory_entry* before_ = nullptr;
};

void entry_table::grow() {
    const auto made = buckets_.size();
    buckets_.push_back(nullptr);
    if (made == 0) {
        return;
    }
    place left{buckets_[made - std::bit_floor(made)]};
    place moved{buckets_[made]};
    while (auto* const one = left.get()) {
        if (bucket_of(one->key) == made) {
            left.set(one->next());
            one->set_next(nullptr);
            moved.set(one);
            moved.step();
        } else {
            left.step();
        }
    }
}

// The last bucket goes, to where what is in it came from: behind what is there, so that the variants of
// a resource, all of which are in it, stay in their order.
void entry_table::shrink() noexcept {
    const auto last = buckets_.size() - 1;
    place end{buckets_[last - std::bit_floor(last)]};
    end.step_to(nullptr);
    end.set(buckets_[last]);
    buckets_.pop_back();
}

memory_entry& entry_table::add(memory_entry_ptr entry) {
    if (count_ >= entries_a_bucket * buckets_.size()) {
        grow();
    }
    place end{buckets_[bucket_of(entry->key)]};
    end.step_to(nullptr);
    auto& added = *entry.release();
    added.set_next(nullptr);
    end.set(&added);
    ++count_;
    return added;
}

memory_entry_ptr entry_table::take(memory_entry& entry) noexcept {
    place at{buckets_[bucket_of(entry.key)]};
    at.step_to(&entry);
    at.set(entry.next());
    --count_;
    // Not at once, or a full store would split and join with each entry that comes for another.
    if (buckets_.size() > 1 && count_ < entries_a_bucket * buckets_.size() / 8 * 7) {
        shrink();
    }
    return memory_entry_ptr{&entry};
}

}  // namespace reprise::proxy::cache
