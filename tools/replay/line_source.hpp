#pragma once
// Lines of a file, plain, zstd or gzip (told apart by their first bytes), or of standard input ("-").

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace reprise::replay {

/// Memory   1 MiB of text at a time, more while a line is longer (up to 16 MiB; what is longer is
///          cut there).
/// Threads  one.
class line_source {
public:
    /// @throws std::runtime_error with the path and the reason when it can't be opened
    explicit line_source(const std::string& path);
    ~line_source();
    line_source(line_source&&) noexcept;
    line_source& operator=(line_source&&) noexcept;

    /// The next line, without its newline; valid until the next call. False at the end.
    /// @throws std::runtime_error when it can't be read, or is packed and damaged or cut off
    [[nodiscard]] bool next(std::string_view& line);

    /// How far the file is read, as it lies on disk, and how long it is (0: unknown).
    [[nodiscard]] std::uint64_t bytes_read() const noexcept;
    [[nodiscard]] std::uint64_t bytes_in_all() const noexcept;

private:
    struct inside;
    std::unique_ptr<inside> inside_;
};

}  // namespace reprise::replay
