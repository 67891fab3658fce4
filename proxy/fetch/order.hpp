#pragma once
// What a fetch is ordered to do: what every order says, and what only its kind does.
//
//     whole        all of an object, or what the client's Range says
//     validating   the same, by the validators of what is stored
//     head         a HEAD's head
//     rest         what a reader that is served no further has not had
//     gap          what is missing between stored parts
//     passed       another method, a body, an upgrade

#include "proxy/base/recycled.hpp"
#include "proxy/cache/admission/admission_gate.hpp"
#include "proxy/cache/fetch.hpp"
#include "proxy/fetch/request.hpp"
#include "proxy/fetch/upload.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/target.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/peer/reach.hpp"
#include "proxy/thread/settings.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace reprise::proxy::fetch {

namespace wanted {

struct whole {
    cache::stored_ptr behind;  ///< sent stale already, and without validators: nobody waits
};
struct validating {
    cache::stored_ptr stored;
    bool behind = false;  ///< it was sent stale already: nobody waits
};
struct head {
    cache::stored_ptr described;  ///< what a GET would have had from the store; null: nothing
};
struct rest {
    std::uint64_t at = 0;
    std::string etag;  ///< strong: of what the reader has had
};
struct gap {
    std::string range;      ///< "bytes=5-"
    std::string validator;  ///< strong
};
struct passed {
    std::shared_ptr<upload> body;  ///< null: none
    bool websocket = false;
    // What the exchange on the same thread takes over after an upgrade.
    net::origin_lease upgraded;
    std::string upgrade_bytes;
};

}  // namespace wanted

/// Everything a producer works from. Shared with the exchange that ordered it.
struct fetch_order {
    std::variant<wanted::whole,
                 wanted::validating,
                 wanted::head,
                 wanted::rest,
                 wanted::gap,
                 wanted::passed>
        what;

    std::shared_ptr<cache::fetch> into;
    thread::settings_ptr now_settings;
    std::shared_ptr<const request_copy> request;  ///< hop-by-hop fields already dropped
    http::target
        destination;  ///< views into request, or into now_settings (an upstream's authority)
    std::string connect_host;  ///< as the resolver is asked
    std::uint16_t connect_port = 80;
    bool exempt = false;            ///< a configured upstream
    bool secure = false;            ///< over TLS
    std::string_view told_scheme;   ///< by an accelerator: how its client came
    bool may_ask_siblings = false;  ///< for all of it, or what the client's Range says
    bool may_use_peers = false;
    /// By whom it is asked for: whom it may lead to hangs on that.
    peer::asked_by asked_by = peer::asked_by::client;
    bool may_go_home = false;  ///< to the sibling that the URL belongs to, if it is not ours
    std::uint64_t owner = 0;   ///< whose alone the connections to its origin are; 0: anybody's
    std::string client_address;
    net::share_holder charged_to;  ///< of the connections that it takes
    http::request_directives asked;
    http::body_framing body_framing;

    filter::key_hash key;
    std::string url;                 ///< the primary key's text
    std::size_t pending_sights = 0;  ///< of another fetch of this key, under way
    bool inside = false;             ///< it came in an opened tunnel
    bool handed_on = false;          ///< by a sibling, whose client may have come in one
    bool listed = false;             ///< in the collapse table
    bool is_get = false;
    bool may_store = false;       ///< its response may enter the store at all
    bool own_range = false;       ///< carries the client's Range
    bool own_conditions = false;  ///< carries the client's preconditions: a 304 is the client's
    bool replaces = false;        ///< something is stored under the key: admission is not asked
    /// What that is, where the look-up found it (be it on disk alone) or another fetch confirmed it; null: nothing, or nobody looked. Memory is asked before it.
    cache::stored_ptr found;
    bool retryable = false;
    bool head_is_http10 = false;  ///< the client speaks 1.0: no Expect
    cache::admission_choice_for admission;
    const http::freshness_rules* url_freshness = nullptr;  ///< of `url`'s rule; null: it has none

    /// What an https URL asks for no parent is told: one only leads to its origin, where nothing
    /// else does.
    [[nodiscard]] bool may_use_parents() const noexcept {
        return may_use_peers && peer::reach_of(asked_by).beyond &&
               (!secure || now_settings->options.peering.never_direct);
    }
    /// An https URL's own origin, not an accelerator's upstream.
    [[nodiscard]] bool is_for_https_url() const noexcept { return secure && !exempt; }
    [[nodiscard]] const http::freshness_rules& freshness() const noexcept {
        return url_freshness != nullptr ? *url_freshness : now_settings->freshness;
    }
    [[nodiscard]] http::storing_rules storing() const noexcept {
        auto rules = now_settings->storing;
        // What one way brings answers the other: the key of a URL is the same whether a tunnel was opened for it.
        rules.cookie_needs_leave = inside || is_for_https_url();
        rules.is_logged_in = owner != 0;
        return rules;
    }
    /// Where its origin is connected to. A view into this.
    [[nodiscard]] net::origin_address origin() const noexcept {
        return {.host = connect_host,
                .port = connect_port,
                .exempt = exempt,
                .tls = secure,
                .through = {},
                .lane = 0,
                .owner = owner};
    }
    template <class Kind>
    [[nodiscard]] const Kind* as() const noexcept {
        return std::get_if<Kind>(&what);
    }
    /// What is validated; null: nothing.
    [[nodiscard]] cache::stored_ptr validating() const noexcept;
    /// What was sent stale already, and is replaced or freshened by this; null: a client waits.
    [[nodiscard]] cache::stored_ptr behind() const noexcept;
    [[nodiscard]] cache::stored_ptr described() const noexcept;
    /// Null: there is none, or it is not to be sent.
    [[nodiscard]] std::shared_ptr<upload> body() const noexcept;
    /// From now on nothing stored is validated.
    void validate_nothing() noexcept;
};

/// Who is asked.
/// `site`: another site's gateway, for what its siblings hold.
enum class next_hop : std::uint8_t { origin, parent, sibling, site, home };

/// The request's head as `to` is asked: what the client sent, but for what the order's kind puts in
/// its place.
/// @param validate     by the validators of order.validating(), which is not null
/// @param named        Proxy-Authorization's value, for a parent, and a home's name; empty: none
[[nodiscard]] recycled_text wire_of(const fetch_order& order,
                                    next_hop to,
                                    bool validate,
                                    std::string_view pseudonym,
                                    wall_time now,
                                    std::string_view named = {});

/// What of that comes from the client, for those who share its fetch. @param at  when it was sent
[[nodiscard]] cache::sent_request as_sent(const fetch_order& order, steady_time at);
/// Whether `order` would send the same, but for what it says of what is stored. Errs only towards saying
/// that it would not. O(fields). @pre both are for one key
[[nodiscard]] bool would_send(const fetch_order& order, const cache::sent_request& sent);

}  // namespace reprise::proxy::fetch
