#pragma once
// How much of the bodies that a reply is made of has gone to its client.
// Composing counts nothing: a client may leave before the first byte, or in the middle. What is
// composed for one send is noted here, in order, and settled when that send is over, by what the
// stream has sent since: first what stands before the body, then the body.

#include <algorithm>
#include <cstdint>

namespace reprise::proxy::serve {

/// Whence a body's bytes came.
enum class body_source : std::uint8_t {
    store,
    fetch,   ///< this client's own
    shared,  ///< another request's fetch
};

/// How much of one reply's body was sent. Framing behind or between its pieces (the end of a chunk,
/// the heads of a multipart's parts) counts as body until all is sent: some bytes, where a reply is
/// cut short.
class sent_body {
public:
    struct amount {
        std::uint64_t bytes = 0;
        body_source from = body_source::store;
    };

    /// `bytes` more of a body are to be sent. `sent` is what the stream has sent so far, of the
    /// whole connection; `before`, what is composed to go out before them.
    void note(body_source from, std::uint64_t bytes, std::uint64_t sent, std::uint64_t before) {
        if (noted_.bytes == 0) {
            begins_at_ = sent + before;
        }
        noted_.from = from;
        noted_.bytes += bytes;
    }

    /// The send is over: what of it is to be counted. Forgets it.
    [[nodiscard]] amount settle(std::uint64_t sent) noexcept {
        auto of = noted_;
        of.bytes = sent > begins_at_ ? std::min(of.bytes, sent - begins_at_) : 0;
        noted_ = {};
        return of;
    }
    [[nodiscard]] bool any() const noexcept { return noted_.bytes != 0; }

private:
    amount noted_;
    std::uint64_t begins_at_ = 0;
};

}  // namespace reprise::proxy::serve
