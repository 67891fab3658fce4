#include "tests/agreement/replay_run.hpp"

#include <array>
#include <sstream>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#ifndef REPRISE_REPLAY
#error "REPRISE_REPLAY must be the path of reprise-replay"
#endif

namespace reprise::tests {

namespace {

std::vector<std::string> split(const std::string& line) {
    std::vector<std::string> out;
    std::istringstream in{line};
    for (std::string cell; std::getline(in, cell, ',');) {
        out.push_back(cell);
    }
    return out;
}

/// Standard output of a program that ends with status 0.
std::string output_of(std::vector<std::string> words) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) {
        throw std::runtime_error("no pipe");
    }
    std::vector<char*> argv;
    for (auto& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(ends[1], STDOUT_FILENO);
        ::close(ends[0]);
        ::close(ends[1]);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    ::close(ends[1]);
    std::string out;
    std::array<char, 4096> piece;
    for (ssize_t got = 0; (got = ::read(ends[0], piece.data(), piece.size())) > 0;) {
        out.append(piece.data(), static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    int status = -1;
    if (child > 0) {
        ::waitpid(child, &status, 0);
    }
    if (status != 0) {
        throw std::runtime_error("reprise-replay failed:\n" + out);
    }
    return out;
}

}  // namespace

std::vector<replay_row> run_replay(const std::vector<std::string>& arguments) {
    std::vector<std::string> words{REPRISE_REPLAY, "--csv", "--quiet"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::istringstream in{output_of(words)};
    std::string line;
    std::getline(in, line);
    const auto names = split(line);
    std::vector<replay_row> rows;
    while (std::getline(in, line)) {
        const auto cells = split(line);
        replay_row row;
        for (std::size_t i = 0; i < cells.size() && i < names.size(); ++i) {
            row[names[i]] = cells[i];
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

double number_in(const replay_row& row, const std::string& column) {
    const auto found = row.find(column);
    if (found == row.end()) {
        throw std::runtime_error("reprise-replay has no column " + column);
    }
    return std::stod(found->second);
}

}  // namespace reprise::tests
