#include "tests/judge/origin.hpp"

#include <charconv>
#include <ctime>

namespace reprise::tests::judge {

namespace {

std::int64_t wall_seconds() {
    return static_cast<std::int64_t>(std::time(nullptr));
}

std::string last_modified_of(unsigned version) {
    // Long ago, and later with each version.
    return http_date_of(1'600'000'000 + std::int64_t{version} * 1000);
}

std::string reason_of(int status) {
    switch (status) {
    case 200: return "200 OK";
    case 201: return "201 Created";
    case 206: return "206 Partial Content";
    case 304: return "304 Not Modified";
    case 416: return "416 Range Not Satisfiable";
    default: return std::to_string(status) + " As Told";
    }
}

}  // namespace

/// One request in hand.
struct judge_origin::answering {
    origin_request& request;
    origin_connection& connection;
    ledger& into;
    std::string path;
    std::size_t number = 0;  ///< of the exchange, in the ledger
    object what{};
    behaviour how{};
    unsigned version = 0;
    char flavour = 'a';
    bool conditional = false;
    std::string date{};
    int status = 0;
    bool misbehaved = false;

    [[nodiscard]] body_id body() const { return {identity_of(path), version, flavour}; }
    [[nodiscard]] std::string head(int code, const std::string& framing_fields) {
        status = code;
        into.answers(path, number, code);
        return "HTTP/1.1 " + reason_of(code) + "\r\nDate: " + date +
               "\r\nX-Object: " + identity_text(path) +
               "\r\nX-Version: " + std::to_string(version) + "\r\n" + framing_fields;
    }
};

judge_origin::judge_origin(ledger& into) : ledger_{into} {
    origin_.otherwise_at_head([this](origin_request& request, origin_connection& connection) {
        serve(request, connection);
    });
}

void judge_origin::behave(const std::string& path, const behaviour& how) {
    const std::lock_guard lock{guard_};
    behaviours_[path] = how;
}

behaviour judge_origin::behaviour_of(const std::string& path) const {
    const std::lock_guard lock{guard_};
    const auto found = behaviours_.find(path);
    return found == behaviours_.end() ? behaviour{} : found->second;
}

std::string judge_origin::last_field(const std::string& path, std::string_view name) const {
    const std::lock_guard lock{guard_};
    const auto found = last_fields_.find(path);
    return found == last_fields_.end() ? std::string{} : found->second.get(name);
}

void judge_origin::serve(origin_request& request, origin_connection& connection) {
    answering now{request, connection, ledger_, request.target};
    try {
        now.what = object::of(now.path);
    } catch (const std::runtime_error&) {
        connection.read_body(request);
        connection.send(answer("404 Not Found", "", "no object of ours\n"));
        return;
    }
    now.how = behaviour_of(now.path);
    now.conditional = request.has("If-None-Match") || request.has("If-Modified-Since");
    now.version = ledger_.current(now.path);
    if (const auto flavour = request.get("X-Flavour"); now.what.varies && !flavour.empty()) {
        now.flavour = flavour.front();
    }
    const auto date = wall_seconds() + now.how.date.count();
    now.date = http_date_of(date);
    {
        const std::lock_guard lock{guard_};
        last_fields_[now.path] = request.fields;
    }
    const bool on_purpose = now.how.cut_at != never || !now.how.surplus.empty();
    now.number = ledger_.begin(now.path,
                               {.begun = steady::now(),
                                .method = request.method,
                                .version = now.version,
                                .date = date,
                                .conditional = now.conditional,
                                .misbehaved = on_purpose});
    if (request.method == "GET" || request.method == "HEAD") {
        connection.read_body(request);
        answer_object(now);
    } else {
        take_upload(now);
    }
    ledger_.end(now.path, now.number, now.misbehaved);
}

void judge_origin::take_upload(answering& now) {
    unsigned number = 0;
    const auto told = now.request.get("X-Upload");
    std::from_chars(told.data(), told.data() + told.size(), number);
    if (now.how.status != 0) {
        now.connection.read_body(now.request);
        return answer_status(now, now.how.status);
    }
    const std::string empty = "Content-Length: 0\r\n\r\n";
    if (now.how.answers_early) {
        now.version = ledger_.change(now.path);
        now.connection.send(now.head(201, empty));
    }
    now.connection.read_body(now.request);
    const auto read = steady::now();
    const body_id sent{identity_of(now.path), number, 'u'};
    ledger_.uploaded(number,
                     {now.request.body.size(),
                      now.request.body_complete,
                      first_wrong(now.request.body, sent, 0) == std::string::npos});
    if (!now.request.body_complete) {
        now.connection.close();
        return;
    }
    if (!now.how.answers_early) {
        now.version = ledger_.change(now.path);
        now.connection.send(now.head(201, empty));
        now.misbehaved = steady::now() - read > milliseconds{500};  // the judge was late itself
    }
}

void judge_origin::answer_status(answering& now, int status) {
    const std::string text = "as told: " + std::to_string(status) + "\n";
    const auto head = now.head(status,
                               "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n");
    now.connection.send(head + (now.request.method == "HEAD" ? "" : text));
}

void judge_origin::answer_object(answering& now) {
    const auto& request = now.request;
    auto& connection = now.connection;
    const auto wait = now.how.head_after +
                      (now.conditional ? now.how.validation_after : milliseconds{0});
    (void)eventually([&] { return !connection.goes_on(); }, wait);
    while (now.how.head_at && connection.goes_on() && !now.how.head_at->wait(milliseconds{100})) {
    }
    if (now.how.no_answer) {
        return connection.reset();
    }
    const bool ranged = request.has("Range") && !now.how.ignores_ranges;
    const int instead = now.how.status != 0                         ? now.how.status
                        : now.conditional && now.how.to_validations ? now.how.to_validations
                        : ranged && now.how.to_ranges               ? now.how.to_ranges
                                                                    : 0;
    if (instead != 0) {
        return answer_status(now, instead);
    }
    const auto& what = now.what;
    const auto etag = what.etag(now.version);
    std::string fields = etag.empty() ? "" : "ETag: " + etag + "\r\n";
    if (what.validated != validator::none) {
        fields += "Last-Modified: " + last_modified_of(now.version) + "\r\n";
    }
    fields += what.lifetime < 0 ? "Cache-Control: no-store"
                                : "Cache-Control: max-age=" + std::to_string(what.lifetime);
    fields += what.while_revalidate > 0
                  ? ", stale-while-revalidate=" + std::to_string(what.while_revalidate)
                  : "";
    fields += what.if_error > 0 ? ", stale-if-error=" + std::to_string(what.if_error) : "";
    fields += "\r\n";
    if (what.varies) {
        fields += "Vary: X-Flavour\r\nX-Flavour: " + std::string{now.flavour} + "\r\n";
    }
    if (what.cookie) {
        fields += "Set-Cookie: n=" + std::to_string(++cookies_) + "\r\n";
    }
    if (!etag.empty() && request.get("If-None-Match").find(etag) != std::string::npos) {
        connection.send(now.head(304, fields + "\r\n"));
        return;
    }
    byte_span span{0, what.size};
    int status = 200;
    if (request.has("Range") && what.ranges && !now.how.ignores_ranges &&
        (!request.has("If-Range") || request.get("If-Range") == etag)) {
        const auto asked = span_of(request.get("Range"), what.size);
        if (!asked) {
            connection.send(now.head(416,
                                     "Content-Range: bytes */" + std::to_string(what.size) +
                                         "\r\nContent-Length: 0\r\n\r\n"));
            return;
        }
        span = *asked;
        if (now.how.other_range) {
            span = {span.first + 1, std::max<std::uint64_t>(span.count, 2) - 1};
        }
        status = 206;
        fields += content_range(span, what.size);
    }
    fields += what.ranges ? "Accept-Ranges: bytes\r\n" : "";
    const bool by_length = status == 206 || what.framed == framing::length;
    fields += by_length                         ? "Content-Length: " + std::to_string(span.count)
              : what.framed == framing::chunked ? "Transfer-Encoding: chunked"
                                                : "Connection: close";
    connection.send(now.head(status, fields + "\r\n\r\n"));
    if (request.method == "HEAD" || !send_body(now, span.first, span.count)) {
        return;
    }
    if (!by_length && what.framed == framing::chunked) {
        connection.send(chunk(""));
    }
    if (!now.how.surplus.empty()) {
        std::this_thread::sleep_for(now.how.surplus_after);
        connection.send(now.how.surplus);
    }
    if (!by_length && what.framed == framing::until_close) {
        connection.close();
    }
}

// False: it went no further, and the connection is over.
bool judge_origin::send_body(answering& now, std::uint64_t from, std::uint64_t count) {
    auto& connection = now.connection;
    const bool chunked = now.status == 200 && now.what.framed == framing::chunked;
    const auto begun = steady::now();
    const std::uint64_t most = now.how.pace == 0 ? 64 << 10 : now.how.pace / 20 + 1;
    for (std::uint64_t done = 0; done < count;) {
        auto take = std::min<std::uint64_t>(count - done, most);
        if (done < now.how.cut_at) {
            take = std::min(take, now.how.cut_at - done);
        } else {
            now.how.cut_by_fin ? connection.close() : connection.reset();
            return false;
        }
        if (done >= now.how.stall_at) {
            while (now.how.stalled_until && connection.goes_on() &&
                   !now.how.stalled_until->wait(milliseconds{100})) {
            }
            now.how.stall_at = never;
        } else {
            take = std::min(take, now.how.stall_at - done);
        }
        const auto piece = body_piece(now.body(), from + done, static_cast<std::size_t>(take));
        // A proxy may hold an origin back for as long as its slowest reader takes.
        bool sent = false;
        const auto whole = chunked ? chunk(piece) : piece;
        std::string_view left = whole;
        while (!left.empty() && connection.goes_on()) {
            const auto went = connection.send_until_stalled(left, milliseconds{200});
            left.remove_prefix(went);
            if (went == 0 && connection.has_ended()) {
                break;
            }
        }
        sent = left.empty();
        if (!sent) {
            connection.close();
            return false;
        }
        done += take;
        if (now.how.pace != 0) {
            const auto due =
                begun + std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(
                            static_cast<double>(done) / static_cast<double>(now.how.pace)));
            while (steady::now() < due && connection.goes_on()) {
                std::this_thread::sleep_for(
                    std::min<steady::duration>(due - steady::now(), milliseconds{20}));
            }
        }
    }
    return true;
}

}  // namespace reprise::tests::judge
