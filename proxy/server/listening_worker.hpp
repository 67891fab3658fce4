#pragma once
// A worker of the server's, with its share of each listener and the thread that runs its loop.

#include "proxy/server/accept_loop.hpp"
#include "proxy/server/server.hpp"
#include "proxy/thread/worker.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::proxy::server {

struct server::listening_worker {
    listening_worker(std::size_t index, thread::common_state& shared, thread::settings_ptr initial)
        : w{index, shared, std::move(initial)} {}

    thread::worker w;
    std::vector<std::unique_ptr<accept_loop>> listeners;
    std::thread thread;
    std::atomic<bool> ended{false};
};

}  // namespace reprise::proxy::server
