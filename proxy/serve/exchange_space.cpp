#include "proxy/serve/exchange_space.hpp"

#include <vector>

namespace reprise::proxy::serve {

namespace {

constexpr std::size_t most_spare = 64;
constexpr std::size_t most_text = 16u << 10;  // a larger one is one request's

std::vector<std::unique_ptr<exchange_space>>& spare() {
    static thread_local auto kept = [] {
        std::vector<std::unique_ptr<exchange_space>> none;
        none.reserve(most_spare);
        return none;
    }();
    return kept;
}

}  // namespace

void give_back_space::operator()(exchange_space* space) const noexcept {
    std::unique_ptr<exchange_space> owned{space};
    owned->one.reset();
    auto& memory = owned->memory;
    memory.clear();
    if (spare().size() < most_spare && memory.url.capacity() <= most_text &&
        memory.fields.capacity() <= most_text && owned->input.capacity() <= most_text) {
        spare().push_back(std::move(owned));
    }
}

exchange_space_ptr take_space() {
    auto& kept = spare();
    if (kept.empty()) {
        return exchange_space_ptr{new exchange_space};
    }
    auto* const one = kept.back().release();
    kept.pop_back();
    return exchange_space_ptr{one};
}

}  // namespace reprise::proxy::serve
