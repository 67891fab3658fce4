#include "filter/plugins/trafficserver/lookup_url.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <new>
#include <span>

namespace reprise::trafficserver {

namespace {

/// A URL of our own, for as long as it is looked at.
class url_copy {
public:
    url_copy() : buffer_(TSMBufferCreate()) {
        if (buffer_ != nullptr && TSUrlCreate(buffer_, &at_) != TS_SUCCESS) {
            at_ = TS_NULL_MLOC;
        }
    }
    url_copy(const url_copy&) = delete;
    url_copy& operator=(const url_copy&) = delete;
    ~url_copy() {
        if (at_ != TS_NULL_MLOC) {
            TSHandleMLocRelease(buffer_, TS_NULL_MLOC, at_);
        }
        if (buffer_ != nullptr) {
            TSMBufferDestroy(buffer_);
        }
    }
    bool take(TSHttpTxn txn) {
        return at_ != TS_NULL_MLOC && TSHttpTxnCacheLookupUrlGet(txn, buffer_, at_) == TS_SUCCESS;
    }

    using getter = const char* (*)(TSMBuffer, TSMLoc, int*);
    std::string_view part(getter get) const {
        int length = 0;
        const char* text = get(buffer_, at_, &length);
        return text == nullptr || length <= 0
                   ? std::string_view{}
                   : std::string_view{text, static_cast<std::size_t>(length)};
    }
    int port() const { return TSUrlPortGet(buffer_, at_); }

private:
    TSMBuffer buffer_;
    TSMLoc at_ = TS_NULL_MLOC;
};

}  // namespace

std::string_view lookup_url::read(TSHttpTxn txn) noexcept {
    url_copy url;
    if (!url.take(txn)) {
        return {};
    }
    const auto scheme = url.part(TSUrlSchemeGet);
    const auto number = url.port();
    const bool is_usual = (scheme == "http" && number == 80) ||
                          (scheme == "https" && number == 443);
    std::array<char, 12> port{':'};
    const auto* port_end =
        is_usual ? port.data()
                 : std::to_chars(port.data() + 1, port.data() + port.size(), number).ptr;
    // Before Traffic Server 10 what follows a ; in the last segment is no part of the path.
#if TS_VERSION_MAJOR < 10
    const auto parameters = url.part(TSUrlHttpParamsGet);
#else
    const std::string_view parameters;
#endif
    const auto query = url.part(TSUrlHttpQueryGet);
    const auto host_name = url.part(TSUrlHostGet);
    // The server has IPv6 addresses without the brackets that a URL has.
    const bool is_bare = host_name.find(':') != host_name.npos && !host_name.starts_with('[');
    const std::array<std::string_view, 12> pieces{
        scheme,
        "://",
        is_bare ? std::string_view{"["} : std::string_view{},
        host_name,
        is_bare ? std::string_view{"]"} : std::string_view{},
        std::string_view{port.data(), static_cast<std::size_t>(port_end - port.data())},
        "/",
        url.part(TSUrlPathGet),
        parameters.empty() ? std::string_view{} : ";",
        parameters,
        query.empty() ? std::string_view{} : "?",
        query};
    std::size_t length = 0;
    for (const auto piece : pieces) {
        length += piece.size();
    }
    char* text = text_;
    if (length > usual) {
        longer_.reset(new (std::nothrow) char[length]);
        text = longer_.get();
        if (text == nullptr) {
            return {};
        }
    }
    auto* to = text;
    for (const auto piece : pieces) {
        to = std::copy(piece.begin(), piece.end(), to);
    }
    // As siblings have it: hosts are the same in either case (RFC 3986 6.2.2.1).
    const auto host = std::span{text + scheme.size() + 3, host_name.size() + (is_bare ? 1 : 0)};
    std::transform(host.begin(), host.end(), host.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return {text, length};
}

}  // namespace reprise::trafficserver
