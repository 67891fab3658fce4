// Gives a fuzz target every input of its corpus, and each once more cut in the middle, so that what a fuzzer found stays
// found wherever there is no fuzzer. The target ends the program when a promise is broken; the last name printed is the
// input that broke it.
//
//   fuzz_TARGET corpus/TARGET               tries them: ctest runs this
//   fuzz_TARGET --pack FOLDER ARCHIVE       every file of a folder into one archive
//   fuzz_TARGET --unpack ARCHIVE FOLDER     and back, for a fuzzer to begin with
//
// In a corpus a file is one input, or, with the ending .archive, what fuzzers found, many small inputs in one file: of
// each its length, four bytes with the lowest first, and then itself.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

void give(std::string_view bytes) {
    // A copy of exactly this size, so that a sanitizer sees a read past its end.
    const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::string bytes_of(const fs::path& file) {
    std::ifstream in{file, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

std::vector<fs::path> files_in(const fs::path& folder) {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator{folder}) {
        out.push_back(entry.path());
    }
    std::sort(out.begin(), out.end());
    return out;
}

/// The inputs of an archive.
std::vector<std::string> unpacked(const std::string& archive) {
    constexpr std::size_t front = 4;
    std::vector<std::string> out;
    for (std::size_t at = 0; at < archive.size();) {
        std::size_t length = 0;
        for (std::size_t i = 0; i < front && at + i < archive.size(); ++i) {
            length |= std::size_t{static_cast<std::uint8_t>(archive[at + i])} << (8 * i);
        }
        if (archive.size() - at < front + length) {
            throw std::runtime_error("the archive is cut short");
        }
        out.push_back(archive.substr(at + front, length));
        at += front + length;
    }
    return out;
}

void pack(const fs::path& folder, const fs::path& archive) {
    std::ofstream out{archive, std::ios::binary};
    for (const auto& file : files_in(folder)) {
        const auto bytes = bytes_of(file);
        for (unsigned i = 0; i < 4; ++i) {
            out.put(static_cast<char>(bytes.size() >> (8 * i)));
        }
        out << bytes;
    }
}

int replay(const fs::path& corpus) {
    std::size_t tried = 0;
    for (const auto& file : files_in(corpus)) {
        const bool is_archive = file.extension() == ".archive";
        const auto inputs = is_archive ? unpacked(bytes_of(file)) : std::vector{bytes_of(file)};
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            std::printf("%s", file.filename().c_str());
            std::printf(is_archive ? ", %zu\n" : "\n", i);
            std::fflush(stdout);
            give(inputs[i]);
            give(inputs[i].substr(0, inputs[i].size() / 2));
        }
        tried += inputs.size();
    }
    give("");
    std::printf("%zu inputs\n", tried);
    return tried == 0 ? 1 : 0;  // a corpus that has gone missing is no success
}

}  // namespace

int main(int count, char** arguments) {
    const std::vector<std::string> words(arguments + 1, arguments + count);
    try {
        if (words.size() == 1) {
            return replay(words[0]);
        }
        if (words.size() == 3 && words[0] == "--pack") {
            pack(words[1], words[2]);
            return 0;
        }
        if (words.size() == 3 && words[0] == "--unpack") {
            const auto inputs = unpacked(bytes_of(words[1]));
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                std::ofstream{fs::path{words[2]} / std::to_string(i), std::ios::binary}
                    << inputs[i];
            }
            return 0;
        }
        std::fprintf(stderr,
                     "usage: %s CORPUS, --pack FOLDER ARCHIVE or --unpack ARCHIVE FOLDER\n",
                     arguments[0]);
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "%s\n", failed.what());
    }
    return 2;
}
