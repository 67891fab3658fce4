#pragma once
// The origin of all that is measured, in a process of its own: an epoll loop that reads request
// heads and answers by what their paths say. Nothing is logged and nothing computed that a request
// would not need, so that the load's processor is left to the load.
//
//   /SIZE/whatever          200 with SIZE bytes, public and fresh for an hour
//   /SIZE/tagged/whatever   the same with Surrogate-Key: bench
//
// Its head is that of a usual server: nine field lines.

#include "tools/bench_proxy/child.hpp"

#include <atomic>
#include <cstdint>
#include <string>

namespace reprise::bench {

class origin {
public:
    /// The process must have one thread. @throws std::runtime_error
    origin();
    origin(const origin&) = delete;
    origin& operator=(const origin&) = delete;
    ~origin();

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// "127.0.0.1:PORT"
    [[nodiscard]] std::string authority() const;
    /// "http://127.0.0.1:PORT"
    [[nodiscard]] std::string base() const { return "http://" + authority(); }
    /// Requests since the start.
    [[nodiscard]] std::uint64_t requests() const noexcept;
    /// Bytes of the head of an answer with a body of `size`.
    [[nodiscard]] static std::size_t head_bytes(std::size_t size);

private:
    std::uint16_t port_ = 0;
    std::atomic<std::uint64_t>* answered_ = nullptr;  ///< shared with the process
    child process_;
};

}  // namespace reprise::bench
