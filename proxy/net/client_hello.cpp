#include "proxy/net/client_hello.hpp"

#include <algorithm>
#include <bitset>
#include <optional>

// Two steps: the records are walked by their lengths until the message is whole; then the message,
// in one piece, is taken apart by a cursor that never passes the end of what it was given.

namespace reprise::proxy::net {
namespace {

constexpr std::size_t record_header = 5;
constexpr std::size_t message_header = 4;
constexpr std::size_t largest_fragment = 1 << 14;
constexpr unsigned char handshake_record = 22;
constexpr unsigned char client_hello_message = 1;
constexpr std::size_t longest_host = 255;

constexpr unsigned tls_1_2_version = 0x0303;
constexpr unsigned tls_1_3_version = 0x0304;

enum extension : unsigned {
    server_name = 0,
    protocols_by_alpn = 16,
    supported_versions = 43,
    encrypted_client_hello = 0xfe0d,
};

unsigned char byte_at(std::string_view bytes, std::size_t index) noexcept {
    return static_cast<unsigned char>(bytes[index]);
}

/// Takes a message apart from its front. What is not there reads as 0 or nothing, and is noted.
class hello_cursor {
public:
    explicit hello_cursor(std::string_view bytes) noexcept : rest_{bytes} {}

    [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }
    [[nodiscard]] bool ran_short() const noexcept { return short_; }
    /// All of it was read, and it was there.
    [[nodiscard]] bool read_out() const noexcept { return !short_ && rest_.empty(); }

