#pragma once
// A client of the proxy: sends raw bytes, reads whole responses, and says how each ended.
// "Complete" is what the framing says, nothing else: a response that was cut must not look whole.

#include "tests/support/message.hpp"
#include "tests/support/stream.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::tests {

enum class ending {
    none,       ///< not at its end yet
    complete,   ///< whole by its own framing
    cut_short,  ///< closed or reset before that, or framed wrongly
    timed_out,
};
[[nodiscard]] std::string_view to_string(ending end) noexcept;

struct response {
    int status = 0;  ///< 0: no head came
    std::string version, reason;
    message_head head;
    field_lines fields;
    std::string body;
    field_lines trailers;
    framing framed_by = framing::none;
    bool chunk_lines_are_canonical = true;
    std::vector<response> interim;  ///< the 1xx before it
    ending end = ending::none;
    bool was_reset = false;

    [[nodiscard]] bool complete() const { return end == ending::complete; }
    [[nodiscard]] std::string get(std::string_view name) const { return fields.get(name); }
    [[nodiscard]] bool has(std::string_view name) const { return fields.has(name); }
};

/// The member of Cache-Status that is Reprise's (RFC 9211).
struct cache_status {
    bool present = false, hit = false, stored = false, collapsed = false;
    std::string fwd, detail, ttl, fwd_status;
};
[[nodiscard]] cache_status cache_status_of(const response& answer);

/// True when the answer came from the store without asking the origin.
[[nodiscard]] bool is_hit(const response& answer);
/// The body of such an answer; of any other, what Cache-Status says instead.
[[nodiscard]] std::string hit_body(const response& answer);

/// One connection. One thread at a time.
class client {
public:
    /// @throws std::runtime_error when nobody listens
    explicit client(std::uint16_t port, const std::string& from = "127.0.0.1");
    explicit client(stream connection);

    bool send(std::string_view raw) { return stream_.send(raw); }

    /// Reads one response to `method` with all of its body, given in pieces to `sink` if there is
    /// one.
    [[nodiscard]] response read(std::string_view method = "GET",
                                const std::function<void(std::string_view)>& sink = {});
    /// Sends a request and reads its response.
    [[nodiscard]] response ask(std::string_view raw);

    /// Reads one head (and the 1xx before it); the body's start may be in hand already.
    [[nodiscard]] response read_head(std::string_view method = "GET");
    /// Reads one head and nothing else, were it a 1xx.
    [[nodiscard]] response read_one_head();
    /// Reads on until at least `bytes` of the body are in `into.body`, or its end.
    void read_body(response& into, std::size_t bytes, std::chrono::milliseconds limit = patience);

    /// Raw bytes, past any framing: at least `bytes`, unless the connection ends before.
    [[nodiscard]] std::string read_raw(std::size_t bytes,
                                       std::chrono::milliseconds limit = patience);
    /// Reads and keeps whatever comes until the connection ends.
    struct rest {
        std::string bytes;
        read_end end;
    };
    [[nodiscard]] rest read_to_end(std::chrono::milliseconds limit = patience);
    /// True when the proxy ends the connection, with nothing more said, in time.
    [[nodiscard]] bool is_closed_by_proxy(std::chrono::milliseconds limit = patience);

    [[nodiscard]] stream& connection() { return stream_; }

private:
    [[nodiscard]] bool take_one_head(response& into);
    void finish(response& into, ending end);
    [[nodiscard]] bool fill(response& into, std::chrono::milliseconds limit);

    stream stream_;
    std::string buffer_;
    body_reader body_;
};

}  // namespace reprise::tests
