#pragma once
// An origin that makes each body from key and size (tools/sized_body.hpp), so that a trace can be
// played through a proxy and whoever receives a body knows whether it is the right one. It keeps
// nothing of a request but counts.

#include "tests/support/fake_origin.hpp"

#include <atomic>
#include <cstdint>
#include <string>

namespace reprise::tests {

/// GETs of path() are answered with 200, fresh for a year; everything else with 404.
class sized_origin {
public:
    sized_origin();

    [[nodiscard]] std::string authority() const { return origin_.authority(); }
    /// "http://" authority "/k/" key "/" size. Digits are padded, so that the URLs of all keys and
    /// sizes are equally long and cost a store the same.
    [[nodiscard]] std::string url(std::uint64_t key, std::uint64_t size) const;

    [[nodiscard]] std::uint64_t requests() const noexcept { return origin_.asked(); }
    /// Of bodies sent.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(); }

private:
    void answer(const origin_request& request, origin_connection& connection);

    std::atomic<std::uint64_t> bytes_{0};
    fake_origin origin_{{.remembers = false}};  // last: its threads end first
};

}  // namespace reprise::tests
