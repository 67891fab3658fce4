#include "config/table.hpp"

#include "config/settings.hpp"

namespace reprise::config {
namespace {

// The objects that have a member of this name, or that this dotted path names a member of.
std::string homes_of(std::string_view name) {
    std::vector<std::string_view> homes;
    for (const auto& known : all_settings()) {
        const std::string_view path = known.path;
        const auto dot = path.rfind('.');
        if (dot != path.npos && (path.substr(dot + 1) == name || path == name)) {
            homes.push_back(path.substr(0, dot));
        }
    }
    std::string text;
    for (std::size_t i = 0; i < homes.size(); ++i) {
        text += i == 0 ? "" : i + 1 == homes.size() ? " or " : ", ";
        text += homes[i];
    }
    return text;
}

// Reports a name that no row has, with the nearest that one has.
void report_unknown(std::string_view name, const std::vector<row_head>& rows, const place& here) {
    std::vector<std::string_view> known;
    for (const auto& one : rows) {
        known.push_back(one.name);
    }
    std::string right = "unknown setting";
    if (here.found().is_full()) {
        // It will be counted and not shown.
    } else if (const auto homes = homes_of(name); !homes.empty()) {
        right += "; it is a member of " + homes;
    } else if (const auto meant = nearest(name, known); !meant.empty()) {
        right += did_you_mean(meant);
    } else {
        right += "; known here are ";
        for (std::size_t i = 0; i < known.size(); ++i) {
            right += i == 0 ? "" : ", ";
            right += known[i];
        }
    }
    here.member(name).wrong(std::move(right));
}

}  // namespace

std::optional<given> read_members(
    const std::vector<row_head>& rows,
    std::string_view short_for,
    const json_value& from,
    const place& here,
    const std::function<void(std::size_t, const json_value&, const place&)>& read) {
    given members;
    const auto read_row = [&](std::string_view name, const json_value& value, const place& there) {
        const auto match = std::ranges::find(rows, name, &row_head::name);
        if (match == rows.end()) {
            report_unknown(name, rows, here);
        } else if (members.has(name)) {
            there.wrong(value, "given twice in one object; keep one");
        } else {
            const auto before = here.found().count();
            read(static_cast<std::size_t>(match - rows.begin()), value, there);
            members.note(match->name, here.found().count() == before);
        }
    };
    if (from.kind == json_kind::text && !short_for.empty()) {
        read_row(short_for, from, here);
    } else if (from.kind == json_kind::object) {
        for (std::size_t i = 0; i < from.items.size(); ++i) {
            read_row(from.names[i], from.items[i], here.member(from.names[i]));
        }
        for (const auto& one : rows) {
            if (one.required && !members.has(one.name)) {
                here.member(one.name).wrong("missing: it must be written");
            }
        }
    } else {
        here.wrong(from,
                   short_for.empty()
                       ? "must be an object: { ... }"
                       : "must be an object, or text: its \"" + std::string{short_for} + '"');
        return std::nullopt;
    }
    return members;
}

}  // namespace reprise::config
