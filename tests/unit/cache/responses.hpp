#pragma once
// Stored responses for tests, made from a few words.

#include "proxy/cache/stored_response.hpp"
#include "proxy/http/fields.hpp"
#include "proxy/http/vary.hpp"
#include "tests/unit/filter/keys.hpp"

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::test {

/// The same URL, the same key. Stands for XXH3, whose quality nothing here depends on.
inline filter::key_hash key_of(std::string_view url) {
    return filter::test::nth_key(1, std::hash<std::string_view>{}(url));
}

/// `bytes` in one block that they fill.
inline body_ptr body_of(std::string_view bytes) {
    auto content = std::make_shared<body>();
    auto memory = block::make(bytes.size());
    std::memcpy(memory->data(), bytes.data(), bytes.size());
    content->slices.push_back(slice{std::move(memory), 0, bytes.size()});
    content->size = bytes.size();
    return content;
}

inline std::string bytes_of(const body& content) {
    std::string all;
    for (const auto& part : content.slices) {
        all.append(part.view());
    }
    return all;
}

struct recipe {
    std::string_view content = "content";
    std::string_view vary = {};         ///< the response's Vary, if not empty
    http::field_list request = {};      ///< the request that brought it
    std::chrono::seconds arrived{100};  ///< its response_time
};

/// A draft that becomes a stored response wherever one is wanted, a new one each time.
class drafted : public response_draft {
public:
    drafted() = default;
    drafted(response_draft from) : response_draft{std::move(from)} {}
    response_draft* operator->() noexcept { return this; }
    const response_draft* operator->() const noexcept { return this; }
    operator stored_ptr() const { return stored_response::make(*this); }
    /// As it is now; lives as long as this.
    const stored_response& operator*() const {
        return *made_.emplace_back(stored_response::make(*this));
    }

private:
    mutable std::vector<stored_ptr> made_;
};

inline drafted response(const recipe& wanted) {
    drafted made;
    made->status = 200;
    made->head = "HTTP/1.1 200 OK\r\nVia: 1.1 test\r\nContent-Length: " +
                 std::to_string(wanted.content.size()) + "\r\n";
    index_head(made);
    if (!wanted.vary.empty()) {
        const http::field line{http::field_id::vary, "Vary", wanted.vary};
        made->vary = http::read_vary({&line, 1});
        made->selecting = http::selecting_values(made->vary, wanted.request);
    }
    made->freshness.response_time = wall_time{wanted.arrived};
    made->content = body_of(wanted.content);
    return made;
}

}  // namespace reprise::proxy::cache::test
