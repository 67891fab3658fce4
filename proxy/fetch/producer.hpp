#pragma once
// The producer of a fetch: one request to an origin, its response into the fetch, and perhaps into
// the store.
//
// Steps   acquire a connection; send the head (the body goes beside, upload.hpp); pass interim responses on; read
//         the head; a 304 to our own validation freshens what is stored; else judge: storable? (RFC 9111) admitted?
//         (the filter); read the body at the pace of the readers; store it; give the connection back.
// Retry   once, on a new connection, when a reused one ended before a byte of the response and the request may be
//         sent twice (a safe method without a body).
// It lives on the thread that began it, and needs nothing of the session that did: clients may come
// and go.

#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/cache/fetch.hpp"
#include "proxy/fetch/request.hpp"
#include "proxy/fetch/upload.hpp"
#include "proxy/http/target.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/thread/worker.hpp"

#include <memory>
#include <string>

namespace reprise::proxy::fetch {

/// Everything a producer works from. Shared with the exchange that ordered it.
struct fetch_order {
    std::shared_ptr<cache::fetch> into;
    thread::settings_ptr now_settings;
    std::shared_ptr<const request_copy> request;  ///< hop-by-hop fields already dropped
    http::target
        destination;  ///< views into request, or into now_settings (an upstream's authority)
    std::string connect_host;  ///< as the resolver is asked
    std::uint16_t connect_port = 80;
    bool exempt = false;            ///< a configured upstream
    std::string_view told_scheme;   ///< by an accelerator: how its client came
    bool may_ask_siblings = false;  ///< for all of it, or what the client's Range says
    bool may_use_parents = false;
    std::string client_address;
    net::share_holder charged_to;  ///< of the connections that it takes
    http::request_directives asked;

    filter::key_hash key;
    std::string url;                 ///< the primary key's text
    std::size_t pending_sights = 0;  ///< of another fetch of this key, which is under way
    bool listed = false;             ///< in the collapse table
    bool is_get = false;
    bool may_store = false;       ///< its response may enter the store at all
    bool own_range = false;       ///< carries the client's Range
    bool own_conditions = false;  ///< carries the client's preconditions: a 304 is the client's
    cache::admission_choice_for admission;
    cache::stored_ptr validating;  ///< ask with its validators
    cache::stored_ptr behind;      ///< sent stale already: this fetch validates it unattended
    cache::stored_ptr described;   ///< of a HEAD: what a GET would have had from the store
    bool replaces = false;         ///< something is stored under the key: admission is not asked
    bool retryable = false;
    bool websocket = false;
    bool head_is_http10 = false;  ///< the client speaks 1.0: no Expect
    http::body_framing body_framing;
    std::shared_ptr<upload> body;  ///< null: no body
    /// Going on after falling out of a shared fetch: ask for the rest, under this strong ETag.
    std::uint64_t resume_at = 0;
    std::string resume_etag;

    /// What is missing of an object whose parts are stored: "bytes=5-", and the strong validator
    /// that it is asked under, if there is one. The client's own Range and conditions stay behind.
    std::string gap_range, gap_validator;

    // What the exchange on the same thread takes over after an upgrade.
    net::origin_lease upgraded;
    std::string upgrade_bytes;
};

/// Begins a producer for `order` on this worker's thread.
void start_producer(thread::worker& w, std::shared_ptr<fetch_order> order);

}  // namespace reprise::proxy::fetch
