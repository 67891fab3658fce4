#pragma once
// Who may ask the admin listener, and who may change something: decisions over texts, no socket.
// The threat is a web page in the operator's browser. It can send requests to loopback, and with a
// name of its own that resolves to 127.0.0.1 (DNS rebinding) it could even read the answers: hence
// the Host check. What is sent across sites is refused by Origin and Sec-Fetch-Site, which a page
// cannot forge. What changes something wants a secret as well, against everybody else on the
// machine.

#include "config/options.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::admin {

class admin_gate {
public:
    /// Reads the token file. A file that cannot be used is no error here: see token_problem.
    explicit admin_gate(const config::admin_options& options);

    /// Whether `authority` (a Host value: name or literal, perhaps with a port) is one of ours on a
    /// connection to `local`: its address, localhost, 127.0.0.1 or [::1], each with local's port,
    /// or a name of admin.host_names (one without a port matches any port).
    [[nodiscard]] bool is_own_host(std::string_view authority,
                                   const boost::asio::ip::tcp::endpoint& local) const;

    /// Whether a browser says that another site made it send this. Empty: the field is absent.
    [[nodiscard]] bool is_cross_site(std::string_view origin,
                                     std::string_view sec_fetch_site,
                                     const boost::asio::ip::tcp::endpoint& local) const;

    enum class token_verdict { right, wrong, none_set };
    /// Compares an Authorization value ("Bearer ...") in a time that says nothing of the token.
    [[nodiscard]] token_verdict check_token(std::string_view authorization) const;

    /// Why there is no token: not asked for, or the file's trouble. Empty when there is one.
    [[nodiscard]] const std::string& token_problem() const noexcept { return token_problem_; }
    /// What is wrong with the file, without its name; empty: nothing, or there is none.
    [[nodiscard]] const std::string& file_problem() const noexcept { return file_problem_; }

private:
    struct own_name {
        std::string host;  ///< lower case, without brackets
        std::string port;  ///< empty: any
    };
    using digest = std::array<unsigned char, 32>;
    static digest digest_of(std::string_view text);

    std::vector<own_name> names_;
    digest token_{};
    std::string file_problem_;
    std::string token_problem_;
};

}  // namespace reprise::proxy::admin
