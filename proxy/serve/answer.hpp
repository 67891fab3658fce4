#pragma once
// The kinds of answer that a request may get. A value says which and why; a file per kind gives it.
//
//     refused      an error page of ours              own_reply
//     local        OPTIONS, TRACE, what a purge did   own_reply
//     stored       what the store has                 stored_reply
//     stand_in     the same, stale, for an origin     stored_reply
//                  that failed
//     partial      what the store has, and a gap      partial_reply
//     fetched      an origin's, a parent's or a       fetched_reply
//                  sibling's, perhaps with others
//     under_way    what is on its way, for a sibling  under_way_reply
//     of_members   a sibling's, for another site      members_reply
//     passed       an origin's, never from the store  passed_reply
//     tunnel       CONNECT                            tunnel
//     opened       CONNECT to a host whose tunnels    interception
//                  are opened
//     upgraded     an origin's 101                    tunnel
//     for_peer     a digest                           peer_page
//     purge        PURGE                              purge_reply
//
// Giving one answer may show that another has to be given: a fetch fails, a body on disk proves
// unreadable, what came does not fit what is held. So long as nothing has gone out, an answer ends
// by naming that other one, and knows nothing of it.

#include "proxy/base/failure.hpp"
#include "proxy/cache/disk/tier.hpp"
#include "proxy/cache/disk_body.hpp"
#include "proxy/net/login.hpp"
#include "proxy/net/origin_pool.hpp"
#include "proxy/serve/reply.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace reprise::proxy::serve {

namespace answers {

struct refused {
    failure why;
};
struct local {
    std::string text;
    std::string_view type;  ///< empty: there is none, and Allow is said
    unsigned status = 200;
};
/// What the store has, as exchange_state::verdict says.
struct stored {
    bool collapsed = false;  ///< it came while this request was about to fetch it
};
struct stand_in {
    std::string_view detail;
    unsigned status = 0;     ///< what the origin answered instead; 0: nothing
    bool collapsed = false;  ///< to another's request
};
struct partial {};
struct fetched {
    /// None of what is stored is used or validated, and nobody shares the fetch.
    bool anew = false;
    bool replaces = false;  ///< something was stored: admission is not asked
};
struct under_way {};
struct of_members {};
struct passed {};
struct tunnel {
    std::string_view why{};  ///< it is not opened; static text
};
struct opened {};
struct upgraded {
    net::origin_lease lease;
    std::string head;  ///< of the 101
};
struct for_peer {};
struct purge {};

// What is left to do of an answer, or of finding it.

/// Its client's password is tried before anything is answered.
struct unverified {
    net::login_hash which;
    net::login login;
};
/// The disk is asked before anybody else is.
struct from_disk {};
/// The head is composed; the body is on disk, from where `reader` stands up to `end`.
struct body_on_disk {
    std::unique_ptr<cache::disk_body_reader> reader;
    std::uint64_t end = 0;
};
/// All is composed, and some of it not sent.
struct composed {};

}  // namespace answers

using answer = std::variant<answers::refused,
                            answers::local,
                            answers::stored,
                            answers::stand_in,
                            answers::partial,
                            answers::fetched,
                            answers::under_way,
                            answers::of_members,
                            answers::passed,
                            answers::tunnel,
                            answers::opened,
                            answers::upgraded,
                            answers::for_peer,
                            answers::purge,
                            answers::unverified,
                            answers::from_disk,
                            answers::body_on_disk,
                            answers::composed>;

/// What came of giving an answer: how it ended, or which is to be given instead.
using ended_or_next = std::variant<ended, answer>;

}  // namespace reprise::proxy::serve
