#include "tests/agreement/replay_run.hpp"

#include "tests/support/proxy_process.hpp"

#include <sstream>
#include <stdexcept>

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

}  // namespace

std::vector<replay_row> run_replay(const std::vector<std::string>& arguments) {
    std::vector<std::string> words{REPRISE_REPLAY, "--csv", "--quiet"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const auto ran = run_to_its_end(words, std::chrono::hours{1});
    if (ran.exit_status != 0) {
        throw std::runtime_error("reprise-replay failed:\n" + ran.output + ran.errors);
    }
    std::istringstream in{ran.output};
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
