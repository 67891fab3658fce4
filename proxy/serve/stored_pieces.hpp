#pragma once
// A stored response as the pieces of a reply: its head, what a reply adds to that, and which of its
// bytes go out.

#include "proxy/http/range.hpp"
#include "proxy/serve/exchange_state.hpp"

#include <optional>
#include <span>

namespace reprise::proxy::serve {

/// Composes a reply of a stored response.
///
/// @pre the response and what `how` views outlive the reply's sending
class stored_pieces {
public:
    stored_pieces(exchange_state& x, const cache::stored_response& from) : x_{x}, from_{from} {}

    /// A whole reply: 200 as stored, 304, 206 or 416 as the request's fields ask. Where only parts
    /// are stored the verdict has said which.
    void compose(wall_time now, const http::cache_status& how);
    /// The head of a 200 as stored, or of a 206 with `part`, and no byte of a body.
    void compose_head(std::optional<http::byte_range> part,
                      wall_time now,
                      const http::cache_status& how);
    /// Bytes of its body, or of a part that it has; further ones follow.
    void compose_bytes(http::byte_range part);

    /// What follows from disk; none: nothing does.
    [[nodiscard]] std::optional<answers::body_on_disk> take_disk_body() {
        return std::move(disk_body_);
    }

private:
    void compose_fields(wall_time now, const http::cache_status& how);
    void add_head();
    void compose_whole();
    void compose_part_head(http::byte_range part);
    void compose_not_modified(http::field_list fields);
    void compose_unsatisfied();
    void compose_multipart(http::field_list fields, std::span<const http::byte_range> ranges);
    [[nodiscard]] http::range_set ranges_asked(http::field_list fields, wall_time now) const;
    [[nodiscard]] std::uint64_t length() const;

    exchange_state& x_;
    const cache::stored_response& from_;
    std::optional<answers::body_on_disk> disk_body_;
};

}  // namespace reprise::proxy::serve
