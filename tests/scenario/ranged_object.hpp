#pragma once
// An object at the origin whose bytes tell their place, so that a byte in the wrong place shows, and a proxy
// that holds parts of it.

#include "tests/scenario/world.hpp"

#include <initializer_list>
#include <optional>
#include <string>

namespace reprise::tests {

inline const std::string letters = "abcdefghijklmnopqrstuvwxyz";

/// What a request asks for of so many bytes, where that is one range.
inline std::optional<byte_span> range_of(const origin_request& request, std::size_t size) {
    return span_of(request.get("Range"), size);
}

/// An object that honours Range, If-Range and If-None-Match as RFC 9110 says.
struct ranged_object {
    std::string body = letters;
    std::string etag = "\"v1\"";
    std::string fields = "Cache-Control: max-age=60\r\nContent-Type: text/plain\r\n";

    void answer_to(const origin_request& request, origin_connection& to) const {
        const auto validator = etag.empty() ? "" : "ETag: " + etag + "\r\n";
        if (!etag.empty() && request.get("If-None-Match") == etag) {
            to.send(raw_head("304 Not Modified", fields + validator));
            return;
        }
        const auto part = range_of(request, body.size());
        const bool same = !request.has("If-Range") || request.get("If-Range") == etag;
        if (part && same) {
            to.send(answer("206 Partial Content",
                           fields + validator + content_range(*part, body.size()),
                           body.substr(part->first, part->count)));
        } else {
            to.send(ok(fields + validator, body));
        }
    }

    void put_on(fake_origin& origin, const std::string& path) const {
        origin.on(path, [object = *this](origin_request& request, origin_connection& to) {
            object.answer_to(request, to);
        });
    }
};

inline std::string range(std::string_view text) {
    return "Range: bytes=" + std::string{text} + "\r\n";
}

/// The object is at /a, and the proxy holds these ranges of it.
struct world_with : world {
    world_with(std::initializer_list<const char*> held) {
        ranged_object{}.put_on(origin, "/a");
        for (const auto* one : held) {
            (void)get("/a", range(one));
        }
    }
};

}  // namespace reprise::tests
