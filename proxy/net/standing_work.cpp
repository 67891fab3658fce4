#include "proxy/net/standing_work.hpp"

#include <boost/asio/post.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <new>

// Each beginning ends in one of three ways, and each but the first leads to a pause:
//
//     begin_once ──on_end(nothing)──> over
//     begin_once ──on_end(what it threw, or std::bad_alloc where it was lost)──> begin_later
//     begin_once ──throws──> begin_later
//
// A pause is one operation of Asio's, a timer's or a posted one, and lies in room_, of which there is one at a time.

namespace reprise::proxy::net::detail {

/// What is done at a pause's end: by a timer, which nobody ever cancels, or in the loop's next turn.
struct upheld::pause_end {
    using allocator_type = in_room<std::byte>;

    explicit pause_end(const std::shared_ptr<upheld>& one) : of{one}, room{{one, &one->room_}} {}
    [[nodiscard]] allocator_type get_allocator() const noexcept { return room; }
    void operator()(const error_code& = {}) const { begin_anew(of); }

    std::shared_ptr<upheld> of;
    allocator_type room;
};

upheld::upheld(asio::io_context& io, std::chrono::milliseconds pause)
    : io_{io},
      pause_{pause},
      timer_{io} {}

void upheld::begin(const std::shared_ptr<upheld>& one) noexcept {
    try {
        begin_anew(one);
    } catch (...) {
        // It is tried again; should that fail too, it is told.
    }
}

void upheld::begin_anew(const std::shared_ptr<upheld>& one) {
    try {
        one->begin_once(one);
    } catch (...) {
        begin_later(one);
        throw;
    }
}

void upheld::end(const std::shared_ptr<upheld>& one, const std::exception_ptr& broken) {
    if (broken) {
        begin_later(one);
        std::rethrow_exception(broken);
    }
}

void upheld::begin_later(const std::shared_ptr<upheld>& one) noexcept {
    try {
        one->timer_.expires_after(one->pause_);
        one->timer_.async_wait(pause_end{one});
    } catch (const std::bad_alloc&) {
        asio::post(one->io_, pause_end{one});  // in the next turn of the loop, rather than never
    }
}

}  // namespace reprise::proxy::net::detail
