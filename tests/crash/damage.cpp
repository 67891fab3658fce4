#include "tests/crash/damage.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <sys/stat.h>
#include <vector>

namespace reprise::tests::crash {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t page = 4096;

void rewrite(const fs::path& file, std::uint64_t at, const char* bytes, std::size_t size) {
    std::fstream out{file, std::ios::in | std::ios::out | std::ios::binary};
    out.seekp(static_cast<std::streamoff>(at));
    out.write(bytes, static_cast<std::streamsize>(size));
}

void flip(const fs::path& file, std::uint64_t bit) {
    std::fstream both{file, std::ios::in | std::ios::out | std::ios::binary};
    both.seekg(static_cast<std::streamoff>(bit / 8));
    const auto byte = static_cast<char>(both.get() ^ (1 << bit % 8));
    both.seekp(static_cast<std::streamoff>(bit / 8));
    both.put(byte);
}

}  // namespace

damage_done& damage_done::operator+=(const damage_done& other) noexcept {
    flipped_bits += other.flipped_bits;
    zeroed_pages += other.zeroed_pages;
    foreign_pages += other.foreign_pages;
    truncated += other.truncated;
    removed += other.removed;
    journals += other.journals;
    return *this;
}

damage_done damage_store(const std::string& directory, std::uint64_t seed) {
    std::mt19937_64 dice{seed};
    const auto below = [&](std::uint64_t limit) {
        return std::uniform_int_distribution<std::uint64_t>{0, limit - 1}(dice);
    };
    std::vector<fs::path> segments;
    for (const auto& one : fs::directory_iterator{directory}) {
        if (one.path().filename().string().starts_with("s-")) {
            segments.push_back(one.path());
        }
    }
    std::sort(segments.begin(), segments.end());  // so that the seed says all
    damage_done done;
    if (segments.empty()) {
        return done;
    }
    const auto strokes = 1 + below(24);
    for (std::uint64_t i = 0; i < strokes; ++i) {
        const auto& file = segments[below(segments.size())];
        std::error_code gone;
        const auto size = fs::file_size(file, gone);
        if (gone || size < 2 * page) {
            continue;
        }
        const auto place = below(size / page) * page;
        switch (below(12)) {
        case 0:
            fs::resize_file(file, below(size));
            ++done.truncated;
            break;
        case 1:
            fs::remove(file);
            ++done.removed;
            break;
        case 2: {
            const std::array<char, page> zeros{};
            rewrite(file, place, zeros.data(), page);
            ++done.zeroed_pages;
            break;
        }
        case 3:
        case 4: {
            // A page of another segment, or of this one from elsewhere: written by the same store,
            // so each record in it is right by itself.
            std::array<char, page> foreign{};
            std::ifstream in{segments[below(segments.size())], std::ios::binary};
            in.seekg(static_cast<std::streamoff>(below(size / page) * page));
            if (in.read(foreign.data(), page)) {
                rewrite(file, place, foreign.data(), page);
                ++done.foreign_pages;
            }
            break;
        }
        default: {
            const auto bits = 1 + below(16);
            for (std::uint64_t bit = 0; bit < bits; ++bit) {
                flip(file, below(size * 8));
            }
            done.flipped_bits += bits;
        }
        }
    }
    const auto journal = fs::path{directory} / "purges";
    std::error_code none;
    const auto size = fs::file_size(journal, none);
    if (!none && size > 0 && below(4) == 0) {
        flip(journal, below(size * 8));
        ++done.flipped_bits;
        ++done.journals;
    }
    return done;
}

std::uint64_t bytes_on_disk(const std::string& directory) {
    std::uint64_t sum = 0;
    std::error_code gone;
    for (const auto& one : fs::recursive_directory_iterator{directory, gone}) {
        struct stat about {};
        if (one.is_regular_file(gone) && ::stat(one.path().c_str(), &about) == 0) {
            sum += static_cast<std::uint64_t>(about.st_blocks) * 512;
        }
    }
    return sum;
}

}  // namespace reprise::tests::crash
