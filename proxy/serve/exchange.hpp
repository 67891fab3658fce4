#pragma once
// One request and its answer.
//
//     begin()   without waiting: what is refused at once, what is answered here, what the store answers
//     run()     the rest: join a fetch or begin one, relay it; tunnels; request bodies
//
// A hit never leaves begin(): it looks up, composes three pieces (stored head, per-reply fields,
// body) and hands them to the kernel. Everything that may suspend is in run(), which does what begin() left in path_. What
// becomes of the request is told to its ledger, which the destructor closes.

#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/fetch.hpp"
#include "proxy/cache/outside.hpp"
#include "proxy/cache/verdict.hpp"
#include "proxy/fetch/producer.hpp"
#include "proxy/http/cache_status.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/http/multipart.hpp"
#include "proxy/http/range.hpp"
#include "proxy/http/target.hpp"
#include "proxy/net/client_stream.hpp"
#include "proxy/serve/ledger.hpp"
#include "proxy/serve/purge.hpp"
#include "proxy/thread/worker.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::serve {

/// What a session lends to each of its exchanges, and its memory for the next one.
struct session_state {
    session_state(thread::worker& in, tcp_socket socket, std::size_t listener_index);

    thread::worker& w;
    net::client_stream client;
    net::wakeup arrived;  ///< news from a fetch, or the client's leaving
    std::size_t listener;
    std::string client_address;      ///< numeric
    net::address_bytes client_at{};  ///< the same
    std::uint16_t client_port = 0;
    std::optional<tcp::endpoint> reached_at;  ///< our end, where `client`'s socket does not know it
    bool client_refused = false;              ///< by access.clients
    bool client_gone = false;                 ///< seen by the watch
    bool waiting = false;                     ///< the watch looks at this session

    // Scratch that lives from request to request, so that a hit allocates nothing.
    http::request_head head;
    std::string url;
    std::string tail;
    std::vector<asio::const_buffer> parts;
    cache::fetch_reader::report report;
};

class exchange {
public:
    enum class next : std::uint8_t {
        keep,   ///< done; the connection goes on
        close,  ///< done; it does not
        wait,   ///< run() has to go on
    };

    /// `head` is state.head, parsed from the first head.bytes of the client's input, which this
    /// exchange consumes.
    exchange(session_state& state, steady_time started);
    ~exchange();
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;

    [[nodiscard]] next begin();
    /// True: keep the connection.
    [[nodiscard]] awaitable<bool> run();

    /// The answer to bytes that are no request head: written, logged, and the connection is to be
    /// closed.
    static void refuse_head(session_state& state, const failure& why, steady_time started);

private:
    enum class path : std::uint8_t {
        store_or_fetch,
        disk,  ///< a look-up on disk is under way
        pass,
        tunnel,
        finish_sending,
        purge,         ///< carried out; the disk keeps it
        awaited,       ///< a digest for a Squid that is not there yet
        paced,         ///< the same, sent in two pieces
        send_outside,  ///< head composed, the body is on disk
        drain_body,
    };

    // Deciding
    [[nodiscard]] bool is_for_peers() const noexcept;
    next answer_peer();
    next tell_peer();
    [[nodiscard]] bool should_wait() const;
    awaitable<bool> tell_when_ready();
    awaitable<bool> send_paced();
    [[nodiscard]] bool is_squids_question() const noexcept;
    std::optional<failure> read_request();
    std::optional<failure> judge_destination() const;
    [[nodiscard]] const config::listener& listener() const;
    /// A request body stands in front of the next request, and nobody has begun to take it.
    [[nodiscard]] bool body_unread() const noexcept {
        return !upload_ && body_.kind == http::body_kind::length && body_.length > 0;
    }
    bool look_up(wall_time now);
    void note_admitted();
    bool look_up_on_disk();
    bool adopt_from_disk();
    bool answer_from_store(wall_time now);
    /// What is stored, stale, may stand in for an answer that the origin failed to give.
    /// `disconnected`: it gave none at all.
    [[nodiscard]] bool may_stand_in(bool disconnected, wall_time now) const;

    // Answering without an origin
    next answer_failure(const failure& why);
    next answer_failed_fetch(const failure& why);
    next answer_stale(std::string_view detail);
    next answer_local(std::string_view body, std::string_view type, unsigned status = 200);
    next answer_purge();
    void compose_stored(const cache::stored_response& stored,
                        wall_time now,
                        const http::cache_status& how);
    void compose_reply_fields(const cache::stored_response& stored,
                              wall_time now,
                              const http::cache_status& how);
    void compose_part_head(const cache::stored_response& stored, http::byte_range part);
    void compose_multipart(const cache::stored_response& stored,
                           http::field_list fields,
                           std::span<const http::byte_range> ranges);
    void compose_bytes(const cache::stored_response& stored, http::byte_range part);
    void compose_outside(const cache::stored_response& stored, http::byte_range part);
    next send_composed();

