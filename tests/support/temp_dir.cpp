#include "tests/support/temp_dir.hpp"

#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace reprise::tests {

temp_dir::temp_dir() {
    std::string pattern = std::filesystem::temp_directory_path() / "reprise-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
        throw std::runtime_error("cannot make a directory like " + pattern);
    }
    path_ = pattern;
}

temp_dir::~temp_dir() {
    std::error_code ignored;  // what stays behind in /tmp fails no test
    std::filesystem::remove_all(path_, ignored);
}

std::string temp_dir::write(std::string_view name, std::string_view text) const {
    const auto path = file(name);
    std::ofstream{path, std::ios::binary} << text;
    return path;
}

std::string read_file(const std::filesystem::path& path) {
    // Not byte by byte: the program under AddressSanitizer has 180 MB. Files of /proc say no size.
    std::ifstream in{path, std::ios::binary};
    std::string all;
    std::array<char, 1 << 16> piece;
    while (in.read(piece.data(), piece.size()), in.gcount() > 0) {
        all.append(piece.data(), static_cast<std::size_t>(in.gcount()));
    }
    return all;
}

}  // namespace reprise::tests
