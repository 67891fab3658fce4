// reprise_siblings.so: what one of a fleet's caches holds, the others need not fetch.
//
// How a miss goes. At TS_HTTP_CACHE_LOOKUP_COMPLETE_HOOK the siblings' digests are asked, all by one look-up. Is the URL named,
// the server is told to go by that sibling as by a parent that is a proxy; at TS_HTTP_OS_DNS_HOOK, before the connection, already what
// follows a failure: the origin itself. (A dead sibling never gets further.) At TS_HTTP_SEND_REQUEST_HDR_HOOK the question gets
// only-if-cached, and at TS_HTTP_READ_RESPONSE_HDR_HOOK a 200 stays, and all else goes on to the origin.
//
// No loops: what comes with only-if-cached is answered here or with 504. The server sees to that for what it does not have at all;
// for what is stale, and for what it would not look up, this does.

#include "filter/plugins/trafficserver/digest_answer.hpp"
#include "filter/plugins/trafficserver/fleet_words.hpp"
#include "filter/plugins/trafficserver/follower.hpp"
#include "filter/plugins/trafficserver/lookup_url.hpp"
#include "filter/plugins/trafficserver/neighbours.hpp"
#include "filter/plugins/trafficserver/own_digest.hpp"
#include "filter/plugins/trafficserver/server.hpp"

#include <ctime>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
// This order: the other includes nothing of what it needs.
// clang-format off
#include <ts/ts.h>
#if TS_VERSION_MAJOR < 10
#include <ts/experimental.h>
#endif
// clang-format on

namespace reprise::trafficserver {

namespace {

/// This node. Made once, and never destroyed.
struct fleet_node {
    fleet_options options;
    reprise_fleet* fleet;
    own_digest own;
    neighbours siblings;
    answering with;
    int slot = -1;
    TSCont lookups = nullptr, asks = nullptr, ends = nullptr;

