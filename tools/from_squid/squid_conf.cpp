#include "tools/from_squid/squid_conf.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace reprise::from_squid {

namespace {

constexpr std::string_view spaces = " \t\r\v\f";

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(spaces);
    if (first == std::string_view::npos) {
        return {};
    }
    return text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

// Squid's three macros, with what they are for a Squid of one process.
std::string with_macros(std::string_view text) {
    constexpr std::pair<std::string_view, std::string_view> macros[]{
        {"${process_number}", "1"}, {"${process_name}", "squid"}, {"${service_name}", "squid"}};
    std::string out;
    while (!text.empty()) {
        const auto dollar = text.find("${");
        out.append(text.substr(0, dollar));
        if (dollar == std::string_view::npos) {
            break;
        }
        text.remove_prefix(dollar);
        const auto* found = std::find_if(
            std::begin(macros), std::end(macros), [&](const auto& one) {
                return text.starts_with(one.first);
            });
        const bool known = found != std::end(macros);
        out.append(known ? found->second : text.substr(0, 2));
        text.remove_prefix(known ? found->first.size() : 2);
    }
    return out;
}

std::optional<long> whole_number_of(std::string_view text) {
    long value = 0;
    const auto* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    return read.ec == std::errc{} && read.ptr == end ? std::optional{value} : std::nullopt;
}

// true, false, and two numbers with = between them: all that Squid has.
std::optional<bool> truth_of(std::string_view expression) {
    const auto text = trimmed(expression);
    if (text == "true" || text == "false") {
        return text == "true";
    }
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) {
        const auto left = whole_number_of(trimmed(text.substr(0, equals)));
        const auto right = whole_number_of(trimmed(text.substr(equals + 1)));
        if (left && right) {
            return *left == *right;
        }
        return std::nullopt;
    }
    const auto number = whole_number_of(text);
    return number ? std::optional{*number != 0} : std::nullopt;
}

// What stands behind `keyword` in a line that begins with it; none: it begins with another word.
std::optional<std::string_view> behind(std::string_view line, std::string_view keyword) {
    if (!line.starts_with(keyword)) {
        return std::nullopt;
    }
    line.remove_prefix(keyword.size());
    const bool ends_there = line.empty() || spaces.find(line.front()) != std::string_view::npos;
    return ends_there ? std::optional{trimmed(line)} : std::nullopt;
}

// The conditionals around a line. O(1) each; a bit for each that is open. Squid asks the innermost
// alone: what an `if true` has is in force though the `if` around it is false (seen with 5.7).
class conditionals {
public:
    [[nodiscard]] bool in_force() const noexcept { return all_.empty() || all_.back(); }
    [[nodiscard]] bool any() const noexcept { return !all_.empty(); }
    void begin(bool truth) { all_.push_back(truth); }
    void turn() { all_.back().flip(); }
    void end() { all_.pop_back(); }

private:
    std::vector<bool> all_;
};

class conf_reader {
public:
    conf_reader(const file_source& files, const conf_limits& limits, squid_conf& into)
        : files_{files},
          limits_{limits},
          into_{into},
          left_{limits.bytes},
          files_left_{limits.files} {}

    void read_file(const std::string& path, const position& named_at, std::size_t depth) {
        if (depth > limits_.depth) {
            complain(named_at, "includes go too deep: " + path, true);
            return;
        }
        if (files_left_ == 0) {
            complain(named_at, "too many files: " + path + " is left out", true);
            return;
        }
        --files_left_;
        const auto text = files_.read(path);
        if (!text) {
            complain(named_at, "cannot read " + path, true);
            return;
        }
        if (text->size() > left_) {
            complain(named_at, "too much text: " + path + " is left out", true);
            return;
        }
        left_ -= text->size();
        read_text(*text, path, depth);
    }

private:
    void complain(const position& where, std::string what, bool hides = false) {
        into_.problems.push_back({where, std::move(what), hides});
    }

