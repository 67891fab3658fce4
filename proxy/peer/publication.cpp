#include "proxy/peer/publication.hpp"

#include "filter/digest_wire.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace reprise::proxy::peer {

std::string to_text(const filter::digest_generation& generation) {
    std::array<char, 40> text;
    auto* at = std::to_chars(text.data(), text.data() + text.size(), generation.epoch, 16).ptr;
    *at++ = '-';
    at = std::to_chars(at, text.data() + text.size(), generation.counter, 16).ptr;
    return {text.data(), at};
}

std::optional<filter::digest_generation> parse_generation(std::string_view text) {
    filter::digest_generation out;
    const auto dash = text.find('-');
    if (dash == text.npos || text.size() > 33) {
        return std::nullopt;
    }
    const auto read = [](std::string_view digits, std::uint64_t& into) {
        const auto [end, error] = std::from_chars(
            digits.data(), digits.data() + digits.size(), into, 16);
        return error == std::errc{} && end == digits.data() + digits.size();
    };
    if (!read(text.substr(0, dash), out.epoch) || !read(text.substr(dash + 1), out.counter)) {
        return std::nullopt;
    }
    return out;
}

wire_bytes published::since(const filter::digest_generation& base) const {
    if (base.epoch == bits->stamp().generation.epoch) {
        for (const auto& one : deltas) {
            if (one.base == base.counter) {
                return one.wire;
            }
        }
    }
    return nullptr;
}

void publication::publish(filter::digest next, wall_time now) {
    auto made = std::make_shared<published>();
    made->bits = std::make_shared<const filter::digest>(std::move(next));
    made->whole = std::make_shared<const std::vector<std::byte>>(filter::encode(*made->bits));
    made->etag = '"' + to_text(made->bits->stamp().generation) + '"';
    made->at = now;
    auto bases = bases_;
    if (const auto last = this->now(); last && last->fetched.load(std::memory_order_relaxed)) {
        bases.push_back(last->bits);
    }
    while (bases.size() > keep_) {
        bases.pop_front();
    }
    std::erase_if(bases, [&made](const auto& base) {
        return base->stamp().generation.epoch != made->bits->stamp().generation.epoch ||
               base->shape() != made->bits->shape();
    });
    for (const auto& base : bases) {
        auto delta = filter::encode_delta(*base, *made->bits);
        if (delta.has_value() && delta->size() < made->whole->size()) {
            made->deltas.push_back(
                {base->stamp().generation.counter,
                 std::make_shared<const std::vector<std::byte>>(std::move(*delta))});
        }
    }
    bases_ = std::move(bases);
    const std::scoped_lock lock{guard_};
    newest_ = std::move(made);
}

std::shared_ptr<const published> publication::now() const {
    const std::scoped_lock lock{guard_};
    return newest_;
}

std::uint64_t publication::bytes() const {
    std::uint64_t total = 0;
    for (const auto& base : bases_) {
        total += base->bytes();
    }
    if (const auto newest = now()) {
        total += newest->bits->bytes() + newest->whole->size();
        for (const auto& delta : newest->deltas) {
            total += delta.wire->size();
        }
    }
    return total;
}

}  // namespace reprise::proxy::peer
