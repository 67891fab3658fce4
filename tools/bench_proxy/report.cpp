#include "tools/bench_proxy/report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <sys/utsname.h>
#include <unistd.h>

namespace reprise::bench {

namespace {

std::string number(double value) {
    std::array<char, 40> out{};
    const int digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 1 ? 2 : 3;
    std::snprintf(out.data(), out.size(), "%.*f", digits, value);
    return out.data();
}

std::string right(const std::string& text, std::size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string left(const std::string& text, std::size_t width) {
    return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

std::string line(const std::vector<std::string>& cells, std::size_t name_width) {
    auto out = "| " + left(cells[0], name_width) + " | " + left(cells[1], 5) + " |";
    for (std::size_t i = 2; i < cells.size(); ++i) {
        out += " " + (i + 1 == cells.size() ? cells[i] : right(cells[i], 8)) + " |";
    }
    return out + "\n";
}

}  // namespace

std::string table_of(const result& now, const std::vector<compared_row>& compared) {
    std::size_t width = 4;
    for (const auto& one : now.rows) {
        width = std::max(width, one.name.size());
    }
    auto out = line({"row", "unit", "median", "least", "most", "goal", "kept", ""}, width);
    out += "|" + std::string(width + 2, '-') +
           "|-------|---------:|---------:|---------:|---------:|---------:|---|\n";
    for (const auto& one : now.rows) {
        if (one.rounds.empty()) {
            continue;
        }
        const auto [least, most] = std::minmax_element(one.rounds.begin(), one.rounds.end());
        const auto median = median_of(one.rounds);
        const auto found = std::find_if(compared.begin(), compared.end(), [&](const auto& other) {
            return other.name == one.name;
        });
        const bool has_kept = found != compared.end() && found->said != verdict::no_row;
        out += line({one.name,
                     one.unit,
                     number(median),
                     number(*least),
                     number(*most),
                     one.goal ? number(*one.goal) : "",
                     has_kept ? number(found->kept) : "",
                     has_kept ? to_string(found->said) : ""},
                    width);
    }
    for (const auto& what : now.skipped) {
        out += "skipped: " + what + "\n";
    }
    for (const auto& what : now.notes) {
        out += what + "\n";
    }
    return out;
}

std::optional<result> last_kept(const std::string& folder) {
    constexpr std::string_view ending = "-bench.json";
    std::string last;
    if (std::filesystem::is_directory(folder)) {
        for (const auto& entry : std::filesystem::directory_iterator{folder}) {
            const auto name = entry.path().filename().string();
            if (name.size() > ending.size() && name.ends_with(ending)) {
                last = std::max(last, name);
            }
        }
    }
    if (last.empty()) {
        return std::nullopt;
    }
    return read_result(folder + "/" + last);
}

result read_result(const std::string& file) {
    try {
        std::ifstream in{file};
        return result_from(nlohmann::json::parse(in));
    } catch (const nlohmann::json::exception& error) {
        throw std::runtime_error(file + " is no result of this bench: " + error.what());
    }
}

void write_result(const std::string& file, const result& one) {
    std::ofstream out{file};
    out << to_json(one).dump(1) << "\n";
    if (!out.flush()) {
        throw std::runtime_error("cannot write " + file);
    }
}

std::string this_machine() {
    std::ifstream processors{"/proc/cpuinfo"};
    std::string name = "unknown";
    for (std::string text; std::getline(processors, text);) {
        if (text.rfind("model name", 0) == 0) {
            name = text.substr(text.find(':') + 2);
            break;
        }
    }
    utsname kernel{};
    ::uname(&kernel);
    return name + ", " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN)) + " processors, Linux " +
           short_release(kernel.release);
}

std::string short_release(std::string_view release) {
    const auto major_end = release.find('.');
    const auto minor_end = release.find_first_not_of("0123456789", major_end + 1);
    return std::string{release.substr(0, major_end == release.npos ? release.npos : minor_end)};
}

std::string now_as_text() {
    const auto now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    std::array<char, 40> out{};
    std::strftime(out.data(), out.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return out.data();
}

}  // namespace reprise::bench
