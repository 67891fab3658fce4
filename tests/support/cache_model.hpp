#pragma once
// RFC 9111 for a shared cache, written down as slowly and plainly as it can be: what may be stored,
// what may be reused, what becomes of it. It shares no line with the proxy and keeps everything as
// text until it is asked; it is right when a person can hold it beside the RFC.
//
// Where the RFC leaves a choice, it makes the proxy's: of several equal directives the first counts
// (4.2.1), a time that is no number is zero, what is never fresh and can't be validated is not
// kept.

#include "tests/support/message.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace reprise::tests {

/// Seconds since the epoch.
using model_time = std::int64_t;

struct model_message {
    int status = 0;  ///< of a response
    field_lines fields;
    std::string body;
};

class cache_model {
public:
    struct kept {
        model_message response;
        model_time response_time = 0;
        std::map<std::string, std::string> selecting;  ///< by name, of the request; from Vary
    };
    struct prediction {
        const kept* chosen = nullptr;  ///< the newest that the request selects
        bool answers = false;          ///< it is the answer, without the origin
        bool only_stale = false;       ///< the origin is asked because it is stale, and only so
        bool certain = true;           ///< false: within a second of being otherwise
        model_time age = 0, lifetime = 0;
    };

    /// What a GET of `url` gets now.
    [[nodiscard]] prediction predict(const std::string& url,
                                     const field_lines& request,
                                     model_time now) const;
    /// The origin answered a GET. False: that is not kept.
    bool heard(const std::string& url,
               const field_lines& request,
               const model_message& response,
               model_time now);
    /// The origin said 304 of `of`, asked for this request.
    void confirmed(const std::string& url,
                   const field_lines& request,
                   const kept& of,
                   const field_lines& not_modified,
                   model_time now);
    /// The origin was asked whether what it had for this request still holds, and said that there is nothing.
    void ended(const std::string& url, const field_lines& request);
    /// An unsafe method succeeded.
    void changed(const std::string& url) { resources_.erase(url); }
    /// A server error may be answered with it (RFC 5861 4).
    [[nodiscard]] static bool stands_in(const prediction& of);

private:
    std::map<std::string, std::vector<kept>> resources_;
};

}  // namespace reprise::tests
