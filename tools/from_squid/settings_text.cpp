#include "tools/from_squid/settings_text.hpp"

#include "config/load.hpp"
#include "config/mistake.hpp"
#include "config/settings.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

namespace reprise::from_squid {

namespace {

constexpr std::size_t most_of_line = 160;

// For a comment that ends with its line: printable ASCII, cut.
std::string in_comment(std::string_view text, std::size_t most) {
    std::string out;
    for (const char c : text.substr(0, most)) {
        const bool plain = c >= ' ' && c <= '~';
        out.push_back(plain ? c : '?');
    }
    return out + (text.size() > most ? "..." : "");
}

std::string comment_of(const note& one) {
    std::string out{to_string(one.what)};
    if (one.where.line != 0) {
        out += " (" + in_comment(to_string(one.where), 80) + ')';
    }
    if (!one.line.empty()) {
        out += ": " + in_comment(one.line, most_of_line);
    }
    return out + ": " + in_comment(one.why, 400);
}

// The comments that stand above `path`, each once, in `indent`.
void append_comments(std::string& out,
                     const notes& told,
                     std::vector<bool>& said,
                     std::string_view path,
                     std::string_view indent) {
    for (std::size_t i = 0; i < told.size(); ++i) {
        if (!said[i] && told[i].setting == path) {
            said[i] = true;
            out.append(indent).append("// ").append(comment_of(told[i])).append("\n");
        }
    }
}

// Sections whose members have a line each; lists of objects are written one object a line.
std::string value_text(const ordered_json& value, std::string_view indent) {
    const bool of_objects = value.is_array() && !value.empty() && value.front().is_object();
    if (!of_objects) {
        return value.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
    }
    std::string out = "[";
    for (std::size_t i = 0; i < value.size(); ++i) {
        out.append(i == 0 ? "\n" : ",\n").append(indent).append("  ");
        out.append(value[i].dump(-1, ' ', true, ordered_json::error_handler_t::replace));
    }
    return out.append("\n").append(indent).append("]");
}

// "access.deny_destinations[3].x" -> the parts "access", "deny_destinations", 3, "x".
struct step {
    std::string name;
    std::optional<std::size_t> index;
};

std::vector<step> steps_of(std::string_view path) {
    std::vector<step> out;
    while (!path.empty()) {
        const auto end = path.find_first_of(".[");
        if (end != 0) {
            out.push_back({std::string{path.substr(0, end)}, std::nullopt});
        }
        if (end == std::string_view::npos) {
            break;
        }
        path.remove_prefix(end);
        if (path.front() == '.') {
            path.remove_prefix(1);
            continue;
        }
        const auto close = std::min(path.find(']'), path.size() - 1);
        std::size_t index = 0;
        for (const char c : path.substr(1, close - 1)) {
            index = index * 10 + static_cast<std::size_t>(c - '0') % 10;
        }
        out.push_back({"", index});
        path.remove_prefix(close + 1);
    }
    return out;
}

// Takes out the list's element, or the member, that a mistake is about: the outermost list's where
// there is one, since half an object says something else. False: it is not there.
bool take_out(ordered_json& settings, std::string_view path) {
    ordered_json* at = &settings;
    const auto steps = steps_of(path);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const bool last = i + 1 == steps.size();
        if (steps[i].index) {
            if (!at->is_array() || *steps[i].index >= at->size()) {
                return false;
            }
            at->erase(*steps[i].index);
            return true;
        }
        if (!at->is_object() || !at->contains(steps[i].name)) {
            return false;
        }
        if (last) {
            at->erase(steps[i].name);
            return true;
        }
        at = &(*at)[steps[i].name];
    }
    return false;
}

}  // namespace

std::string text_of(const ordered_json& settings, const notes& told) {
    std::vector<bool> said(told.size(), false);
    std::string out =
        "// Made of a squid.conf by reprise-from-squid. Each comment names a line of that, and "
        "what\n"
        "// became of it. Lines that are not named mean here what they meant there.\n{\n";
    std::size_t left = settings.size();
    for (const auto& [section, value] : settings.items()) {
        append_comments(out, told, said, section, "  ");
        out.append("  \"").append(section).append("\": ");
        if (!value.is_object()) {
            out.append(value_text(value, "  "));
        } else {
            out.append("{\n");
            std::size_t members = value.size();
            for (const auto& [name, of] : value.items()) {
                append_comments(out, told, said, section + '.' + name, "    ");
                out.append("    \"").append(name).append("\": ").append(value_text(of, "    "));
                out.append(--members > 0 ? ",\n" : "\n");
            }
            out.append("  }");
        }
        out.append(--left > 0 ? ",\n" : "\n");
    }
    for (std::size_t i = 0; i < told.size(); ++i) {
        if (!said[i]) {
            out.append("  // ").append(comment_of(told[i])).append("\n");
        }
    }
    return out.append("}\n");
}

namespace {

bool has_forward(const ordered_json& settings) {
    const auto listeners = settings.find("listeners");
    return listeners == settings.end() ||
           std::any_of(listeners->begin(), listeners->end(), [](const ordered_json& one) {
               return !one.is_object() || one.value("mode", "forward") == "forward";
           });
}

}  // namespace

void drop_refused(ordered_json& settings, notes& told) {
    // Each round takes at least one value out, or ends.
    for (;;) {
        const auto answer = config::load(
            settings.dump(-1, ' ', true, ordered_json::error_handler_t::replace));
        const auto* wrong = std::get_if<std::vector<config::mistake>>(&answer);
        if (wrong == nullptr) {
            return;
        }
        bool changed = false;
        std::string gone;  // the list's element that was taken out last
        // From the last on, so that the places of earlier elements stay.
        for (auto one = wrong->rbegin(); one != wrong->rend(); ++one) {
            const auto element = one->path.substr(0, one->path.find(']') + 1);
            if (!element.empty() && element == gone) {
                continue;  // a second mistake of the same
            }
            const auto section = one->path.substr(0, one->path.find_first_of(".["));
            bool taken = take_out(settings, one->path);
            if (!taken && settings.contains(section)) {
                settings.erase(section);
                taken = true;
            }
            if (taken) {
                gone = element;
                changed = true;
                const bool restrained = one->path.starts_with("access.deny_destinations") ||
                                        one->path == "access.connect_ports" ||
                                        one->path == "access.request_ports" ||
                                        one->path == "peering.never_direct";
                auto why = config::to_string(*one);
                // All of it, since there are too many; where no listener is forward neither would be looked at.
                if (one->path == "access.deny_destinations" && has_forward(settings)) {
                    why += "; write the hosts into a file and name that in access.block_lists";
                }
                told.push_back(
                    {restrained ? fate::laxer : fate::left_out, {}, "", std::move(why), section});
            }
        }
        if (!changed) {
            settings = ordered_json::object();
            told.push_back({fate::left_out,
                            {},
                            "",
                            "all of it, for what can't be left out alone: " +
                                config::to_string(wrong->front()),
                            ""});
        }
    }
}

bool has_setting(std::string_view path) {
    const auto& all = config::all_settings();
    return std::any_of(
        all.begin(), all.end(), [&](const config::setting& one) { return one.path == path; });
}

}  // namespace reprise::from_squid