    // Going further
    std::shared_ptr<fetch::fetch_order> make_order();
    void prepare_storing(fetch::fetch_order& order) const;
    void revalidate_behind();
    awaitable<bool> serve_from_disk();
    awaitable<bool> answer_kept_purge();
    awaitable<bool> send_outside();
    awaitable<bool> resume_from_origin(const cache::stored_response& stored,
                                       const cache::outside_reader& reader);
    awaitable<bool> serve_from_fetch();
    awaitable<bool> fetch_alone();
    awaitable<bool> complete_parts();
    awaitable<bool> relay_gap(cache::fetch_reader& reader,
                              cache::stored_ptr kept,
                              cache::head_ptr head);
    awaitable<bool> serve_other(cache::fetch_reader& reader,
                                cache::stored_ptr kept,
                                cache::head_ptr head);
    void compose_completed(const cache::stored_response& headed, const http::cache_status& how);
    [[nodiscard]] cache::stored_ptr updated_by(const cache::stored_ptr& kept,
                                               const cache::fetched_head& head) const;
    bool break_off(outcome how, std::string_view reason);
    awaitable<bool> pass_through();
    awaitable<bool> relay_fetch(cache::fetch_reader& reader, bool follows, bool& released);
    awaitable<bool> relay_body(cache::fetch_reader& reader, cache::head_ptr head);
    awaitable<bool> go_on_alone(cache::head_ptr head, std::uint64_t offset, std::string_view why);
    awaitable<bool> ask_alone();
    awaitable<bool> resume_alone(cache::head_ptr head, std::uint64_t offset);
    [[nodiscard]] std::optional<failure> judge_far_end(const tcp::endpoint& far) const;
    awaitable<bool> tunnel_connect();
    awaitable<bool> tunnel_upgrade(fetch::fetch_order& order);
    [[nodiscard]] std::shared_ptr<fetch::upload> begin_upload() const;
    awaitable<bool> finish_upload();
    awaitable<bool> wait_for_news();
    awaitable<bool> send_rest();
    awaitable<bool> finish_composed(next after);
    [[nodiscard]] bool has_used_its_share() const;
    [[nodiscard]] bool may_follow(const cache::fetched_head& head, wall_time now) const;
    void note_late_sight(cache::fetch& joined);
    [[nodiscard]] bool is_stored(const cache::fetched_head& head, const cache::fetch& source) const;
    [[nodiscard]] bool may_share(const cache::stored_response& fresh) const;
    void compose_anew();
    [[nodiscard]] bool wants_whole(const fetch::fetch_order& order) const;
    [[nodiscard]] bool is_not_modified(const cache::fetched_head& head) const;
    void compose_head(const cache::fetched_head& head, const http::cache_status& how);
    void compose_not_modified(const cache::fetched_head& head, const http::cache_status& how);
    void append_own_fields(const cache::fetched_head& head, const http::cache_status& how);
    void append_connection(std::string& out);
    void invalidate_after(unsigned status, const cache::fetched_head& head);

    void end_reply();

    session_state& s_;
    thread::worker& w_;
    thread::settings_ptr settings_;
    steady_time started_;
    std::string_view head_bytes_;
    std::shared_ptr<const fetch::request_copy> copy_;
    const http::request_head* head_;  ///< state.head, later the copy's
    http::target target_;
    http::body_framing body_;
    std::string_view url_;  ///< primary key text: the target itself or state.url
    filter::key_hash key_;
    path path_ = path::store_or_fetch;

    bool keep_ = false;
    cache::request_facts facts_;
    bool accelerator_ = false;
    bool websocket_ = false;
    bool consumed_ = false;
    bool chunked_reply_ = false;

    cache::found stored_;
    cache::verdict verdict_;
    cache::stored_ptr sending_;
    purge_answer purged_;
    peer::resource_answer to_peer_;
    std::unique_ptr<cache::disk::disk_lookup> lookup_;  ///< while the disk is asked
    std::unique_ptr<cache::outside_reader> outside_;    ///< where a body is sent from, up to
    std::uint64_t outside_end_ = 0;                     ///< here
    std::optional<http::multipart_ranges> multipart_;   ///< what stands between the parts sent
    std::string held_;  ///< a composed reply's own text that must live while it is sent
    std::shared_ptr<fetch::fetch_order> order_;
    std::shared_ptr<fetch::upload> upload_;

    ledger ledger_;
};

}  // namespace reprise::proxy::serve
