// Any text as a request target, of any method: what is accepted has a key that is its own key, and
// a Host that we would accept.

#include "proxy/http/target.hpp"

#include "tests/fuzz/require.hpp"

#include <string>
#include <string_view>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy;
using namespace reprise::proxy::http;
using boost::beast::http::verb;

void try_absolute(std::string_view text, target_forms forms) {
    const auto parsed = parse_target(verb::get, text, forms);
    if (parsed.has_error()) {
        require(!parsed.error().detail.empty());
        return;
    }
    require(parsed->port != 0 && !parsed->host.empty() && parsed->host.size() <= 255);
    require(!parsed->secure || forms.has(target_form::secure));
    require(parsed->host.front() != '.' && parsed->host.find("..") == std::string_view::npos);
    if (has_https_prefix(*parsed)) {
        const auto meant = behind_https_prefix(*parsed);
        require(meant.has_error() || (meant->secure && !meant->host.empty()));
    }
    std::string key;
    append_key(key, *parsed);
    require(parsed->normal == (key == text));
    const auto again = parse_target(verb::get, key, forms);
    require(again.has_value() && again->normal && again->port == parsed->port);
    require(connect_host(*again) == connect_host(*parsed));
    std::string host;
    append_authority(host, *parsed);
    require(check_authority(host) == nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = text_of(data, size);
    try_absolute(text, forward_forms);
    try_absolute(text, secure_forward_forms);
    const auto tunnel = parse_target(verb::connect, text);
    require(tunnel.has_error() || tunnel->port != 0);
    const auto path = parse_target(verb::options, text, accelerator_forms);
    require(path.has_error() || path->form != target_form::authority);
    target origin;
    origin.form = target_form::origin;
    origin.path_and_query = "/";
    require(with_authority(origin, text).has_value() == (check_authority(text) == nullptr));
    return 0;
}
