// Whatever a peer sends beside digests (digest.cpp and squid_digest.cpp have those): a request for
// one of the resources, the fields that sign it, a generation's text, and an answer to a follower.
// Each input's first byte picks the peer's standing; the rest is taken as each of these in turn.

#include "proxy/http/message_head.hpp"
#include "proxy/http/message_signature.hpp"
#include "proxy/peer/digest_follower.hpp"
#include "proxy/peer/news_shelf.hpp"
#include "proxy/peer/publication.hpp"
#include "proxy/peer/resource.hpp"
#include "proxy/peer/signature.hpp"
#include "tests/fuzz/require.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace reprise::fuzz;
namespace filter = reprise::filter;
namespace http = reprise::proxy::http;
using namespace reprise::proxy::peer;
using namespace std::chrono_literals;

constexpr reprise::proxy::wall_time now{1'763'668'089'000ms};

filter::digest small(std::uint64_t counter) {
    std::vector<std::uint64_t> words(32);
    words[counter % 32] = counter;
    return {{.layout = filter::digest_layout::standard, .bits = 2048, .probes = 2},
            std::move(words),
            {.seed = {}, .generation = {.epoch = 7, .counter = counter}, .keys = 1}};
}

const publication& shelf() {
    static const auto* const made = [] {
        auto* const shelf = new publication;  // lives as long as the program
        shelf->publish(small(1), now);
        shelf->now()->fetched = true;
        shelf->publish(small(2), now);
        return shelf;
    }();
    return *made;
}

void try_request(std::string_view bytes, std::uint8_t standing) {
    http::request_head head;
    if (http::parse_request_head(bytes, head, {}).state != http::head_state::done) {
        return;
    }
    const asker who{.is_reprise = (standing & 1) != 0,
                    .is_squid = (standing & 2) != 0,
                    .signing = (standing & 4) != 0,
                    .signature = signature_verdict::wrong};
    news_shelf news{[] {}};
    news.put({.epoch = 7, .counter = 4}, 2, {{.base = 3, .wire = shelf().now()->whole}});
    const bool waited = (standing & 64) != 0;
    offered what{.digest = shelf().now(),
                 .seen = nullptr,
                 .squid = std::make_shared<const std::vector<std::byte>>(300),
                 .squid_at = now,
                 .serves_squid = (standing & 8) != 0,
                 .node = "n"};
    what.digest_news = (standing & 32) != 0 ? &news : nullptr;
    what.waited = waited;
    const auto given = answer(head, who, what, (standing & 16) != 0, now);
    if (given.what == answered::waiting) {
        require(!waited && what.digest_news != nullptr && who.is_reprise && !who.signing);
        require(given.wait <= longest_news_wait && given.wait > 0s && given.head.empty());
        return;
    }
    http::response_head read;
    const auto parsed = http::parse_response_head(given.head, read, {});
    require(parsed.state == http::head_state::done && read.bytes == given.head.size());
    require(read.status == given.status);
    require(given.body == nullptr || given.status == 200);
    require(given.body == nullptr || who.is_reprise || who.is_squid);
    require(given.body == nullptr || given.first > 0 || (who.is_reprise && !who.signing));
    require(given.text.empty() ||
            ((given.status == 403 || given.status == 400) && given.body == nullptr));
    require(given.first == 0 || given.first < given.body->size());
}

const fleet_secret& secret() {
    static const auto one = *fleet_secret::from_content(std::string(32, 's'));
    return one;
}

bool lies_within(std::string_view part, std::string_view whole) {
    return part.empty() || (part.data() >= whole.data() &&
                            part.data() + part.size() <= whole.data() + whole.size());
}

// Nothing that is not the secret's is good, in either form and whatever is beside it; and what is
// found lies within the field, and gives a base in which each component has one line.
void try_signature(std::string_view bytes) {
    const auto cut = std::min(bytes.find('\n'), bytes.size());
    const auto input = bytes.substr(0, cut);
    const auto value = bytes.substr(std::min(cut + 1, bytes.size()));
    const auto verdict_on = [](std::span<const http::field> fields) {
        signature_checker checker{secret()};
        const auto judged = checker.check(
            {.method = "GET", .target = "/?a", .host = "h", .fields = fields},
            {"192.0.2.1:80", "h"},
            now);
        require(judged.what != signature_verdict::good && judged.signer.empty());
        require(to_string(judged.what) != "?");
    };
    const auto line = [](std::string_view name, std::string_view text) {
        return http::field{http::field_id::unknown, name, text};
    };
    const std::array by_rfc{line("Signature-Input", input),
                            line("Signature", value),
                            line("Reprise-Node", "n"),
                            line("Reprise-To", "192.0.2.1:80")};
    verdict_on(by_rfc);
    const std::array as_before{line("Reprise-Signature", bytes)};
    verdict_on(as_before);

    http::message_signature found;
    for (const auto tag : {signature_tag, std::string_view{"t"}}) {
        if (http::find_signature(by_rfc, tag, found) != http::signature_search::found) {
            continue;
        }
        require(found.tag == tag && !found.label.empty());
        require(lies_within(found.covered, input) && lies_within(found.parameters, input));
        require(lies_within(found.base64, value));
        std::string base;
        if (http::append_signature_base(
                base, {.method = "GET", .target = "/?a", .host = "h", .fields = by_rfc}, found)) {
            const auto lines = std::count(base.begin(), base.end(), '\n');
            require(std::count(found.covered.begin(), found.covered.end(), '"') == 2 * lines);
            require(base.ends_with(std::string{found.parameters}));
        }
    }
}

void try_generation(std::string_view bytes) {
    if (const auto read = parse_generation(bytes)) {
        require(parse_generation(to_text(*read)) == read);
    }
}

void try_answer(std::span<const std::byte> bytes, std::uint8_t standing) {
    follow_plan plan;
    plan.squid = (standing & 2) != 0;
    plan.news = std::chrono::milliseconds{(standing & 8) != 0 ? 200 : 0};
    plan.key_of = [](std::uint64_t name) { return filter::key_hash{name, ~name}; };
    plan.limits.bytes = 1 << 16;
    plan.most_bytes = 1 << 16;
    const reprise::proxy::steady_time start{1h};
    digest_follower follower{plan, 1, start};
    if (!plan.squid) {
        const auto whole = *shelf().now()->whole;
        follower.answered(
            {.status = 200, .etag = "\"x\"", .node = {}, .fresh_for = {}, .body = whole},
            "n",
            start);
    }
    follower.answered({.status = standing % 5 == 0 ? 304u : 200u,
                       .etag = {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                       .node = {},
                       .tells_news = (standing & 16) != 0,
                       .fresh_for = std::chrono::seconds{standing * 1000},
                       .body = bytes},
                      "n",
                      start + 1s);
    require(follower.next() >= start);
    require(follower.next() <= start + 3h);
    const auto change = follower.take_change();
    require(change.what != digest_follower::change::kind::flipped || follower.held() != nullptr);
    require(!follower.held() || follower.held()->bytes() <= plan.limits.bytes);
    require(to_string(follower.figures().trouble) != "?");
    (void)follower.ask(start);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) {
        return 0;
    }
    const auto standing = data[0];
    const auto bytes = std::as_bytes(std::span{data + 1, size - 1});
    const auto text = text_of(data + 1, size - 1);
    try_request(text, standing);
    try_signature(text);
    try_generation(text);
    try_answer(bytes, standing);
    return 0;
}
