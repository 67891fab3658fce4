#pragma once
// A fetch that another client leads, and one who follows it.

#include "tests/unit/cache/fetching.hpp"
#include "tests/unit/serve/exchanges.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

namespace reprise::proxy::serve::test {

/// A fetch that somebody else leads.
struct led : bench {
    explicit led(const reprise::config::options& options = fetch::test::with_memory(1u << 20))
        : bench{options},
          place{join()},
          lead{at, ordered()} {}

    cache::collapse_table::place join() {
        auto made = at.common.fetches.join_or_lead(key(), url, {}, at.settings->fetches);
        REQUIRE(made.leads);
        return made;
    }
    std::shared_ptr<fetch::fetch_order> ordered() {
        auto order = fetch::test::order_for("GET " + url, "", at.settings);
        order->into = place.reader->source();
        order->key = key();
        order->listed = true;
        return order;
    }
    /// A long body comes, which the leader's client takes at once.
    void runs_on(std::size_t from, std::size_t to) {
        cache::fetch_reader::report came;
        constexpr std::size_t step = 32u << 10;
        for (auto at_byte = from; at_byte < to; at_byte += step) {
            lead.body(cache::test::pattern(std::min(step, to - at_byte), at_byte));
            do {
                place.reader->next(came, step);
            } while (came.what != cache::fetch_reader::event::nothing);
        }
    }

    cache::collapse_table::place place;
    arrival lead;
};

/// And one who follows it.
struct following : led {
    explicit following(const std::string& fields = "",
                       const reprise::config::options& options = fetch::test::with_memory(1u << 20))
        : led{options},
          one{*this, get(fields)} {}

    asking one;
};

}  // namespace reprise::proxy::serve::test
