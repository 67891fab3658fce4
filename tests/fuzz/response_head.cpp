// Any bytes as a response: the verdict does not depend on how they were cut, and what we would send
// on reads as one response with the same body.
// The first byte says where the input is cut, and which method it answers.

#include "proxy/http/forwarding.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/message_head.hpp"
#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace {

using namespace reprise::fuzz;
using namespace reprise::proxy;
using namespace reprise::proxy::http;
using boost::beast::http::verb;

constexpr head_limits limits{.bytes = 4096, .fields = 50, .target = 0};

void pass_on(const response_head& head, verb method) {
    const auto body = response_framing(head, method);
    if (body.has_error()) {
        require(body.error().code == failure_code::bad_response);
        return;
    }
    std::string wire;
    append_response_fields(wire, head, {.via = "us", .date = "now", .keep_age = true});
    append_framing(wire, *body);
    wire += "\r\n";
    response_head again;
    const head_limits wide{.bytes = 1u << 20, .fields = 100, .target = 0};
    require(parse_response_head(wire, again, wide).state == head_state::done);
    require(again.bytes == wire.size() && again.status == head.status);
    const auto reframed = response_framing(again, method);
    require(reframed.has_value());
    require(reframed->kind == body->kind && reframed->length == body->length);
    require(count(again.fields, field_id::connection) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto input = text_of(data, size);
    if (input.empty()) {
        return 0;
    }
    const auto bytes = input.substr(1);
    response_head head;
    const auto whole = parse_response_head(bytes, head, limits);
    if (whole.state == head_state::done) {
        require(head.status >= 100 && head.status <= 999 && head.bytes <= bytes.size());
        pass_on(head, data[0] % 2 == 0 ? verb::get : verb::head);
    }
    const auto cut = std::min<std::size_t>(data[0], bytes.size());
    response_head other;
    const auto first = parse_response_head(bytes.substr(0, cut), other, limits);
    const auto then = first.state == head_state::need_more
                          ? parse_response_head(bytes, other, limits, first.resume)
                          : first;
    // A cut head may be found bad later than a whole one, but never takes another turn.
    require(then.state == whole.state ||
            (then.state == head_state::need_more && whole.state == head_state::bad));
    return 0;
}
