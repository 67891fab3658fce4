// Any bytes as a request: the verdict does not depend on how they were cut, and what we would send
// on reads, by our own strict parser, as one request framed as we meant it.
// The first byte says where the input is cut.

#include "proxy/http/forwarding.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"
#include "proxy/http/target.hpp"
#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy;
using namespace reprise::proxy::http;

constexpr head_limits limits{.bytes = 4096, .fields = 50, .target = 1024};

// A cut head may be found bad later than a whole one (only new bytes are searched for its end), but
// never takes another turn.
void require_same(const head_result& cut, const head_result& whole) {
    require(cut.state == whole.state ||
            (cut.state == head_state::need_more && whole.state == head_state::bad));
    require(cut.state != head_state::bad || *cut.why != '\0');
}

void forward(const request_head& head, std::string_view all) {
    for (const auto& line : head.fields) {
        require(is_token(line.name));
        require(line.name.data() >= all.data() &&
                line.value.data() + line.value.size() <= all.data() + all.size());
    }
    const auto body = request_framing(head);
    const auto where = parse_target(head.method, head.target, all_forms);
    if (body.has_error() || where.has_error() || where->host.empty()) {
        return;
    }
    std::string wire;
    append_request_head(wire, head, *where, {.via = "us", .body = *body});
    request_head again;
    const auto result = parse_request_head(
        wire, again, {.bytes = 1u << 20, .fields = 100, .target = 4096});
    require(result.state == head_state::done);
    require(again.bytes == wire.size());
    require(via_has(again.fields, "us"));
    const auto reframed = request_framing(again);
    require(reframed.has_value());
    require(reframed->kind == body->kind && reframed->length == body->length);
    (void)judge_hops(head);
    (void)expects_continue(head, *body);
    (void)asks_websocket(head);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto input = text_of(data, size);
    if (input.empty()) {
        return 0;
    }
    const auto bytes = input.substr(1);
    request_head head;
    const auto whole = parse_request_head(bytes, head, limits);
    if (whole.state == head_state::done) {
        require(head.bytes <= bytes.size() && head.bytes <= limits.bytes);
        forward(head, bytes);
    }
    const auto cut = std::min<std::size_t>(data[0], bytes.size());
    request_head other;
    const auto first = parse_request_head(bytes.substr(0, cut), other, limits);
    if (first.state == head_state::need_more) {
        require_same(parse_request_head(bytes, other, limits, first.resume), whole);
        require(whole.state != head_state::done || other.bytes == head.bytes);
    } else {
        require_same(first, whole);
    }
    return 0;
}
