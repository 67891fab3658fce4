#pragma once
// One response on its way from the origin to everybody who waits for it.
//
// A fetch has one producer (the coroutine that reads the origin, on the thread of the request that
// began it) and any number of readers (sessions, on any thread). Readers see interim heads, the
// head, the body as it arrives, and how it ended. Blocks are shared, not copied; those that every
// reader has passed are let go unless the fetch is being stored.
//
// Pace       the producer stays at most `read_ahead` bytes in front of the *fastest* reader, and
//            less where that one is slower than the origin: each pause halves it, each time a
//            reader has caught up doubles it, up to a quarter of what that one has had, so that
//            slow clients hold little memory. Where readers share a fetch at most `window` bytes
//            are held for those behind. What is being stored in memory is held whole, and nobody
//            falls behind.
// Behind     what becomes of a reader that is `window` behind depends on what else it could do:
//            - can_be_resumed(head): it has fallen out. It is told, counts no more, and its session
//              goes on alone, from where it is or, when it has had nothing, from the beginning. So
//              a slow reader holds up nobody.
//            - otherwise what it has had can be continued by nothing but this fetch, and nobody is
//              to be cut because another is faster: the producer waits for it. Its session ends,
//              and the wait with it, when it takes less than limits.body_rate, whatever it may be
//              that keeps it from more (others_wait()): limits.client_rate does not count then.
// Sharing    what can't be resumed, is not held whole and is said to be longer than the window is
//            its first reader's alone (serves_others()), since a slow one would hold up the others:
//            they fetch for themselves. A body of unknown length is shared, but nobody joins while
//            its producer waits for readers: so one that stalls at the beginning has it to itself,
//            and only readers that began together, of a body that proves longer than the window, go
//            at the slowest's pace.
// First bytes are kept until `first_bytes` have passed, so that a late request may still join from
//            the start; but no longer for readers that make the producer pause again and again.
// Giving up  when the last reader that has not fallen out leaves: a fetch that is being stored goes
//            on if its declared length leaves at most `finish` bytes to read, and so does one that is
//            said to go on unattended, while it is being stored; every other one is abandoned and its
//            connection closed. The source of what is left may not take long for it
//            (fetch/body_reader): so far nobody waits. Of those that go on there are as many as
//            `unattended` says (unattended.hpp): beyond that this one is abandoned too.
// Failure    a failed or cut-off fetch is never stored, and every reader sees the failure as its
//            end. Before anything was asked it is everybody's; behind that it may be for the fields of
//            the request that was sent (asked()), and so may silence: who would have sent others judges
//            by that (serve/fetched_reply).
//
// Threads    all members may be called from any thread (one short mutex), but `producer_` calls
// only by the producer.

#include "proxy/base/clock.hpp"
#include "proxy/base/failure.hpp"
#include "proxy/cache/stored_response.hpp"
#include "proxy/cache/unattended.hpp"
#include "proxy/http/storability.hpp"
#include "proxy/net/wakeup.hpp"

#include <boost/container/small_vector.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::http {
struct request_head;
}  // namespace reprise::proxy::http

