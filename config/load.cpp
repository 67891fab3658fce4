#include "config/load.hpp"

#include "config/json.hpp"
#include "config/settings.hpp"

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

namespace reprise::config {
namespace {

constexpr std::string_view before_line = "line ";

mistake syntax_mistake(const json_error& error) {
    if (error.line == 0) {
        return {"", "", error.reason};
    }
    return {std::string{before_line} + std::to_string(error.line) + ", column " +
                std::to_string(error.column),
            "",
            error.reason};
}

loaded all_or_none(reading what) {
    if (!what.mistakes.empty()) {
        return std::move(what.mistakes);
    }
    return std::move(what.wanted);
}

}  // namespace

bool leaves_open(const mistake& wrong, std::string_view section) {
    const std::string_view path{wrong.path};
    return path.empty() || path.starts_with(before_line) || path == section ||
           (path.starts_with(section) && path.substr(section.size()).starts_with('.')) ||
           wrong.right.ends_with(did_you_mean(section));
}

reading read(std::string_view json_text) {
    const auto parsed_text = parse_json(json_text, {.bytes = most_file_bytes});
    if (const auto* error = std::get_if<json_error>(&parsed_text)) {
        return {{}, {syntax_mistake(*error)}};
    }
    report found;
    reading out;
    read_object(settings_table(), std::get<json_value>(parsed_text), out.wanted, place{found});
    if (found.count() > 0) {
        out.mistakes = std::move(found).take();
    }
    return out;
}

loaded load(std::string_view json_text) {
    return all_or_none(read(json_text));
}

reading read_file(const std::string& path) {
    const auto unreadable = [&path] {
        const auto why = std::error_code{errno, std::generic_category()}.message();
        return reading{{}, {{"", "", "cannot read " + in_quotes(path, 300) + ": " + why}}};
    };
    errno = 0;
    std::ifstream file{path, std::ios::binary};
    if (!file) {
        return unreadable();
    }
    // One byte more than is taken, so that a longer file is told from one that just fits.
    std::string text(most_file_bytes + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad() || (file.gcount() == 0 && errno != 0)) {
        return unreadable();  // a directory opens and cannot be read
    }
    text.resize(static_cast<std::size_t>(file.gcount()));
    return read(text);
}

loaded load_file(const std::string& path) {
    return all_or_none(read_file(path));
}

}  // namespace reprise::config
