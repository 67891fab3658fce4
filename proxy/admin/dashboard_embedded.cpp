// The files of dashboard/ as the assembler takes them in, with Chart.js from where the system has it.
// CMakeLists.txt beside this folder says where: REPRISE_DASHBOARD, REPRISE_CHART_JS.

#include "proxy/admin/dashboard_files.hpp"

#include <cstddef>
#include <string_view>

// Symbols `reprise_NAME` and `reprise_NAME_end` around what the .incbin lines bring.
// NOLINTNEXTLINE(cppcoreguidelines-macro-usage): a string literal for the assembler
#define REPRISE_EMBED(name, files)                                                                 \
    asm(".section .rodata,\"a\"\n.global reprise_" name "\nreprise_" name ":\n" files              \
        ".global reprise_" name "_end\nreprise_" name "_end:\n.byte 0\n.previous\n")
#define REPRISE_FILE(path) ".incbin \"" path "\"\n"

REPRISE_EMBED("page", REPRISE_FILE(REPRISE_DASHBOARD "/dashboard.html"));
REPRISE_EMBED("style", REPRISE_FILE(REPRISE_DASHBOARD "/dashboard.css"));
REPRISE_EMBED("script", REPRISE_FILE(REPRISE_DASHBOARD "/dashboard.js"));
REPRISE_EMBED("icon", REPRISE_FILE(REPRISE_DASHBOARD "/icon.svg"));
REPRISE_EMBED("charts",
              REPRISE_FILE(REPRISE_DASHBOARD "/chart_licence.js") REPRISE_FILE(REPRISE_CHART_JS));

#undef REPRISE_EMBED
#undef REPRISE_FILE

extern "C" {
extern const char reprise_page[], reprise_page_end[];
extern const char reprise_style[], reprise_style_end[];
extern const char reprise_script[], reprise_script_end[];
extern const char reprise_icon[], reprise_icon_end[];
extern const char reprise_charts[], reprise_charts_end[];
}

namespace reprise::proxy::admin::embedded {

namespace {

std::string_view between(const char* begin, const char* end) noexcept {
    return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::string_view page_template() noexcept {
    return between(reprise_page, reprise_page_end);
}
std::string_view style() noexcept {
    return between(reprise_style, reprise_style_end);
}
std::string_view script() noexcept {
    return between(reprise_script, reprise_script_end);
}
std::string_view icon() noexcept {
    return between(reprise_icon, reprise_icon_end);
}
std::string_view charts() noexcept {
    return between(reprise_charts, reprise_charts_end);
}

}  // namespace reprise::proxy::admin::embedded
