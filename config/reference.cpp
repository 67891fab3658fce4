#include "config/reference.hpp"

#include "config/settings.hpp"

#include <algorithm>
#include <string_view>

// Each page is a text of its own and a walk over all_settings(). They differ in how a text is set:
// by cell() for Markdown, by roff() for the manual page, by wrapped() for a terminal.

namespace reprise::config {
namespace {

constexpr std::size_t columns = 80;

bool is_group(const setting& shown) {
    return shown.type == "object" || shown.type == "list of objects";
}

bool is_top(const setting& shown) {
    return shown.path.find('.') == std::string::npos;
}

// "size, 1MiB to 4TiB": what may be written. The type of a list may be long enough alone.
std::string values_of(const setting& shown) {
    std::string text = shown.type;
    if (!shown.bounds.empty()) {
        text += ", " + shown.bounds;
    }
    // A size's bounds have units of their own.
    if (!shown.unit.empty() && shown.unit != "bytes") {
        text += " (" + shown.unit + ')';
    }
    return text;
}

std::string_view effect_of(const setting& shown) {
    return shown.changes == change::live ? "at reload" : "at restart";
}

std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '|' || c == '*' || c == '<') {
            out += '\\';
        }
        out += c;
    }
    return out;
}

// Words in lines of at most `columns`, each line after `indent` blanks.
std::string wrapped(std::string_view text, std::size_t indent) {
    std::string out;
    std::size_t width = columns;  // the first word begins a line
    while (!text.empty()) {
        const auto end = std::min(text.find(' '), text.size());
        const auto word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (width + 1 + word.size() > columns) {
            out += out.empty() ? "" : "\n";
            out.append(indent, ' ');
            width = indent;
        } else {
            out += ' ';
            ++width;
        }
        out += word;
        width += word.size();
    }
    return out + '\n';
}

constexpr std::string_view markdown_head = R"(# Settings

<!-- Made by tools/config_reference from the tables in *settings.cpp; do not edit. -->

`reprise --config FILE` reads one JSON object; `//` and `/* */` comments are allowed. What it does
not mention keeps its default. `reprise --check-config --config FILE` reports every mistake at once;
[example.json](example.json) loads as it stands.

- A **size** is text with a unit: B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of
  1024); or a plain number of bytes.
- A **duration** is text with a unit: ms, s, m, h, d.
- A **network** is `10.0.0.0/8`, `fc00::/7` or one address.
- A **destination** is a host (`deb.example.org`), its subdomains (`*.example.org`) or a network,
  each perhaps with a port: `localhost:8000`, `10.0.0.0/8:8080`, `[::1]:80`, `[fc00::/7]:80`.
- What changes **at reload** is in force after SIGHUP, with a file that has no mistakes: for what
  begins from then on. A request, a tunnel or a wait that has begun may go on by what it began
  with, and what is stored keeps its lifetime. What changes **at restart** keeps its value until
  then, and the log names it.
)";

constexpr std::string_view text_head =
    R"(The settings, one JSON object; // and /* */ comments are allowed. What a file
does not mention keeps its default.

  size         text with a unit: B, KB, MB, GB, TB, KiB, MiB, GiB, TiB; or bytes
  duration     text with a unit: ms, s, m, h, d
  network      10.0.0.0/8, fc00::/7 or one address
  destination  host, *.host or network, perhaps with :port; [::1]:80

"at reload": in force after SIGHUP, for what begins from then on.
"at restart": keeps its value until then.
)";

}  // namespace

std::string reference_markdown() {
    std::string out{markdown_head};
    bool in_table = false;
    for (const auto& shown : all_settings()) {
        if (is_top(shown)) {
            out += "\n## " + shown.path + "\n\n";
            in_table = false;
            if (is_group(shown)) {
                out += std::string{shown.why} + "\n\n";
                if (shown.type != "object") {
                    out += "A list of objects, " + shown.bounds + "; default `" + shown.standard +
                           "`; another number of them comes into force " +
                           std::string{effect_of(shown)} + ".\n\n";
                }
                continue;
            }
        }
        if (!in_table) {
            out += "| setting | value | default | changes | |\n|---|---|---|---|---|\n";
            in_table = true;
        }
        const auto standard = shown.in_words ? shown.standard : '`' + shown.standard + '`';
        out += "| `" + shown.path + "` | " + cell(values_of(shown)) + " | " + standard + " | " +
               std::string{effect_of(shown)} + " | " + cell(shown.why) + " |\n";
    }
    return out;
}

namespace {

// Text for a line of its own: nothing in it is a request or an escape of roff's, and a hyphen is the character
// that one types.
std::string roff(std::string_view text) {
    std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
    for (const char c : text) {
        if (c == '\\') {
            out += "\\e";
        } else if (c == '-') {
            out += "\\-";
        } else {
            out += c;
        }
    }
    return out;
}

constexpr std::string_view manual_head = R"(.SH NAME
reprise.json \- settings of the HTTP caching proxy Reprise
.SH SYNOPSIS
.B reprise \-\-config
.I FILE
.SH DESCRIPTION
One JSON object; // and /* */ comments are allowed.
What a file does not mention keeps its default.
.B reprise \-\-check\-config \-\-config
.I FILE
reports every mistake at once.
.TP
size
text with a unit: B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024); or a plain number of bytes.
.TP
duration
text with a unit: ms, s, m, h, d.
.TP
network
10.0.0.0/8, fc00::/7 or one address.
.TP
destination
a host (deb.example.org), its subdomains (*.example.org) or a network, each perhaps with a port.
.PP
What changes at reload is in force after SIGHUP, with a file that has no mistakes: for what begins from then on. A request, a
tunnel or a wait that has begun may go on by what it began with, and what is stored keeps its lifetime. What changes at restart
keeps its value until then, and the log names it.
.SH SETTINGS
)";

}  // namespace

std::string reference_manual(std::string_view version) {
    std::string out = ".\\\" Made by tools/config_reference from the table of settings.\n"
                      ".TH REPRISE.JSON 5 \"\" \"reprise " +
                      roff(version) + "\" \"File formats\"\n";
    out += manual_head;
    for (const auto& shown : all_settings()) {
        if (is_top(shown)) {
            out += ".SS " + roff(shown.path) + '\n';
            if (is_group(shown) && shown.type == "object") {
                out += roff(shown.why) + '\n';
                continue;
            }
        }
        out += ".TP\n.B " + roff(shown.path) + '\n' + roff(values_of(shown)) + "; default " +
               roff(shown.standard) + "; changes " + std::string{effect_of(shown)} + ".\n" +
               roff(shown.why) + '\n';
    }
    out += ".SH SEE ALSO\n.BR reprise (8)\n";
    return out;
}

std::string reference_text() {
    std::string out{text_head};
    for (const auto& shown : all_settings()) {
        out += '\n' + shown.path + '\n';
        if (!is_group(shown) || shown.type != "object" || !is_top(shown)) {
            out += wrapped(values_of(shown) + "; default " + shown.standard + "; changes " +
                               std::string{effect_of(shown)},
                           4);
        }
        out += wrapped(shown.why, 4);
    }
    return out;
}

}  // namespace reprise::config
