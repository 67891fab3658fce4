#include "tests/judge/verdict.hpp"

#include <algorithm>

namespace reprise::tests::judge {

/// One answer before the court.
struct court::hearing {
    const wish& asked;
    const answer_seen& got;
    const allowance& beyond;
    program_end::way ended;
    object what;
    bool troubled = false;
    unsigned version = 0;
    byte_span span{};  ///< of the object, that the body should be

    [[nodiscard]] std::string words(const std::string& more) const {
        return asked.method + " " + asked.path + (asked.http10 ? " by 1.0" : "") +
               (asked.tls ? " over TLS" : "") +
               (asked.range.empty() ? "" : " Range: " + asked.range) +
               (asked.reload ? " no-cache" : "") +
               (asked.pace == 0 ? "" : " at " + std::to_string(asked.pace) + " B/s") + ": " + more +
               " [" + got.start_line + "; " + got.cache_status() + "; " +
               std::string{to_string(got.end)} + " after " + std::to_string(got.body.size()) +
               " bytes, " +
               std::to_string(
                   std::chrono::duration_cast<milliseconds>(got.ended - got.begun).count()) +
               " ms]";
    }
};

bool court::judge_get(const wish& asked,
                      const answer_seen& got,
                      const allowance& beyond,
                      program_end::way ended) const {
    hearing of{asked, got, beyond, ended, object::of(asked.path)};
    of.troubled = ledger_.troubled(asked.path, got.begun, got.ended);
    if (!judge_arrival(of)) {
        return false;
    }
    if (got.status == 0 || got.status / 100 == 1) {
        return true;  // excused: nothing came
    }
    if (!judge_status(of)) {
        return false;
    }
    if (!got.fields.has("X-Object") || (got.status != 200 && got.status != 206)) {
        findings_.judged("status " + std::to_string(got.status));
        return true;
    }
    if (const auto cookie = got.fields.get("Set-Cookie");
        !cookie.empty() && !cookies_.give(cookie)) {
        findings_.wrong(where_, kind::cookie, of.words(cookie + " is another client's"));
        return false;
    }
    if (!judge_body(of) || !judge_end(of) || !judge_age(of)) {
        return false;
    }
    findings_.judged(std::string{got.is_from_store() ? "hit"
                                 : got.is_joined()   ? "joined"
                                                     : "fetched"} +
                     (got.status == 206 ? ", a range" : "") + (asked.http10 ? ", 1.0" : "") +
                     (asked.tls ? ", TLS" : "") +
                     (got.end == answer_end::whole ? "" : ", cut visibly or left"));
    return true;
}

// Did a head come, in time?
bool court::judge_arrival(hearing& of) const {
    const auto& got = of.got;
    const bool gone = of.ended != program_end::way::none;
    if (got.end == answer_end::malformed) {
        findings_.wrong(where_, kind::no_head, of.words(got.trouble));
        return false;
    }
    if (got.end == answer_end::starved) {
        if (of.troubled || gone || of.beyond.no_answer) {
            findings_.excused("nothing came, from an origin in trouble");
            return true;
        }
        findings_.wrong(where_, kind::starved, of.words("nothing more for a generous while"));
        return false;
    }
    if (got.status != 0 || got.end == answer_end::left) {
        return true;
    }
    if (of.troubled || gone || of.beyond.no_answer) {
        findings_.excused("no head, from an origin in trouble or at the program's end");
        return true;
    }
    findings_.wrong(where_, kind::cut, of.words("not even a head came; " + got.trouble));
    return false;
}

bool court::judge_status(hearing& of) const {
    const auto& [asked, got, beyond, ended, what, troubled, version, span] = of;
    (void)troubled;
    (void)version;
    (void)span;
    const int status = got.status;
    const bool is_ours = got.fields.has("X-Object");
    if (std::find(beyond.statuses.begin(), beyond.statuses.end(), status) !=
        beyond.statuses.end()) {
        return true;
    }
    if (is_ours && (status == 200 || (status == 206 && !asked.range.empty()) ||
                    (status == 304 && !asked.if_none_match.empty()) ||
                    (status == 416 && !asked.range.empty() && !span_of(asked.range, what.size)))) {
        return true;
    }
    if (!is_ours && (status == 304 || status == 416) &&
        (!asked.if_none_match.empty() || !asked.range.empty())) {
        return true;  // made from what is stored
    }
    if (is_ours && ledger_.refused(asked.path, status, got.begun, got.ended)) {
        return true;  // passed on
    }
    const bool failing = ledger_.failing(asked.path, got.begun, got.ended);
    if ((failing && !is_ours) || ended != program_end::way::none) {
        findings_.excused("an error, from an origin in trouble or at the program's end");
        return true;
    }
    findings_.wrong(where_, kind::failed, of.words(got.body.substr(0, 120)));
    return false;
}

// Head and bytes: of this object, of one version, at their place.
bool court::judge_body(hearing& of) const {
    const auto& got = of.got;
    const auto wrong_head = [&](const std::string& why) {
        findings_.wrong(where_, kind::wrong_head, of.words(why));
        return false;
    };
    if (got.fields.get("X-Object") != identity_text(of.asked.path)) {
        return wrong_head("the head is another object's");
    }
    const auto version = number_in(got.fields.get("X-Version"));
    if (!version || *version > ledger_.current(of.asked.path)) {
        return wrong_head("no version of the origin's: " + got.fields.get("X-Version"));
    }
    of.version = static_cast<unsigned>(*version);
    if (got.fields.get("ETag") != of.what.etag(of.version)) {
        return wrong_head("the ETag is not that of version " + std::to_string(of.version) + ": " +
                          got.fields.get("ETag"));
    }
    if (of.what.varies && got.fields.get("X-Flavour") != std::string{of.asked.flavour}) {
        return wrong_head("another variant: " + got.fields.get("X-Flavour"));
    }
    of.span = {0, of.what.size};
    if (got.status == 206) {
        const auto told = content_span(got.fields.get("Content-Range"), of.what.size);
        const auto asked = span_of(of.asked.range, of.what.size);
        if (!told || !asked ||
            (!of.troubled && (told->first != asked->first || told->count != asked->count))) {
            return wrong_head("Content-Range: " + got.fields.get("Content-Range"));
        }
        of.span = *told;
    }
    if (const auto length = got.fields.get("Content-Length");
        !length.empty() && number_in(length) != of.span.count) {
        return wrong_head("Content-Length: " + length);
    }
    if (of.asked.method == "HEAD") {
        return true;
    }
    const body_id id{
        identity_of(of.asked.path), of.version, of.what.varies ? of.asked.flavour : 'a'};
    const auto at = first_wrong(got.body, id, of.span.first);
    if (at == std::string::npos && got.body.size() <= of.span.count) {
        return true;
    }
    const auto place = std::min<std::size_t>(at, of.span.count);
    findings_.wrong(where_,
                    kind::wrong_bytes,
                    of.words("from byte " + std::to_string(place) + " of the body on, version " +
                             std::to_string(of.version) + ": " + excerpt(got.body, place)));
    return false;
}

// Whole, or visibly not.
bool court::judge_end(hearing& of) const {
    const auto& got = of.got;
    if (of.asked.method == "HEAD" || got.end == answer_end::left) {
        return true;
    }
    const bool all = got.body.size() == of.span.count;
    if (got.end == answer_end::whole) {
        if (all) {
            return true;
        }
        if (of.ended == program_end::way::killed ||
            (of.troubled && of.what.framed == framing::until_close)) {
            findings_.excused("an end that nobody could make visible");
            return true;
        }
        findings_.wrong(where_,
                        kind::looks_whole,
                        of.words(std::to_string(got.body.size()) + " of " +
                                 std::to_string(of.span.count) + " bytes"));
        return false;
    }
    const bool changed = ledger_.changed_between(of.asked.path, got.begun, got.ended);
    if (of.troubled || changed || of.beyond.cut || of.ended != program_end::way::none ||
        got.own_pause > client_body_ / 3 || of.asked.stall >= client_body_) {
        findings_.excused("a visible cut with a reason");
        return true;
    }
    findings_.wrong(where_, kind::cut, of.words("of " + std::to_string(of.span.count) + " bytes"));
    return false;
}

// Of a version that may still be shown.
bool court::judge_age(hearing& of) const {
    const auto& got = of.got;
    const auto& path = of.asked.path;
    if (const auto floor = ledger_.broken_floor(path, of.version, got.begun, got.is_joined())) {
        findings_.wrong(
            where_,
            kind::older,
            of.words(
                "version " + std::to_string(of.version) + " though " +
                std::to_string(floor->version) + " " + floor->why + ", " +
                std::to_string(
                    std::chrono::duration_cast<milliseconds>(got.begun - floor->since).count()) +
                " ms ago"));
        return false;
    }
    const auto gone = ledger_.superseded(path, of.version);
    if (!gone || of.beyond.old || ledger_.failing(path, got.begun, got.ended)) {
        return true;
    }
    if (of.asked.reload && *gone < got.begun) {
        findings_.wrong(where_,
                        kind::stale,
                        of.words("a reload got version " + std::to_string(of.version) +
                                 ", which was no longer current"));
        return false;
    }
    if (ledger_.is_running(path, of.version, got.begun)) {
        return true;  // it may have joined that fetch
    }
    // Ages are whole seconds, rounded by either side.
    const auto most = seconds{std::max(of.what.lifetime, 0) + of.what.while_revalidate + 3};
    if (*gone + most < got.begun) {
        findings_.wrong(
            where_,
            kind::stale,
            of.words(
                "version " + std::to_string(of.version) + ", gone for " +
                std::to_string(std::chrono::duration_cast<seconds>(got.begun - *gone).count()) +
                " s"));
        return false;
    }
    return true;
}

bool court::judge_unsafe(const wish& asked,
                         const answer_seen& got,
                         const allowance& beyond,
                         program_end::way ended) const {
    hearing of{asked, got, beyond, ended, object::of(asked.path)};
    of.troubled = ledger_.troubled(asked.path, got.begun, got.ended);
    if (!judge_arrival(of)) {
        return false;
    }
    const bool excused = of.troubled || ended != program_end::way::none || beyond.no_answer ||
                         got.own_pause > client_body_ / 3 ||
                         std::find(beyond.statuses.begin(), beyond.statuses.end(), got.status) !=
                             beyond.statuses.end();
    if (got.status / 100 != 2) {
        if (excused) {
            findings_.excused("an upload to an origin in trouble, or at the program's end");
            return true;
        }
        findings_.wrong(where_, kind::upload_failed, of.words(got.body.substr(0, 120)));
        return false;
    }
    if (asked.upload == 0) {
        findings_.judged("unsafe, no body");
        return true;
    }
    // The origin may be a moment behind an early answer.
    auto there = ledger_.upload(asked.upload_number);
    (void)eventually([&] {
        there = ledger_.upload(asked.upload_number);
        return there.whole || there.received != 0 || !there.right;
    });
    if (!there.right) {
        findings_.wrong(where_, kind::wrong_bytes, of.words("of an upload, at the origin"));
        return false;
    }
    if ((!there.whole || there.received != asked.upload) && !excused) {
        findings_.wrong(where_,
                        kind::upload_lost,
                        of.words(std::to_string(there.received) + " of " +
                                 std::to_string(asked.upload) + " bytes reached the origin"));
        return false;
    }
    findings_.judged("upload");
    return true;
}

}  // namespace reprise::tests::judge