    std::string_view take(std::size_t count) noexcept {
        if (count > rest_.size()) {
            short_ = true;
            rest_ = {};
            return {};
        }
        const auto taken = rest_.substr(0, count);
        rest_.remove_prefix(count);
        return taken;
    }
    unsigned number(std::size_t bytes) noexcept {
        unsigned value = 0;
        for (const char c : take(bytes)) {
            value = value << 8 | static_cast<unsigned char>(c);
        }
        return value;
    }
    /// A vector behind its length, which takes one byte or two.
    std::string_view vector(std::size_t length_bytes) noexcept {
        return take(number(length_bytes));
    }

private:
    std::string_view rest_;
    bool short_ = false;
};

// Each returns what is wrong with its extension; empty: nothing.

std::string_view read_server_name(std::string_view body, client_hello& into) {
    hello_cursor in{body};
    hello_cursor names{in.vector(2)};
    const auto type = names.number(1);
    const auto host = names.vector(2);
    // One name of the one type there is: of another type nobody knows how long it is.
    if (type != 0 || !names.read_out() || !in.read_out() || host.empty() ||
        host.size() > longest_host || host.find('\0') != host.npos) {
        return "the server name is malformed";
    }
    into.host = host;
    return {};
}

std::string_view read_protocols(std::string_view body, client_hello& into) {
    hello_cursor in{body};
    hello_cursor names{in.vector(2)};
    into.has_alpn = true;
    do {
        const auto name = names.vector(1);
        if (name.empty()) {
            return "the list of protocols is malformed";
        }
        into.http_1_1 = into.http_1_1 || name == "http/1.1";
    } while (!names.at_end());
    return in.read_out() ? std::string_view{} : "the list of protocols is malformed";
}

std::string_view read_versions(std::string_view body, client_hello& into) {
    hello_cursor in{body};
    const auto list = in.vector(1);
    if (!in.read_out() || list.empty() || list.size() % 2 != 0) {
        return "the list of versions is malformed";
    }
    into.tls_1_2 = false;  // the message's own version counts no more
    for (hello_cursor versions{list}; !versions.at_end();) {
        const auto version = versions.number(2);  // any may be there, to keep servers used to it
        into.tls_1_2 = into.tls_1_2 || version == tls_1_2_version || version == tls_1_3_version;
    }
    return {};
}

std::string_view read_ech(std::string_view body, client_hello& into) {
    const auto type = hello_cursor{body}.number(1);
    if (body.empty() || type > 1) {
        return "the encrypted hello is malformed";
    }
    into.outer_ech = type == 0;
    return {};
}

std::string_view read_extensions(std::string_view all, client_hello& into) {
    std::bitset<1 << 16> seen;
    for (hello_cursor in{all}; !in.at_end();) {
        const auto type = in.number(2);
        const auto body = in.vector(2);
        if (in.ran_short()) {
            return "an extension is longer than the hello";
        }
        if (seen[type]) {
            return "an extension comes twice";
        }
        seen.set(type);
        std::string_view wrong;
        switch (type) {
        case server_name: wrong = read_server_name(body, into); break;
        case protocols_by_alpn: wrong = read_protocols(body, into); break;
        case supported_versions: wrong = read_versions(body, into); break;
        case encrypted_client_hello: wrong = read_ech(body, into); break;
        default: break;
        }
        if (!wrong.empty()) {
            return wrong;
        }
    }
    return {};
}

/// @param body  the message behind its header
std::string_view read_message(std::string_view body, client_hello& into) {
    hello_cursor in{body};
    const auto version = in.number(2);
    static_cast<void>(in.take(32));  // random
    const auto session = in.vector(1);
    const auto ciphers = in.vector(2);
    const auto compressions = in.vector(1);
    if (in.ran_short() || version >> 8 != 3 || session.size() > 32 || ciphers.empty() ||
        ciphers.size() % 2 != 0 || compressions.empty()) {
        return "the hello is malformed";
    }
    into.tls_1_2 = version >= tls_1_2_version;
    if (in.at_end()) {
        return {};  // TLS 1.2 does without extensions
    }
    const auto extensions = in.vector(2);
    if (!in.read_out()) {
        return "the extensions don't end where the hello does";
    }
    return read_extensions(extensions, into);
}

}  // namespace

client_hello_reader::state client_hello_reader::refuse(std::string_view why) noexcept {
    why_ = why;
    state_ = state::other;
    return state_;
}

// False: this is no ClientHello.
bool client_hello_reader::take_fragment(std::string_view piece) noexcept {
    for (; message_walked_ < message_header && !piece.empty(); piece.remove_prefix(1)) {
        const auto byte = byte_at(piece, 0);
        if (message_walked_ == 0 && byte != client_hello_message) {
            return false;
        }
        message_size_ = message_walked_ == 0 ? 0 : message_size_ << 8 | byte;
        ++message_walked_;
    }
    message_walked_ += piece.size();
    return true;
}

client_hello_reader::state client_hello_reader::read(std::string_view so_far) {
    while (state_ == state::more) {
        if (fragment_left_ > 0) {
            const auto piece = so_far.substr(walked_, fragment_left_);
            if (piece.empty()) {
                break;
            }
            if (!take_fragment(piece)) {
                return refuse("TLS, but no ClientHello");
            }
            walked_ += piece.size();
            fragment_left_ -= piece.size();
            if (message_walked_ < message_header) {
                continue;
            }
            const auto whole = message_header + message_size_;
            if (whole + record_header > most) {
                return refuse("the hello is too large");
            }
            // It fills its last record: what follows it there would be under other keys.
            if (message_walked_ + fragment_left_ > whole) {
                return refuse("something follows the hello in its record");
            }
            if (message_walked_ < whole) {
                continue;
            }
            if (walked_ > most) {
                return refuse("the hello is too large");
            }
            const auto wrong = read_message(
                std::string_view{gathered(so_far)}.substr(message_header), hello_);
            if (!wrong.empty()) {
                hello_ = {};
                return refuse(wrong);
            }
            state_ = state::done;
            break;
        }
        const auto header = so_far.substr(std::min(walked_, so_far.size()), record_header);
        if ((!header.empty() && byte_at(header, 0) != handshake_record) ||
            (header.size() > 1 && byte_at(header, 1) != 3)) {
            return refuse(walked_ == 0 ? "no TLS" : "a record within the hello is none of it");
        }
        if (header.size() < record_header) {
            break;
        }
        fragment_left_ = static_cast<std::size_t>(byte_at(header, 3)) << 8 | byte_at(header, 4);
        if (fragment_left_ == 0 || fragment_left_ > largest_fragment) {
            return refuse("a record's length is not one");
        }
        walked_ += record_header;
    }
    if (state_ == state::more && so_far.size() >= most) {
        return refuse("the hello is too large");
    }
    return state_;
}

// The message in one piece. Every record of it has been walked, so the lengths are known to hold.
std::string client_hello_reader::gathered(std::string_view so_far) const {
    std::string message;
    message.reserve(message_walked_);
    for (auto records = so_far.substr(0, walked_); !records.empty();) {
        const auto size = static_cast<std::size_t>(byte_at(records, 3)) << 8 | byte_at(records, 4);
        message += records.substr(record_header, size);
        records.remove_prefix(record_header + size);
    }
    return message;
}

}  // namespace reprise::proxy::net
