#pragma once
// Compressed bytes to text, a piece at a time: zstd and gzip, told apart by their first bytes.
//
// Several frames or members behind each other are one text, as `zstd -dc` and `zcat` have it:
// that is how rotated logs are put together.

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace reprise::replay {

/// Threads  one.
/// Errors   std::bad_alloc, and what unpack() says.
class unpacker {
public:
    /// So many bytes of the beginning tell what it is, or all there are.
    static constexpr std::size_t telling_bytes = 4;
    /// For a stream that begins so. Null: it is neither.
    [[nodiscard]] static std::unique_ptr<unpacker> for_stream(std::string_view begin);

    unpacker() = default;
    unpacker(const unpacker&) = delete;
    unpacker& operator=(const unpacker&) = delete;
    virtual ~unpacker() = default;

    struct progress {
        std::size_t taken = 0;  ///< of the input
        std::size_t made = 0;   ///< at the beginning of the output
    };
    /// Makes text until the output is full or the input is used up. The input is used up only when
    /// all of its text is made, for every frame ends with bytes that are none. With room in the
    /// output it takes or makes at least a byte. @pre neither is empty
    /// @throws std::runtime_error with the reason, when the input is damaged
    [[nodiscard]] virtual progress unpack(std::span<const char> in, std::span<char> out) = 0;

    /// Whether the stream may end behind what was taken: no frame is open.
    [[nodiscard]] virtual bool may_end() const noexcept = 0;

    [[nodiscard]] virtual std::string_view name() const noexcept = 0;  ///< "zstd", "gzip"
};

}  // namespace reprise::replay
