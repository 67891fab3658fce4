#include "proxy/cache/stored_response.hpp"

#include "proxy/http/message_head.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <new>
#include <optional>

// A piece behind the members has its size in make(), is written in the constructor, and is found by
// the _at() functions, which add up what lies in front of it: the three must name the same pieces
// in the same order.

namespace reprise::proxy::cache {

namespace {

constexpr std::array<bool http::response_directives::*, 12> flags{
    &http::response_directives::no_store,
    &http::response_directives::no_cache,
    &http::response_directives::private_,
    &http::response_directives::public_,
    &http::response_directives::must_revalidate,
    &http::response_directives::proxy_revalidate,
    &http::response_directives::must_understand,
    &http::response_directives::immutable,
    &http::response_directives::no_transform,
    &http::response_directives::no_cache_fields,
    &http::response_directives::private_fields,
    &http::response_directives::targeted,
};
// max-age first: where the lifetime is its own it has no place.
constexpr std::array<std::optional<http::seconds> http::response_directives::*, 4> times{
    &http::response_directives::max_age,
    &http::response_directives::s_maxage,
    &http::response_directives::stale_while_revalidate,
    &http::response_directives::stale_if_error,
};

// A word more is a word more for every object.
static_assert(sizeof(stored_response) == 48);

constexpr std::uint32_t not_known = (1u << 22) - 1;
constexpr std::uint32_t most_head = (1u << 21) - 1;
static_assert(block::most_passing <= stored_response::small_body);
static_assert(turns == 1u << 10, "asked_turn_ has as many bits");

// `value` as `Bits` bits hold it: the nearest that they can.
template <unsigned Bits, class Number>
constexpr std::uint64_t fitted(Number value) noexcept {
    constexpr std::uint64_t most = (std::uint64_t{1} << Bits) - 1;
    return value < 0 ? 0 : std::min(static_cast<std::uint64_t>(value), most);
}

bool lies_behind(const response_draft& draft) noexcept {
    return draft.content && draft.content->size <= stored_response::small_body && !draft.parts &&
           !draft.on_disk;
}

bool is_elsewhere(const response_draft& draft) noexcept {
    return !lies_behind(draft) && (draft.content || draft.parts || draft.on_disk);
}

// What most responses say of their lifetime is max-age alone.
bool lasts_max_age(const response_draft& draft) noexcept {
    const auto& said = draft.directives.max_age;
    return said && *said == draft.freshness.lifetime && said->count() >= 0 &&
           said->count() <= std::numeric_limits<std::uint32_t>::max();
}

bool has_choice(const response_draft& draft) noexcept {
    return !draft.vary.names.empty() || !draft.selecting.empty() || !draft.tags.empty();
}

char* put(char* to, const void* from, std::size_t bytes) noexcept {
    if (bytes != 0) {
        std::memcpy(to, from, bytes);
    }
    return to + bytes;
}

}  // namespace

stored_response::stored_response(const response_draft& draft) noexcept
    : disk_record{draft.disk_record},
      head_{static_cast<std::uint32_t>(draft.head.size()) & most_head},
      source_{static_cast<std::uint32_t>(draft.freshness.source) & 7},
      lasts_max_age_{lasts_max_age(draft)},
      wait_{draft.wait.code()},
      asked_before_{not_known},
      asked_turn_{static_cast<std::uint32_t>(draft.asked_turn) & (turns - 1)},
      came_{0},
      body_{fitted<13>(lies_behind(draft) ? draft.content->size : 0)},
      has_content_{draft.content != nullptr},
      is_away_{is_elsewhere(draft)},
      lifetime_{fitted<38>(draft.freshness.lifetime.count())},
      directives_{0},
      times_{0},
      status_{fitted<10>(draft.status)},
      initial_age_{fitted<37>(draft.freshness.initial_age.count())},
      weak_last_modified_{draft.weak_last_modified},
      length_at_{fitted<22>(std::uint64_t{draft.length_at})},
      purged_softly_{draft.purged_softly},
      reusable_{draft.reusable_until > wall_time::min()},
      vary_any_{draft.vary.any},
      has_choice_{has_choice(draft)} {
    constexpr std::int64_t most = (std::int64_t{1} << 48) - 1;
    const auto came = draft.freshness.response_time;
    came_ = std::clamp(std::int64_t{came.time_since_epoch().count()}, -most, most);
    if (draft.asked_at != wall_time::min()) {
        const auto before = (came - std::min(draft.asked_at, came)).count();
        asked_before_ = before < not_known ? static_cast<std::uint32_t>(before) & not_known
                                           : not_known;
    }
    std::uint64_t set = 0;
    for (std::size_t i = 0; i < flags.size(); ++i) {
        set |= std::uint64_t{draft.directives.*flags[i]} << i;
    }
    directives_ = set & 0xfff;
    set = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
        set |= std::uint64_t{(draft.directives.*times[i]).has_value()} << i;
    }
    times_ = set & 0xf;

    if (is_away_) {
        new (at(sizeof *this)) elsewhere{draft.content, draft.parts, draft.on_disk};
    }
    char* to = at(choice_at());
    if (has_choice_) {
        const choice sizes{static_cast<std::uint32_t>(draft.selecting.size()),
                           static_cast<std::uint16_t>(draft.vary.names.size()),
                           static_cast<std::uint16_t>(draft.tags.size())};
        to = put(to, &sizes, sizeof sizes);
        to = put(to, draft.tags.data(), sizes.tags * sizeof(std::uint64_t));
    }
    for (std::size_t i = lasts_max_age_; i < times.size(); ++i) {
        if (const auto& span = draft.directives.*times[i]) {
            const auto seconds = static_cast<std::uint32_t>(fitted<32>(span->count()));
            to = put(to, &seconds, sizeof seconds);
        }
    }
    to = put(to, draft.vary.names.data(), draft.vary.names.size());
    to = put(to, draft.selecting.data(), draft.selecting.size());
    to = put(to, draft.head.data(), head_);
    if (body_ != 0) {
        for (const auto& piece : draft.content->slices) {
            to = put(to, piece.view().data(), piece.size);
        }
    }
}

