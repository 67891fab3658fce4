#include "proxy/peer/sibling_exchange.hpp"

#include "proxy/base/failure.hpp"

#include <string>
#include <utility>

namespace reprise::proxy::peer {

void sibling_exchange::close() {
    if (lease_) {
        error_code ignored;
        lease_.socket().close(ignored);
    }
}

void sibling_exchange::leave_unless_at(const whereabouts& where) {
    if (lease_ && !where.may_be(lease_.endpoint())) {
        is_elsewhere_ = true;
        close();
    }
}

awaitable<got_response> sibling_exchange::get(follow_context& by,
                                              const followed& of,
                                              question what) {
    // What is left of one that memory ended for in its middle: its connection has a place among the origin's.
    patience_.clear();
    lease_.close();
    for (bool fresh_only = false;; fresh_only = true) {
        net::origin_address to{of.host, of.port, true, of.https};
        to.lane = static_cast<std::uint8_t>(what.lane);
        auto leased = co_await by.pool.acquire(to, fresh_only, what.until);
        if (!leased) {
            const auto& why = leased.error();
            got_response none;
            none.trouble = follow_trouble::unreachable;
            none.detail = std::string{facts_of(why.code).name} + ": " + why.detail;
            co_return none;
        }
        if (ended_) {
            co_return got_response{};  // nobody wants it any more
        }
        lease_ = std::move(*leased);
        const bool reused = lease_.reused();
        if (reused && !fresh_only && !of.where.may_be(lease_.endpoint())) {
            lease_.close();
            continue;
        }
        is_elsewhere_ = false;
        patience_.expire_at(what.until);
        const auto wire = digest_request(of,
                                         lease_.endpoint(),
                                         what.path,
                                         what.asked,
                                         by.secret,
                                         by.node,
                                         wall_now(),
                                         nonces_.take());
        auto got = co_await bounded_get(lease_, patience_, wire, what.most_bytes);
        patience_.clear();
        lease_.close();
        const bool was_elsewhere = is_elsewhere_ && got.trouble != follow_trouble::none;
        const bool was_dead = got.silent && reused && !fresh_only;
        if (ended_ || !(was_dead || was_elsewhere)) {
            co_return got;
        }
    }
}

}  // namespace reprise::proxy::peer
