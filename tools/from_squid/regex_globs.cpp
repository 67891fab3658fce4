#include "tools/from_squid/regex_globs.hpp"

#include <algorithm>
#include <cctype>

namespace reprise::from_squid {

namespace {

// The anchors, while a pattern is put together; no URL has such bytes.
constexpr char at_begin = '\x02';
constexpr char at_end = '\x03';
constexpr std::size_t most = 64;
constexpr std::size_t most_alternatives_of_class = 8;

using texts = std::vector<std::string>;

class regex_reader {
public:
    explicit regex_reader(std::string_view regex) : left_{regex} {}

    std::optional<texts> all() {
        auto out = alternatives(0);
        if (!out || !left_.empty()) {
            return std::nullopt;
        }
        return out;
    }
    [[nodiscard]] bool wider() const noexcept { return wider_; }

private:
    std::optional<texts> alternatives(std::size_t depth) {
        if (depth > 16) {
            return std::nullopt;
        }
        texts out;
        for (;;) {
            auto one = sequence(depth);
            if (!one) {
                return std::nullopt;
            }
            out.insert(out.end(), one->begin(), one->end());
            if (out.size() > most) {
                return std::nullopt;
            }
            if (!left_.starts_with('|')) {
                return out;
            }
            left_.remove_prefix(1);
        }
    }

    std::optional<texts> sequence(std::size_t depth) {
        texts out{""};
        while (!left_.empty() && left_.front() != '|' && left_.front() != ')') {
            auto next = repeated(depth);
            if (!next || out.size() * next->size() > most) {
                return std::nullopt;
            }
            texts joined;
            for (const auto& before : out) {
                for (const auto& after : *next) {
                    joined.push_back(before + after);
                }
            }
            out = std::move(joined);
        }
        return out;
    }

    std::optional<texts> repeated(std::size_t depth) {
        const bool any = left_.front() == '.';
        auto out = atom(depth);
        if (!out) {
            return std::nullopt;
        }
        if (left_.empty()) {
            return out;
        }
        switch (left_.front()) {
        case '?':
            left_.remove_prefix(1);
            if (any) {
                return texts{"*"};
            }
            out->emplace_back();
            return out;
        case '*':
            left_.remove_prefix(1);
            wider_ = wider_ || !any;
            return texts{"*"};
        case '+':
            left_.remove_prefix(1);
            wider_ = true;
            return texts{"*"};
        case '{': {
            const auto end = left_.find('}');
            if (end == std::string_view::npos) {
                return std::nullopt;
            }
            left_.remove_prefix(end + 1);
            wider_ = true;
            return texts{"*"};
        }
        default: return out;
        }
    }

    std::optional<texts> atom(std::size_t depth) {
        const char first = left_.front();
        left_.remove_prefix(1);
        switch (first) {
        case '.': wider_ = wider_ || !repeats_next(); return texts{"*"};
        case '^': return texts{{at_begin}};
        case '$': return texts{{at_end}};
        case '(': return group(depth);
        case '[': return char_class();
        case '\\': return escaped();
        case '*':
        case '+':
        case '?':
        case '{': return std::nullopt;
        default: return literal(first);
        }
    }

    [[nodiscard]] bool repeats_next() const noexcept { return left_.starts_with('*'); }

    static std::optional<texts> literal(char c) {
        if (c == at_begin || c == at_end || c == '\0') {
            return std::nullopt;
        }
        return texts{std::string(1, c)};
    }

    std::optional<texts> group(std::size_t depth) {
        if (left_.starts_with("?:")) {
            left_.remove_prefix(2);
        } else if (left_.starts_with('?')) {
            return std::nullopt;
        }
        auto out = alternatives(depth + 1);
        if (!out || !left_.starts_with(')')) {
            return std::nullopt;
        }
        left_.remove_prefix(1);
        return out;
    }

    std::optional<texts> escaped() {
        if (left_.empty()) {
            return std::nullopt;
        }
        const auto c = left_.front();
        left_.remove_prefix(1);
        if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
            return std::nullopt;  // a back reference
        }
        if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
            wider_ = true;  // \w, \d, \b and the like
            return texts{"*"};
        }
        wider_ = wider_ || c == '*';
        return literal(c);
    }

    std::optional<texts> char_class() {
        std::string members;
        bool simple = !left_.starts_with('^');
        left_.remove_prefix(simple ? 0 : 1);
        for (bool first = true;; first = false) {
            if (left_.empty()) {
                return std::nullopt;
            }
            const char c = left_.front();
            left_.remove_prefix(1);
            if (c == ']' && !first) {
                break;
            }
            if (c == '[' && !skip_named_members()) {
                return std::nullopt;
            }
            simple = simple && c != '-' && c != '[' && c != '\\';
            members.push_back(c);
        }
        if (!simple || members.size() > most_alternatives_of_class) {
            wider_ = true;
            return texts{"*"};
        }
        texts out;
        for (const char c : members) {
            const auto one = literal(c);
            if (!one) {
                return std::nullopt;
            }
            wider_ = wider_ || c == '*';
            out.push_back(one->front());
        }
        return out;
    }

    // What follows a [ within a class: of [:digit:], [.hyphen.] and [=e=] all is taken, since the ] at
    // their end does not end the class. False: it has no end.
    bool skip_named_members() {
        if (left_.empty() ||
            std::string_view{":.="}.find(left_.front()) == std::string_view::npos) {
            return true;
        }
        const auto end = left_.find(std::string{left_.front(), ']'}, 1);
        if (end == std::string_view::npos) {
            return false;
        }
        left_.remove_prefix(end + 2);
        return true;
    }

    std::string_view left_;
    bool wider_ = false;
};

// None: an anchor in the middle, where no URL has one.
std::optional<std::string> finished(std::string text) {
    const bool begins = text.starts_with(at_begin);
    const bool ends = text.ends_with(at_end);
    text = text.substr(begins ? 1 : 0, text.size() - (begins ? 1 : 0) - (ends ? 1 : 0));
    if (text.find(at_begin) != std::string::npos || text.find(at_end) != std::string::npos) {
        return std::nullopt;
    }
    text = (begins ? "" : "*") + text + (ends ? "" : "*");
    text.erase(
        std::unique(text.begin(), text.end(), [](char a, char b) { return a == '*' && b == '*'; }),
        text.end());
    return text;
}

}  // namespace

std::optional<globs> globs_of(std::string_view regex) {
    regex_reader read{regex};
    const auto all = read.all();
    if (!all) {
        return std::nullopt;
    }
    globs out;
    for (const auto& each : *all) {
        auto made = finished(each);
        if (made &&
            std::find(out.patterns.begin(), out.patterns.end(), *made) == out.patterns.end()) {
            out.patterns.push_back(std::move(*made));
        }
    }
    out.wider = read.wider();
    return out;
}

}  // namespace reprise::from_squid