namespace reprise::proxy::cache {

/// By whom a request was answered, when that was asked, and how old the answer says that it is.
struct answered {
    std::string origin;  ///< address connected to, for the log
    std::string peer;    ///< the peer's name whose address that is; empty: it is the origin's
    steady_time sent{};  ///< the request
    std::chrono::microseconds took{0};  ///< from then until its head was read
    /// As its Age has it; 0 where it was given for this request.
    http::seconds age{0};
    /// What the request demanded of that (RFC 9111 5.2.1).
    std::optional<http::seconds> max_age, min_fresh;
};

/// What is known when the head has arrived. Immutable.
struct fetched_head {
    unsigned status = 0;
    std::string
        head;  ///< status line and end-to-end fields with Via; no framing, Age, or empty line
    std::string trailer;  ///< the origin's Trailer lines: for replies that can have trailers
    bool has_body = false;
    std::optional<std::uint64_t> length;  ///< declared; none: unknown until the end
    http::freshness_facts freshness;
    wall_time asked_at{};          ///< resident time, as stored_response's
    std::uint16_t asked_turn = 0;  ///< the same
    http::response_directives directives;
    http::vary_spec vary;
    std::string selecting;  ///< of the request that began the fetch
    http::storability verdict = http::storability::storable;
    /// Whoever joins may be the sight that admits it: it is storable, and nothing keeps it out beside that (an
    /// error that what is stored stands in for, a sibling that is proxy_only, an order that stores nothing).
    bool may_be_kept = false;
    bool stored = false;  ///< it is being stored (Cache-Status)
    /// An unsafe method's own answer is being stored: what the URL had is invalidated already.
    bool replaces_stored = false;
    bool probation = false;   ///< but only until somebody asks for it again, or others need room
    std::string_view detail;  ///< why it is not, as Cache-Status has it; static text
    bool weak_last_modified = false;  ///< as response_draft has it
    std::string strong_etag;  ///< empty: a reader that fell out cannot go on by a range request
    /// A 206's range; range_total 0: unknown, or not to be relied on.
    std::uint64_t range_first = 0, range_last = 0, range_total = 0;
    std::vector<std::string>
        locations;  ///< Location and Content-Location of an answer to an unsafe method
    answered by;
    bool fed_by_sibling = false;  ///< a sibling sends it, and might wait for this instance itself
    bool from_sibling = false;    ///< and had it stored
};
using head_ptr = std::shared_ptr<const fetched_head>;

/// That what is stored still holds.
struct confirmation {
    answered by;
    /// It was said to the client whose request was sent, and to nobody else: what was made of it is no
    /// answer to whoever shares the fetch.
    bool for_one_client = false;
};

/// What a fetch has asked for its answer, as far as it comes from the request that began it.
struct sent_request {
    steady_time at{};
    /// Its head, without what concerns one connection. Never null.
    std::shared_ptr<const http::request_head> head;
    std::string client;  ///< its client's address, where whoever is asked is told that
};

/// True when a reader that has had a part of this body can have the rest by a request of its own.
[[nodiscard]] bool can_be_resumed(const fetched_head& head) noexcept;

/// Its field lines: views into head.head.
[[nodiscard]] std::vector<http::field> lines_of(const fetched_head& head);
/// Those that say which representation it is of, as stored_response::validating_fields.
[[nodiscard]] std::vector<http::field> validating_lines_of(const fetched_head& head);

struct fetch_limits {
    std::uint64_t window = 8u << 20;
    std::uint64_t read_ahead = 256u << 10;
    std::uint64_t first_bytes = 256u << 10;
    std::uint64_t finish = 512u << 10;
    unattended_bounds unattended{};  ///< its client's, and all; for whoever gives permits
};

class fetch_reader;

class fetch {
public:
    explicit fetch(const fetch_limits& limits);
    /// One whose memory serves one request after another.
    /// @throws std::bad_alloc
    [[nodiscard]] static std::shared_ptr<fetch> make(const fetch_limits& limits);
    ~fetch();
    fetch(const fetch&) = delete;
    fetch& operator=(const fetch&) = delete;

    // ---- the producer ----

