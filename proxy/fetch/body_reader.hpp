#pragma once
// A response's body: from the source in hand to the readers, and, where a sibling breaks off, on
// from another.
//
// Threads   its fetch's.

#include "proxy/base/ended.hpp"
#include "proxy/fetch/keeping.hpp"
#include "proxy/fetch/prefix_hash.hpp"
#include "proxy/fetch/sources.hpp"
#include "proxy/http/chunked.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::fetch {

class body_reader {
public:
    /// All outlive it. `published` is the head that readers were given.
    body_reader(
        fetch_order& order, upstream& at, sources& from, keeping& kept, cache::head_ptr published);

    /// All of it; trailers as lines. Why it did not come whole.
    [[nodiscard]] awaitable<trouble> read(std::string& trailers);
    /// How long it read nothing because readers, or the disk, were to go on first.
    [[nodiscard]] steady_time::duration paused() const noexcept { return paused_; }

private:
    /// How far the source in hand has come.
    struct progress {
        http::body_kind kind;
        std::uint64_t left;  ///< of its Content-Length; without one, no bound
        http::chunked_decoder decoder;
        bool over;  ///< it has sent all of its body
    };
    [[nodiscard]] awaitable<trouble> read_of_sibling(std::string& trailers);
    [[nodiscard]] awaitable<trouble> read_one(std::string& trailers);
    [[nodiscard]] awaitable<trouble> read_more(progress& so_far);
    [[nodiscard]] trouble take_buffered(progress& so_far, std::string& trailers);
    [[nodiscard]] awaitable<trouble> go_on_elsewhere();
    [[nodiscard]] bool outruns_disk() const;
    [[nodiscard]] awaitable<ended> wait_for_room();
    [[nodiscard]] steady_time must_hear_by(steady_time::duration most_silence);
    [[nodiscard]] bool deliver(std::string_view piece);
    [[nodiscard]] trouble end();
    [[nodiscard]] bool skips() const noexcept { return passed_ && passed_->left_to_skip() > 0; }
    [[nodiscard]] bool ends_by_surprise() const noexcept {
        return passed_ && !at_.from.may_be_replaced() && published_->length &&
               at_.from.came.framing.kind != http::body_kind::length;
    }

    fetch_order& order_;
    upstream& at_;
    sources& sources_;
    keeping& keeping_;
    cache::fetch& into_;
    const cache::head_ptr published_;
    // What a sibling has sent, so that another source can go on where it broke off.
    std::unique_ptr<prefix_hash> passed_;
    steady_time::duration paused_{0};
    steady_time::duration waited_for_disk_{0};  // of that
    std::uint64_t owed_;  // of the length that readers were promised; without one, no bound
    // Since when nobody reads it, but for pauses, and what has come since.
    std::optional<steady_time> unread_since_;
    std::uint64_t came_unread_ = 0;
    steady_time came_last_{};
    std::optional<char> last_;  // of it, held back until the other source is seen to end there
};

}  // namespace reprise::proxy::fetch
