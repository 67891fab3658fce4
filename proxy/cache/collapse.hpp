#pragma once
// Which fetches may be joined: one per key, for all threads.
// The first request of a key that is not stored leads; those that come while its first bytes are
// still held follow. Striped like the store; entries are weak in effect: a fetch that can no longer
// be joined is replaced by the next leader, and a fetch removes itself when it is over.
//
// Siblings are told of a fetch that they may join (contents_listener.hpp) for as long as it is listed
// here, at most: what takes it from the table, whatever that is, takes back what was said of it. So
// there is one such word of a key at a time, and none outlives its fetch.

#include "filter/key_hash.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/cache/contents_listener.hpp"
#include "proxy/cache/fetch.hpp"

#include <functional>
#include <memory>
#include <string_view>

namespace reprise::proxy::cache {

class collapse_table {
public:
    /// @param told  hears what is under way; null: nobody does. It outlives the table
    explicit collapse_table(contents_listener* told = nullptr);
    ~collapse_table();
    collapse_table(const collapse_table&) = delete;
    collapse_table& operator=(const collapse_table&) = delete;

    struct place {
        std::unique_ptr<fetch_reader> reader;
        bool leads = false;  ///< the caller starts the producer
        /// Leader: sights that wait for a fetch which is under way but past its first bytes.
        std::size_t pending_sights = 0;
        bool head_known = false;  ///< follower: the head was there already
    };
    /// Joins the fetch of this key, or begins one. Any thread.
    [[nodiscard]] place join_or_lead(const filter::key_hash& key,
                                     std::string_view url,
                                     const net::wakeup::signal& sleeper,
                                     const fetch_limits& limits);

    /// Joins the fetch of this key if a sibling may (fetch::may_serve_siblings). Null: there is none.
    /// Any thread.
    [[nodiscard]] std::unique_ptr<fetch_reader> join_kept(const filter::key_hash& key,
                                                          std::string_view url,
                                                          const net::wakeup::signal& sleeper);

    /// Somebody is told what is under way.
    [[nodiscard]] bool tells() const noexcept { return told_ != nullptr; }
    /// The fetch is being stored, or probably will be, and fresh until then (resident time): siblings hear
    /// it, if it is the one listed under its key and they may join it (fetch::may_serve_siblings). Where
    /// they may not, what was said of it before is taken back. O(url), no allocation but the listener's;
    /// nothing, not even a lock, where nobody is told.
    void promise_stored(const filter::key_hash& key,
                        const std::shared_ptr<fetch>& under_way,
                        wall_time until);
    /// It will not be stored after all. Not promised: nothing happens.
    void take_back(const filter::key_hash& key, const std::shared_ptr<fetch>& under_way);

    /// Removes `over` if it is still the one listed under its key.
    void remove(const filter::key_hash& key, const std::shared_ptr<fetch>& over);

    /// The object changed (an unsafe method went through): the fetch under way is not stored, and
    /// nobody joins it any more.
    void forget(const filter::key_hash& key, std::string_view url);

    /// Fetches whose URL `purged` says true of are joined no more: requests from now on are to see
    /// how things are after a purge. Whether it may still be stored is the store's to say.
    /// O(fetches).
    void unlist_if(const std::function<bool(std::string_view url)>& purged);

    /// The fetch of this URL that is under way; null: none is.
    [[nodiscard]] std::shared_ptr<fetch> find(const filter::key_hash& key,
                                              std::string_view url) const;
    [[nodiscard]] bool has(const filter::key_hash& key, std::string_view url) const {
        return find(key, url) != nullptr;
    }

    [[nodiscard]] std::size_t size() const;

private:
    struct stripe;
    static constexpr std::size_t stripe_count = 64;
    contents_listener* told_;
    std::unique_ptr<stripe[]> stripes_;
};

}  // namespace reprise::proxy::cache
