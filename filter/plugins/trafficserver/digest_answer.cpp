#include "filter/plugins/trafficserver/digest_answer.hpp"

#include "filter/plugins/trafficserver/server.hpp"

#include <charconv>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

// The question is read on the transaction's thread, the answer made on one that may wait, and
// handed over on the first again, where an intercept plays the origin. What can't be made for want
// of memory or threads is a 503.

namespace reprise::trafficserver {

namespace {

constexpr std::string_view our_folder = ".well-known/reprise/";  // as the server has paths
constexpr std::string_view digest_name = ".well-known/reprise/digest";
constexpr std::size_t most_fields = 64;

/// The request, as far as an answer depends on it.
struct question {
    std::string method, target, path, query, host;
    std::vector<std::pair<std::string, std::string>> fields;
    bool has_more = false;  ///< fields than are looked at: a relay's Via comes last
    endpoint from, here;
};

std::string text_of(const char* text, int length) {
    return text == nullptr || length <= 0 ? std::string{}
                                          : std::string{text, static_cast<std::size_t>(length)};
}

bool is_named(std::string_view name, std::string_view lower_case) noexcept {
    return name.size() == lower_case.size() &&
           std::equal(name.begin(), name.end(), lower_case.begin(), [](char a, char b) {
               return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
           });
}

/// A response head, and the body where there is one.
std::string reply_of(std::string_view status,
                     std::string_view fields,
                     std::string_view body,
                     bool has_body) {
    std::string out = "HTTP/1.1 ";
    out.append(status).append("\r\nCache-Control: private, no-cache, no-transform\r\n");
    out.append(fields);
    out.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
    if (has_body) {
        out.append(body);
    }
    return out;
}

std::string refusal(std::string_view status, std::string_view why, std::string_view more = {}) {
    std::string fields{"Content-Type: text/plain; charset=utf-8\r\n"};
    fields.append(more);
    return reply_of(status, fields, std::string{why} + "\n", true);
}

/// since=EPOCH-COUNTER, or If-None-Match's. (0, 0): none that can be read.
std::pair<std::uint64_t, std::uint64_t> generation_in(const question& asked) {
    std::string_view text;
    const std::string_view query{asked.query};
    for (std::size_t at = 0; at < query.size();) {
        const auto end = std::min(query.find('&', at), query.size());
        const auto one = query.substr(at, end - at);
        if (one.starts_with("since=")) {
            text = one.substr(6);
            break;
        }
        at = end + 1;
    }
    if (text.empty()) {
        for (const auto& [name, value] : asked.fields) {
            const std::string_view tag{value};
            if (is_named(name, "if-none-match") && tag.size() > 2 && tag.starts_with('"') &&
                tag.ends_with('"')) {
                text = tag.substr(1, tag.size() - 2);
            }
        }
    }
    std::pair<std::uint64_t, std::uint64_t> out{0, 0};
    const auto dash = text.find('-');
    const auto read = [](std::string_view digits, std::uint64_t& to) {
        const auto* const end = digits.data() + digits.size();
        const auto got = std::from_chars(digits.data(), end, to, 16);
        return got.ec == std::errc{} && got.ptr == end;
    };
    if (dash == text.npos || !read(text.substr(0, dash), out.first) ||
        !read(text.substr(dash + 1), out.second)) {
        return {0, 0};
    }
    return out;
}

/// Empty: the question may be answered. Else why not.
std::string why_not(const question& asked, const answering& with) {
    if (asked.has_more) {
        return "the request has more than " + std::to_string(most_fields) + " fields";
    }
    if (!with.siblings.includes(asked.from)) {
        return asked.from.host() + " is the address of no sibling in plugin.config here";
    }
    for (const auto& [name, value] : asked.fields) {
        if (is_named(name, "via")) {
            return asked.from.host() + " is a sibling's, but asks for somebody else";
        }
    }
    if (reprise_fleet_signs(with.fleet) == 0) {
        return {};
    }
    std::vector<reprise_field> lines;
    for (const auto& [name, value] : asked.fields) {
        lines.push_back({name.c_str(), value.c_str()});
    }
    reprise_request request = REPRISE_REQUEST_INIT;
    request.method = asked.method.c_str();
    request.target = asked.target.c_str();
    request.authority = asked.host.c_str();
    request.fields = lines.data();
    request.field_count = lines.size();
    reprise_error error = REPRISE_ERROR_INIT;
    const auto code = reprise_fleet_check(with.fleet,
                                          &request,
                                          asked.here.text().c_str(),
                                          with.node.c_str(),
                                          std::time(nullptr),
                                          &error);
    return code == REPRISE_OK
               ? std::string{}
               : std::string{error.text} + ": the secret and the clocks must be the same";
}

std::string answer_to(const question& asked, const answering& with) {
    if (asked.path != digest_name) {
        return refusal("404 Not Found", "this node serves its digest alone");
    }
    if (asked.method != "GET" && asked.method != "HEAD") {
        return refusal("405 Method Not Allowed", "GET or HEAD", "Allow: GET, HEAD\r\n");
    }
    if (const auto why = why_not(asked, with); !why.empty()) {
        with.own.refused();
        return refusal("403 Forbidden", why);
    }
    const auto [epoch, counter] = generation_in(asked);
    auto served = with.own.since(epoch, counter);
    if (served.what == own_digest::served::kind::not_ready) {
        return refusal(
            "503 Service Unavailable", "the cache is not there yet", "Retry-After: 1\r\n");
    }
    with.own.answered();
    const auto fields = "ETag: " + served.etag + "\r\nReprise-Node: " + with.node + "\r\n";
    if (served.what == own_digest::served::kind::unchanged) {
        return "HTTP/1.1 304 Not Modified\r\nCache-Control: private, no-cache, no-transform\r\n" +
               fields + "\r\n";
    }
    return reply_of("200 OK",
                    "Content-Type: application/octet-stream\r\n" + fields,
                    served.body,
                    asked.method == "GET");
}

question read_question(TSHttpTxn txn) {
    question out;
    TSMBuffer buffer = nullptr;
    TSMLoc head = TS_NULL_MLOC;
    TSMLoc url = TS_NULL_MLOC;
    int length = 0;
    if (TSHttpTxnClientReqGet(txn, &buffer, &head) != TS_SUCCESS) {
        return out;
    }
    const char* text = TSHttpHdrMethodGet(buffer, head, &length);
    out.method = text_of(text, length);
    if (TSHttpHdrUrlGet(buffer, head, &url) == TS_SUCCESS) {
        text = TSUrlPathGet(buffer, url, &length);
        out.path = text_of(text, length);
        text = TSUrlHttpQueryGet(buffer, url, &length);
        out.query = text_of(text, length);
        TSHandleMLocRelease(buffer, head, url);
    }
    out.target = "/" + out.path + (out.query.empty() ? "" : "?" + out.query);
    auto* field = TSMimeHdrFieldGet(buffer, head, 0);
    for (std::size_t i = 0; field != TS_NULL_MLOC && i < most_fields; ++i) {
        text = TSMimeHdrFieldNameGet(buffer, head, field, &length);
        auto name = text_of(text, length);
        text = TSMimeHdrFieldValueStringGet(buffer, head, field, -1, &length);
        auto value = text_of(text, length);
        if (is_named(name, "host")) {
            out.host = value;
        }
        out.fields.emplace_back(std::move(name), std::move(value));
        auto* const next = TSMimeHdrFieldNext(buffer, head, field);
        TSHandleMLocRelease(buffer, head, field);
        field = next;
    }
    if (field != TS_NULL_MLOC) {
        out.has_more = true;
        TSHandleMLocRelease(buffer, head, field);
    }
    TSHandleMLocRelease(buffer, TS_NULL_MLOC, head);
    (void)take_endpoint(TSHttpTxnClientAddrGet(txn), out.from);
    (void)take_endpoint(TSHttpTxnIncomingAddrGet(txn), out.here);
    return out;
}

/// One answer on its way: made, then written to what the server takes for an origin.
struct intercepted {
    std::string wire{};
    TSVConn connection = nullptr;
    TSIOBuffer in = nullptr, out = nullptr;
    TSVIO writes = nullptr;

