#include "proxy/admin/live_view.hpp"

#include "proxy/http/query.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

namespace reprise::proxy::admin {

namespace {

// So many looks bring nothing, then a comment says that we live: whoever has left is known by that.
constexpr unsigned looks_between_signs = 8;

class live_stream final : public admin_stream {
public:
    explicit live_stream(std::unique_ptr<live_feed::view> of) : of_{std::move(of)} {}

    std::string next() override {
        auto got = of_->take();
        std::string out;
        for (const auto& line : got.lines) {
            out.append("data: ").append(line).append("\n");  // which ends its line
        }
        if (got.left_out != 0) {
            out.append("event: left_out\ndata: ")
                .append(std::to_string(got.left_out))
                .append("\n\n");
        }
        quiet_ = out.empty() ? quiet_ + 1 : 0;
        if (quiet_ == looks_between_signs) {
            quiet_ = 0;
            out = ":\n\n";
        }
        return out;
    }

private:
    std::unique_ptr<live_feed::view> of_;
    unsigned quiet_ = looks_between_signs - 1;  // the first look is answered
};

std::optional<outcome> outcome_of(std::string_view word) {
    for (std::size_t i = 0; i < outcome_count; ++i) {
        if (to_string(static_cast<outcome>(i)) == word) {
            return static_cast<outcome>(i);
        }
    }
    return std::nullopt;
}

std::variant<live_feed::wanted, std::string> read(std::string_view query) {
    const auto parameters = http::parse_query(query);
    if (!parameters) {
        return "the query cannot be read";
    }
    if (const auto twice = http::named_twice(*parameters, {"host", "outcome"}); !twice.empty()) {
        return std::string{twice} + " is there twice; one at a time can be watched";
    }
    live_feed::wanted out;
    for (const auto& one : *parameters) {
        if (one.name == "host") {
            out.host = one.value;
            std::transform(out.host.begin(), out.host.end(), out.host.begin(), [](char c) {
                return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
            });
        } else if (one.name == "outcome" && one.value.empty()) {
            out.how.reset();
        } else if (one.name == "outcome") {
            out.how = outcome_of(one.value);
            if (!out.how) {
                return "no such outcome: " + one.value + "; /stats has them under requests";
            }
        } else {
            return "not understood: " + one.name + "; this takes host and outcome";
        }
    }
    return out;
}

}  // namespace

admin_response live_view(live_feed& feed, std::string_view query) {
    auto wanted = read(query);
    if (const auto* wrong = std::get_if<std::string>(&wanted)) {
        return {.status = 400, .body = *wrong + "\n"};
    }
    auto view = feed.watch(std::move(std::get<live_feed::wanted>(wanted)));
    if (!view) {
        return {.status = 503,
                .body = "as many watch already as may: " + std::to_string(live_feed::most_viewers) +
                        "\n"};
    }
    admin_response out;
    out.content_type = "text/event-stream";
    out.stream = std::make_shared<live_stream>(std::move(view));
    return out;
}

}  // namespace reprise::proxy::admin
