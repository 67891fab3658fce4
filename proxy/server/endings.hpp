#pragma once
// Work that may hang in a disk, each piece on a thread of its own and waited for up to a moment.

#include "proxy/base/clock.hpp"

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace reprise::proxy::server {

class endings {
public:
    endings() = default;
    endings(const endings&) = delete;
    endings& operator=(const endings&) = delete;
    ~endings() {
        for (auto& one : all_) {
            if (one.thread.joinable()) {
                one.thread.detach();
            }
        }
    }

    /// Where there is no thread to be had it is done here.
    void begin(std::string what, std::function<void()> work) {
        const auto task = std::make_shared<std::packaged_task<void()>>(std::move(work));
        auto& one = all_.emplace_back(std::move(what), task->get_future());
        try {
            one.thread = std::thread{[task] { (*task)(); }};
        } catch (const std::system_error&) {
            (*task)();
        }
    }
    /// Those that have not ended; their threads are left alone: the process must end without them.
    [[nodiscard]] std::vector<std::string> wait(steady_time until) {
        std::vector<std::string> hanging;
        for (auto& one : all_) {
            if (one.done.wait_until(until) == std::future_status::ready) {
                if (one.thread.joinable()) {
                    one.thread.join();
                }
                one.done.get();  // throws what the work threw
            } else {
                one.thread.detach();
                hanging.push_back(one.what);
            }
        }
        return hanging;
    }

private:
    struct ending {
        ending(std::string of, std::future<void> end) : what{std::move(of)}, done{std::move(end)} {}
        std::string what;
        std::future<void> done;
        std::thread thread;
    };
    std::vector<ending> all_;
};

}  // namespace reprise::proxy::server
