#pragma once
// An origin that makes each body from key and size, so that a trace can be played through a proxy
// and whoever receives a body knows whether it is the right one.
//
// It keeps nothing of a request but counts: a million of them take no memory.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>

namespace reprise::tools {

/// Writes the bytes from `offset` on of the body that belongs to `key`. Two keys share a body with
/// probability 2^-20 when it is longer than 16 bytes.
void fill_body(std::uint64_t key, std::uint64_t offset, std::span<char> into);

/// True when `bytes` are what fill_body would write. O(length), no allocation.
[[nodiscard]] bool is_body(std::uint64_t key, std::uint64_t offset, std::string_view bytes);

/// Listens on 127.0.0.1, on a port that the system picks, from construction to destruction. Any
/// GET of path() is answered with 200, fresh for a year; everything else with 404.
///
/// Threads   one a connection; requests() and bytes() from any.
class sized_origin {
public:
    /// @throws std::system_error
    sized_origin();
    ~sized_origin();
    sized_origin(const sized_origin&) = delete;
    sized_origin& operator=(const sized_origin&) = delete;

    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
    /// "127.0.0.1:41001"
    [[nodiscard]] std::string authority() const;
    /// Digits are padded, so that the URLs of all keys and sizes are equally long and cost a store
    /// the same.
    [[nodiscard]] static std::string path(std::uint64_t key, std::uint64_t size);

    [[nodiscard]] std::uint64_t requests() const noexcept { return requests_.load(); }
    /// Of bodies sent.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(); }

private:
    void accept_all();
    void serve(int connection);

    int listener_ = -1;
    std::uint16_t port_ = 0;
    std::atomic<std::uint64_t> requests_{0}, bytes_{0};
    std::mutex guard_;
    std::list<int> open_;  // what is to be shut down at the end
    std::list<std::thread> serving_;
    std::thread accepts_;
};

}  // namespace reprise::tools
