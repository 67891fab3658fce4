#include "config/json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

// nlohmann's parser calls `builder`, which makes the tree and says stop at a limit; where in the
// text that was is counted only for a mistake. What a message shows of a value is bounded by
// brief_writer.

namespace reprise::config {
namespace {

using nlohmann::json;

constexpr std::size_t most_reason = 200;

std::string printable(std::string_view text) {
    std::string out{text.substr(0, most_reason)};
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    return out;
}

// nlohmann's sentence without its prefix, "[json.exception.parse_error.101] parse error at line 1,
// column 2: syntax error while ..."; where that is not its shape, the whole of it.
std::string reason_of(std::string_view what) {
    if (what.find("number overflow") != what.npos) {
        return "a number here is too large";
    }
    constexpr std::string_view before = "syntax error ";
    if (const auto at = what.find(before); at != what.npos) {
        what.remove_prefix(at + before.size());
    }
    // Its "last read" repeats the token, which may be as long as the file.
    const auto last_read = what.find("; last read: ");
    const auto expected = what.rfind("; expected ");
    std::string told = printable(what.substr(0, last_read));
    if (last_read != what.npos && expected != what.npos && expected > last_read) {
        told += printable(what.substr(expected));
    }
    const bool found_end = told.find("unexpected '}'") != told.npos ||
                           told.find("unexpected ']'") != told.npos;
    if (found_end && told.find("expected end of input") == told.npos) {
        told += "; JSON has no comma after the last member";
    }
    return told.substr(0, most_reason);
}

// Builds the tree as the text is read. A pointer to an open array or object stays good because its
// parent grows no further until it is closed.
class builder final : public json::json_sax_t {
public:
    builder(json_value& root, const json_limits& limits) : root_{root}, limits_{limits} {}

    json_error error;

    bool null() override { return add(json_kind::null) != nullptr; }
    bool boolean(bool truth) override {
        auto* value = add(json_kind::boolean);
        return value && ((value->truth = truth), true);
    }
    bool number_integer(json::number_integer_t number) override {
        auto* value = add(json_kind::integer);
        if (!value) {
            return false;
        }
        value->negative = number < 0;
        value->whole = value->negative ? 0 : static_cast<std::uint64_t>(number);
        value->number = static_cast<double>(number);
        value->text = std::to_string(number);
        return true;
    }
    bool number_unsigned(json::number_unsigned_t number) override {
        auto* value = add(json_kind::integer);
        if (!value) {
            return false;
        }
        value->whole = number;
        value->number = static_cast<double>(number);
        value->text = std::to_string(number);
        return true;
    }
    bool number_float(json::number_float_t number, const std::string& text) override {
        auto* value = add(json_kind::real);
        if (!value) {
            return false;
        }
        value->number = number;
        value->text = text;
        return true;
    }
    bool string(std::string& text) override {
        auto* value = add(json_kind::text);
        return value && ((value->text = std::move(text)), true);
    }
    bool binary(json::binary_t&) override { return false; }  // no JSON text has any
    bool key(std::string& name) override {
        open_.back()->names.push_back(std::move(name));
        return true;
    }
    bool start_object(std::size_t) override { return open(json_kind::object); }
    bool start_array(std::size_t) override { return open(json_kind::array); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }
    bool parse_error(std::size_t position,
                     const std::string&,
                     const nlohmann::detail::exception& what) override {
        position_ = position;
        at_position_ = true;
        error.reason = reason_of(what.what());
        return false;
    }

    /// Where the parser stopped, if it was the parser.
    [[nodiscard]] const std::size_t* position() const {
        return at_position_ ? &position_ : nullptr;
    }

private:
    json_value* add(json_kind kind) {
        if (++values_ > limits_.values) {
            error.reason = "more than " + std::to_string(limits_.values) + " values";
            return nullptr;
        }
        auto& value = open_.empty() ? root_ : open_.back()->items.emplace_back();
        value.kind = kind;
        return &value;
    }
    bool open(json_kind kind) {
        if (open_.size() >= limits_.depth) {
            error.reason = "arrays and objects nested deeper than " + std::to_string(limits_.depth);
            return false;
        }
        auto* value = add(kind);
        if (value) {
            open_.push_back(value);
        }
        return value != nullptr;
    }
    bool close() {
        open_.pop_back();
        return true;
    }

