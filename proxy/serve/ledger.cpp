#include "proxy/serve/ledger.hpp"

#include "proxy/base/ascii.hpp"
#include "proxy/base/relaxed.hpp"
#include "proxy/cache/stored_response.hpp"
#include "proxy/thread/worker.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

// How a request is counted and logged once it is over.

namespace reprise::proxy::serve {

ledger::ledger(thread::worker& w,
               const client_identity& client,
               const reply_sink& to,
               steady_time started) noexcept
    : w_{w},
      client_{client},
      to_{to},
      started_{started},
      out_before_{to.bytes_out()},
      in_before_{to.bytes_in()} {}

ledger::ledger(ledger&& from) noexcept
    : how{from.how},
      status{from.status},
      reason{from.reason},
      error{std::move(from.error)},
      user{std::move(from.user)},
      origin{std::move(from.origin)},
      peer{std::move(from.peer)},
      origin_time{from.origin_time},
      of_sibling{from.of_sibling},
      handed_on{from.handed_on},
      w_{from.w_},
      client_{from.client_},
      to_{from.to_},
      started_{from.started_},
      out_before_{from.out_before_},
      in_before_{from.in_before_},
      first_byte_{from.first_byte_},
      took_{from.took_},
      body_{from.body_},
      closed_{std::exchange(from.closed_, true)} {}

void ledger::note_answer(const cache::answered& by) {
    origin = by.origin;
    peer = by.peer;
    origin_time = by.took;
}

void ledger::note_first_byte() {
    if (!first_byte_) {
        first_byte_ = steady_now() - started_;
    }
}

void ledger::note_body(body_source from, std::uint64_t bytes, const reply_sink::pieces& before) {
    body_.note(from, bytes, to_.bytes_out(), body_.any() ? 0 : asio::buffer_size(before));
}

void ledger::settle() {
    if (!body_.any()) {
        return;
    }
    const auto sent = body_.settle(to_.bytes_out());
    auto& counts = w_.counts;
    counts.body_bytes_to_clients.add(sent.bytes);
    switch (sent.from) {
    case body_source::store:
        counts.body_bytes_from_store.add(sent.bytes);
        if (of_sibling) [[unlikely]] {
            counts.body_bytes_to_siblings_from_store.add(sent.bytes);
        }
        break;
    case body_source::shared:
        counts.body_bytes_from_collapsing.add(sent.bytes);
        if (of_sibling) [[unlikely]] {
            counts.body_bytes_to_siblings_from_collapsing.add(sent.bytes);
        }
        break;
    case body_source::fetch:
        if (how == outcome::sibling && !of_sibling) {
            counts.body_bytes_of_sibling_hits.add(sent.bytes);
        }
        break;
    }
    if (of_sibling) [[unlikely]] {
        counts.body_bytes_to_siblings.add(sent.bytes);
    }
}

namespace {

// For the bound on what one client's requests count there (what_if.hpp). An IPv6 client has all of its
// network's /64 to choose addresses from.
std::uint64_t advised_as(const thread::worker& w, const client_identity& client) {
    if (w.speaks_for_many(client.at)) {
        return 0;
    }
    auto whole = client.at;
    if (!client.ip().is_v4()) {
        std::fill(whole.begin() + 8, whole.end(), std::uint8_t{0});
    }
    return std::max<std::uint64_t>(1, net::address_hash{}(whole));
}

}  // namespace

// What other settings would have done with this request, if a stored response may answer it. A part
// of a fetched body, or none of it, does not tell how large it is.
void ledger::tell_advisor(const request& asked, std::uint64_t sent, steady_time now) const {
    auto& advice = w_.common.advice;
    if (!advice.samples(asked.key)) [[likely]] {
        return;
    }
    const auto client = advised_as(w_, client_);
    switch (how) {
    case outcome::hit:
    case outcome::stale:
    case outcome::revalidated:
        if (asked.sent != nullptr && !asked.sent->parts()) {
            advice.note(asked.key, asked.sent->size(), now, asked.sent->wait(), client);
        }
        return;
    case outcome::miss:
    case outcome::sibling:
    case outcome::collapsed:
        if (status == 200) {
            // What the body took on top of it is known when it is next asked for, if it is stored.
            advice.note(
                asked.key,
                sent,
                now,
                origin_time
                    ? cache::packed_wait{std::chrono::duration_cast<std::chrono::microseconds>(
                          *origin_time)}
                    : cache::packed_wait{},
                client);
        }
        return;
    case outcome::pass:
    case outcome::tunnel:
    case outcome::local:
    case outcome::only_if_cached:
    case outcome::client_error:
    case outcome::refused:
    case outcome::error:
    case outcome::cut_short:
    case outcome::client_gone: return;
    }
}

namespace {

std::string_view url_of(const ledger::request& asked) noexcept {
    return asked.url.empty() && asked.head != nullptr ? asked.head->target : asked.url;
}

// Without the port; empty: it named none.
std::string_view host_asked_for(const ledger::request& asked) noexcept {
    auto host = host_in(url_of(asked));
    if (host.empty() && asked.head != nullptr) {
        if (const auto* named = http::find(http::field_list{asked.head->fields},
                                           http::field_id::host)) {
            host = host_in(named->value);
        }
    }
    return host;
}

// The answer is that of the host that was asked for: neither a page of ours, nor nothing.
constexpr bool is_of_its_host(outcome how) noexcept {
    switch (how) {
    case outcome::hit:
    case outcome::revalidated:
    case outcome::stale:
    case outcome::miss:
    case outcome::sibling:
    case outcome::collapsed:
    case outcome::pass:
    case outcome::tunnel:
    case outcome::cut_short:
    case outcome::client_gone: return true;
    case outcome::local:
    case outcome::only_if_cached:
    case outcome::client_error:
    case outcome::refused:
    case outcome::error: return false;
    }
    return false;
}

}  // namespace

void ledger::tell_hosts(const request& asked, std::uint64_t stands_for) const {
    std::array<char, 255> name;  // as long as a name can be: RFC 1035, section 2.3.4
    const auto host = host_asked_for(asked).substr(0, name.size());
    const auto end = std::transform(host.begin(), host.end(), name.begin(), ascii_lower);
    if (!host.empty()) {
        w_.common.by_bytes.note({name.begin(), end}, stands_for, is_from_store(how));
    }
}

std::string_view content_type_of(std::string_view head) noexcept {
    constexpr std::string_view name = "content-type:";
    while (!head.empty()) {
        const auto line = head.substr(0, head.find("\r\n"));
        if (http::iequals(line.substr(0, name.size()), name)) {
            const auto value = line.substr(name.size());
            return value.substr(std::min(value.find_first_not_of(" \t"), value.size()));
        }
        head.remove_prefix(std::min(line.size() + 2, head.size()));
    }
    return {};
}

void ledger::close(const request& asked) noexcept {
    if (closed_) {
        return;
    }
    closed_ = true;
    note_answered();
    settle();
    const auto out = to_.bytes_out() - out_before_;
    const auto in = to_.bytes_in() - in_before_ + asked.unconsumed;
    w_.counts.bytes_to_clients.add(out);
    w_.counts.bytes_from_clients.add(in);
    note_request(w_.counts, how, status);
    if (of_sibling) [[unlikely]] {
        w_.counts.requests_of_siblings[static_cast<std::size_t>(how)].add();
        if (handed_on && how == outcome::collapsed) {
            w_.counts.handed_on_joined.add();
        }
    }
    if (asked.sent != nullptr && (how == outcome::hit || how == outcome::stale)) {
        // A revalidated one waited for its origin, if not for the body.
        const auto spared = asked.sent->wait().microseconds();
        w_.counts.wait_spared.add(static_cast<std::uint64_t>(spared.count()));
    }
    if (asked.inside != nullptr) [[unlikely]] {
        asked.inside->requests.fetch_add(1, relaxed);
        asked.inside->hits.fetch_add(is_from_store(how) ? 1 : 0, relaxed);
    }
    note_latency(w_.counts, how, first_byte_.value_or(*took_), *took_);
    try {
        tell_advisor(asked, out, started_ + *took_);
        if (is_of_its_host(how)) {
            if (const auto stands_for = w_.sampled.weight_of(out); stands_for != 0) [[unlikely]] {
                tell_hosts(asked, stands_for);
            }
        }
        const auto& access = w_.common.access;
        const auto weight = access.enabled() ? access.weight_of(how, status) : 0;
        if (weight != 0 || w_.common.live.watched()) {
            log(asked, in, out, weight);
        }
    } catch (const std::bad_alloc&) {
        // An exchange that ends for want of memory must not end the program.
    }
}

void ledger::log(const request& asked, std::uint64_t in, std::uint64_t out, unsigned weight) const {
    access_record record;
    record.time = wall_now();
    record.request_id = w_.next_request_id();
    const auto from = client_.address + ":" + std::to_string(client_.port);
    record.client = from;
    record.user = user ? std::string_view{user->name} : std::string_view{};
    if (asked.head != nullptr) {
        record.http_version = asked.head->version;
        record.method = asked.head->method_text;
        record.url = url_of(asked);
        const http::field_list fields{asked.head->fields};
        const auto value = [&fields](auto which) {
            const auto* line = http::find(fields, which);
            return line != nullptr ? line->value : std::string_view{};
        };
        record.user_agent = value(http::field_id::user_agent);
        record.referer = value("referer");
        record.traceparent = value("traceparent");
        record.if_none_match = http::find(fields, http::field_id::if_none_match) != nullptr;
        record.if_modified_since = http::find(fields, http::field_id::if_modified_since) != nullptr;
    }
    record.status = status;
    record.how = how;
    record.reason = reason;
    record.error = error;
    record.bytes_in = in;
    record.bytes_out = out;
    record.total = *took_;
    record.first_byte = first_byte_;
    record.origin_time = origin_time;
    record.origin = origin;
    record.peer = peer;
    record.over = asked.over;
    if (asked.sent != nullptr) {
        record.from_disk = asked.sent->on_disk() != nullptr;
    }
    if (weight != 0) {
        record.sample = weight;
        std::string_view stored_type;
        if (asked.sent != nullptr && w_.common.access.wants_content_type()) {
            stored_type = content_type_of(asked.sent->head());
        }
        record.content_type = asked.sent != nullptr ? stored_type : std::string_view{content_type};
        w_.common.access.write(record);
    }
    if (w_.common.live.watched()) {
        w_.common.live.note(record, host_asked_for(asked), started_ + *took_);
    }
}

}  // namespace reprise::proxy::serve
