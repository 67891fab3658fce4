// Gives a fuzz target every file of its corpus, and each once more cut in the middle, so that what
// a fuzzer found stays found wherever there is no fuzzer. The target ends the program when a
// promise is broken; the last name printed is the input that broke it.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void give(const std::string& bytes) {
    // A copy of exactly this size, so that a sanitizer sees a read past its end.
    const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: %s CORPUS-FOLDER\n", arguments[0]);
        return 2;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator{arguments[1]}) {
        files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
        std::printf("%s\n", file.filename().c_str());
        std::fflush(stdout);
        std::ifstream in{file, std::ios::binary};
        const std::string bytes{std::istreambuf_iterator<char>{in}, {}};
        give(bytes);
        give(bytes.substr(0, bytes.size() / 2));
    }
    give("");
    return files.empty() ? 1 : 0;  // a corpus that has gone missing is no success
}
