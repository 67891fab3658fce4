#include "proxy/serve/sequel.hpp"

#include "proxy/net/client_stream.hpp"

#include <utility>

namespace reprise::proxy::serve {

parted_request::parted_request(const lent& by,
                               thread::settings_ptr now,
                               known what,
                               ledger&& of) noexcept
    : w{by.w},
      client{by.client},
      stream{by.stream},
      settings{std::move(now)},
      asked{std::move(what)},
      book{std::move(of)} {}

parted_request::~parted_request() {
    book.close({.head = &asked.copy->head,
                .url = asked.url,
                .key = asked.key,
                .inside = asked.inside.get()});
}

std::string parted_request::take_input() {
    std::string out{stream.input().data()};
    stream.input().clear();
    stream.input().release();
    return out;
}

}  // namespace reprise::proxy::serve
