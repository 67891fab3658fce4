#pragma once
// Orders for tests, made of a request's text.

#include "proxy/fetch/order.hpp"
#include "proxy/http/forwarding.hpp"
#include "proxy/thread/settings.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace reprise::proxy::fetch::test {

/// What a GET or HEAD of a forward listener's client orders; `fields` end in CRLF.
inline std::shared_ptr<fetch_order> order_for(const std::string& line,
                                              const std::string& fields = "",
                                              thread::settings_ptr now = nullptr) {
    const auto text = line + " HTTP/1.1\r\nHost: a.example\r\n" + fields + "\r\n";
    http::request_head head;
    REQUIRE(http::parse_request_head(text, head, {}).state == http::head_state::done);
    auto out = std::make_shared<fetch_order>();
    out->request = copy_request(head, text);
    const auto& copy = out->request->head;
    out->destination = *http::parse_target(copy.method, copy.target, http::forward_forms);
    out->connect_host = "a.example";
    out->now_settings = now ? std::move(now) : thread::make_settings({});
    out->is_get = line.starts_with("GET ");
    out->may_store = out->is_get;
    out->url = std::string{copy.target};
    out->into = std::make_shared<cache::fetch>(out->now_settings->fetches);
    return out;
}

}  // namespace reprise::proxy::fetch::test