    intercepted() = default;
    intercepted(const intercepted&) = delete;
    intercepted& operator=(const intercepted&) = delete;
    ~intercepted() {
        if (connection != nullptr) {
            TSVConnClose(connection);
        }
        for (auto* const buffer : {in, out}) {
            if (buffer != nullptr) {
                TSIOBufferDestroy(buffer);
            }
        }
    }
};

void write_answer(TSCont cont, intercepted& one) {
    if (one.out != nullptr) {
        return;
    }
    one.out = TSIOBufferCreate();
    auto* const reader = TSIOBufferReaderAlloc(one.out);
    TSIOBufferWrite(one.out, one.wire.data(), static_cast<std::int64_t>(one.wire.size()));
    one.writes = TSVConnWrite(
        one.connection, cont, reader, static_cast<std::int64_t>(one.wire.size()));
}

int on_intercept(TSCont cont, TSEvent event, void* data) {
    auto& one = *static_cast<intercepted*>(TSContDataGet(cont));
    switch (event) {
    case TS_EVENT_NET_ACCEPT:
        one.connection = static_cast<TSVConn>(data);
        one.in = TSIOBufferCreate();
        (void)TSIOBufferReaderAlloc(one.in);
        TSVConnRead(one.connection, cont, one.in, INT64_MAX);
        return 0;
    case TS_EVENT_VCONN_READ_READY:
    case TS_EVENT_VCONN_READ_COMPLETE: write_answer(cont, one); return 0;
    case TS_EVENT_VCONN_WRITE_READY: TSVIOReenable(one.writes); return 0;
    default: break;  // all is written, the client has gone, or there was no accept
    }
    TSContDestroy(cont);
    delete &one;
    return 0;
}

void give_up(TSHttpTxn txn) noexcept {
    TSHttpTxnStatusSet(txn, TS_HTTP_STATUS_SERVICE_UNAVAILABLE);
    TSHttpTxnReenable(txn, TS_EVENT_HTTP_ERROR);
}

/// An answer that is to be made: on a thread that may wait, from the question alone. The transaction is touched on its own thread only.
struct waiting_answer {
    const answering* with;
    TSHttpTxn txn;
    TSEventThread home;
    question asked;
    std::unique_ptr<intercepted> made{};  ///< null: there was no memory
    bool was_made = false;
};

void hand_over(waiting_answer& one) noexcept {
    if (one.made == nullptr) {
        give_up(one.txn);
        return;
    }
    // Another continuation than the one that calls this, whose lock nobody has: what the server could not tell of its connection at
    // once, it would take for broken.
    auto* const serving = TSContCreate(on_intercept, TSMutexCreate());
    TSContDataSet(serving, one.made.release());
    TSHttpTxnIntercept(serving, one.txn);
    TSHttpTxnReenable(one.txn, TS_EVENT_HTTP_CONTINUE);
}

int on_make(TSCont cont, TSEvent, void*) {
    auto* const one = static_cast<waiting_answer*>(TSContDataGet(cont));
    if (!one->was_made) {
        one->was_made = true;
        try {
            auto made = std::make_unique<intercepted>();
            made->wire = answer_to(one->asked, *one->with);
            one->made = std::move(made);
        } catch (const std::bad_alloc&) {
            // hand_over says so
        }
        TSContScheduleOnThread(cont, 0, one->home);
        return 0;
    }
    const std::unique_ptr<waiting_answer> owned{one};
    TSContDestroy(cont);
    hand_over(*one);
    return 0;
}

}  // namespace

bool is_ours(TSHttpTxn txn) noexcept {
    TSMBuffer buffer = nullptr;
    TSMLoc head = TS_NULL_MLOC;
    TSMLoc url = TS_NULL_MLOC;
    if (TSHttpTxnClientReqGet(txn, &buffer, &head) != TS_SUCCESS) {
        return false;
    }
    bool is_it = false;
    if (TSHttpHdrUrlGet(buffer, head, &url) == TS_SUCCESS) {
        int length = 0;
        const char* const path = TSUrlPathGet(buffer, url, &length);
        is_it = path != nullptr &&
                std::string_view{path, static_cast<std::size_t>(length)}.starts_with(our_folder);
        if (is_it) {
            (void)TSUrlHostGet(buffer, url, &length);
            is_it = length == 0;  // of this server, and not of one behind it
        }
        TSHandleMLocRelease(buffer, head, url);
    }
    TSHandleMLocRelease(buffer, TS_NULL_MLOC, head);
    return is_it;
}

void answer_later(TSHttpTxn txn, const answering& with) noexcept {
    std::unique_ptr<waiting_answer> one;
    try {
        if (has_task_threads()) {
            one.reset(new waiting_answer{&with, txn, TSEventThreadSelf(), read_question(txn)});
        }
    } catch (const std::bad_alloc&) {
        // There is none, then.
    }
    if (one == nullptr) {
        give_up(txn);
        return;
    }
    auto* const cont = TSContCreate(on_make, TSMutexCreate());
    TSContDataSet(cont, one.release());
    TSContScheduleOnPool(cont, 0, TS_THREAD_POOL_TASK);
}

}  // namespace reprise::trafficserver
