#include "proxy/admin/visitors.hpp"

namespace reprise::proxy::admin {

bool visitors::make_room(const boost::asio::ip::address& from, std::size_t of_client) {
    std::size_t all = 0, own = 0;
    for (const auto& one : all_) {
        all += one.sent_away ? 0 : 1;
        own += !one.sent_away && one.from == from ? 1 : 0;
    }
    const bool own_full = own >= of_client;
    if (!own_full && all < most_) {
        return true;
    }
    using stage = visitor::stage;
    // Leaving needs nobody; a half-sent answer is a greater loss than a half-read request.
    const auto worth = [](const visitor& one) {
        return one.at == stage::leaving ? 0 : one.at == stage::reading ? 1 : 2;
    };
    visitor* least = nullptr;
    for (auto& one : all_) {
        if (one.sent_away || one.at == stage::answering || (own_full && one.from != from)) {
            continue;
        }
        if (least == nullptr ||
            std::pair{worth(one), one.since} < std::pair{worth(*least), least->since}) {
            least = &one;
        }
    }
    if (least == nullptr) {
        return false;
    }
    least->sent_away = true;
    least->stream.close();
    return true;
}

visitors::place visitors::come_in(visitor::protocol::socket socket, const caller& who) {
    all_.emplace_front(std::move(socket), who);
    return {all_, all_.begin()};
}

}  // namespace reprise::proxy::admin
