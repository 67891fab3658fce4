#include "tools/bench_proxy/wrong_passwords.hpp"

#include "tools/bench_proxy/sockets.hpp"

#include <array>
#include <crypt.h>
#include <memory>
#include <openssl/evp.h>
#include <stdexcept>
#include <sys/socket.h>
#include <thread>
#include <vector>

namespace reprise::bench {

namespace {

// One request on a connection of its own. False: no answer came.
bool is_refused(std::uint16_t port, std::size_t client, const std::string& request) {
    const auto socket = connect_to(port, static_cast<std::uint32_t>(client + 1));
    send_all(socket.get(), request);
    std::array<char, 4096> bytes{};
    const auto got = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (got < 12) {
        return false;
    }
    const std::string_view status{bytes.data() + 9, 3};
    if (status == "200") {
        throw std::runtime_error("a wrong password was taken");
    }
    return status == "407" || status == "429";
}

}  // namespace

std::string user_line(const std::string& name, const std::string& password) {
    std::array<char, CRYPT_GENSALT_OUTPUT_SIZE> salt{};
    const auto room = std::make_unique<crypt_data>();
    if (::crypt_gensalt_rn("$y$", 0, nullptr, 0, salt.data(), static_cast<int>(salt.size())) ==
        nullptr) {
        throw std::runtime_error("libcrypt makes no salt");
    }
    const auto* const hash = ::crypt_r(password.c_str(), salt.data(), room.get());
    if (hash == nullptr || *hash == '*') {
        throw std::runtime_error("libcrypt makes no hash");
    }
    return name + ":" + hash + "\n";
}

std::string login_field(const std::string& name, const std::string& password) {
    const auto said = name + ":" + password;
    std::string text(4 * (said.size() + 2) / 3 + 1, '\0');
    const auto size = ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                        reinterpret_cast<const unsigned char*>(said.data()),
                                        static_cast<int>(said.size()));
    text.resize(static_cast<std::size_t>(size));
    return "Proxy-Authorization: Basic " + text + "\r\n";
}

std::uint64_t try_passwords(std::uint16_t port,
                            std::size_t clients,
                            const std::string& url,
                            const std::string& name,
                            const std::atomic<bool>& over) {
    std::atomic<std::uint64_t> answered{0};
    std::atomic<bool> let_in{false};
    std::vector<std::jthread> all;
    for (std::size_t i = 0; i < clients; ++i) {
        all.emplace_back([&, i] {
            for (std::uint64_t n = 0; !over; ++n) {
                const auto word = std::to_string(i) + "-" + std::to_string(n);
                try {
                    answered += is_refused(port,
                                           i,
                                           "GET " + url + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
                                               (name.empty() ? "" : login_field(name, word)) +
                                               "\r\n")
                                    ? 1
                                    : 0;
                } catch (const std::runtime_error&) {
                    let_in = true;
                    return;
                }
            }
        });
    }
    all.clear();  // waits for them
    if (let_in) {
        throw std::runtime_error("a wrong password was taken, or no connection was to be had");
    }
    return answered;
}

}  // namespace reprise::bench
