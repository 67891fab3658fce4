#include "proxy/http/multipart.hpp"

#include <algorithm>
#include <cassert>

namespace reprise::proxy::http {

multipart_ranges::multipart_ranges(std::span<const byte_range> parts,
                                   std::uint64_t length,
                                   std::string_view content_type,
                                   std::string_view boundary)
    : count_{parts.size()} {
    assert(count_ >= 2 && count_ <= most_ranges && !boundary.empty() && boundary.size() <= 70);
    std::copy(parts.begin(), parts.end(), parts_.begin());
    // "\r\n--", the two names with ": " and CR LF, the empty line, three numbers.
    text_.reserve((count_ + 1) * (boundary.size() + content_type.size() + 110));
    for (std::size_t i = 0; i < count_; ++i) {
        // The line end in front of a delimiter is the delimiter's (RFC 2046 5.1.1). The first has
        // one too, which makes an empty preamble and every head alike.
        text_.append("\r\n--").append(boundary).append("\r\n");
        if (!content_type.empty()) {
            text_.append("Content-Type: ").append(content_type).append("\r\n");
        }
        text_.append("Content-Range: ");
        append_content_range(text_, parts_[i], length);
        text_.append("\r\n\r\n");
        ends_[i] = text_.size();
        content_length_ += parts_[i].size();
    }
    text_.append("\r\n--").append(boundary).append("--\r\n");
    ends_[count_] = text_.size();
    content_length_ += text_.size();
}

std::string_view multipart_ranges::head(std::size_t i) const noexcept {
    const auto begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view{text_}.substr(begin, ends_[i] - begin);
}

std::string_view multipart_ranges::tail() const noexcept {
    return head(count_);
}

std::string_view multipart_ranges::boundary() const noexcept {
    constexpr std::string_view before = "\r\n--";
    constexpr std::string_view behind = "--\r\n";
    const auto delimiter = tail();
    return delimiter.substr(before.size(), delimiter.size() - before.size() - behind.size());
}

void append_multipart_lines(std::string& head, const multipart_ranges& body) {
    head.append("Content-Type: multipart/byteranges; boundary=")
        .append(body.boundary())
        .append("\r\nContent-Length: ")
        .append(std::to_string(body.content_length()))
        .append("\r\n");
}

bool belongs_in_multipart(const field& stored) noexcept {
    return stored.id != field_id::content_type && stored.id != field_id::content_length &&
           stored.id != field_id::content_range && !is_content_digest(stored);
}

}  // namespace reprise::proxy::http
