#include "proxy/admin/admin_answers.hpp"

#include "proxy/admin/log_thrown.hpp"
#include "proxy/base/clock.hpp"
#include "proxy/http/date.hpp"

#include <boost/beast/http/field.hpp>
#include <boost/beast/http/verb.hpp>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

// judge() goes from the outside in: the target, fields that are there twice, what only a network
// can bring, the route, the token. The first refusal is the answer, and gets the same fields as
// every page (dressed).

namespace reprise::proxy::admin {

namespace {

namespace beast_http = boost::beast::http;

// What the dashboard needs, and nothing else: files of ours, and no text that becomes a script.
constexpr auto content_security_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for "
    "'script'";

std::string_view view(boost::beast::string_view text) noexcept {
    return {text.data(), text.size()};
}

std::array<char, 29> http_date() noexcept {
    return http::format_date(wall_now());
}

// The target's authority, empty in origin-form; path and query in `rest`.
struct split_target {
    std::string_view authority, path, query;
    bool valid = false;
};

split_target split(std::string_view target) {
    split_target parts;
    constexpr std::string_view scheme = "http://";
    if (target.starts_with(scheme)) {
        target.remove_prefix(scheme.size());
        const auto end = std::min(target.find_first_of("/?"), target.size());
        parts.authority = target.substr(0, end);
        target = target.substr(end);
        if (parts.authority.empty()) {
            return parts;
        }
    } else if (!target.starts_with('/')) {
        return parts;
    }
    const auto mark = std::min(target.find('?'), target.size());
    parts.path = mark == 0 ? std::string_view{"/"} : target.substr(0, mark);
    parts.query = target.substr(std::min(mark + 1, target.size()));
    parts.valid = true;
    return parts;
}

std::string_view value_of(const admin_http_request& request, beast_http::field name) {
    const auto found = request.find(name);
    return found == request.end() ? std::string_view{} : view(found->value());
}

std::string allowed_methods(const std::vector<admin_route>& routes, std::string_view path) {
    std::string allowed;
    for (const auto& route : routes) {
        if (route.path == path) {
            allowed.append(allowed.empty() ? "" : ", ").append(view(to_string(route.method)));
            allowed.append(route.method == beast_http::verb::get ? ", HEAD" : "");
        }
    }
    return allowed;
}

}  // namespace

void admin_answers::add_route(admin_route route) {
    if (route.needs_token && route.method != beast_http::verb::post) {
        throw std::invalid_argument{"a route that needs a token must be a POST: " + route.path};
    }
    routes_.push_back(std::move(route));
}

admin_http_response admin_answers::dressed(admin_response from) {
    admin_http_response response{beast_http::int_to_status(from.status), 11};
    response.result(from.status);
    response.set(beast_http::field::content_type, from.content_type);
    // Figures are of the moment, and pages here are for the operator's own tab: nothing is cached,
    // guessed at, framed, or lent to another site's page.
    response.set(beast_http::field::cache_control, "no-store");
    const auto date = http_date();
    response.set(beast_http::field::date, boost::beast::string_view{date.data(), date.size()});
    response.set("X-Content-Type-Options", "nosniff");
    response.set("Referrer-Policy", "no-referrer");
    response.set("Content-Security-Policy", content_security_policy);
    response.set("Cross-Origin-Resource-Policy", "same-origin");
    response.body() = std::move(from.body);
    return response;
}

admin_http_response admin_answers::plain(unsigned status, std::string_view text) {
    return dressed({.status = status, .body = std::string{text} + "\n"});
}

// What another site's page could send, or a proxy pass on.
admin_answers::refusal_text admin_answers::why_not_from_network(
    const admin_http_request& request,
    std::string_view authority,
    const boost::asio::ip::tcp::endpoint& local) const {
    // RFC 9112 3.2.2: an absolute target's authority takes the place of Host.
    const auto host = authority.empty() ? value_of(request, beast_http::field::host) : authority;
    if (!gate_.is_own_host(host, local)) {
        return {421,
                "this is Reprise's admin listener, and it does not answer to this Host name; "
                "admin.host_names can add names"};
    }
    // A request through a proxy on this machine (a sibling, or this one where loopback is an
    // allowed destination) would seem "from here", and show its client what it is not to see.
    if (request.count(beast_http::field::via) != 0) {
        return {403,
                "this came through a proxy (it has a Via), and the admin listener answers who "
                "speaks to it directly"};
    }
    if (gate_.is_cross_site(
            value_of(request, beast_http::field::origin), view(request["Sec-Fetch-Site"]), local)) {
        return {403, "another site's page sent this request"};
    }
    return {};
}

admin_answers::judged admin_answers::judge(const admin_http_request& request,
                                           const arrival& how) const {
    const auto refused = [](unsigned status, std::string_view text) {
        judged out;
        out.refusal = plain(status, text);
        return out;
    };
    const auto target = split(view(request.target()));
    if (!target.valid) {
        return refused(400, "the request's target must be a path");
    }
    if (request.count(beast_http::field::host) > 1 ||
        request.count(beast_http::field::origin) > 1 ||
        request.count(beast_http::field::authorization) > 1) {
        return refused(400, "a field that must stand alone is there twice");
    }
    if (!how.by_socket) {
        if (const auto why = why_not_from_network(request, target.authority, how.local);
            why.status != 0) {
            return refused(why.status, why.text);
        }
    }

    const auto wanted = request.method() == beast_http::verb::head ? beast_http::verb::get
                                                                   : request.method();
    const auto route = std::find_if(routes_.begin(), routes_.end(), [&](const admin_route& one) {
        return one.path == target.path && one.method == wanted;
    });
    if (route == routes_.end()) {
        auto allowed = allowed_methods(routes_, target.path);
        if (allowed.empty()) {
            return refused(404, "no such page; /pages lists them all");
        }
        auto out = refused(405, "this page wants another method: " + allowed);
        out.refusal.set(beast_http::field::allow, allowed);
        return out;
    }
    if (!how.by_socket && (route->needs_token || (route->token_from_afar && !how.from_here))) {
        switch (gate_.check_token(value_of(request, beast_http::field::authorization))) {
        case admin_gate::token_verdict::right: break;
        case admin_gate::token_verdict::none_set: return refused(403, gate_.token_problem());
        case admin_gate::token_verdict::wrong: {
            auto out = refused(401, "this wants \"Authorization: Bearer ...\" with the token");
            out.refusal.set(beast_http::field::www_authenticate, "Bearer realm=\"reprise\"");
            return out;
        }
        }
    }
    judged out;
    out.route = &*route;
    out.path = target.path;
    out.query = target.query;
    return out;
}

admin_response admin_answers::call(const admin_route& route, const admin_request& asked) {
    try {
        return route.handler(asked);
    } catch (...) {
        static constinit log::seldom a_page_failed;
        log_thrown(a_page_failed, asked.path, std::current_exception());
    }
    return {.status = 500, .body = "this failed; the log says more\n"};
}

admin_http_response admin_answers::answer(const admin_http_request& request,
                                          const arrival& how) const {
    auto judgement = judge(request, how);
    if (judgement.route == nullptr) {
        return std::move(judgement.refusal);
    }
    const admin_request asked{request.method(), judgement.path, judgement.query, request.body()};
    return dressed(call(*judgement.route, asked));
}

}  // namespace reprise::proxy::admin
