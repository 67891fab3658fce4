#pragma once
// Both ends of a fetch for tests: heads to publish, and readers that remember what they were told.

#include "proxy/cache/fetch.hpp"
#include "tests/unit/filter/keys.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reprise::proxy::cache::test {

using event = fetch_reader::event;

inline std::shared_ptr<fetched_head> head_of(std::optional<std::uint64_t> length = {}) {
    auto head = std::make_shared<fetched_head>();
    head->status = 200;
    head->head = "HTTP/1.1 200 OK\r\n";
    head->has_body = true;
    head->length = length;
    return head;
}

/// The same with a strong ETag: its readers can go on by requests of their own.
inline std::shared_ptr<fetched_head> resumable_head_of(std::optional<std::uint64_t> length = {}) {
    auto head = head_of(length);
    head->strong_etag = "\"v1\"";
    return head;
}

/// A body in which no two places look alike, so that lost, doubled and swapped bytes show.
inline std::string pattern(std::size_t bytes, std::size_t from = 0) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) {
        const auto at = from + i;
        text[i] = static_cast<char>(filter::test::mix(at / 8) >> (at % 8 * 8));
    }
    return text;
}

/// A reader and all that it has heard.
struct client {
    explicit client(const std::shared_ptr<fetch>& source, net::wakeup::signal sleeper = {})
        : reader{fetch::join(source, std::move(sleeper), head_known)} {}

    /// One step; what it brought.
    event step(std::size_t most = std::numeric_limits<std::size_t>::max()) {
        reader->next(report, most);
        switch (report.what) {
        case event::interim: interim.push_back(report.interim); break;
        case event::data:
            for (const auto& part : report.slices) {
                bytes.append(part.view());
            }
            break;
        case event::end: trailers = report.trailers; break;
        case event::nothing:
        case event::head:
        case event::failed:
        case event::fell_out:
        case event::validated:
        case event::upgraded: break;
        }
        return report.what;
    }

    /// Takes all there is; why there is no more.
    event drain(std::size_t most = std::numeric_limits<std::size_t>::max()) {
        for (;;) {
            const auto what = step(most);
            if (what != event::interim && what != event::head && what != event::data) {
                return what;
            }
        }
    }

    void leave() { reader.reset(); }

    bool head_known = false;
    std::unique_ptr<fetch_reader> reader;
    fetch_reader::report report;
    std::vector<std::string> interim;
    std::string bytes;
    std::string trailers;
};

}  // namespace reprise::proxy::cache::test
