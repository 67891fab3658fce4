#include "filter/digest_wire.hpp"
#include "proxy/http/date.hpp"
#include "proxy/peer/resource.hpp"
#include "tests/unit/filter/digests.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace reprise::proxy::peer::test::of_resource {
namespace {

using namespace std::chrono_literals;
using filter::test::digest_of_keys;

constexpr wall_time now{1'763'668'089'000ms};

/// Two generations, of which the first was fetched.
struct shelf {
    publication digests;
    std::string first_tag, second_tag;
    std::uint64_t counter = 3;  // of the next

    shelf() {
        const auto size = filter::digest_size(2000, 0.01);
        digests.publish(digest_of_keys(size, 0, 1900, 1), now);
        digests.now()->fetched = true;
        first_tag = digests.now()->etag;
        digests.publish(digest_of_keys(size, 0, 1910, 2), now);
        second_tag = digests.now()->etag;
    }
    [[nodiscard]] offered offer() const {
        return {.digest = digests.now(), .seen = nullptr, .squid = nullptr, .node = "node-a"};
    }
};

constexpr asker peer{.is_reprise = true};

resource_answer ask(const std::string& wire, const asker& who, const offered& what) {
    http::request_head head;
    const auto read = http::parse_request_head(wire, head, {});
    REQUIRE(read.state == http::head_state::done);
    return answer(head, who, what, false, now);
}

std::string get(const std::string& target, const std::string& lines = "") {
    return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n";
}

bool says(const resource_answer& answer, std::string_view line) {
    return answer.head.find("\r\n" + std::string{line} + "\r\n") != std::string::npos;
}

std::string bare(const std::string& etag) {
    return etag.substr(1, etag.size() - 2);
}

}  // namespace

