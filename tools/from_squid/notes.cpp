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

std::string text_of(const statement& from) {
    std::string out;
    for (const auto& each : from.words) {
        out.append(out.empty() ? "" : " ");
        out.append(each.quoted ? '"' + each.text + '"' : each.text);
    }
    return out;
}

}  // namespace reprise::from_squid
