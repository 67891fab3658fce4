#pragma once
// What the tests of a failing disk do to a store, and see of it.

#include "proxy/cache/disk/format.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

namespace reprise::proxy::cache::disk::test {

inline error_code failing(boost::system::errc::errc_t how) {
    return boost::system::errc::make_error_code(how);
}

inline void put_more(disk_store& s, unsigned& next) {
    const auto url = url_of(next++);
    (void)s.put(url, object(url, 10'000));
}

/// Until every segment is in use: the first is begun anew next.
inline void fill_up(disk_store& s, const memory_files& files, unsigned& next) {
    const auto last = "/store/" + segment_name(s->figures().segments - 1);
    REQUIRE(eventually([&] {
        put_more(s, next);
        return !files.contents(last).empty();
    }));
}

inline constexpr auto ready = tier_state::ready;

inline bool is_ready(disk_store& s) {
    return s->figures().state == ready;
}

}  // namespace reprise::proxy::cache::disk::test
