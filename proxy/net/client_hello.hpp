#pragma once
// What a TLS client says first: whom it wants (SNI), and what it can do. Read from the first bytes
// of a connection without answering them, so that whoever reads can still pass all of them on.
//
// The message is RFC 8446 4.1.2's (RFC 5246's has the same shape), in records of its section 5.1,
// over which it may be spread in any way. Five of its extensions are read: server_name (RFC 6066
// 3), application_layer_protocol_negotiation (RFC 7301 3.1), supported_versions (RFC 8446 4.2.1),
// encrypted_client_hello (draft-ietf-tls-esni), and of all of them that none comes twice.
// What is not as these say is `other`, never a guess: it is passed on as it is, and its server
// may say what it thinks of it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::proxy::net {

struct client_hello {
    std::string host;        ///< by SNI, as it was sent, 1 to 255 bytes; empty: there is none
    bool tls_1_2 = false;    ///< TLS 1.2 or 1.3 is offered
    bool has_alpn = false;   ///< there is a list of protocols
    bool http_1_1 = false;   ///< "http/1.1" is in it
    bool outer_ech = false;  ///< it may be the outer of two, and then `host` is not who is meant.
                             ///< Clients send it without meaning it too (GREASE): whoever wants to
                             ///< know compares `host` with whom the client has asked for before
};

/// Threads  one at a time.
/// Cost     linear in the bytes, however they come: what was walked is not walked again, and the
///          message is read once, when it is whole. Memory for it (a copy of at most `most` bytes)
///          is taken within that call alone.
class client_hello_reader {
public:
    /// Records' headers included. What is not whole by then is `other`.
    static constexpr std::size_t most = 16 << 10;

    enum class state : std::uint8_t {
        more,   ///< so far it is one
        done,   ///< hello() says what it said; bytes may follow, which nothing here has looked at
        other,  ///< no TLS, or not as the RFCs say, or too large: why()
    };

    /// @param so_far  all bytes of the connection from the first on: those of the last call, and
    /// perhaps more. Total: any bytes yield a state; after `done` and `other` it stays.
    /// @throws std::bad_alloc
    [[nodiscard]] state read(std::string_view so_far);

    /// @pre the state is `done`
    [[nodiscard]] const client_hello& hello() const noexcept { return hello_; }
    /// Static text: which part is wrong. Empty unless the state is `other`.
    [[nodiscard]] std::string_view why() const noexcept { return why_; }

private:
    state refuse(std::string_view why) noexcept;
    [[nodiscard]] bool take_fragment(std::string_view piece) noexcept;
    [[nodiscard]] std::string gathered(std::string_view so_far) const;

    state state_ = state::more;
    std::size_t walked_ = 0;          // of the connection's bytes
    std::size_t fragment_left_ = 0;   // of the record that `walked_` stands in
    std::size_t message_walked_ = 0;  // of the message, its header included
    std::size_t message_size_ = 0;    // as its header says, so far
    std::string_view why_;
    client_hello hello_;
};

}  // namespace reprise::proxy::net