stored_ptr stored_response::make(const response_draft& draft) {
    std::size_t bytes = sizeof(stored_response) + (is_elsewhere(draft) ? sizeof(elsewhere) : 0) +
                        (has_choice(draft) ? sizeof(choice) : 0) +
                        draft.tags.size() * sizeof(std::uint64_t) + draft.vary.names.size() +
                        draft.selecting.size() + draft.head.size() +
                        (lies_behind(draft) ? draft.content->size : 0);
    for (std::size_t i = lasts_max_age(draft) ? 1 : 0; i < times.size(); ++i) {
        bytes += draft.directives.*times[i] ? sizeof(std::uint32_t) : 0;
    }
    if (draft.head.size() > most_head) {
        throw std::bad_alloc{};
    }
    void* const memory = ::operator new(bytes);
    return stored_ptr{new (memory) stored_response{draft}};
}

void intrusive_ptr_release(const stored_response* one) noexcept {
    if (one->references_.fetch_sub(1, std::memory_order_acq_rel) != 1) {
        return;
    }
    auto* const last = const_cast<stored_response*>(one);
    if (last->is_away_) {
        const_cast<stored_response::elsewhere&>(last->away()).~elsewhere();
    }
    last->~stored_response();
    ::operator delete(last);
}

const stored_response::elsewhere& stored_response::away() const noexcept {
    static const elsewhere nowhere{};
    return is_away_ ? *std::launder(reinterpret_cast<const elsewhere*>(at(sizeof *this))) : nowhere;
}

std::size_t stored_response::names_at() const noexcept {
    return times_at() +
           (static_cast<std::size_t>(std::popcount(std::uint64_t{times_})) - lasts_max_age_) *
               sizeof(std::uint32_t);
}

wall_time stored_response::asked_at() const noexcept {
    return asked_before_ == not_known
               ? wall_time::min()
               : freshness().response_time - std::chrono::milliseconds{asked_before_};
}

http::response_directives stored_response::directives() const noexcept {
    http::response_directives read;
    for (std::size_t i = 0; i < flags.size(); ++i) {
        read.*flags[i] = ((directives_ >> i) & 1) != 0;
    }
    const char* from = at(times_at());
    if (lasts_max_age_) {
        read.max_age = http::seconds{lifetime_};
    }
    for (std::size_t i = lasts_max_age_; i < times.size(); ++i) {
        if (((times_ >> i) & 1) != 0) {
            std::uint32_t seconds = 0;
            std::memcpy(&seconds, from, sizeof seconds);
            read.*times[i] = http::seconds{seconds};
            from += sizeof seconds;
        }
    }
    return read;
}

body_ptr stored_response::content() const {
    if (!has_content_) {
        return nullptr;
    }
    if (is_away_) {
        return away().content;
    }
    auto copy = std::make_shared<body>();
    copy->size = body_;
    if (body_ != 0) {
        auto memory = block::make(body_);
        std::memcpy(memory->data(), at(body_at()), body_);
        copy->slices.push_back(slice{std::move(memory), 0, body_});
    }
    return copy;
}

std::vector<http::field> stored_response::fields() const {
    // The head was written by us from a parsed one, so it cannot fail to parse.
    std::vector<http::field> lines;
    (void)http::parse_field_lines(
        head().substr(status_line_size()), lines, std::numeric_limits<unsigned>::max());
    return lines;
}

std::vector<http::field> stored_response::validating_fields() const {
    auto lines = fields();
    if (weak_last_modified()) {
        http::remove_lines(lines, http::field_id::date);
    }
    return lines;
}

response_draft stored_response::draft_without_content() const {
    response_draft made;
    made.head = head();
    made.status_line_size = status_line_size();
    made.length_at = length_at_;
    made.status = status_;
    made.freshness = freshness();
    made.asked_at = asked_at();
    made.asked_turn = asked_turn();
    made.wait = wait();
    made.directives = directives();
    made.vary = vary().spec();
    made.selecting = selecting();
    made.parts = parts();
    made.on_disk = on_disk();
    made.disk_record = disk_record.load(std::memory_order_relaxed);
    made.reusable_until = reusable_until();
    made.purged_softly = purged_softly();
    made.weak_last_modified = weak_last_modified();
    made.tags.assign(tags().begin(), tags().end());
    return made;
}

response_draft stored_response::draft() const {
    auto made = draft_without_content();
    made.content = content();
    return made;
}

std::size_t stored_response::footprint() const noexcept {
    std::size_t bytes = heap_cost(body_at() + body_);
    const auto& where = away();
    if (where.content) {
        bytes += where.content->footprint();
    }
    if (where.parts) {
        bytes += heap_cost(sizeof(partial_body) + control_block) + where.parts->footprint();
    }
    return bytes;
}

stored_ptr ended_at(const stored_response& response, wall_time when) {
    auto ended = response.draft();
    end_at(ended, when);
    return stored_response::make(ended);
}

}  // namespace reprise::proxy::cache
