#include "proxy/cache/stored_response.hpp"

#include "proxy/http/message_head.hpp"

#include <limits>

namespace reprise::proxy::cache {

namespace {
constexpr std::string_view length_name = "\r\nContent-Length: ";
}

void index_head(stored_response& response) noexcept {
    const auto first_line = response.head.find("\r\n");
    response.status_line_size = first_line == std::string::npos ? 0 : first_line + 2;
    // We wrote Content-Length last and in this spelling, so the last occurrence is ours.
    const auto at = response.head.rfind(length_name);
    response.length_at = at == std::string::npos ? response.head.size() : at + 2;
}

std::shared_ptr<stored_response> stored_response::with_head(std::string new_head) const {
    auto next = std::make_shared<stored_response>();
    next->head = std::move(new_head);
    next->status = status;
    next->freshness = freshness;
    next->directives = directives;
    next->vary = vary;
    next->selecting = selecting;
    next->content = content;
    next->cookies = cookies;
    next->authorized = authorized;
    index_head(*next);
    return next;
}

std::vector<http::field> stored_response::fields() const {
    // The stored head was written by us from a parsed one, so lines are "name: value\r\n" and nothing else.
    std::vector<http::field> lines;
    std::string_view rest{head};
    rest.remove_prefix(status_line_size);
    while (!rest.empty()) {
        const auto end = rest.find("\r\n");
        const auto line = rest.substr(0, end);
        const auto colon = line.find(':');
        if (colon != std::string_view::npos) {
            auto value = line.substr(colon + 1);
            while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) {
                value.remove_prefix(1);
            }
            const auto name = line.substr(0, colon);
            lines.push_back(
                {boost::beast::http::string_to_field({name.data(), name.size()}), name, value});
        }
        if (end == std::string_view::npos) {
            break;
        }
        rest.remove_prefix(end + 2);
    }
    return lines;
}

std::size_t stored_response::footprint() const noexcept {
    // 32: the shared_ptr's control block and the allocator's own header, rounded up.
    return sizeof(stored_response) + 32 + head.capacity() + selecting.capacity() +
           (content ? content->footprint() : 0);
}

}  // namespace reprise::proxy::cache
