#pragma once
// What is stored already, freshened by what came: a 304, or the answer to a HEAD.

#include "proxy/cache/memory/invalidations.hpp"
#include "proxy/cache/stored_response.hpp"
#include "proxy/fetch/producer.hpp"
#include "proxy/fetch/received.hpp"
#include "proxy/thread/worker.hpp"

#include <memory>
#include <string>
#include <vector>

namespace reprise::proxy::fetch {

class freshening {
public:
    /// All outlive it. `begun_at`: before anybody was asked.
    freshening(thread::worker& w,
               const fetch_order& order,
               const received& came,
               const cache::invalidation_mark& begun_at)
        : w_{w},
          order_{order},
          came_{came},
          begun_at_{begun_at} {}

    /// order.validating() updated by the 304 that came (RFC 9111 4.3.4), and put in its place.
    /// Null: the 304 speaks of something else.
    [[nodiscard]] cache::stored_ptr by_not_modified();
    /// A response to HEAD may freshen, or outdate, order.described(), what a GET would have got
    /// (RFC 9111 4.3.5). What is held only in parts is left as it is.
    void by_head();
    /// What came is its client's alone: nobody else who waits may have what was made of it. Known once
    /// it has been put.
    [[nodiscard]] bool is_for_one_client() const noexcept { return for_one_client_; }

private:
    [[nodiscard]] bool read_lines(std::string& text, std::vector<http::field>& lines) const;
    [[nodiscard]] bool has_weak_last_modified_now(const cache::stored_response& stored,
                                                  http::field_list old_lines,
                                                  http::field_list merged) const;
    [[nodiscard]] cache::stored_ptr made_of(const cache::stored_response& stored,
                                            http::field_list newer) const;
    [[nodiscard]] http::storability judge_for_anybody(const cache::stored_response& next) const;
    [[nodiscard]] http::storability judge_for_client(const cache::stored_response& next) const;
    void put(const cache::stored_ptr& current, const cache::stored_ptr& next);

    thread::worker& w_;
    const fetch_order& order_;
    const received& came_;
    const cache::invalidation_mark& begun_at_;
    bool for_one_client_ = false;
};

}  // namespace reprise::proxy::fetch
