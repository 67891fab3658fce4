#pragma once
// Clients that wait for one fetch: a leader, and followers that are known to have joined it.

#include "tests/scenario/figures.hpp"
#include "tests/scenario/world.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reprise::tests {

struct crowd {
    client leader;
    std::vector<client> rest;
};

/// Sends a GET of /a whose request reaches the origin, and `size` more that join its fetch. The
/// origin must hold its answer back until this returns. `fields(i)` makes the field lines of each,
/// the leader's with 0.
template <class Fields>
[[nodiscard]] crowd gather(world& w, std::size_t size, Fields&& fields) {
    crowd all{w.proxy.connect(), {}};
    const auto before = figure(w.proxy.stats(), figure_name::joined);
    const auto asked = w.origin.count("/a");
    all.leader.send(w.request("/a", fields(0)));
    REQUIRE(eventually([&] { return w.origin.count("/a") == asked + 1; }));
    for (std::size_t i = 1; i <= size; ++i) {
        all.rest.push_back(w.proxy.connect(w.request("/a", fields(i))));
    }
    REQUIRE(eventually([&] {
        return figure(w.proxy.stats(), figure_name::joined) ==
               before + static_cast<std::int64_t>(size);
    }));
    return all;
}

[[nodiscard]] inline crowd gather(world& w, std::size_t size) {
    return gather(w, size, [](std::size_t) { return std::string{}; });
}

}  // namespace reprise::tests
