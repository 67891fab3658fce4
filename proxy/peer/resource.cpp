#include "proxy/peer/resource.hpp"

#include "filter/squid_digest.hpp"
#include "proxy/http/conditional.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/fields.hpp"
#include "proxy/http/query.hpp"

#include <boost/beast/http/verb.hpp>

#include <algorithm>
#include <atomic>
#include <optional>

// A request becomes a `decision` first: may this asker have it, and which bytes? There is a decide_
// function for each resource. answer() then writes head and body for all of them alike.

namespace reprise::proxy::peer {
namespace {

using http::field_id;
using verb = boost::beast::http::verb;

// Longer than the jitter of a network; once in five minutes it costs nothing.
constexpr std::chrono::milliseconds squid_pause{30};

std::string_view path_of(std::string_view target) noexcept {
    return target.substr(0, target.find('?'));
}

struct status_line {
    unsigned status;
    std::string_view text;
};

status_line status_of(answered what) noexcept {
    switch (what) {
    case answered::whole:
    case answered::delta:
    case answered::news: return {200, "200 OK"};
    case answered::not_modified: return {304, "304 Not Modified"};
    case answered::not_a_peer:
    case answered::not_signed: return {403, "403 Forbidden"};
    case answered::no_resource: return {404, "404 Not Found"};
    case answered::not_ready: return {503, "503 Service Unavailable"};
    case answered::wrong_method: return {405, "405 Method Not Allowed"};
    case answered::bad_question: return {400, "400 Bad Request"};
    case answered::waiting: break;  // never sent
    }
    return {500, "500 Internal Server Error"};
}

/// What the answer is, before it has a head.
struct decision {
    answered what = answered::no_resource;
    std::shared_ptr<const published> of{};
    wire_bytes body{};
    std::string etag{};  ///< of news; of others it is that of `of`
    std::chrono::seconds wait{0};
    std::optional<filter::digest_generation> since{};
    // What was seen, where it is asked for beside it.
    bool heeds_seen = false;
    wire_bytes seen{};  ///< null: nothing new
    bool seen_is_beyond = false;
    std::optional<filter::digest_generation> seen_since{};  ///< waiting: for that, too
};

bool has_etag(http::field_list fields, std::string_view etag) {
    bool has = false;
    for (const auto& line : fields) {
        if (line.id == field_id::if_none_match) {
            http::for_each_member(line.value, [&](std::string_view member) {
                has = has || member == "*" || http::equal_weak(member, etag);
                return !has;
            });
        }
    }
    return has;
}

/// What is behind the target's question mark.
struct question {
    std::optional<filter::digest_generation> since{}, seen{};
    std::optional<std::chrono::seconds> wait{};
    bool is_bad = false;  ///< `wait` is no number of seconds
};

// A number of any length is one: what is more than we wait for is as good as that.
std::optional<std::chrono::seconds> seconds_in(std::string_view text) noexcept {
    constexpr std::size_t longest = 20;
    const bool is_number = !text.empty() && text.size() <= longest &&
                           text.find_first_not_of("0123456789") == text.npos;
    if (!is_number) {
        return std::nullopt;
    }
    std::uint64_t seconds = 0;
    for (const char digit : text) {
        seconds = std::min<std::uint64_t>(10 * seconds + static_cast<unsigned>(digit - '0'),
                                          static_cast<std::uint64_t>(longest_news_wait.count()));
    }
    return std::chrono::seconds{seconds};
}

question question_in(std::string_view target) {
    question out;
    const auto mark = target.find('?');
    if (mark == target.npos) {
        return out;
    }
    const auto parameters = http::parse_query(target.substr(mark + 1), 16);
    if (!parameters) {
        return out;
    }
    for (const auto& one : *parameters) {
        if (one.name == "since" && !out.since) {
            out.since = parse_generation(one.value);
        } else if (one.name == "seen" && !out.seen) {
            out.seen = parse_generation(one.value);
        } else if (one.name == "wait") {
            out.wait = seconds_in(one.value);
            out.is_bad = out.is_bad || !out.wait;
        }
    }
    return out;
}

bool is_forwarded_for(const http::field& line) noexcept {
    return line.id == field_id::forwarded || http::iequals(line.name, "X-Forwarded-For");
}

// "1.1 host (squid/5.7)", or "(squid)" where it does not tell its version.
bool is_squids_via(std::string_view value) noexcept {
    const auto comment = value.find('(');
    return value.find(',') == value.npos && comment != value.npos &&
           http::iequals(value.substr(comment, 6), "(squid");
}

// From where the sibling is by news; else by what leads to a generation from where news goes on. What
// is not there yet is waited for.
decision decide_news(const question& asked,
                     const std::shared_ptr<const published>& newest,
                     news_shelf& shelf,
                     bool waited) {
    decision later{.what = answered::waiting, .wait = *asked.wait, .since = asked.since};
    const bool may_wait = !waited && asked.wait->count() > 0;
    if (asked.since) {
        const auto found = shelf.look(*asked.since);
        switch (found.what) {
        case news_shelf::state::ready:
            return {.what = answered::news,
                    .body = found.wire,
                    .etag = '"' + to_text(found.newest) + '"'};
        case news_shelf::state::current:
            later.what = may_wait ? answered::waiting : answered::not_modified;
            later.etag = '"' + to_text(found.newest) + '"';
            return later;
        case news_shelf::state::soon:
            if (may_wait) {
                return later;
            }
            break;
        case news_shelf::state::beyond: break;
        }
    }
    // Whoever holds something newer, of ours, has no use for the whole that is there.
    const auto of_whole = newest ? newest->bits->stamp().generation : filter::digest_generation{};
    const bool is_behind = newest && asked.since && asked.since->epoch == of_whole.epoch &&
                           asked.since->counter >= of_whole.counter &&
                           asked.since->counter <= shelf.newest().counter;
    // Also where the journal reaches back to it, what led from there may be too much for news.
    const bool goes_on = newest && !is_behind &&
                         shelf.look(of_whole).what != news_shelf::state::beyond;
    if (!goes_on && may_wait) {
        shelf.want_whole();
        return later;
    }
    if (!newest) {
        return {.what = answered::not_ready};
    }
    if (is_behind) {
        shelf.want_whole();
        return {.what = answered::not_modified, .etag = '"' + to_text(*asked.since) + '"'};
    }
    if (auto delta = asked.since ? newest->since(*asked.since) : nullptr) {
        return {.what = answered::delta, .of = newest, .body = std::move(delta)};
    }
    return {.what = answered::whole, .of = newest, .body = newest->whole};
}

/// Why a Reprise, or whoever says to be one, gets nothing of what is for these.
std::optional<answered> refused_to(const asker& who, const http::request_head& request) {
    const auto as = who.signing ? asks_as::signing_reprise : asks_as::reprise;
    if (!who.is_reprise || was_passed_on(request, as)) {
        return answered::not_a_peer;
    }
    if (who.signing && who.signature != signature_verdict::good) {
        return answered::not_signed;
    }
    return std::nullopt;
}

decision decide_figures(const http::request_head& request, const asker& who, const offered& what) {
    if (const auto refused = refused_to(who, request)) {
        return {.what = *refused};
    }
    return what.figures ? decision{.what = answered::whole, .body = what.figures()} : decision{};
}

decision decide_reprise(const http::request_head& request,
                        const question& asked,
                        const asker& who,
                        const std::shared_ptr<const published>& newest,
                        news_shelf* news,
                        bool waited) {
    if (const auto refused = refused_to(who, request)) {
        return {.what = *refused};
    }
    if (news != nullptr) {
        if (asked.is_bad) {
            return {.what = answered::bad_question};
        }
        if (asked.wait && request.method == verb::get) {
            return decide_news(asked, newest, *news, waited);
        }
        news->note_plain();
    }
    if (!newest) {
        return {.what = answered::not_ready};
    }
    if (has_etag(request.fields, newest->etag)) {
        return {.what = answered::not_modified, .of = newest};
    }
    // A generation that can't be read is one that is not known: the whole serves both.
    if (asked.since) {
        if (auto delta = newest->since(*asked.since)) {
            return {.what = answered::delta, .of = newest, .body = std::move(delta)};
        }
    }
    return {.what = answered::whole, .of = newest, .body = newest->whole};
}

// News of what was seen goes along, so that one question is kept open for both. It is no reason to keep
// an asker that lacks the digest waiting, nor to answer it sooner.
decision decide_digest(const http::request_head& request, const asker& who, const offered& what) {
    const auto asked = question_in(request.target);
    auto made = decide_reprise(request, asked, who, what.digest, what.digest_news, what.waited);
    const bool has_or_gets_the_newest = made.of || !made.etag.empty();
    if (!has_or_gets_the_newest || !asked.wait || what.seen_news == nullptr ||
        request.method != verb::get) {
        return made;
    }
    made.heeds_seen = true;
    if (!asked.seen) {
        return made;
    }
    auto found = what.seen_news->look(*asked.seen);
    const bool is_there = found.what == news_shelf::state::ready;
    made.seen_is_beyond = found.what == news_shelf::state::beyond;
    if (made.what == answered::waiting && !is_there && !made.seen_is_beyond) {
        made.seen_since = asked.seen;
        return made;
    }
    made.seen = std::move(found.wire);
    if (made.what == answered::waiting || made.what == answered::not_modified) {
        made.what = is_there ? answered::news : answered::not_modified;
    }
    return made;
}

decision decide_seen(const http::request_head& request, const asker& who, const offered& what) {
    return decide_reprise(
        request, question_in(request.target), who, what.seen, what.seen_news, what.waited);
}

decision decide_members(const http::request_head& request, const asker& who, const offered& what) {
    const auto made = decide_reprise(
        request, question_in(request.target), who, what.members, what.members_news, what.waited);
    const bool refused = made.what == answered::not_a_peer || made.what == answered::not_signed;
    return what.serves_members || refused ? made : decision{};
}

// RFC 9110 8.8.2.1: no Last-Modified is later than Date. One that would be (the clock was set back)
// is not told, and nothing is compared with it, until it has come.
bool tells_age(const offered& what, wall_time now) noexcept {
    return what.squid_at <= now;
}

// RFC 9110 13.1.3; beside If-None-Match, which no tag of ours can match, it does not count.
bool is_unmodified(const http::request_head& request, const offered& what, wall_time now) {
    const auto* since = http::find(request.fields, field_id::if_modified_since);
    if (since == nullptr || !tells_age(what, now) ||
        http::find(request.fields, field_id::if_none_match) != nullptr ||
        http::count(request.fields, field_id::if_modified_since) != 1) {
        return false;
    }
    const auto date = http::parse_date(since->value, now);
    return date && what.squid_at <= *date;
}

decision decide_squid(const http::request_head& request,
                      const asker& who,
                      const offered& what,
                      wall_time now) {
    if (!what.serves_squid) {
        return {.what = answered::no_resource};
    }
    if (!who.is_squid || was_passed_on(request, asks_as::squid)) {
        return {.what = answered::not_a_peer};
    }
    if (!what.squid) {
        return {.what = answered::not_ready};
    }
    if (is_unmodified(request, what, now)) {
        return {.what = answered::not_modified};
    }
    return {.what = answered::whole, .of = nullptr, .body = what.squid};
}

void add(std::string& head, std::string_view name, std::string_view value) {
    http::append_field_line(head, name, value);
}

}  // namespace

std::string refusal_of(answered what, const asker& who) {
    if (what == answered::not_signed) {
        return "the signature " + (who.signer.empty() ? "" : "of " + who.signer + " ") + "is " +
               std::string{to_string(who.signature)} +
               (who.signature == signature_verdict::missing
                    ? ": whoever asks has no digest.secret_file, or is of another release"
                    : ": digest.secret_file and the clocks must be the same");
    }
    if (what == answered::bad_question) {
        return "wait is how many seconds news may be waited for, in digits, " +
               std::to_string(longest_news_wait.count()) + " at most: ?since=GENERATION&wait=25";
    }
    if (what != answered::not_a_peer) {
        return {};
    }
    if (who.is_reprise || who.is_squid) {
        return who.address + " is a peer's, but asks for somebody else, or by the other protocol";
    }
    return who.address + " is the address of no peer in the settings here";
}

resource resource_at(std::string_view target) noexcept {
    const auto path = path_of(target);
    if (path == digest_path) {
        return resource::digest;
    }
    if (path == seen_path) {
        return resource::seen;
    }
    if (path == members_path) {
        return resource::members;
    }
    if (path == squid_digest_path) {
        return resource::squid_digest;
    }
    if (path == figures_path) {
        return resource::figures;
    }
    return path == squid_netdb_path ? resource::squid_netdb : resource::none;
}

bool was_passed_on(const http::request_head& request, asks_as whom) noexcept {
    unsigned vias = 0;
    for (const auto& line : request.fields) {
        const bool is_via = line.id == field_id::via;
        if (!is_via && (!is_forwarded_for(line) || whom == asks_as::signing_reprise)) {
            continue;
        }
        if (whom != asks_as::squid || line.id == field_id::forwarded) {
            return true;
        }
        const bool its_own = is_via ? ++vias == 1 && is_squids_via(line.value)
                                    : line.value == "::" || line.value == "0.0.0.0" ||
                                          line.value == "unknown";
        if (!its_own) {
            return true;
        }
    }
    return false;
}

std::string_view to_string(answered what) noexcept {
    switch (what) {
    case answered::whole: return "whole";
    case answered::delta: return "delta";
    case answered::not_modified: return "not_modified";
    case answered::not_a_peer: return "not_a_peer";
    case answered::not_signed: return "not_signed";
    case answered::no_resource: return "no_resource";
    case answered::not_ready: return "not_ready";
    case answered::wrong_method: return "wrong_method";
    case answered::news: return "news";
    case answered::bad_question: return "bad_question";
    case answered::waiting: return "waiting";
    }
    return "?";
}

resource_answer answer(const http::request_head& request,
                       const asker& who,
                       const offered& what,
                       bool close,
                       wall_time now) {
    const auto which = resource_at(request.target);
    const bool is_get = request.method == verb::get;
    decision made;
    if (which != resource::none && !is_get && request.method != verb::head) {
        made.what = answered::wrong_method;
    } else if (which == resource::digest) {
        made = decide_digest(request, who, what);
    } else if (which == resource::seen) {
        made = decide_seen(request, who, what);
    } else if (which == resource::members) {
        made = decide_members(request, who, what);
    } else if (which == resource::figures) {
        made = decide_figures(request, who, what);
    } else if (which == resource::squid_digest) {
        made = decide_squid(request, who, what, now);
    }

    resource_answer out;
    out.what = made.what;
    if (made.what == answered::waiting) {
        out.status = 0;
        out.wait = made.wait;
        out.since = made.since;
        out.seen_since = made.seen_since;
        return out;
    }
    const auto [status, text] = status_of(made.what);
    out.status = status;
    out.head = "HTTP/1.1 ";
    out.head.append(text).append("\r\n");
    out.head += "Date: ";
    http::append_date(out.head, now);
    out.head += "\r\n";
    const bool of_squids = which == resource::squid_digest &&
                           (made.what == answered::whole || made.what == answered::not_modified);
    if (of_squids) {
        if (made.body) {
            add(out.head, "Content-Type", "application/cache-digest");
        }
        if (tells_age(what, now)) {
            out.head += "Last-Modified: ";
            http::append_date(out.head, what.squid_at);
            out.head += "\r\n";
        }
        out.head += "Expires: ";
        http::append_date(out.head, now + what.squid_for);
        out.head += "\r\n";
    } else {
        if (made.body || made.seen) {
            add(out.head, "Content-Type", "application/octet-stream");
        }
        add(out.head, "Cache-Control", "private, no-cache, no-transform");
    }
    const bool is_figures = which == resource::figures && made.what == answered::whole;
    const bool is_known = made.of || of_squids || is_figures || !made.etag.empty();  // no refusal
    if (made.of || !made.etag.empty()) {
        add(out.head, "ETag", made.of ? made.of->etag : made.etag);
    }
    if (is_known && !what.node.empty()) {
        add(out.head, node_field, what.node);  // by which a node knows itself
    }
    const auto* const news = which == resource::digest    ? what.digest_news
                             : which == resource::seen    ? what.seen_news
                             : which == resource::members ? what.members_news
                                                          : nullptr;
    if (news != nullptr && is_known) {
        add(out.head, news_field, std::to_string(longest_news_wait.count()));
    }
    const auto seen_bytes = made.seen ? made.seen->size() : 0;
    if (made.heeds_seen) {
        add(out.head,
            seen_field,
            made.seen_is_beyond ? std::string{seen_ask} : std::to_string(seen_bytes));
    }
    if (made.what == answered::not_ready) {
        add(out.head, "Retry-After", "1");
    }
    if (made.what == answered::wrong_method) {
        add(out.head, "Allow", "GET, HEAD");
    }
    auto refusal = refusal_of(made.what, who);
    if (!refusal.empty()) {
        add(out.head, "Content-Type", "text/plain; charset=utf-8");
        refusal += '\n';
    }
    if (made.what != answered::not_modified) {
        add(out.head,
            "Content-Length",
            std::to_string(made.body || made.seen ? (made.body ? made.body->size() : 0) + seen_bytes
                                                  : refusal.size()));
    }
    if (close) {
        add(out.head, "Connection", "close");
    } else if (request.version == 10) {
        add(out.head, "Connection", "keep-alive");
    }
    out.head += "\r\n";
    if (is_get) {
        out.text = std::move(refusal);
    }
    if (is_get && made.body) {
        out.body = std::move(made.body);
        if (which == resource::squid_digest) {
            out.first = filter::squid_block_bytes;
            out.pause = squid_pause;
        }
        if (made.of) {
            made.of->fetched.store(true, std::memory_order_relaxed);
        }
    }
    out.seen = std::move(made.seen);  // of a GET alone
    return out;
}

}  // namespace reprise::proxy::peer
