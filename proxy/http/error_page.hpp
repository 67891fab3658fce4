#pragma once
// The whole response for a failure: what a person reads, and what a program does.
// Status, phrase, sentence and setting come from the table of failure.hpp; here they get their wire
// form: Proxy-Status (RFC 9209), no-store, and a text or a small HTML page by Accept.

#include "proxy/base/failure.hpp"
#include "proxy/http/fields.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace reprise::proxy::http {

struct error_options {
    std::string_view pseudonym{};     ///< names us in Proxy-Status and on the page
    std::string_view accept{};        ///< the request's Accept value; text/html in it makes it HTML
    std::string_view date{};          ///< IMF-fixdate; empty: no Date
    std::string_view cache_status{};  ///< a whole Cache-Status value; empty: none
    bool head = false;                ///< the answer to a HEAD: no content, but its length
    bool close = false;               ///< Connection: close
    bool basic = false, bearer = false;  ///< of a 407: how the client may say who it is
};

/// Appends the response, content included. `error.detail` may hold any bytes: it is escaped for
/// HTML, control characters and what is no ASCII become '?' in text and in Proxy-Status, and it is
/// cut after 512 bytes.
void append_error_page(std::string& out, const failure& error, const error_options& options);

/// Whether a response is that page of this very instance's, for a request that had been here
/// before: it came back through whoever was asked.
[[nodiscard]] bool is_own_loop(unsigned status, field_list fields, std::string_view pseudonym);
/// Whether a response is an error page of the instance of this name, and no origin's.
[[nodiscard]] bool is_error_of(unsigned status, field_list fields, std::string_view pseudonym);
/// The failure that such a page is of; none: it is no such page, or its details begin with no name
/// of ours.
[[nodiscard]] std::optional<failure_code> error_told_by(unsigned status,
                                                        field_list fields,
                                                        std::string_view pseudonym);

}  // namespace reprise::proxy::http
