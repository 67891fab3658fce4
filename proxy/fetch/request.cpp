#include "proxy/fetch/request.hpp"

#include "proxy/base/recycled.hpp"

namespace reprise::proxy::fetch {

std::shared_ptr<const request_copy> copy_request(const http::request_head& head,
                                                 std::string_view bytes) {
    auto copy = std::allocate_shared<request_copy>(recycled<request_copy>{});
    copy->bytes.assign(bytes);
    copy->head = head;
    const auto moved = [&](std::string_view view) {
        return view.data() == nullptr
                   ? view
                   : std::string_view{copy->bytes.data() + (view.data() - bytes.data()),
                                      view.size()};
    };
    copy->head.method_text = moved(head.method_text);
    copy->head.target = moved(head.target);
    for (auto& line : copy->head.fields) {
        line.name = moved(line.name);
        line.value = moved(line.value);
    }
    return copy;
}

}  // namespace reprise::proxy::fetch
