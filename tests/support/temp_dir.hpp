#pragma once
// A directory of a test's own, gone with it.

#include <filesystem>
#include <string>
#include <string_view>

namespace reprise::tests {

class temp_dir {
public:
    /// @throws std::runtime_error
    temp_dir();
    temp_dir(const temp_dir&) = delete;
    temp_dir& operator=(const temp_dir&) = delete;
    ~temp_dir();

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] std::string file(std::string_view name) const { return path_ / name; }
    /// Writes a file and gives its path.
    std::string write(std::string_view name, std::string_view text) const;

private:
    std::filesystem::path path_;
};

/// All of a file; empty when there is none.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace reprise::tests
