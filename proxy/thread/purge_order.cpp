#include "proxy/thread/purge_order.hpp"

#include <cstddef>

namespace reprise::proxy::thread {

namespace {

void append_number(std::string& to, std::size_t number) {
    for (unsigned byte = 0; byte < 4; ++byte) {
        to += static_cast<char>(number >> (8 * byte) & 0xff);
    }
}

void append_texts(std::string& to, const std::vector<std::string>& texts) {
    for (const auto& one : texts) {
        append_number(to, one.size());
        to += one;
    }
}

class reader {
public:
    explicit reader(std::string_view bytes) : left_{bytes} {}

    /// What ran short gives zeros and nothing, and says so at the end.
    std::uint8_t byte() { return static_cast<std::uint8_t>(take(1)[0]); }
    std::uint32_t number() {
        const auto bytes = take(4);
        std::uint32_t out = 0;
        for (unsigned byte = 0; byte < 4; ++byte) {
            out |= std::uint32_t{static_cast<std::uint8_t>(bytes[byte])} << (8 * byte);
        }
        return out;
    }
    void texts(std::vector<std::string>& into, std::uint32_t count) {
        for (; count > 0 && !short_; --count) {
            const auto size = number();
            if (size > left_.size()) {
                short_ = true;
                return;
            }
            into.emplace_back(left_.substr(0, size));
            left_.remove_prefix(size);
        }
    }
    [[nodiscard]] bool is_whole() const noexcept { return !short_ && left_.empty(); }

private:
    std::string_view take(std::size_t size) {
        static constexpr std::string_view zeros{"\0\0\0\0", 4};
        if (left_.size() < size) {
            short_ = true;
            return zeros;
        }
        const auto out = left_.substr(0, size);
        left_.remove_prefix(size);
        return out;
    }

    std::string_view left_;
    bool short_ = false;
};

}  // namespace

std::string encode(const purge_order& order) {
    std::string out;
    out += static_cast<char>(order.kind);
    out += static_cast<char>(order.mode);
    append_number(out, order.keys.size());
    append_number(out, order.tags.size());
    append_texts(out, order.keys);
    append_texts(out, order.tags);
    return out;
}

std::optional<purge_order> decode_purge(std::string_view bytes) {
    reader in{bytes};
    purge_order out;
    const auto kind = in.byte();
    const auto mode = in.byte();
    const auto keys = in.number();
    const auto tags = in.number();
    in.texts(out.keys, keys);
    in.texts(out.tags, tags);
    if (!in.is_whole() || kind > static_cast<std::uint8_t>(purge_kind::tag) ||
        mode > static_cast<std::uint8_t>(cache::purge_mode::soft) || out.keys.empty()) {
        return std::nullopt;
    }
    out.kind = static_cast<purge_kind>(kind);
    out.mode = static_cast<cache::purge_mode>(mode);
    return out;
}

}  // namespace reprise::proxy::thread
