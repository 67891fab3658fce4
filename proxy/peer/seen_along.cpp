#include "proxy/peer/seen_along.hpp"

#include "proxy/peer/resource.hpp"

#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

namespace reprise::proxy::peer {

seen_along::generation seen_along::may_ask(const generation& digest,
                                           const generation& seen) const noexcept {
    const bool may = can_be_ && digest && seen != led_nowhere_ && (rests_ || !is_invited_);
    return may ? seen : std::nullopt;
}

seen_along::generation seen_along::ask(const generation& digest, const generation& seen) noexcept {
    from_ = may_ask(digest, seen);
    is_invited_ = is_invited_ || (from_ && !rests_);
    return from_;
}

std::optional<got_response> seen_along::take(got_response& answer, const generation& seen) {
    const bool is_word = answer.trouble == follow_trouble::none &&
                         (answer.status == 200 || answer.status == 304);
    can_be_ = is_word && !answer.seen.empty();
    if (!can_be_ || !from_) {
        return std::nullopt;
    }
    if (answer.seen == seen_ask) {
        led_nowhere_ = from_;
        answer.had_more = true;
        return std::nullopt;
    }
    std::size_t bytes = 0;
    const auto* const end = answer.seen.data() + answer.seen.size();
    const auto read = std::from_chars(answer.seen.data(), end, bytes);
    if (read.ec != std::errc{} || read.ptr != end || bytes > answer.body.size()) {
        can_be_ = false;
        answer.trouble = follow_trouble::bad_message;
        answer.detail =
            "Reprise-Seen: is \"ask\", or how many bytes of the body are news of what was seen";
        return std::nullopt;
    }
    const auto behind = answer.body.end() - static_cast<std::ptrdiff_t>(bytes);
    got_response along{.status = bytes > 0 ? 200U : 304U, .node = answer.node, .tells_news = true};
    if (bytes == answer.body.size()) {
        along.body.swap(answer.body);
    } else {
        along.body.assign(behind, answer.body.end());
        answer.body.erase(behind, answer.body.end());
    }
    answer.status = answer.body.empty() ? 304 : answer.status;
    answer.had_more = bytes > 0;
    // While the other was being invited its own question may have been answered.
    return rests_ && seen == from_ ? std::optional{std::move(along)} : std::nullopt;
}

bool seen_along::ends(const generation& digest, const generation& seen) noexcept {
    const bool does = from_ && !may_ask(digest, seen);
    if (does) {
        from_.reset();
    }
    return does;
}

}  // namespace reprise::proxy::peer
