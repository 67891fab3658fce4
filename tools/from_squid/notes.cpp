#include "tools/from_squid/notes.hpp"

namespace reprise::from_squid {

std::string_view to_string(fate what) noexcept {
    switch (what) {
    case fate::changed: return "changed";
    case fate::approximated: return "approximated";
    case fate::left_out: return "left out";
    case fate::laxer: return "LEFT OUT, ALLOWS MORE";
    }
    return "left out";
}

namespace {

// In the place of a password: the settings are read by more people than a squid.conf.
constexpr std::string_view hidden = "...";

bool starts_program(const statement& from) {
    return from.name() == "auth_param" || from.name() == "external_acl_type" ||
           from.name().ends_with("_program");
}

// Some words for login= say where a login comes from, and are none.
bool names_no_login(std::string_view value) {
    return value == "PASS" || value == "PASSTHRU" || value == "NEGOTIATE" ||
           value.starts_with("NEGOTIATE:");
}

// The word at `index`, without what of it is a password: of a parent (login=), of the cache manager, of
// WCCP, and of those that helper programs are started with (-w, --password).
std::string shown(const statement& from, std::size_t index) {
    const auto& text = from.words[index].text;
    const auto up_to = [&](std::string_view name) {
        return text.substr(0, name.size()).append(hidden);
    };
    if (from.name() == "cachemgr_passwd" && index == 1 && text != "none" && text != "disable") {
        return std::string{hidden};
    }
    for (const std::string_view option : {"login=", "password=", "--password="}) {
        if (text.starts_with(option) && !names_no_login(text.substr(option.size()))) {
            return up_to(option);
        }
    }
    if (index > 1 && starts_program(from)) {
        const auto& before = from.words[index - 1].text;
        if (before == "-w" || before == "--password") {
            return std::string{hidden};
        }
        if (text.starts_with("-w") && text.size() > 2) {
            return up_to("-w");
        }
    }
    return text;
}

}  // namespace

std::string text_of(const statement& from) {
    std::string out;
    for (std::size_t i = 0; i < from.words.size(); ++i) {
        out.append(out.empty() ? "" : " ");
        const auto text = shown(from, i);
        out.append(from.words[i].quoted ? '"' + text + '"' : text);
    }
    return out;
}

}  // namespace reprise::from_squid
