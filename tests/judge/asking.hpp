#pragma once
// One request and what came of it, byte by byte, at the client's own pace. How the answer ended is
// told as a client would see it: whole by its framing, closed in order, or broken off.

#include "tests/judge/object.hpp"
#include "tests/support/client.hpp"
#include "tests/support/tls_client.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace reprise::tests::judge {

/// What to ask, and how to behave meanwhile.
struct wish {
    std::string method = "GET";
    std::string path{};
    bool http10 = false;
    bool tls = false;
    std::string from = "127.0.0.1";  ///< the client's address
    std::string fields{};            ///< lines ended by CRLF
    std::string range{};             ///< "bytes=0-9"
    std::string if_none_match{};
    char flavour = 'a';   ///< told if the object varies
    bool reload = false;  ///< Cache-Control: no-cache
    std::uint64_t pace =
        0;  ///< bytes a second that it reads (or, of an upload, sends); 0: no limit
    int receive_buffer = 0;                      ///< bytes; 0: the system's
    std::uint64_t leave_at = ~std::uint64_t{0};  ///< leaves after so many bytes of the body, by RST
    milliseconds leave_after{0};                 ///< the same, by time; 0: never
    std::uint64_t stall_at = ~std::uint64_t{0};  ///< reads nothing for `stall` from there on
    milliseconds stall{0};
    std::uint64_t upload = 0;  ///< bytes of a body, made of cells under `upload_number`
    unsigned upload_number = 0;
    bool upload_chunked = false;
};

enum class answer_end {
    none,
    whole,      ///< by its framing; for what ends with its connection: closed in order
    closed,     ///< closed in order before its framing's end
    broken,     ///< reset, or over TLS without close_notify
    malformed,  ///< what came is no HTTP
    starved,    ///< nothing more came for a generous while
    left,       ///< the client has left, as it had in mind
    refused,    ///< no connection
};
[[nodiscard]] std::string_view to_string(answer_end end) noexcept;

struct answer_seen {
    int status = 0;  ///< 0: no head came
    std::string start_line;
    field_lines fields;
    std::string body;
    framing framed = framing::none;
    answer_end end = answer_end::none;
    std::string trouble;  ///< words about a malformed one
    steady::time_point begun, head_at, ended;
    milliseconds own_pause{
        0};  ///< the longest between two of our own steps that we meant to be soon
    bool upload_sent = false;  ///< all of the body was taken

    [[nodiscard]] bool is_from_store() const;
    [[nodiscard]] bool is_joined() const;
    [[nodiscard]] std::string cache_status() const { return fields.all("Cache-Status"); }
};

/// Where the proxy listens, and for how long nothing may come before that is starvation.
struct proxy_place {
    std::uint16_t plain = 0, tls = 0;
    std::string origin;  ///< authority that paths belong to
    bool accelerator = false;
    milliseconds bound{20'000};
};

/// One client: keeps its connection while it can.
class asker {
public:
    explicit asker(const proxy_place& at) : place_{at} {}
    [[nodiscard]] answer_seen ask(const wish& what);
    void hang_up() { plain_.reset(), secure_.reset(), left_over_.clear(); }

private:
    [[nodiscard]] stream& connected(const wish& what);
    [[nodiscard]] std::string head_of(const wish& what) const;
    void send_upload(stream& to, const wish& what, answer_seen& out);
    void read_answer(stream& from, const wish& what, answer_seen& out);
    void read_body(stream& from, const wish& what, answer_seen& out);
    [[nodiscard]] read_end take(stream& from, milliseconds limit, std::size_t most);

    const proxy_place& place_;
    std::unique_ptr<stream> plain_;
    std::unique_ptr<tls_client> secure_;
    std::string from_;
    std::string left_over_;       ///< read and not yet understood
    bool may_be_ending_ = false;  ///< the connection was used before
};

}  // namespace reprise::tests::judge
