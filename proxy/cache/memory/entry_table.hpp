#pragma once
// Where a stripe finds its entries: a hash table of one pointer a bucket, the entries chained
// through themselves, the variants of a resource among them in the order in which they came.
//
// There is a bucket for every two entries. It grows by one bucket at a time, which takes what belongs
// to it from one other, and shrinks by one, which gives back to it (linear hashing: Litwin, VLDB 1980).
// Buckets lie in pieces. So nobody who holds the stripe's lock waits until all entries, or all buckets,
// have found another place, the table is never half empty, and a store that has become small has a
// small one.

#include "filter/key_hash.hpp"
#include "proxy/cache/memory/memory_entry.hpp"
#include "proxy/cache/policy/segments.hpp"

#include <cstddef>
#include <iterator>

namespace reprise::proxy::cache {

/// Memory    4 bytes for each entry, at most a seventh more, and what segments takes beside.
/// Threads   none: the owner locks.
/// Cost      a chain has two entries on the average. add splits a bucket at most, take joins two.
/// Errors    std::bad_alloc from add, and nothing changes.
class entry_table {
public:
    /// The entries under one key, the first that came first.
    class variants {
    public:
        class iterator {
        public:
            using iterator_category = std::forward_iterator_tag;
            using value_type = memory_entry;
            using difference_type = std::ptrdiff_t;
            using pointer = memory_entry*;
            using reference = memory_entry&;

            iterator() = default;
            explicit iterator(memory_entry* at) noexcept : at_{at} {}
            [[nodiscard]] memory_entry& operator*() const noexcept { return *at_; }
            [[nodiscard]] memory_entry* operator->() const noexcept { return at_; }
            iterator& operator++() noexcept {
                at_ = same_key(at_->next(), at_->key);
                return *this;
            }
            iterator operator++(int) noexcept {
                const auto before = *this;
                ++*this;
                return before;
            }
            bool operator==(const iterator&) const = default;

        private:
            memory_entry* at_ = nullptr;
        };

        variants() = default;
        explicit variants(memory_entry* first) noexcept : first_{first} {}
        [[nodiscard]] iterator begin() const noexcept { return iterator{first_}; }
        [[nodiscard]] static iterator end() noexcept { return {}; }
        [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
        [[nodiscard]] memory_entry& front() const noexcept { return *first_; }
        [[nodiscard]] std::size_t size() const noexcept {
            return static_cast<std::size_t>(std::distance(begin(), end()));
        }

    private:
        memory_entry* first_ = nullptr;
    };

    entry_table() = default;
    entry_table(const entry_table&) = delete;
    entry_table& operator=(const entry_table&) = delete;
    ~entry_table();

    [[nodiscard]] variants find(const filter::key_hash& key) const noexcept;
    /// Behind those of the same key.
    memory_entry& add(memory_entry_ptr entry);
    /// @pre entry is here
    memory_entry_ptr take(memory_entry& entry) noexcept;

    static constexpr std::size_t entries_a_bucket = 2;
    /// What one entry takes here at the most, in bytes.
    static constexpr std::size_t bytes_an_entry = sizeof(void*) * 5 / 4 / entries_a_bucket;
    /// What all take, in bytes from the heap.
    [[nodiscard]] std::size_t memory() const noexcept { return buckets_.memory(); }

private:
    class place;
    [[nodiscard]] static memory_entry* same_key(memory_entry* from,
                                                const filter::key_hash& key) noexcept {
        while (from != nullptr && from->key != key) {
            from = from->next();
        }
        return from;
    }
    [[nodiscard]] std::size_t bucket_of(const filter::key_hash& key) const noexcept;
    void grow();
    void shrink() noexcept;

    segments<memory_entry*> buckets_;
    std::size_t count_ = 0;
};

}  // namespace reprise::proxy::cache
