#pragma once
// A disk that does not answer.

#include "tests/support/waiting.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::disk::test {

/// A disk on which some operations wait until it is let go, which its end does as well: also where a check fails, for
/// the store's end waits for the thread that is held up.
class hanging_disk {
public:
    hanging_disk(memory_files& files, std::vector<operation> stops)
        : hanging_disk{files, [stops = std::move(stops)](operation what, std::string_view) {
                           return std::find(stops.begin(), stops.end(), what) != stops.end();
                       }} {}
    /// What `condition` says yes to waits.
    template <class Condition>
    hanging_disk(memory_files& files, Condition condition) {
        files.set_hook([here = here_, condition = std::move(condition)](operation what,
                                                                        std::string_view path) {
            if (condition(what, path)) {
                here->met = true;
                (void)here->freed.wait(std::chrono::hours{1});
            }
            return error_code{};
        });
    }
    hanging_disk(const hanging_disk&) = delete;
    hanging_disk& operator=(const hanging_disk&) = delete;
    ~hanging_disk() { let_go(); }

    [[nodiscard]] bool is_met() const { return here_->met; }
    void let_go() { here_->freed.open(); }

private:
    struct state {
        std::atomic<bool> met{false};
        tests::gate freed;
    };
    std::shared_ptr<state> here_ =
        std::make_shared<state>();  // the hook's too, which may outlive this
};

}  // namespace reprise::proxy::cache::disk::test