    /// What wakes the producer when it waits for readers, and what stops its reading when it is
    /// abandoned (called once, on any thread, under a lock: it posts). `ask_permit` is asked once nobody
    /// reads it and it would go on, likewise on any thread and under that lock;
    /// null: it needs none. All may be called until producer_left(), and throw nothing: readers leave in
    /// destructors.
    void producer_is(net::wakeup::signal sleeper,
                     std::function<void()> stop,
                     std::function<unattended_permit()> ask_permit = nullptr);
    /// Its permit, if it has one, is given back.
    void producer_left();
    /// It goes on though nobody reads it: validation behind a client's back, said before it begins,
    /// or a response of which its clients need the head alone. It is given up when its head is
    /// known and nothing of it is to be kept.
    /// @param by  its permit, where it begins unattended; empty: it is asked for when its last reader
    ///            leaves
    void producer_unattended(unattended_permit by = {});
    /// The origin is about to be asked, and what it brings will probably be stored: until its head is
    /// there siblings may join. The fetch asks no sibling from now on.
    void producer_expects_to_keep();
    /// This goes out to whoever is to answer. The first counts.
    void producer_asks(sent_request what);
    /// Who was asked had nothing to do with it: how it fails then is everybody's again.
    void producer_asked_nobody();
    /// None: nobody has been asked so far.
    [[nodiscard]] std::optional<sent_request> asked() const;
    /// A 1xx head, whole, to be passed on.
    void producer_interim(std::string head);
    /// Publishes the head. Returns how many clients wait for it now: each is a sight; later ones
    /// note their own.
    std::size_t producer_head(head_ptr head);
    /// Clients of this instance that wait: a sibling's is a sight there.
    [[nodiscard]] std::size_t clients() const;
    [[nodiscard]] head_ptr head() const;
    /// Sights of this fetch's key that wait for its end: a fetch that fails is none (admission).
    /// Adds some, and returns how many there were before.
    std::size_t add_sights(std::size_t more);
    /// The same, adding none; 0 when it has ended (then the filter knows them, or they were none).
    [[nodiscard]] std::size_t pending_sights() const;
    /// From here on (or from the start, before producer_head) the body is kept whole, for the
    /// store. False when its first bytes are gone, or the fetch has ended.
    bool keep_whole();
    /// Ends keep_whole: no room, or too long.
    void keep_no_more();
    [[nodiscard]] bool kept_whole() const;
    /// One of those who wait was the sight that admits: what is kept whole on probation is stored
    /// as admitted. False if that was known.
    bool admit();
    [[nodiscard]] bool was_admitted() const;
    /// From its first byte on the body is kept elsewhere (on disk): what take_new has not given out
    /// is held, and leaving readers are treated as where it is kept whole. False as for keep_whole.
    bool keep_outside();
    void keep_outside_no_more();
    /// The bytes that came since the last call, in order.
    void take_new(std::vector<slice>& into);
    /// Memory to read into; at most `want` bytes. The block's earlier bytes may be read by others
    /// meanwhile.
    [[nodiscard]] std::pair<char*, std::size_t> producer_space(std::size_t want);
    /// `bytes` of the last producer_space are filled.
    void producer_commit(std::size_t bytes);
    void producer_append(std::string_view bytes);
    /// True while the producer is to wait for readers (woken through its wakeup). However often it asks
    /// until then, that is one pause.
    [[nodiscard]] bool producer_must_pause();
    /// The body is complete. `trailers`: field lines in wire form, or empty.
    void producer_finish(std::string trailers);
    void producer_fail(failure why);
    /// Validation succeeded: readers are served from the store. `by` is null where nobody was asked.
    void producer_validated(stored_ptr fresh, std::shared_ptr<const confirmation> by = nullptr);
    /// The origin switched protocols: the one reader takes the connection over.
    void producer_upgraded();
    /// By a reader still served.
    [[nodiscard]] bool has_readers() const;
    /// Nobody wants it any more: stop.
    [[nodiscard]] bool abandoned() const noexcept;
    /// What is left of it takes too long for nobody: it is abandoned, unless somebody reads it. Returns
    /// whether it is.
    [[nodiscard]] bool producer_ends_if_unread();
    /// The whole body, after producer_finish was decided and before it is called; null unless kept
    /// whole. Blocks that are mostly empty are copied to their size, but not in a body of at most
    /// `copied` bytes: whoever asks copies so much anyway.
    [[nodiscard]] body_ptr whole_body(std::uint64_t copied = 0);
    [[nodiscard]] std::uint64_t received() const;

    // ---- who may join ----

    /// Registers a reader at the first byte. Null when the first bytes are gone, the fetch is over
    /// or abandoned, or the newcomer might have to share the fate of readers that hold it up.
    /// `head_known`: the head was there already, so the caller notes its own
    /// sight.
    [[nodiscard]] static std::unique_ptr<fetch_reader> join(const std::shared_ptr<fetch>& source,
                                                            net::wakeup::signal sleeper,
                                                            bool& head_known);
    /// For a sibling's client, and so no sight of this instance's. Null also where a sibling may not
    /// (may_serve_siblings).
    [[nodiscard]] static std::unique_ptr<fetch_reader> join_for_sibling(
        const std::shared_ptr<fetch>& source, net::wakeup::signal sleeper);
    /// False when the head is known and readers beside the first had better fetch for themselves.
    [[nodiscard]] bool serves_others() const;
    /// Its head is known and is fed by no sibling, and the body is being kept, for the store or
    /// beside it; or it will probably be (producer_expects_to_keep), and its head is not there yet: what
    /// a sibling may be told is here, though it is on its way.
    [[nodiscard]] bool may_serve_siblings() const;
    /// For a sibling that joined before the head: it is being kept, or over, so that however slowly the sibling
    /// reads, nobody else waits for that.
    [[nodiscard]] bool is_kept() const;

private:
    friend class fetch_reader;
    enum class phase : std::uint8_t { waiting, streaming, finished, failed, validated, upgraded };

