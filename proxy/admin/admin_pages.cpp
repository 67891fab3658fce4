#include "proxy/admin/admin_pages.hpp"

#include "proxy/admin/dashboard.hpp"
#include "proxy/admin/summary.hpp"
#include "proxy/base/recent_lines.hpp"
#include "proxy/base/text.hpp"
#include "proxy/http/query.hpp"

#include <boost/beast/http/verb.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace reprise::proxy::admin {

namespace {

using boost::beast::http::verb;

admin_response json_page(const nlohmann::ordered_json& what) {
    constexpr auto replace =
        nlohmann::ordered_json::error_handler_t::replace;  // of what is no UTF-8
    return {.content_type = "application/json", .body = what.dump(2, ' ', false, replace) + "\n"};
}

admin_response index_page(const std::vector<admin_route>& routes) {
    std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                       "<title>Reprise: pages</title>"
                       "<link rel=\"stylesheet\" href=\"/dashboard.css\"></head>\n"
                       "<body><main><h1>Pages</h1>\n<ul>\n";
    for (const auto& route : routes) {
        if (route.about.empty()) {
            continue;
        }
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
    page.append("</ul></main></body></html>\n");
    return {.content_type = "text/html; charset=utf-8", .body = std::move(page)};
}

admin_response readiness_page(readiness now) {
    return {.status = now == readiness::ready ? 200u : 503u,
            .body = std::string{to_string(now)} + "\n"};
}

// Other parameters are ignored: a browser or a probe may add some.
admin_response stats_page(const stats_inputs& inputs, std::string_view query) {
    const auto parameters = http::parse_query(query);
    const bool of_fleet = parameters &&
                          std::count(parameters->begin(),
                                     parameters->end(),
                                     http::query_parameter{.name = "fleet", .value = "1"}) != 0;
    return json_page(of_fleet ? fleet_json(inputs) : stats_json(inputs));
}

admin_response log_page(const recent_lines& kept) {
    auto lines = nlohmann::ordered_json::array();
    const auto all = kept.all();
    for (auto line = all.rbegin(); line != all.rend(); ++line) {
        lines.push_back({{"time", utc(line->at)},
                         {"level", line->level == config::log_level::error ? "error" : "warning"},
                         {"text", line->text}});
    }
    return json_page({{"lines", std::move(lines)}});
}

admin_response html_page(std::string text) {
    return {.content_type = "text/html; charset=utf-8", .body = std::move(text)};
}

admin_response reload_page(const reload_outcome& how) {
    const bool is_taken = how.mistakes.empty();
    std::string text = is_taken ? "reloaded\n" : "nothing was changed:\n";
    for (const auto& line : is_taken ? how.remarks : how.mistakes) {
        text.append(line).append("\n");
    }
    return {.status = is_taken ? 200u : 422u, .body = std::move(text)};
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
    answers.add_route({.method = verb::get,
                       .path = "/",
                       .needs_token = false,
                       .about = "the dashboard: is it well, and what does it save?",
                       .handler =
                           [&hooks](const admin_request&) {
                               const auto inputs = hooks.stats();
                               return html_page(dashboard_page(&inputs));
                           },
                       .meanwhile = [] { return html_page(dashboard_page(nullptr)); }});
    for (const auto& asset : dashboard_assets()) {
        answers.add_route({.method = verb::get,
                           .path = std::string{asset.path},
                           .needs_token = false,
                           .about = "",
                           .handler =
                               [&asset](const admin_request&) {
                                   return admin_response{
                                       .content_type = std::string{asset.content_type},
                                       .body = std::string{asset.text}};
                               },
                           .at_once = true});
    }
    page_at_once("/pages", "this list", [&answers] { return index_page(answers.routes()); });
    page_at_once(
        "/healthz", "200 while the process lives", [] { return admin_response{.body = "ok\n"}; });
    page_at_once("/readyz", "200 while it takes requests, 503 while it starts or drains", [&hooks] {
        return readiness_page(hooks.ready());
    });
    answers.add_route({.method = verb::get,
                       .path = "/stats",
                       .needs_token = false,
                       .about = "every figure, as JSON; ?fleet=1: those of all nodes of the fleet",
                       .handler = [&hooks](const admin_request& asked) {
                           return stats_page(hooks.stats(), asked.query);
                       }});
    page("/history", "the course of the last hour and day, as JSON", [&hooks] {
        return admin_response{.content_type = "application/json",
                              .body = (hooks.history ? hooks.history() : "{}") + "\n"};
    });
    answers.add_route({.method = verb::get,
                       .path = "/log",
                       .needs_token = false,
                       .about = "the last warnings and errors, as JSON",
                       .handler = [](const admin_request&) { return log_page(log::recent()); },
                       .token_from_afar = true});
    page("/metrics", "the same for Prometheus", [&hooks] {
        return admin_response{.content_type = std::string{metrics_content_type},
                              .body = metrics_text(hooks.stats())};
    });
    answers.add_route(
        {.method = verb::post,
         .path = "/reload",
         .needs_token = true,
         .about = "reads the settings again, like SIGHUP",
         .handler = [&hooks](const admin_request&) { return reload_page(hooks.reload()); },
         .most = most_for_reload});
}

}  // namespace reprise::proxy::admin
