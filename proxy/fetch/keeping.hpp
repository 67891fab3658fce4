#pragma once
// What becomes of a response in the store: nothing, probation, memory, the disk, or a part of what
// is there. It is judged when its head is known, and kept as its body comes.
//
//     judge()     storable? (RFC 9111 3) admitted? where? and what readers are told of it
//     promise()   siblings are told of it, where they may join it, or what was told is taken back
//     keep_up()   after each piece of the body
//     goes_on()   the rest of the body is from elsewhere
//     finish()    the body is whole
//
// Threads   its fetch's.

#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/cache/fetch.hpp"
#include "proxy/cache/partial_response.hpp"
#include "proxy/cache/store.hpp"
#include "proxy/fetch/expectation.hpp"
#include "proxy/fetch/order.hpp"
#include "proxy/fetch/received.hpp"
#include "proxy/thread/worker.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::fetch {

class keeping {
public:
    /// All outlive it.
    keeping(thread::worker& w, const fetch_order& order, cache::fetch& into, expectation& expected)
        : w_{w},
          order_{order},
          into_{into},
          expected_{expected} {}

    /// Nobody has been asked yet: what is invalidated from now on keeps the response out. Of
    /// several sources that are asked one after the other, or at once, the first may have answered
    /// before an invalidation that the last has seen.
    void begin() { begun_at_ = w_.common.store.mark(order_.key); }
    [[nodiscard]] const cache::invalidation_mark& begun_at() const noexcept { return begun_at_; }

    /// Says in `head` what becomes of it.
    void judge(cache::fetched_head& head, const received& came);
    /// The head is known to so many readers: those that joined since judge() are sights too.
    void is_known_to(cache::head_ptr head, std::size_t readers);
    /// Siblings hear of what is being stored; for as long as that holds, and the fetch is listed in
    /// the collapse table. What was expected, and is not, is taken back. `is_all_here`: it came whole with
    /// its head, and will be stored before a sibling could hear. @pre is_known_to() was called
    void promise(bool is_all_here);
    /// A piece of the body has come.
    void keep_up();
    /// The source broke off, and another has the same response. It is not kept where the head that this
    /// one has for it forbids that, or tells variants apart otherwise.
    void goes_on(const received& came);
    /// It is written to disk as it comes, and the disk takes it more slowly: more of it had better
    /// wait until `go_on` is called.
    [[nodiscard]] bool outruns_disk(const net::wakeup& ready) const {
        return on_disk_ && on_disk_->wants_a_pause([to = ready.handle()] { to.notify(); });
    }
    /// The body has passed, which is a sight. With `trusted` it is stored, if it is to be, with what
    /// the fetch took (packed_wait.hpp says what that is).
    void finish(bool trusted, cache::packed_wait took);
    /// It, or what it describes, is worth remembering the origin for.
    [[nodiscard]] bool storable() const noexcept { return storable_; }

private:
    void note_sights(std::size_t sights);
    void record_sights();
    void note_verdict(cache::fetched_head& head, const received& came);
    void end_what_it_replaces(unsigned status, wall_time asked_at);
    [[nodiscard]] bool is_older_elsewhere(const received& came) const;
    [[nodiscard]] bool is_fresh_for_somebody(const received& came) const;
    [[nodiscard]] bool leaves_stored(const received& came, const cache::fetched_head& head) const;
    [[nodiscard]] bool fits_stores(unsigned status, std::uint64_t length) const;
    [[nodiscard]] bool exceeds_stores(unsigned status, std::uint64_t length) const;
    void note_too_large(unsigned status);
    void judge_size();
    void keep_nothing();
    [[nodiscard]] http::storability judge_as(std::string_view method,
                                             unsigned status,
                                             const cache::fetched_head& head,
                                             const received& came) const;
    [[nodiscard]] http::storability judge_answer(const cache::fetched_head& head,
                                                 const received& came) const;
    [[nodiscard]] bool may_store_part(const received& came, std::optional<std::uint64_t> length);
    void find_place(cache::fetched_head& head);
    void refuse(cache::fetched_head& head);
    void keep_on_probation(cache::fetched_head& head);
    [[nodiscard]] bool promise_room(std::optional<std::uint64_t> length);
    [[nodiscard]] bool outgrows_memory() const;
    [[nodiscard]] bool outgrows_stores() const;
    void leave_memory();
    void end_what_was_sent();
    std::string_view begin_on_disk(const cache::fetched_head& head, std::string_view otherwise);
    void feed_disk();
    [[nodiscard]] bool finish_on_disk();
    [[nodiscard]] bool store_body();
    [[nodiscard]] bool store_whole(const cache::response_draft& made);
    void store_part(cache::response_draft added);
    [[nodiscard]] bool keep_body() noexcept;
    void end_unreplaced() noexcept;
    void end_older(const cache::stored_response& than, bool is_stored) noexcept;
    void append_kept_head(std::string& to) const;
    [[nodiscard]] cache::response_draft made_of_head(std::uint64_t bytes) const;
    void describe(cache::response_draft& stored) const;
    [[nodiscard]] bool waits() const { return probation_ != 0 && !into_.was_admitted(); }
    void count_stored(std::uint64_t bytes);

    thread::worker& w_;
    const fetch_order& order_;
    cache::fetch& into_;
    expectation& expected_;
    cache::invalidation_mark begun_at_;
    cache::head_ptr head_;  // once it is known
    word_of whom_ = word_of::origin;
    bool is_of_now_ = true;                   // the origin's own, or fetched by a home just now
    std::optional<http::seconds> at_most_{};  // received::at_most
    wall_time came_{};                        // resident time
    cache::packed_wait wait_;
    cache::admission_ruling ruling_;
    bool is_sight_ = false;
    std::size_t sights_ = 0;
    bool storable_ = false;
    bool too_large_ = false;  // for every store, or so it was when it came last: not admission's
    bool refused_ = false;    // storable, and admission said no
    unsigned probation_ = 0;  // how many uses would admit what waits on probation; 0: it does not
    cache::reservation room_;
    std::unique_ptr<cache::disk::object_writer> on_disk_;  // of a body too large for memory
    std::vector<cache::slice> to_disk_;
    std::optional<cache::part_place> place_;  // of a 206 that may be stored as a part
    cache::stored_ptr joins_;                 // what is stored of the same representation
    std::uint64_t held_already_ = 0;          // bytes of it
    bool is_passed_ = false;                  // siblings were told that they may join it no more
    bool begins_none_ = false;                // its head may lack fields
};

/// Whether the answer to a validation, or to a request that replaces what is stored, ends the use
/// of that: 404 and 410 do, and if no client waits (`behind`) any 2xx does.
[[nodiscard]] bool ends_use(unsigned status, bool behind) noexcept;

}  // namespace reprise::proxy::fetch