    void notify_readers() noexcept;  // with guard_ held
    void let_go();                   // with guard_ held: drops blocks that nobody needs
    void drop_those_behind();        // with guard_ held
    [[nodiscard]] std::uint64_t fastest() const;                             // with guard_ held
    [[nodiscard]] bool has_fallen_behind(const fetch_reader& reader) const;  // with guard_ held
    [[nodiscard]] bool holds_up() const;   // with guard_ held: whoever is behind holds up the rest
    [[nodiscard]] bool must_wait() const;  // with guard_ held: the producer, for readers
    void note_who_is_waited_for() const;   // with guard_ held
    [[nodiscard]] bool is_read() const;    // with guard_ held: by a reader still served
    [[nodiscard]] bool is_wanted() const;  // with guard_ held: read, or to be kept
    [[nodiscard]] bool is_permitted();     // with guard_ held: to go on without readers
    [[nodiscard]] bool is_for_siblings() const;        // with guard_ held
    [[nodiscard]] std::size_t count_clients() const;   // with guard_ held
    [[nodiscard]] bool take_in(fetch_reader& reader);  // with guard_ held: at the first byte
    void leave(fetch_reader& reader) noexcept;

    static constexpr std::uint64_t first_ahead = 32u
                                                 << 10;  // until it is known how fast readers are

    const fetch_limits limits_;
    const std::size_t block_size_;  // the largest
    mutable std::mutex guard_;
    std::uint64_t ahead_;  // of read_ahead, what readers keep up with
    unsigned pauses_ = 0;  // since one had caught up
    phase phase_ = phase::waiting;
    head_ptr head_;
    std::vector<std::string> interim_;
    boost::container::small_vector<slice, 2> slices_;
    std::uint64_t base_ = 0;                // offset of the first byte still held
    std::uint64_t end_ = 0;                 // bytes received
    bool whole_ = false;                    // being stored
    bool admitted_ = false;                 // and as admitted
    std::optional<std::uint64_t> outside_;  // being stored elsewhere, up to this offset so far
    std::atomic<bool> abandoned_{false};    // written with guard_ held
    bool unattended_ = false;
    unattended_permit permit_;
    bool expected_ = false;  // to be kept
    std::optional<sent_request> asked_;
    std::size_t sights_ = 0;
    bool pausing_ = false;
    std::string trailers_;
    failure why_;
    stored_ptr validated_;
    std::shared_ptr<const confirmation> validated_by_;
    boost::container::small_vector<fetch_reader*, 2> readers_;
    net::wakeup::signal sleeper_;
    std::function<void()> stop_;
    std::function<unattended_permit()> ask_permit_;
};

/// One session's place in a fetch. Leaves when destroyed.
class fetch_reader {
public:
    enum class event : std::uint8_t {
        nothing,    ///< wait
        interim,    ///< `interim` is a 1xx head
        head,       ///< `head` is set
        data,       ///< `slices` to send; they stay valid as long as they are kept
        end,        ///< complete; `trailers`
        failed,     ///< `why`
        fell_out,   ///< the window went past this reader
        validated,  ///< `fresh` serves the request
        upgraded,
    };
    struct report {
        event what = event::nothing;
        std::string interim;
        head_ptr head;
        std::vector<slice> slices;
        std::string trailers;
        failure why;
        stored_ptr fresh;
        std::shared_ptr<const confirmation> confirmed;  ///< of `validated`, perhaps
        void clear();
    };

    fetch_reader(std::shared_ptr<fetch> source, net::wakeup::signal sleeper);
    ~fetch_reader();
    fetch_reader(const fetch_reader&) = delete;
    fetch_reader& operator=(const fetch_reader&) = delete;
    // Memory that serves one request after another.
    static void* operator new(std::size_t size);
    static void operator delete(void* at) noexcept;

    /// What is new since the last call; at most `most` bytes of body. When there is nothing, the
    /// sleeper is notified once something is. Earlier slices count as passed.
    void next(report& into, std::size_t most);

    /// Wants nothing more: neither holds the fetch nor paces it from now on. next() is over.
    void leave() noexcept;

    [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
    /// Whether the producer waits for this one while another has had all that there is and waits;
    /// outlives what this one was given. Written on any thread.
    [[nodiscard]] const std::atomic<bool>& others_wait() const noexcept { return others_wait_; }
    [[nodiscard]] const std::shared_ptr<fetch>& source() const noexcept { return source_; }

private:
    friend class fetch;
    std::shared_ptr<fetch> source_;
    net::wakeup::signal sleeper_;
    std::atomic<bool> others_wait_{false};  // written with source_->guard_ held
    bool listed_ = false;  // from before anybody else sees this reader until it leaves
    bool is_siblings_ = false;
    // Guarded by source_->guard_:
    std::uint64_t offset_ = 0;
    std::size_t interim_seen_ = 0;
    bool head_seen_ = false;
    bool waiting_ = false;
    bool fell_out_ = false;
};

}  // namespace reprise::proxy::cache
