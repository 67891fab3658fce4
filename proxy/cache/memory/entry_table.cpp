#include "proxy/cache/memory/entry_table.hpp"

#include <bit>
#include <utility>

namespace reprise::proxy::cache {

entry_table::~entry_table() {
    for (std::size_t at = 0; at < buckets_.size(); ++at) {
        auto* first = buckets_[at];
        while (first != nullptr) {
            const store_entry_ptr gone{std::exchange(first, first->next)};
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

void entry_table::grow() {
    const auto made = buckets_.size();
    buckets_.push_back(nullptr);
    if (made == 0) {
        return;
    }
    auto** left = &buckets_[made - std::bit_floor(made)];
    auto** moved = &buckets_[made];
    while (*left != nullptr) {
        auto* const one = *left;
        if (bucket_of(one->key) == made) {
            *left = one->next;
            one->next = nullptr;
            *moved = one;
            moved = &one->next;
        } else {
            left = &one->next;
        }
    }
}

// The last bucket goes, to where what is in it came from: behind what is there, so that the variants of
// a resource, all of which are in it, stay in their order.
void entry_table::shrink() noexcept {
    const auto last = buckets_.size() - 1;
    auto** place = &buckets_[last - std::bit_floor(last)];
    while (*place != nullptr) {
        place = &(*place)->next;
    }
    *place = buckets_[last];
    buckets_.pop_back();
}

store_entry& entry_table::add(store_entry_ptr entry) {
    if (count_ >= entries_a_bucket * buckets_.size()) {
        grow();
    }
    auto** place = &buckets_[bucket_of(entry->key)];
    while (*place != nullptr) {
        place = &(*place)->next;
    }
    *place = entry.release();
    (*place)->next = nullptr;
    ++count_;
    return **place;
}

store_entry_ptr entry_table::take(store_entry& entry) noexcept {
    auto** place = &buckets_[bucket_of(entry.key)];
    while (*place != &entry) {
        place = &(*place)->next;
    }
    *place = entry.next;
    --count_;
    // Not at once, or a full store would split and join with each entry that comes for another.
    if (buckets_.size() > 1 && count_ < entries_a_bucket * buckets_.size() / 8 * 7) {
        shrink();
    }
    return store_entry_ptr{&entry};
}

}  // namespace reprise::proxy::cache
