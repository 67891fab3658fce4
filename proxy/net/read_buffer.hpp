#pragma once
// Bytes read from a connection and not yet used: flat, so that a head can be parsed in place, and
// kept with the connection, so that what follows a head is still there for the body.

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace reprise::proxy::net {

/// [consumed | data | room]. Views into data() stay valid until prepare() or release().
class read_buffer {
public:
    read_buffer() = default;
    read_buffer(read_buffer&&) noexcept;
    read_buffer& operator=(read_buffer&&) noexcept;

    [[nodiscard]] std::string_view data() const noexcept {
        return {bytes_.get() + begin_, end_ - begin_};
    }
    [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }
    [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

    /// Room for at least `least` more bytes after data(): as it is, or after data has moved to the
    /// front, or in a larger block (at least doubled). The caller bounds size() + least.
    /// @throws std::bad_alloc
    [[nodiscard]] std::span<char> prepare(std::size_t least);

    /// @pre bytes <= what prepare() returned
    void commit(std::size_t bytes) noexcept { end_ += bytes; }
    /// @pre bytes <= size()
    void consume(std::size_t bytes) noexcept;

    void clear() noexcept { begin_ = end_ = 0; }
    /// Holds no more than its bytes: for a wait that may be long.
    /// @throws std::bad_alloc
    void trim();
    /// Gives the memory back when it is more than `keep` bytes. @pre empty()
    void release(std::size_t keep = 0) noexcept;

private:
    std::unique_ptr<char[]> bytes_;
    std::size_t capacity_ = 0;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
};

}  // namespace reprise::proxy::net