    json_value& root_;
    const json_limits& limits_;
    std::vector<json_value*> open_;
    std::size_t values_ = 0;
    std::size_t position_ = 0;
    bool at_position_ = false;
};

// Appends to `out` until it is over the limit, so that the cost is the limit's, not the value's.
class brief_writer {
public:
    explicit brief_writer(std::size_t most) : most_{most} {}

    void value(const json_value& shown) {
        switch (shown.kind) {
        case json_kind::null: raw("null"); break;
        case json_kind::boolean: raw(shown.truth ? "true" : "false"); break;
        case json_kind::integer:
        case json_kind::real: raw(shown.text); break;
        case json_kind::text: string(shown.text); break;
        case json_kind::array:
        case json_kind::object: members(shown); break;
        }
    }

    void string(std::string_view text) {
        raw("\"");
        for (std::size_t i = 0; i < text.size() && !is_over(); ++i) {
            const auto c = static_cast<unsigned char>(text[i]);
            const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0u;
            if (c == '"' || c == '\\') {
                out_ += {'\\', static_cast<char>(c)};
            } else if (c < 0x20 || c == 0x7f) {
                escape(c);
            } else if (c == 0xc2 && next >= 0x80 && next < 0xa0) {
                escape(next);  // U+0080 to U+009F move a terminal's cursor, as C0 does
                ++i;
            } else {
                out_ += static_cast<char>(c);
            }
        }
        raw("\"");
    }

    std::string take() && {
        if (is_over()) {
            out_.resize(most_ > 3 ? most_ - 3 : 0);
            while (!out_.empty() && (static_cast<unsigned char>(out_.back()) & 0xc0) == 0x80) {
                out_.pop_back();
            }
            if (!out_.empty() && static_cast<unsigned char>(out_.back()) >= 0xc0) {
                out_.pop_back();  // a character cut in two
            }
            out_ += "...";
        }
        return std::move(out_);
    }

private:
    [[nodiscard]] bool is_over() const { return out_.size() > most_; }
    void raw(std::string_view text) {
        if (!is_over()) {
            out_ += text.substr(0, most_ + 1);
        }
    }
    void escape(unsigned code) {
        constexpr std::string_view digits = "0123456789abcdef";
        out_ += "\\u00";
        out_ += digits[code >> 4];
        out_ += digits[code & 15];
    }
    void members(const json_value& shown) {
        const bool named = shown.kind == json_kind::object;
        raw(named ? "{" : "[");
        for (std::size_t i = 0; i < shown.items.size() && !is_over(); ++i) {
            raw(i == 0 ? "" : ", ");
            if (named) {
                string(shown.names[i]);
                raw(": ");
            }
            value(shown.items[i]);
        }
        raw(named ? "}" : "]");
    }

    std::size_t most_;
    std::string out_;
};

/// Where the byte at `offset` is, which a person counts from 1.
void set_place(json_error& error, std::string_view text, std::size_t offset) {
    const auto before = text.substr(0, offset);
    const auto line_break = before.rfind('\n');
    const auto lines = std::count(before.begin(), before.end(), '\n');
    error.line = static_cast<std::size_t>(lines) + 1;
    error.column = (line_break == before.npos ? offset : offset - line_break - 1) + 1;
}

}  // namespace

std::variant<json_value, json_error> parse_json(std::string_view text, const json_limits& limits) {
    if (text.size() > limits.bytes) {
        return json_error{0, 0, "longer than " + std::to_string(limits.bytes) + " bytes"};
    }
    json_value root;
    builder building{root, limits};
    if (json::sax_parse(
            text.begin(), text.end(), &building, json::input_format_t::json, true, true)) {
        // To the parser a zero byte is the end, and what comes behind it would be passed over in silence.
        if (const auto zero = text.find('\0'); zero != text.npos) {
            json_error error{0, 0, "a zero byte: nothing of a text comes behind it"};
            set_place(error, text, zero);
            return error;
        }
        return root;
    }
    auto error = std::move(building.error);
    if (const auto* position = building.position()) {
        // The parser counts the bytes it has read, the offending one included.
        set_place(error, text, std::min(*position > 0 ? *position - 1 : 0, text.size()));
    }
    return error;
}

std::string brief(const json_value& value, std::size_t most) {
    brief_writer out{most};
    out.value(value);
    return std::move(out).take();
}

std::string in_quotes(std::string_view text, std::size_t most) {
    brief_writer out{most};
    out.string(text);
    return std::move(out).take();
}

}  // namespace reprise::config
