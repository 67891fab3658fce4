#include "proxy/serve/own_reply.hpp"

#include "proxy/http/date.hpp"
#include "proxy/http/error_page.hpp"
#include "proxy/net/client_stream.hpp"
#include "proxy/serve/request_body.hpp"

#include <algorithm>

namespace reprise::proxy::serve {

namespace {

using http::field_id;

// An unreadable head: is it a HEAD's, whose client would take a body for the next answer?
bool asks_head(std::string_view bytes) noexcept {
    bytes.remove_prefix(std::min(bytes.find_first_not_of("\r\n"), bytes.size()));
    return bytes.starts_with("HEAD ");
}

std::string_view status_line_of(unsigned status) noexcept {
    switch (status) {
    case 200: return "HTTP/1.1 200 OK";
    case 404: return "HTTP/1.1 404 Not Found";
    case 504: return "HTTP/1.1 504 Gateway Timeout";
    default: return "HTTP/1.1 500 Internal Server Error";
    }
}

}  // namespace

void count_failure(exchange_state& x, failure_code code) {
    note_failure(x.w.counts, code);
    if (origin_trouble_of(code) != origin_trouble::none) {
        x.w.common.failing.note(x.asked.target.host, steady_now());
    }
}

void compose_failure(exchange_state& x, const failure& why) {
    const auto& facts = facts_of(why.code);
    count_failure(x, why.code);
    if (why.code != failure_code::only_if_cached_miss && facts.status != 504 &&
        x.is_squids_question()) {
        compose_failure(x, failure{failure_code::only_if_cached_miss, std::string{facts.name}});
        return;
    }
    const auto date = http::format_date(wall_now());
    // The page says nothing of keep-alive. Where a message was at fault nobody knows where the next
    // begins; and a client whose host is not opened again is passed on when it connects anew.
    const bool leaves = x.asked.inside && why.code == failure_code::tls_client_certificate;
    x.out.keeps = x.out.keeps && x.out.version == 11 && why.code != failure_code::bad_request &&
                  !leaves && !leaves_body_in_the_way(x, facts.status);
    std::string status;
    if (x.verdict.forward != http::forward_reason::none) {
        http::cache_status how;
        how.forward = x.verdict.forward;
        how.detail = facts.name;
        http::append_cache_status(status, x.w.common.cache_name, how);
    }
    const auto& head = *x.asked.head;
    const auto* accept = http::find(head.fields, field_id::accept);
    // What was seen on the way to an upstream names it (addresses, ports, certificates): that is for the log, and
    // no stranger's. What was seen of a request its own client knows.
    const bool tells_detail = !x.asked.accelerator || facts.counts_as == outcome::client_error;
    const failure shown{why.code, tells_detail ? why.detail : std::string{}};
    x.out.text.clear();
    http::append_error_page(x.out.text,
                            shown,
                            {.pseudonym = x.w.common.pseudonym,
                             .accept = accept != nullptr ? accept->value : std::string_view{},
                             .date = std::string_view{date.data(), date.size()},
                             .cache_status = status,
                             // Its facts may be unread.
                             .head = head.method == boost::beast::http::verb::head,
                             .close = !x.out.keeps,
                             .basic = !x.settings->options.access.users_file.empty(),
                             .bearer = !x.settings->options.access.tokens_file.empty()});
    x.book.how = facts.counts_as;
    x.book.status = facts.status;
    x.book.reason = facts.name;
    x.book.error = why.detail;
    x.out.begin();
    x.out.add(x.out.text);
}

void compose_local(exchange_state& x, const answers::local& what) {
    const auto date = http::format_date(wall_now());
    auto& text = x.out.text;
    text.assign(status_line_of(what.status));
    text.append("\r\nDate: ").append(date.data(), date.size());
    if (!what.type.empty()) {
        text.append("\r\nContent-Type: ").append(what.type);
    } else {
        text.append("\r\nAllow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, TRACE, CONNECT");
    }
    const auto& body = x.asked.body;
    x.out.keeps = x.out.keeps && (body.kind == http::body_kind::none ||
                                  (body.kind == http::body_kind::length && body.length == 0));
    text.append("\r\nContent-Length: ").append(std::to_string(what.text.size()));
    text.append("\r\nCache-Control: no-store\r\n");
    x.out.append_connection(text);
    text.append("\r\n").append(what.text);
    x.book.how = outcome::local;
    x.book.status = what.status;
    x.out.begin();
    x.out.add(text);
}

void refuse_head(const lent& by, const failure& why, steady_time started) {
    // Nothing of the head can be relied on, so there is no exchange: one page, one count, one line.
    const auto& facts = facts_of(why.code);
    auto& w = by.w;
    struct closed_at_the_end {
        ledger book;
        ~closed_at_the_end() { book.close({}); }
    } one{ledger{w, by.client, by.sink, started}};
    auto& book = one.book;
    book.how = facts.counts_as;
    book.status = facts.status;
    book.reason = facts.name;
    book.error = why.detail;
    note_failure(w.counts, why.code);
    const auto date = http::format_date(wall_now());
    std::string page;
    http::append_error_page(page,
                            why,
                            {.pseudonym = w.common.pseudonym,
                             .accept = {},
                             .date = std::string_view{date.data(), date.size()},
                             .cache_status = {},
                             .head = asks_head(by.stream.input().data()),
                             .close = true});
    reply_sink::pieces all{{page.data(), page.size()}};
    by.stream.limit_to(nullptr, w.counts.client_rate_waits);  // it goes at once, or not at all
    if (by.sink.send_now(all)) {
        by.sink.is_whole();
    }
}

}  // namespace reprise::proxy::serve
