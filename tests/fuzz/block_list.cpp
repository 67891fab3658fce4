// Any text as lines of a block list: a line names hosts or says why not, in bounds, and what it names
// is held by a list of it, with what is below, in whatever case and with a last dot.

#include "proxy/net/block_list.hpp"

#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy::net;

void look_up(const std::vector<host_key>& names) {
    block_list::maker maker;
    for (const auto& name : names) {
        require(maker.add(name));
    }
    const auto list = std::move(maker).make();
    require(list->size() <= names.size());
    for (const auto& name : names) {
        if (name.is_address()) {
            continue;
        }
        const std::string text{name.bytes()};
        require(!text.empty() && text.size() <= host_key::most && text.back() != '.');
        require(
            std::none_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; }));
        require(list->holds(text) && list->holds(text + '.'));
        require(text.size() + 2 > host_key::most || list->holds("X." + text));
    }
    require(!list->holds(""));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    auto text = text_of(data, size);
    std::vector<host_key> names;
    for (unsigned lines = 0; lines < 100 && !text.empty(); ++lines) {
        const auto end = std::min(text.find('\n'), text.size());
        const auto why = read_block_line(text.substr(0, end), names);
        require(why.empty() || names.empty());
        require(names.size() <= end / 2 + 1 && why.size() < 200);
        look_up(names);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    (void)host_key::of(text_of(data, size));
    return 0;
}
