#include "proxy/admin/admin_pages.hpp"

#include "proxy/base/text.hpp"

#include <boost/beast/http/verb.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>

namespace reprise::proxy::admin {

namespace {

using boost::beast::http::verb;

admin_response index_page(const std::vector<admin_route>& routes) {
    std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                       "<title>Reprise</title></head>\n<body><h1>Reprise</h1>\n<ul>\n";
    for (const auto& route : routes) {
        std::string path;
        append_html_escaped(path, route.path);
        page.append("<li>");
        if (route.method == verb::get) {
            page.append("<a href=\"").append(path).append("\">").append(path).append("</a>");
        } else {
            const auto method = to_string(route.method);
            page.append(method.data(), method.size()).append(" ").append(path);
        }
        page.append(": ");
        append_html_escaped(page, route.about);
        page.append(route.needs_token       ? " (wants the token)</li>\n"
                    : route.token_from_afar ? " (wants the token, but on loopback)</li>\n"
                                            : "</li>\n");
    }
    page.append("</ul></body></html>\n");
    return {.content_type = "text/html; charset=utf-8", .body = std::move(page)};
}

admin_response readiness_page(readiness now) {
    return {.status = now == readiness::ready ? 200u : 503u,
            .body = std::string{to_string(now)} + "\n"};
}

admin_response stats_page(const stats_inputs& inputs) {
    constexpr auto replace = nlohmann::json::error_handler_t::replace;  // of what is no UTF-8
    return {.content_type = "application/json",
            .body = stats_json(inputs).dump(2, ' ', false, replace) + "\n"};
}

admin_response reload_page(const std::vector<std::string>& mistakes) {
    if (mistakes.empty()) {
        return {.body = "reloaded\n"};
    }
    std::string text = "nothing was changed:\n";
    for (const auto& mistake : mistakes) {
        text.append(mistake).append("\n");
    }
    return {.status = 422, .body = std::move(text)};
}

}  // namespace

void add_standard_routes(admin_answers& answers, const admin_hooks& hooks) {
    const auto page = [&](const char* path, const char* about, auto handler, bool at_once = false) {
        answers.add_route({.method = verb::get,
                           .path = path,
                           .needs_token = false,
                           .about = about,
                           .handler = [handler](const admin_request&) { return handler(); },
                           .at_once = at_once});
    };
    const auto page_at_once = [&](const char* path, const char* about, auto handler) {
        page(path, about, handler, true);
    };
    page_at_once("/", "this list", [&answers] { return index_page(answers.routes()); });
    page_at_once(
        "/healthz", "200 while the process lives", [] { return admin_response{.body = "ok\n"}; });
    page_at_once("/readyz", "200 while it takes requests, 503 while it starts or drains", [&hooks] {
        return readiness_page(hooks.ready());
    });
    page("/stats", "every figure, as JSON", [&hooks] { return stats_page(hooks.stats()); });
    page("/metrics", "the same for Prometheus", [&hooks] {
        return admin_response{.content_type = std::string{metrics_content_type},
                              .body = metrics_text(hooks.stats())};
    });
    answers.add_route(
        {.method = verb::post,
         .path = "/reload",
         .needs_token = true,
         .about = "reads the settings again, like SIGHUP",
         .handler = [&hooks](const admin_request&) { return reload_page(hooks.reload()); }});
}

}  // namespace reprise::proxy::admin