    void read_text(std::string_view text, const std::string& path, std::size_t depth) {
        conditionals around;
        std::size_t line_number = 0;
        position here{path, 0};
        std::string logical;
        bool awaits_more = false;
        while (!text.empty()) {
            const auto end = text.find('\n');
            auto line = text.substr(0, end);
            text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
            ++line_number;
            if (line.ends_with('\r')) {
                line.remove_suffix(1);
            }
            // Squid passes over comments and blank lines before it looks for a \ at the end, and takes
            // what stands before the first word away: so neither is continued nor ends what is, and a
            // word that the \ cuts goes on with the next line's first.
            line.remove_prefix(std::min(line.find_first_not_of(spaces), line.size()));
            if (line.empty() || line.front() == '#') {
                continue;
            }
            if (!awaits_more) {
                here.line = line_number;
                logical.clear();
            }
            awaits_more = line.ends_with('\\');
            logical.append(line.substr(0, line.size() - (awaits_more ? 1 : 0)));
            if (!awaits_more) {
                take_line(logical, here, around, depth);
            }
        }
        if (awaits_more) {
            complain(here, "is continued where the file ends: Squid takes no notice of it");
        }
        if (around.any()) {
            complain({path, line_number}, "an if without its endif", true);
        }
    }

    void take_line(std::string_view written,
                   const position& here,
                   conditionals& around,
                   std::size_t depth) {
        auto line = trimmed(written);
        if (line.empty() || line.front() == '#') {
            return;
        }
        const auto replaced = with_macros(line);
        line = replaced;
        if (const auto condition = behind(line, "if")) {
            auto truth = truth_of(*condition);
            if (!truth) {
                complain(here, "a condition that is not understood counts as false", true);
                truth = false;
            }
            around.begin(*truth);
            return;
        }
        // Whatever else stands on their lines.
        if (const bool turns = behind(line, "else").has_value(); turns || behind(line, "endif")) {
            if (!around.any()) {
                complain(here, std::string{turns ? "else" : "endif"} + " without an if");
            } else if (turns) {
                around.turn();
            } else {
                around.end();
            }
            return;
        }
        if (!around.in_force()) {
            return;
        }
        auto words = words_of(line);
        if (words.empty()) {
            return;
        }
        if (words.front().text != "include") {
            into_.statements.push_back({here, std::move(words)});
            return;
        }
        for (std::size_t i = 1; i < words.size(); ++i) {
            const auto found = files_.matches(words[i].text);
            if (found.empty()) {
                // A pattern may well be for files that are still to come.
                const bool pattern = words[i].text.find_first_of("*?[") != std::string::npos;
                complain(here, "includes nothing: " + words[i].text, !pattern);
            }
            for (const auto& each : found) {
                read_file(each, here, depth + 1);
            }
        }
    }

    const file_source& files_;
    const conf_limits& limits_;
    squid_conf& into_;
    std::size_t left_, files_left_;
};

}  // namespace

std::string to_string(const position& where) {
    return where.file.substr(where.file.rfind('/') + 1) + ":" + std::to_string(where.line);
}

std::vector<word> words_of(std::string_view line) {
    std::vector<word> out;
    for (;;) {
        const auto first = line.find_first_not_of(spaces);
        if (first == std::string_view::npos || line[first] == '#') {
            return out;
        }
        line.remove_prefix(first);
        word next;
        // parameters("file") is the newer way to name a file.
        constexpr std::string_view function = "parameters(";
        const bool called = line.starts_with(function);
        if (called) {
            line.remove_prefix(function.size());
        }
        if (line.starts_with('"')) {
            next.quoted = true;
            std::size_t at = 1;
            while (at < line.size() && line[at] != '"') {
                at += line[at] == '\\' && at + 1 < line.size() ? 1 : 0;
                next.text.push_back(line[at++]);
            }
            line.remove_prefix(std::min(at + 1, line.size()));
            if (called && line.starts_with(')')) {
                line.remove_prefix(1);
            }
        } else {
            const auto end = std::min(line.find_first_of(spaces), line.size());
            next.text = line.substr(0, end);
            line.remove_prefix(end);
        }
        out.push_back(std::move(next));
    }
}

std::vector<std::string> values_of(std::string_view text) {
    std::vector<std::string> out;
    while (!text.empty()) {
        const auto end = text.find('\n');
        auto line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (const auto hash = line.find('#');
            hash == 0 || (hash != std::string_view::npos &&
                          spaces.find(line[hash - 1]) != std::string_view::npos)) {
            line = line.substr(0, hash);
        }
        line = trimmed(line);
        if (!line.empty()) {
            out.emplace_back(line);
        }
    }
    return out;
}

squid_conf read_squid_conf(const std::string& path,
                           const file_source& files,
                           const conf_limits& limits) {
    squid_conf out;
    conf_reader{files, limits, out}.read_file(path, {path, 0}, 0);
    return out;
}

}  // namespace reprise::from_squid