TEST_SUITE("peer/resource") {
    TEST_CASE("what a peer passes on for its clients is not the peer's own question") {
        const shelf s;
        const asker squid{.is_squid = true};
        auto what = s.offer();
        what.squid = std::make_shared<std::vector<std::byte>>(600);
        what.serves_squid = true;
        const std::string own = "Via: 1.1 lab-a.invalid (squid/5.7)\r\n";
        for (const std::string lines : {"Via: 1.1 reprise-abc\r\n",
                                        "Via: 1.1 other, 1.1 reprise-abc\r\n",
                                        "via: 1.0 x\r\n",
                                        "Forwarded: for=10.0.0.9\r\n",
                                        "X-Forwarded-For: 10.0.0.9\r\n"}) {
            CAPTURE(lines);
            for (const auto path : {digest_path, seen_path, figures_path}) {
                const auto got = ask(get(std::string{path}, lines), peer, what);
                CHECK(got.status == 403);
                CHECK_FALSE(got.body);
            }
            // What takes TLS off in front writes for whom, and no Via: so much is between a signer
            // and its peer. Behind a Via is whoever sent it by way of the signer.
            const asker signer{
                .is_reprise = true, .signing = true, .signature = signature_verdict::good};
            const bool by_proxy = lines.starts_with("V") || lines.starts_with("v");
            CHECK(ask(get(std::string{digest_path}, lines), signer, what).status ==
                  (by_proxy ? 403 : 200));
            CHECK(ask(get(std::string{squid_digest_path}, lines), squid, what).status == 403);
            CHECK(ask(get(std::string{squid_digest_path}, own + lines), squid, what).status == 403);
        }
        for (const std::string lines : {"Via: 1.1 x (squid/5.7), 1.1 reprise-abc\r\n",
                                        "Via: 1.1 a (squid)\r\nVia: 1.1 b (squid)\r\n",
                                        "X-Forwarded-For: ::, 10.0.0.9\r\n",
                                        "X-Forwarded-For: ::\r\nX-Forwarded-For: 10.0.0.9\r\n"}) {
            CAPTURE(lines);
            CHECK(ask(get(std::string{squid_digest_path}, lines), squid, what).status == 403);
        }
        // As a real one asks, in its several settings.
        for (const auto& lines : {own + "X-Forwarded-For: ::\r\n",
                                  own + "X-Forwarded-For: unknown\r\n",
                                  std::string{"Via: 1.1 a (squid)\r\n"},
                                  std::string{}}) {
            CAPTURE(lines);
            CHECK(ask(get(std::string{squid_digest_path}, lines), squid, what).status == 200);
        }
    }

    TEST_CASE("the fleet's figures are made for whoever may have a digest, and for nobody else") {
        unsigned made = 0;
        auto what = shelf{}.offer();
        const auto path = std::string{figures_path};
        CHECK(ask(get(path), peer, what).status == 404);
        what.figures = [&made]() -> wire_bytes {
            ++made;
            return std::make_shared<const std::vector<std::byte>>(20, std::byte{'x'});
        };
        CHECK(ask(get(path), {}, what).status == 403);
        CHECK(ask(get(path), {.is_squid = true}, what).status == 403);
        CHECK(ask(get(path, "Via: 1.1 x\r\n"), peer, what).status == 403);
        asker signer{.is_reprise = true, .signing = true};
        CHECK(ask(get(path), signer, what).what == answered::not_signed);
        CHECK(ask("POST " + path + " HTTP/1.1\r\nHost: a\r\n\r\n", peer, what).status == 405);
        CHECK(made == 0);
        signer.signature = signature_verdict::good;
        for (const auto& who : {peer, signer}) {
            const auto got = ask(get(path + "?since=1-2&wait=9"), who, what);
            CHECK(got.status == 200);
            CHECK(got.what == answered::whole);
            CHECK(got.body->size() == 20);
            CHECK(says(got, "Content-Length: 20"));
            CHECK(says(got, "Reprise-Node: node-a"));
            CHECK(says(got, "Cache-Control: private, no-cache, no-transform"));
            CHECK_FALSE(says(got, "Reprise-News: 30"));
        }
        const auto head = ask("HEAD " + path + " HTTP/1.1\r\nHost: a\r\n\r\n", peer, what);
        CHECK(head.status == 200);
        CHECK_FALSE(head.body);
        CHECK(says(head, "Content-Length: 20"));
    }

    TEST_CASE("paths are known, with a query and without; nothing else is") {
        CHECK(resource_at("/.well-known/reprise/digest") == resource::digest);
        CHECK(resource_at("/.well-known/reprise/seen?since=1-2") == resource::seen);
        CHECK(resource_at("/.well-known/reprise/figures?") == resource::figures);
        CHECK(resource_at("/squid-internal-periodic/store_digest") == resource::squid_digest);
        CHECK(resource_at("/squid-internal-dynamic/netdb") == resource::squid_netdb);
        CHECK(resource_at("/.well-known/reprise/digest/") == resource::none);
        CHECK(resource_at("") == resource::none);
        CHECK(resource_at("*") == resource::none);
    }

    TEST_CASE("a peer gets the whole digest, which no cache may keep or change") {
        const shelf s;
        const auto got = ask(get("/.well-known/reprise/digest"), peer, s.offer());
        CHECK(got.what == answered::whole);
        CHECK(got.status == 200);
        CHECK(got.head.starts_with("HTTP/1.1 200 OK\r\nDate: "));
        CHECK(got.head.ends_with("\r\n\r\n"));
        CHECK(says(got, "Cache-Control: private, no-cache, no-transform"));
        CHECK(says(got, "ETag: " + s.second_tag));
        CHECK(says(got, "Reprise-Node: node-a"));
        REQUIRE(got.body != nullptr);
        CHECK(says(got, "Content-Length: " + std::to_string(got.body->size())));
        CHECK(s.digests.now()->fetched);
        CHECK(got.first == 0);
        const auto read = filter::decode_digest(*got.body, filter::test::test_seed());
        REQUIRE(read.has_value());
        CHECK(read->checksum() == s.digests.now()->bits->checksum());
    }

    TEST_CASE("an answer that is read slowly keeps its bytes alone, when its generation is over") {
        shelf s;
        for (const auto& target :
             {std::string{digest_path}, std::string{digest_path} + "?since=" + bare(s.first_tag)}) {
            CAPTURE(target);
            const auto got = ask(get(target), peer, s.offer());
            REQUIRE(got.body != nullptr);
            const std::weak_ptr<const published> its = s.digests.now();
            const auto etag = its.lock()->etag;
            CHECK(its.lock()->fetched);
            const auto size = filter::digest_size(2000, 0.01);
            s.digests.publish(digest_of_keys(size, 0, 1920, s.counter++), now);
            CHECK(its.expired());
            CHECK_FALSE(got.body->empty());
            CHECK(says(got, "ETag: " + etag));
        }
    }

    TEST_CASE("who has the newest gets 304, by any of his tags") {
        const shelf s;
        for (const auto& tags : {s.second_tag, "W/" + s.second_tag, "\"x\", " + s.second_tag}) {
            CAPTURE(tags);
            const auto got = ask(get("/.well-known/reprise/digest?since=" + bare(s.second_tag),
                                     "If-None-Match: " + tags + "\r\n"),
                                 peer,
                                 s.offer());
            CHECK(got.what == answered::not_modified);
            CHECK(got.status == 304);
            CHECK(got.body == nullptr);
            CHECK(got.head.find("Content-Length") == std::string::npos);
            CHECK(says(got, "ETag: " + s.second_tag));
        }
        const auto old = ask(
            get("/.well-known/reprise/digest", "If-None-Match: " + s.first_tag + "\r\n"),
            peer,
            s.offer());
        CHECK(old.what == answered::whole);
    }

    TEST_CASE("who has one before it gets the change, and the whole where none is known") {
        const shelf s;
        const auto got = ask(
            get("/.well-known/reprise/digest?since=" + bare(s.first_tag)), peer, s.offer());
        CHECK(got.what == answered::delta);
        CHECK(got.body->size() < s.digests.now()->whole->size() / 10);
        for (const auto* since : {"1-1", "", "x", "e90c4-", "-1", "e90c4-1-1", "%zz"}) {
            CAPTURE(since);
            CHECK(
                ask(get(std::string{"/.well-known/reprise/digest?since="} + since), peer, s.offer())
                    .what == answered::whole);
        }
    }

    TEST_CASE("who is no peer learns nothing, whether or not there is a digest") {
        const shelf s;
        for (const auto& offer : {s.offer(), offered{}}) {
            const auto got = ask(get("/.well-known/reprise/digest"), {}, offer);
            CHECK(got.what == answered::not_a_peer);
            CHECK(got.status == 403);
            CHECK_FALSE(got.body);
            CHECK(got.head.find("ETag") == std::string::npos);
            CHECK(got.head.find("node-a") == std::string::npos);
        }
        CHECK(ask(get("/.well-known/reprise/digest"), {.is_squid = true}, s.offer()).what ==
              answered::not_a_peer);
    }

    TEST_CASE("a refusal says by which address one is seen, or what the signature is") {
        const shelf s;
        const auto target = std::string{digest_path};
        const auto stranger = ask(get(target), {.address = "10.0.0.9"}, s.offer());
        const std::string why = "10.0.0.9 is the address of no peer in the settings here\n";
        CHECK(stranger.text == why);
        CHECK(says(stranger, "Content-Length: " + std::to_string(why.size())));
        const auto bad = ask(get(target),
                             {.is_reprise = true,
                              .signing = true,
                              .signature = signature_verdict::out_of_time,
                              .address = "10.0.0.9"},
                             s.offer());
        CHECK(bad.text.starts_with("the signature is out_of_time"));
        const auto only_head = ask(
            "HEAD " + target + " HTTP/1.1\r\nHost: a\r\n\r\n", {.address = "10.0.0.9"}, s.offer());
        CHECK(only_head.text.empty());
        CHECK(says(only_head, "Content-Length: " + std::to_string(why.size())));
    }

    TEST_CASE("with a secret a peer must have signed well") {
        const shelf s;
        for (const auto verdict : {signature_verdict::missing,
                                   signature_verdict::wrong,
                                   signature_verdict::replayed,
                                   signature_verdict::out_of_time}) {
            const auto got = ask(get("/.well-known/reprise/digest"),
                                 {.is_reprise = true, .signing = true, .signature = verdict},
                                 s.offer());
            CHECK(got.what == answered::not_signed);
            CHECK(got.status == 403);
        }
        CHECK(ask(get("/.well-known/reprise/digest"),
                  {.is_reprise = true, .signing = true, .signature = signature_verdict::good},
                  s.offer())
                  .status == 200);
    }

    TEST_CASE("before there is anything the answer is 503, to be asked again") {
        const auto got = ask(get("/.well-known/reprise/digest"), peer, {});
        CHECK(got.what == answered::not_ready);
        CHECK(got.status == 503);
        CHECK(says(got, "Retry-After: 1"));
    }

    TEST_CASE("HEAD has the head alone and holds nothing; other methods are refused") {
        const shelf s;
        const auto got = ask(
            "HEAD /.well-known/reprise/digest HTTP/1.1\r\nHost: a\r\n\r\n", peer, s.offer());
        CHECK(got.status == 200);
        CHECK(got.body == nullptr);
        CHECK_FALSE(s.digests.now()->fetched);
        CHECK(got.head.find("Content-Length: 0") == std::string::npos);
        const auto post = ask(
            "POST /.well-known/reprise/digest HTTP/1.1\r\nHost: a\r\n\r\n", peer, s.offer());
        CHECK(post.status == 405);
        CHECK(says(post, "Allow: GET, HEAD"));
    }

    TEST_CASE("a listed Squid gets its form, control block first, and is told until when") {
        auto offer = shelf{}.offer();
        offer.serves_squid = true;
        offer.squid = std::make_shared<const std::vector<std::byte>>(500);
        offer.squid_at = now - 10s;
        const auto target = std::string{squid_digest_path};
        const auto got = ask(get(target), {.is_squid = true}, offer);
        CHECK(got.status == 200);
        CHECK(says(got, "Content-Type: application/cache-digest"));
        CHECK(says(got, "Content-Length: 500"));
        CHECK(got.head.find("Expires: ") != std::string::npos);
        CHECK(got.head.find("Last-Modified: ") != std::string::npos);
        CHECK(got.head.find("Cache-Control") == std::string::npos);
        CHECK(got.first == 128);
        CHECK(got.pause >= 20ms);
        CHECK(ask(get(target), peer, offer).status == 403);
        offer.squid = nullptr;
        CHECK(ask(get(target), {.is_squid = true}, offer).status == 503);
        offer.serves_squid = false;
        CHECK(ask(get(target), {.is_squid = true}, offer).status == 404);
        CHECK(ask(get(std::string{squid_netdb_path}), {.is_squid = true}, offer).status == 404);
    }

    TEST_CASE("of a Squid's form it is said when it came to be, and not told twice to who has it") {
        auto offer = shelf{}.offer();
        offer.serves_squid = true;
        offer.squid = std::make_shared<const std::vector<std::byte>>(500);
        offer.squid_at = std::chrono::floor<std::chrono::seconds>(now) - 10s;
        const asker squid{.is_squid = true};
        const auto target = std::string{squid_digest_path};
        const auto dated = [](wall_time when) {
            std::string text;
            http::append_date(text, when);
            return text;
        };
        const auto since = [&](const std::string& date, const std::string& more = "") {
            return ask("GET " + target + " HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: " + date +
                           "\r\n" + more + "\r\n",
                       squid,
                       offer);
        };
        CHECK(says(ask(get(target), squid, offer), "Last-Modified: " + dated(now - 10s)));
        for (const auto age : {10s, 5s, 0s}) {
            const auto got = since(dated(now - age));
            CHECK(got.status == 304);
            CHECK(got.what == answered::not_modified);
            CHECK(says(got, "Last-Modified: " + dated(now - 10s)));
            CHECK(got.head.find("Expires: ") != std::string::npos);
            CHECK(got.head.find("Content-Length") == std::string::npos);
            CHECK(got.body == nullptr);
        }
        CHECK(since(dated(now - 11s)).status == 200);
        CHECK(since("yesterday").status == 200);
        CHECK(since(dated(now), "If-None-Match: \"a\"\r\n").status == 200);
        CHECK(since(dated(now), "If-Modified-Since: " + dated(now) + "\r\n").status == 200);
        // The clock was set back: what it says of then is not to be believed.
        offer.squid_at = now + 10s;
        CHECK(since(dated(now + 20s)).status == 200);
        CHECK(ask(get(target), squid, offer).head.find("Last-Modified") == std::string::npos);
        // By this it would know itself.
        CHECK(says(ask(get(target), squid, offer), "Reprise-Node: node-a"));
    }

    TEST_CASE("a generation is read from the text it was written to, and from no other") {
        const filter::digest_generation one{.epoch = 0xdeadbeefcafe0123, .counter = 42};
        CHECK(to_text(one) == "deadbeefcafe0123-2a");
        CHECK(parse_generation(to_text(one)) == one);
        for (const auto* text : {"",
                                 "-",
                                 "1-",
                                 "-1",
                                 "1-g",
                                 "1--1",
                                 "0x1-1",
                                 "1-1 ",
                                 "11111111111111111-1",
                                 "1-11111111111111111111"}) {
            CAPTURE(text);
            CHECK_FALSE(parse_generation(text));
        }
    }

    TEST_CASE("every answer has a name") {
        const auto name = [](std::size_t i) { return to_string(static_cast<answered>(i)); };
        for (std::size_t i = 0; i <= answered_count; ++i) {  // to wait, the last, is no answer
            CAPTURE(i);
            CHECK(name(i) != "?");
        }
        CHECK(name(answered_count) == "waiting");
        CHECK(name(answered_count + 1) == "?");
    }
}

}  // namespace reprise::proxy::peer::test::of_resource
