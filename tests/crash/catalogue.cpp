#include "tests/crash/catalogue.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace reprise::tests::crash {

namespace {

constexpr std::array kinds{kind::small, kind::freshened, kind::varied, kind::large, kind::chunked};

constexpr std::string_view name_of(kind what) noexcept {
    switch (what) {
    case kind::small: return "small";
    case kind::freshened: return "freshened";
    case kind::varied: return "varied";
    case kind::large: return "large";
    case kind::chunked: return "chunked";
    }
    return "";
}

bool is_large(kind what) noexcept {
    return what == kind::large || what == kind::chunked;
}

std::uint64_t seed_of(std::uint32_t url, unsigned flavour, const stamp& at) noexcept {
    auto seed = mix(url * std::uint64_t{flavours} + flavour);
    for (const auto number : {at.own, at.group, at.tag}) {
        seed = mix(seed ^ number);
    }
    return seed;
}

// Log-uniform, so that a kind's smallest and largest are both asked for. One small object in a
// hundred is of a size that memory holds whole and the disk does not hold in one record.
std::size_t size_of(kind what, std::uint64_t seed) noexcept {
    const bool middling = mix(seed + 1) % 100 == 0;
    const double least = is_large(what) ? 300e3 : middling ? 60e3 : 128;
    const double most = is_large(what) ? 1.5e6 : middling ? 200e3 : 16e3;
    const auto share = static_cast<double>(mix(seed) >> 11) * 0x1p-53;
    return static_cast<std::size_t>(least * std::pow(most / least, share));
}

// "a.b.c.f" between quotes.
std::optional<std::pair<stamp, unsigned>> read_etag(std::string_view text) noexcept {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') {
        return std::nullopt;
    }
    text = text.substr(1, text.size() - 2);
    std::array<std::uint32_t, 4> numbers{};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto end = i + 1 < numbers.size() ? text.find('.') : text.size();
        const auto one = number_in(text.substr(0, std::min(end, text.size())));
        if (end == std::string_view::npos || !one) {
            return std::nullopt;
        }
        numbers[i] = static_cast<std::uint32_t>(*one);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return std::pair{stamp{numbers[0], numbers[1], numbers[2]}, unsigned{numbers[3]}};
}

}  // namespace

catalogue::catalogue(const stock& of)
    : stock_{of},
      urls_{of.small + of.freshened + of.varied + of.large + of.chunked},
      own_{std::make_unique<count[]>(urls_)} {}

std::uint32_t catalogue::count_of(kind what) const noexcept {
    switch (what) {
    case kind::small: return stock_.small;
    case kind::freshened: return stock_.freshened;
    case kind::varied: return stock_.varied;
    case kind::large: return stock_.large;
    case kind::chunked: return stock_.chunked;
    }
    return 0;
}

std::uint32_t catalogue::first_of(kind what) const noexcept {
    std::uint32_t first = 0;
    for (const auto before : kinds) {
        if (before == what) {
            break;
        }
        first += count_of(before);
    }
    return first;
}

kind catalogue::kind_of(std::uint32_t url) const noexcept {
    for (const auto one : kinds) {
        if (url < count_of(one)) {
            return one;
        }
        url -= count_of(one);
    }
    return kind::small;
}

std::string catalogue::path_of(std::uint32_t url) const {
    std::string out{"/g"};
    out += std::to_string(group_of(url)) + "/";
    out += name_of(kind_of(url));
    return out + "/" + std::to_string(url);
}

std::optional<std::uint32_t> catalogue::url_of(std::string_view path) const {
    const auto slash = path.rfind('/');
    if (slash == std::string_view::npos) {
        return std::nullopt;
    }
    const auto url = number_in(path.substr(slash + 1));
    if (!url || *url >= urls_ || path_of(static_cast<std::uint32_t>(*url)) != path) {
        return std::nullopt;
    }
    return static_cast<std::uint32_t>(*url);
}

stamp catalogue::current(std::uint32_t url) const noexcept {
    return {own_[url].now.load(), groups_[group_of(url)].now.load(), tags_[tag_of(url)].now.load()};
}

stamp catalogue::floor(std::uint32_t url) const noexcept {
    return {own_[url].floor(), groups_[group_of(url)].floor(), tags_[tag_of(url)].floor()};
}

void catalogue::make_body(std::uint32_t url,
                          unsigned flavour,
                          const stamp& at,
                          std::string& into) const {
    const auto seed = seed_of(url, flavour, at);
    const auto size = size_of(kind_of(url), seed);
    into.resize((size + 7) / 8 * 8);
    for (std::size_t i = 0; i < into.size(); i += 8) {
        const auto word = mix(seed + i);
        std::memcpy(into.data() + i, &word, sizeof word);
    }
    into.resize(size);
    // For the eye that looks at a segment file.
    const auto label = path_of(url) + " " + etag_of(flavour, at) + "\n";
    std::memcpy(into.data(), label.data(), std::min(label.size(), into.size()));
}

std::string catalogue::etag_of(unsigned flavour, const stamp& at) {
    std::string out{'"'};  // GCC 12 at -O3 takes operator+ for an overlapping copy
    for (const auto number : {at.own, at.group, at.tag}) {
        out.append(std::to_string(number)).append(1, '.');
    }
    return out.append(std::to_string(flavour)).append(1, '"');
}

catalogue::judgement catalogue::judge(std::uint32_t url,
                                      unsigned flavour,
                                      const response& answer,
                                      const stamp& floor) const {
    const auto etag = answer.get("ETag");
    const auto said = read_etag(etag);
    if (!said) {
        return {ruling::wrong, {}, "no ETag of ours: " + etag};
    }
    const auto& [seen, of_flavour] = *said;
    if (of_flavour != flavour) {
        return {ruling::wrong, seen, "another flavour: " + etag};
    }
    if (!current(url).reaches(seen)) {
        return {ruling::wrong, seen, "the origin never sent " + etag};
    }
    thread_local std::string body;
    make_body(url, flavour, seen, body);
    std::optional span{byte_span{0, body.size()}};
    if (answer.status == 206) {
        span = content_span(answer.get("Content-Range"), body.size());
        if (!span) {
            return {ruling::wrong,
                    seen,
                    "not a range of " + std::to_string(body.size()) +
                        " bytes: " + answer.get("Content-Range")};
        }
    }
    const auto first = span->first;
    if (answer.body.size() > body.size() - first ||
        (answer.status == 200 && answer.complete() && answer.body.size() != body.size())) {
        return {ruling::wrong,
                seen,
                std::to_string(answer.body.size()) + " bytes at " + std::to_string(first) + " of " +
                    std::to_string(body.size())};
    }
    if (answer.body.compare(0, std::string::npos, body, first, answer.body.size()) != 0) {
        const auto [here, there] = std::mismatch(
            answer.body.begin(), answer.body.end(), body.begin() + static_cast<long>(first));
        return {ruling::wrong,
                seen,
                "differs from byte " + std::to_string(here - answer.body.begin()) + " on of " +
                    std::to_string(answer.body.size())};
    }
    if (!seen.reaches(floor)) {
        return {ruling::stale, seen, etag + " after a purge left " + etag_of(flavour, floor)};
    }
    return {ruling::right, seen, {}};
}

}  // namespace reprise::tests::crash
