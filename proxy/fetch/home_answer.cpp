#include "proxy/fetch/home_answer.hpp"

#include "proxy/http/error_page.hpp"
#include "proxy/http/forwarding.hpp"

#include <string>
#include <utility>

namespace reprise::proxy::fetch {

namespace {

// It has no way out, whatever it is asked for.
bool is_homes_own(failure_code code) noexcept {
    return code == failure_code::no_parent || code == failure_code::parent_certificate;
}

// This node may have another parent and trust, or its client's leave to ask.
bool is_no_word_of_the_origin(failure_code code) noexcept {
    return code == failure_code::parent_refused || code == failure_code::only_if_cached_miss ||
           code == failure_code::tls_certificate || code == failure_code::tls_client_certificate;
}

// All connections to one origin are in use, or all that one of its clients may have: another URL's are not.
bool is_of_this_url(failure_code code) noexcept {
    return code == failure_code::origin_connection_limit || code == failure_code::client_share_used;
}

// What the home lacks is its own lack, and none of this node's, which would be held against nobody.
failure told_by_home(failure_code code, std::string_view name) {
    std::string detail{name};
    detail += " says so";
    if (!is_our_own_lack(code)) {
        return {code, std::move(detail)};
    }
    detail.append(": ").append(facts_of(code).name);
    return {failure_code::parent_refused, std::move(detail)};
}

}  // namespace

home_answer judge_home_answer(const http::response_head& head, std::string_view name) {
    using kind = home_answer::kind;
    const auto status = head.status;
    // An origin may write any name into Proxy-Status; but what the home passes on has a Via, and its own pages none.
    if (!http::is_error_of(status, head.fields, name) || http::has_via(head.fields)) {
        return {};
    }
    const auto told = http::error_told_by(status, head.fields, name);
    const auto as = [&](kind what) {
        return home_answer{
            what,
            told ? told_by_home(*told, name)
                 : failure{failure_code::parent_refused,
                           std::string{name} + " answered with " + std::to_string(status)}};
    };
    if (told && is_homes_own(*told)) {
        return as(kind::unfit);
    }
    if (told && (is_no_word_of_the_origin(*told) || is_of_this_url(*told))) {
        return as(kind::declined);
    }
    if (status == 502 || status == 504) {
        // Of a release that has other names for what failed: it may be the home's own.
        return as(told ? kind::origin_failed : kind::declined);
    }
    return as(status == 407 || status == 503 || status == 508 ? kind::unfit : kind::declined);
}

}  // namespace reprise::proxy::fetch
