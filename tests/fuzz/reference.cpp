// Whatever a Location says, what it names from a path is an absolute path without dots, and no longer
// than both.

#include "proxy/http/reference.hpp"

#include "tests/fuzz/require.hpp"

#include <string>

using namespace reprise::fuzz;
using namespace reprise::proxy::http;

namespace {

void check(std::string_view base, std::string_view reference) {
    const auto named = resolve_path(base, reference);
    require(named.size() <= base.size() + reference.size() + 1);
    require(named.starts_with('/'));
    require(named.find('#') == std::string::npos);
    const auto path = named.substr(0, named.find('?')) + '/';
    require(path.find("/./") == std::string::npos && path.find("/../") == std::string::npos);
    // It is its own path, from wherever it is looked at.
    require(resolve_path(base, named) == named);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto reference = text_of(data, size);
    for (const std::string_view base : {"/", "/a/b?x", "/a/b/", "/?q/../r"}) {
        check(base, reference);
    }
    (void)has_scheme(reference);
    return 0;
}
