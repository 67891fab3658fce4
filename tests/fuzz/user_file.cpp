// Any text as a file of users or of tokens, and as a login: what is taken keeps the rules of its page,
// and a mistake names a line that is there, without what stands behind its colon.

#include "proxy/net/login.hpp"
#include "proxy/net/user_list.hpp"
#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy::net;

void look_at_mistakes(std::string_view text, const std::vector<line_mistake>& mistakes) {
    const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    require(mistakes.size() <= 20);
    for (const auto& one : mistakes) {
        require(one.line >= 1 && one.line <= lines && !one.why.empty());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = text_of(data, size);
    const auto users = read_password_lines(text);
    look_at_mistakes(text, users.mistakes);
    for (const auto& [name, hash] : users.by_name) {
        require(!name.empty() && name.find(':') == name.npos && text.find(hash) != text.npos);
        require(hash.starts_with("$2") || hash.starts_with("$y$") || hash.starts_with("$6$"));
    }
    const auto tokens = read_token_lines(text);
    look_at_mistakes(text, tokens.mistakes);
    for (const auto& [digest, name] : tokens.by_digest) {
        require(!name.empty() && name.find(':') == name.npos);
    }
    if (const auto said = read_login(text)) {
        require(size <= most_of_login);
        require(said->user.find(':') == said->user.npos);
        require(said->user.size() + said->secret.size() < size);
        require(!said->by_token || said->user.empty());
    }
    return 0;
}