    fleet_node(const fleet_options& words, reprise_fleet* opened)
        : options(words),
          fleet(opened),
          own(words, reprise_fleet_seed(opened)),
          siblings(words, reprise_fleet_seed(opened)),
          with{own, siblings, opened, words.node} {}
};

fleet_node* node = nullptr;

/// What one transaction has to remember from its look-up on.
struct miss {
    reprise_key key{};
    neighbour* asked = nullptr;  ///< until something came of it
    bool was_sent = false;       ///< the question went out
    bool counts_bytes = false;   ///< its answer is the sibling's
    bool was_resolved =
        false;  ///< the sibling's address: the next that is looked up is the origin's
};

// ---- a client's request ----

struct request_traits {
    bool is_get = false;
    bool is_only_if_cached = false;
    bool may_ask = false;  ///< nobody's own, and no part
};

bool has_field(TSMBuffer buffer, TSMLoc head, const char* name, int length) noexcept {
    auto* const field = TSMimeHdrFieldFind(buffer, head, name, length);
    if (field == TS_NULL_MLOC) {
        return false;
    }
    TSHandleMLocRelease(buffer, head, field);
    return true;
}

/// Whether this field, a list, has this value. In any case of letters, on any of its lines.
bool has_value(TSMBuffer buffer,
               TSMLoc head,
               std::string_view name,
               std::string_view directive) noexcept {
    bool has = false;
    auto* field = TSMimeHdrFieldFind(buffer, head, name.data(), static_cast<int>(name.size()));
    while (field != TS_NULL_MLOC) {
        const auto count = TSMimeHdrFieldValuesCount(buffer, head, field);
        for (int i = 0; i < count && !has; ++i) {
            int length = 0;
            const char* const text = TSMimeHdrFieldValueStringGet(buffer, head, field, i, &length);
            const std::string_view value{text == nullptr ? "" : text,
                                         text == nullptr ? 0 : static_cast<std::size_t>(length)};
            has = value.size() == directive.size() &&
                  std::equal(value.begin(), value.end(), directive.begin(), [](char a, char b) {
                      return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
                  });
        }
        auto* const next = has ? TS_NULL_MLOC : TSMimeHdrFieldNextDup(buffer, head, field);
        TSHandleMLocRelease(buffer, head, field);
        field = next;
    }
    return has;
}

bool has_directive(TSMBuffer buffer, TSMLoc head, std::string_view directive) noexcept {
    return has_value(
        buffer,
        head,
        {TS_MIME_FIELD_CACHE_CONTROL, static_cast<std::size_t>(TS_MIME_LEN_CACHE_CONTROL)},
        directive);
}

request_traits traits_of(TSHttpTxn txn) noexcept {
    request_traits out;
    TSMBuffer buffer = nullptr;
    TSMLoc head = TS_NULL_MLOC;
    if (TSHttpTxnClientReqGet(txn, &buffer, &head) != TS_SUCCESS) {
        return out;
    }
    int length = 0;
    out.is_get = TSHttpHdrMethodGet(buffer, head, &length) == TS_HTTP_METHOD_GET;
    out.is_only_if_cached = has_directive(buffer, head, "only-if-cached");
    out.may_ask = out.is_get && !out.is_only_if_cached &&
                  !has_directive(buffer, head, "no-cache") &&
                  !has_value(buffer, head, "Pragma", "no-cache") &&
                  !has_field(buffer, head, TS_MIME_FIELD_COOKIE, TS_MIME_LEN_COOKIE) &&
                  !has_field(buffer, head, TS_MIME_FIELD_RANGE, TS_MIME_LEN_RANGE) &&
                  !has_field(buffer, head, TS_MIME_FIELD_AUTHORIZATION, TS_MIME_LEN_AUTHORIZATION);
    TSHandleMLocRelease(buffer, TS_NULL_MLOC, head);
    return out;
}

/// The server never goes by a parent to 127.0.0.1, and has no scheme for one but http.
bool is_asked_of_others(std::string_view url) noexcept {
    constexpr std::string_view plain = "http://";
    constexpr std::string_view own_machine = "127.0.0.1";
    if (!url.starts_with(plain)) {
        return false;
    }
    url.remove_prefix(plain.size());
    const auto host = url.substr(0, url.find_first_of(":/"));
    return host != own_machine;
}

// ---- asking ----

void ask(TSHttpTxn txn, miss& of) noexcept {
    TSResponseAction action{};
    action.hostname = of.asked->host.c_str();
    action.hostname_len = of.asked->host.size();
    action.port = static_cast<in_port_t>(
        ntohs(of.asked->at.address.ss_family == AF_INET
                  ? reinterpret_cast<const sockaddr_in&>(of.asked->at.address).sin_port
                  : reinterpret_cast<const sockaddr_in6&>(of.asked->at.address).sin6_port));
    action.parentIsProxy = true;
    action.nextHopExists = true;
    action.responseIsRetryable = true;
    TSHttpTxnResponseActionSet(txn, &action);
    TSHttpTxnConnectTimeoutSet(txn, static_cast<int>(node->options.timeout.count()));
    TSHttpTxnHookAdd(txn, TS_HTTP_OS_DNS_HOOK, node->asks);
    TSHttpTxnHookAdd(txn, TS_HTTP_SEND_REQUEST_HDR_HOOK, node->asks);
    TSHttpTxnHookAdd(txn, TS_HTTP_READ_RESPONSE_HDR_HOOK, node->asks);
}

/// What is done when this sibling does not answer, or has nothing: go to the origin.
void set_origin_next(TSHttpTxn txn) noexcept {
    TSResponseAction action{};
    action.fail = true;
    action.goDirect = true;
    action.parentIsProxy = true;  // the head for the sibling is made by this one, too
    action.responseIsRetryable = true;
    TSHttpTxnResponseActionSet(txn, &action);
}

bool is_with(TSHttpTxn txn, const neighbour& whom) noexcept {
    endpoint there;
    return take_endpoint(TSHttpTxnNextHopAddrGet(txn), there) && are_one(there, whom.at);
}

void address_known(TSHttpTxn txn, miss& of) noexcept {
    if (of.asked == nullptr) {
        return;
    }
    if (!of.was_resolved) {
        of.was_resolved = true;  // the next time it is the origin's
        set_origin_next(txn);
        return;
    }
    of.asked->count(met::failed);
    of.asked->failed();
    of.asked = nullptr;
    TSHttpTxnConnectTimeoutSet(txn, -1);
}

void request_goes(TSHttpTxn txn, miss& of) noexcept {
    const bool is_question = of.asked != nullptr && is_with(txn, *of.asked);
    if (!is_question && !of.was_sent) {
        return;
    }
    TSMBuffer buffer = nullptr;
    TSMLoc head = TS_NULL_MLOC;
    if (TSHttpTxnServerReqGet(txn, &buffer, &head) != TS_SUCCESS) {
        return;
    }
    if (is_question) {
        if (!of.was_sent) {
            of.was_sent = true;
            of.asked->count(met::asked);
        }
        TSMLoc field = TS_NULL_MLOC;
        constexpr std::string_view directive = "only-if-cached";
        if (!has_directive(buffer, head, directive) &&
            TSMimeHdrFieldCreateNamed(
                buffer, head, TS_MIME_FIELD_CACHE_CONTROL, TS_MIME_LEN_CACHE_CONTROL, &field) ==
                TS_SUCCESS) {
            TSMimeHdrFieldValueStringSet(
                buffer, head, field, -1, directive.data(), static_cast<int>(directive.size()));
            TSMimeHdrFieldAppend(buffer, head, field);
            TSHandleMLocRelease(buffer, head, field);
        }
    } else {
        // The same head goes to the origin: without what was ours in it.
        auto* field = TSMimeHdrFieldFind(
            buffer, head, TS_MIME_FIELD_CACHE_CONTROL, TS_MIME_LEN_CACHE_CONTROL);
        while (field != TS_NULL_MLOC) {
            auto* const next = TSMimeHdrFieldNextDup(buffer, head, field);
            int length = 0;
            const char* const text = TSMimeHdrFieldValueStringGet(buffer, head, field, -1, &length);
            if (text != nullptr &&
                std::string_view{text, static_cast<std::size_t>(length)} == "only-if-cached") {
                TSMimeHdrFieldDestroy(buffer, head, field);
            }
            TSHandleMLocRelease(buffer, head, field);
            field = next;
        }
    }
    TSHandleMLocRelease(buffer, TS_NULL_MLOC, head);
}

void response_came(TSHttpTxn txn, miss& of) noexcept {
    if (of.asked == nullptr || !of.was_sent || !is_with(txn, *of.asked)) {
        return;
    }
    TSMBuffer buffer = nullptr;
    TSMLoc head = TS_NULL_MLOC;
    if (TSHttpTxnServerRespGet(txn, &buffer, &head) != TS_SUCCESS) {
        return;
    }
    const auto status = TSHttpHdrStatusGet(buffer, head);
    TSHandleMLocRelease(buffer, TS_NULL_MLOC, head);
    auto& whom = *of.asked;
    // A 304 is to the client's own condition, which goes along where nothing will be stored.
    if (status == TS_HTTP_STATUS_OK || status == TS_HTTP_STATUS_NOT_MODIFIED) {
        whom.count(met::hits);
        whom.worked();
        of.counts_bytes = true;
        TSResponseAction stays{};
        TSHttpTxnResponseActionSet(txn, &stays);
        return;
    }
    of.asked = nullptr;
    // What it keeps of a redirect, or of what is not there, its digest names as well: it works, and has nothing to give.
    const bool has_none = status == TS_HTTP_STATUS_GATEWAY_TIMEOUT ||
                          status < TS_HTTP_STATUS_BAD_REQUEST ||
                          status == TS_HTTP_STATUS_NOT_FOUND || status == TS_HTTP_STATUS_GONE;
    if (has_none) {
        whom.count(met::false_hits);
        whom.worked();
        node->siblings.asked_in_vain(of.key);
    } else {
        whom.count(met::failed);
        whom.failed();
    }
    set_origin_next(txn);
    TSHttpTxnConnectTimeoutSet(txn, -1);
}

// ---- as the server calls them ----

miss* miss_of(TSHttpTxn txn) noexcept {
    return static_cast<miss*>(TSUserArgGet(txn, node->slot));
}

void looked_up(TSHttpTxn txn) noexcept {
    int found = -1;
    if (TSHttpTxnCacheLookupStatusGet(txn, &found) != TS_SUCCESS ||
        found == TS_CACHE_LOOKUP_HIT_FRESH) {
        return;
    }
    const auto traits = traits_of(txn);
    if (traits.is_only_if_cached && found == TS_CACHE_LOOKUP_HIT_STALE) {
        // The server would ask the origin whether it is still good.
        TSHttpTxnCacheLookupStatusSet(txn, TS_CACHE_LOOKUP_MISS);
    }
    // Where the server follows a redirect, it looks up the next URL here as well, and stores the response under the first.
    if (!traits.is_get || traits.is_only_if_cached || found == TS_CACHE_LOOKUP_SKIPPED ||
        miss_of(txn) != nullptr) {
        return;
    }
    lookup_url url;
    const auto text = url.read(txn);
    auto* const made = text.empty() ? nullptr : new (std::nothrow) miss;
    if (made == nullptr) {
        return;
    }
    made->key = reprise_fleet_key(node->fleet, text.data(), text.size());
    TSUserArgSet(txn, node->slot, made);
    TSHttpTxnHookAdd(txn, TS_HTTP_TXN_CLOSE_HOOK, node->ends);
    if (found == TS_CACHE_LOOKUP_MISS && traits.may_ask && TSHttpTxnIsInternal(txn) == 0 &&
        is_asked_of_others(text)) {
        made->asked = node->siblings.likely_holder(made->key);
        if (made->asked != nullptr) {
            ask(txn, *made);
        }
    }
}

/// Whether the cache has it now: it was opened for writing, for a response that it stores, and nothing broke off.
bool was_stored(TSHttpTxn txn) noexcept {
    TSMgmtInt tries = 0;
#if TS_VERSION_MAJOR < 10
    const auto aborted = TSHttpTxnAborted(txn);
#else
    bool by_client = false;
    const auto aborted = TSHttpTxnAborted(txn, &by_client);
#endif
    return TSHttpTxnInfoIntGet(txn, TS_TXN_INFO_CACHE_OPEN_WRITE_TRIES, &tries) == TS_SUCCESS &&
           tries > 0 && TSHttpTxnIsCacheable(txn, nullptr, nullptr) != 0 && aborted == TS_ERROR;
}

int on_hook(TSCont, TSEvent event, void* data) {
    auto* const txn = static_cast<TSHttpTxn>(data);
    if (event == TS_EVENT_HTTP_READ_REQUEST_HDR) {
        if (is_ours(txn)) {
            TSSkipRemappingSet(txn, 1);  // no rule is for it, where the server requires one
            answer_later(txn, node->with);
            return 0;
        }
    } else if (event == TS_EVENT_HTTP_CACHE_LOOKUP_COMPLETE) {
        looked_up(txn);
    } else if (event == TS_EVENT_HTTP_OS_DNS && TSHttpTxnIsInternal(txn) == 0 &&
               traits_of(txn).is_only_if_cached) {
        TSHttpTxnStatusSet(txn, TS_HTTP_STATUS_GATEWAY_TIMEOUT);
        TSHttpTxnReenable(txn, TS_EVENT_HTTP_ERROR);
        return 0;
    }
    TSHttpTxnReenable(txn, TS_EVENT_HTTP_CONTINUE);
    return 0;
}

int on_ask(TSCont, TSEvent event, void* data) {
    auto* const txn = static_cast<TSHttpTxn>(data);
    if (auto* const of = miss_of(txn)) {
        if (event == TS_EVENT_HTTP_OS_DNS) {
            address_known(txn, *of);
        } else if (event == TS_EVENT_HTTP_SEND_REQUEST_HDR) {
            request_goes(txn, *of);
        } else if (event == TS_EVENT_HTTP_READ_RESPONSE_HDR) {
            response_came(txn, *of);
        }
    }
    TSHttpTxnReenable(txn, TS_EVENT_HTTP_CONTINUE);
    return 0;
}

int on_end(TSCont, TSEvent, void* data) {
    auto* const txn = static_cast<TSHttpTxn>(data);
    if (const std::unique_ptr<miss> was{miss_of(txn)}) {
        TSUserArgSet(txn, node->slot, nullptr);
        const auto body = TSHttpTxnServerRespBodyBytesGet(txn);
        if (was->counts_bytes && was->asked != nullptr) {
            was->asked->count(met::bytes, static_cast<std::uint64_t>(body));
        }
        // Behind a sibling that had nothing the cache is still held for what that would have answered: nothing is stored.
        const bool came_behind = was->was_resolved && was->asked == nullptr;
        if (!came_behind && was_stored(txn)) {
            const auto head = TSHttpTxnServerRespHdrBytesGet(txn);
            node->own.came(was->key, static_cast<std::uint64_t>(body + head));
        }
    }
    TSHttpTxnReenable(txn, TS_EVENT_HTTP_CONTINUE);
    return 0;
}

void begin(std::span<const char* const> words) {
    const auto options = parse_fleet(words, TSConfigDirGet(), TSRuntimeDirGet());
    reprise_fleet* opened = nullptr;
    reprise_error error = REPRISE_ERROR_INIT;
    if (reprise_fleet_open(options.secret.empty() ? nullptr : options.secret.c_str(),
                           std::time(nullptr),
                           &opened,
                           &error) != REPRISE_OK) {
        throw std::runtime_error{error.text};
    }
    auto made = std::make_unique<fleet_node>(options, opened);
    if (TSUserArgIndexReserve(TS_USER_ARGS_TXN,
                              "reprise_siblings",
                              "what is known of a transaction's miss",
                              &made->slot) != TS_SUCCESS) {
        throw std::runtime_error{
            "the server has no slot left in its transactions: there are too many plug-ins"};
    }
    made->lookups = TSContCreate(on_hook, nullptr);
    made->asks = TSContCreate(on_ask, nullptr);
    made->ends = TSContCreate(on_end, nullptr);
    node = made.release();
    stay_loaded();
    keep_house(
        []() noexcept {
            node->own.tick();
            for (const auto& one : node->siblings.all()) {
                one->show();
            }
        },
        []() noexcept {
            stop_following();
            node->own.save();
        });
    for (const auto& one : node->siblings.all()) {
        follow({*one, node->siblings, opened, options.node});
    }
    TSHttpHookAdd(TS_HTTP_READ_REQUEST_HDR_HOOK, node->lookups);
    TSHttpHookAdd(TS_HTTP_CACHE_LOOKUP_COMPLETE_HOOK, node->lookups);
    TSHttpHookAdd(TS_HTTP_OS_DNS_HOOK, node->lookups);
}

}  // namespace

}  // namespace reprise::trafficserver

[[gnu::visibility("default")]] void TSPluginInit(int count, const char* words[]) {
    static const char own_name[] = "reprise_siblings";
    TSPluginRegistrationInfo info{};
    info.plugin_name = own_name;
    info.vendor_name = "Reprise";
    info.support_email = "";
    if (TSPluginRegister(&info) != TS_SUCCESS) {
        TSError("reprise_siblings: the server does not register it");
    }
    try {
        const std::span all{words, static_cast<std::size_t>(count)};
        if (reprise::trafficserver::node != nullptr) {
            throw std::runtime_error{"there is a line for it already; one has all siblings"};
        }
        reprise::trafficserver::begin(all.subspan(all.empty() ? 0 : 1));
    } catch (const std::exception& failure) {
        TSEmergency("reprise_siblings: plugin.config: %s", failure.what());
    }
}
