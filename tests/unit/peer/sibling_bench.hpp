#pragma once
// What asks siblings, as unit tests have it: a loop with names, connections and a secret of its own.

#include "proxy/net/origin_pool.hpp"
#include "proxy/net/resolver.hpp"
#include "proxy/net/side_thread.hpp"
#include "proxy/peer/digest_fetch.hpp"
#include "proxy/peer/secret.hpp"
#include "proxy/peer/sibling_table.hpp"
#include "tests/unit/net/loop.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace reprise::proxy::peer::test {

struct sibling_bench : net::test_loop {
    explicit sibling_bench(const std::string& secret_text)
        : secret{*fleet_secret::from_content(secret_text)} {}

    [[nodiscard]] follow_context context() {
        return {.io = io,
                .timer = timer,
                .pool = pool,
                .aside = aside,
                .secret = secret,
                .table = table,
                .seen = nullptr,
                .node = "a",
                .random = [this] { return ++drawn; }};
    }
    /// Of whoever asks: behind the stop of it, before it is gone.
    void end() {
        pool.stop();
        names.stop();
        timer.stop();
        aside.finish();
        run_for(std::chrono::milliseconds{50});
    }

    net::fake_dns server;
    net::resolver names{timer, net::asking(server)};
    // Loopback is refused to everybody else: siblings are configured.
    net::origin_pool pool{timer, names, net::make_guard({}), {}};
    fleet_secret secret;
    sibling_table table;
    net::side_thread aside{"aside"};
    std::uint64_t drawn = 0;
};

}  // namespace reprise::proxy::peer::test
