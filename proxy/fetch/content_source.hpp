#pragma once
// The narrow face through which a request's content comes: all that an upload knows of the client's side. What frames
// the content (a length, chunks, a stream's frames) is its implementation's, and so is where the bytes lie.
//
//     take       what is here, piece by piece
//     fill       waits until there is more
//     hold       a piece stays where it lies while it is sent, were its client to go
//
// HTTP/1.1's is serve/http1_content.hpp. A protocol that carries several requests at once on a connection implements it
// once more, for each of its streams.
//
// Threads   its worker's.

#include "proxy/http/fields.hpp"
#include "proxy/net/asio.hpp"

#include <boost/asio/cancellation_signal.hpp>

#include <cstddef>
#include <string_view>

namespace reprise::proxy::fetch {

class content_source {
public:
    struct piece {
        std::string_view data{};  ///< of the content, where it was read; may be empty
        std::size_t taken = 0;  ///< bytes of the client's that it was: these, and what framed them
        http::field_list trailers{};  ///< behind the last one; as long as the source lives
        const char* error =
            nullptr;  ///< the framing is wrong: static text; final, and nothing was taken
    };

    content_source() = default;
    virtual ~content_source() = default;
    content_source(const content_source&) = delete;
    content_source& operator=(const content_source&) = delete;

    /// Its length was said before it came; else nobody knows where it ends until is_over().
    [[nodiscard]] virtual bool is_counted() const noexcept = 0;
    /// All of it was taken, and what ends it: the client owes nothing more.
    [[nodiscard]] virtual bool is_over() const noexcept = 0;
    /// Bytes are here that were not taken, or what ends it; false behind leave().
    [[nodiscard]] virtual bool has_some() const noexcept = 0;

    /// Takes some of what is here, at most so many bytes; its data is valid until the next call of any but
    /// hold(). @pre has_some() and not is_over()
    [[nodiscard]] virtual piece take(std::size_t most) = 0;

    /// Waits for more, at most so many bytes: how many came, framing and all. 0: the client has left, or the wait was ended, by
    /// `given_up` or leave(). No deadline of its own.
    [[nodiscard]] virtual awaitable<std::size_t> fill(std::size_t most,
                                                      asio::cancellation_slot given_up) = 0;

    /// What take() gave lies where it is until release(), or as long as the source does behind leave().
    virtual void hold() noexcept = 0;
    virtual void release() noexcept = 0;

    /// The client may go now, and its connection: neither is touched again. What follows may be the three
    /// questions above and the source's end alone.
    virtual void leave() noexcept = 0;
};

}  // namespace reprise::proxy::fetch
