#include "proxy/serve/stored_reply.hpp"
#include "tests/unit/cache/fetching.hpp"
#include "tests/unit/serve/exchanges.hpp"

namespace reprise::proxy::serve::test::of_disk_body_reply {

using read_result = cache::disk_body_reader::read_result;

namespace {

const std::string text = cache::test::pattern(600);
const std::string head = "200 OK\r\nCache-Control: max-age=60\r\nETag: \"1\"\r\n";

// A disk that has read `text` as far as it says, and what it says of the rest.
struct disk {
    std::uint64_t there = 0;
    read_result behind = read_result::waiting;
    unsigned lags = 0;  // so often it was told
    net::wakeup::signal sleeper;
};

class reading final : public cache::disk_body_reader {
public:
    reading(disk& from, std::uint64_t at) : from_{from}, at_{at} {}
    read_result next(std::uint64_t end,
                     std::size_t most,
                     std::vector<cache::slice>& into) override {
        const auto until = std::min({end, from_.there, at_ + most});
        if (until <= at_) {
            return from_.behind;
        }
        const auto bytes = cache::test::body_of(std::string_view{text}.substr(at_, until - at_));
        into.push_back(bytes->slices.front());
        at_ = until;
        return read_result::data;
    }
    void client_lags() noexcept override { ++from_.lags; }
    [[nodiscard]] std::uint64_t offset() const noexcept override { return at_; }

private:
    disk& from_;
    std::uint64_t at_;
};

class body_on_disk final : public cache::disk_body {
public:
    explicit body_on_disk(disk& on) : on_{on} {}
    [[nodiscard]] std::uint64_t size() const noexcept override { return text.size(); }
    [[nodiscard]] std::unique_ptr<cache::disk_body_reader> read_from(
        std::uint64_t offset, net::wakeup::signal sleeper) const override {
        on_.sleeper = std::move(sleeper);
        return std::make_unique<reading>(on_, offset);
    }

private:
    disk& on_;
};

// A hit whose body is on disk.
struct hitting : bench {
    explicit hitting(const std::string& fields = "", const std::string& stored_head = head) {
        store(stored_head + "Content-Length: 600\r\n", text);
        state.emplace(*this, get(fields));
        auto& x = state->x;
        x.stored = at.common.store.find(x.asked.key, x.asked.url, x.asked.head->fields);
        auto kept = cache::test::drafted{x.stored.response->draft()};
        kept->content = nullptr;
        kept->on_disk = std::make_shared<body_on_disk>(from);
        x.stored.response = kept;
        x.verdict.what = cache::ruling::hit;
        x.judged_at = resident_now();
        what = compose_stored(x, {});
    }
    // As much as can be sent is sent.
    void give() {
        REQUIRE(what);
        reply.emplace(state->x, *what);
        start(reply->give(), how);
    }
    void reads(std::uint64_t there, read_result behind = read_result::waiting) {
        from.there = there;
        from.behind = behind;
        from.sleeper.notify();
        settle();
    }
    [[nodiscard]] std::optional<ended> end() const {
        return how && std::holds_alternative<ended>(*how) ? std::optional{std::get<ended>(*how)}
                                                          : std::nullopt;
    }

    disk from;
    std::optional<stated> state;
    std::optional<answers::body_on_disk> what;
    std::optional<disk_body_reply> reply;
    std::optional<ended_or_next> how;
};

}  // namespace

TEST_SUITE_BEGIN("serve/disk_body_reply");

TEST_CASE("a body on disk is sent while it is read, the head with its first piece") {
    hitting one;
    one.give();
    CHECK(one.sink.sent.empty());
    one.reads(4);
    CHECK(one.said().body == text.substr(0, 4));
    one.reads(600);
    CHECK(one.end() == ended::keep);
    CHECK(one.said().body == text);
    CHECK(one.sink.wholes == 1);
    CHECK(one.at.w.counts.body_bytes_from_store.read() == 600);
}

TEST_CASE("of a body on disk a range is read where it is, and no further") {
    hitting one{"Range: bytes=3-6\r\n"};
    one.from.there = 600;
    one.give();
    CHECK(one.end() == ended::keep);
    CHECK(one.said().status == 206);
    CHECK(one.said()["Content-Range"] == "bytes 3-6/600");
    CHECK(one.said().body == text.substr(3, 4));
}

TEST_CASE("several ranges of a body on disk are all of it; a 304 needs none") {
    hitting one{"Range: bytes=0-1,500-501\r\n"};
    one.from.there = 600;
    one.give();
    CHECK(one.said().status == 200);
    CHECK(one.said().body == text);
    CHECK(!hitting{"If-None-Match: \"1\"\r\n"}.what);
}

TEST_CASE(
    "a body that proves unreadable is fetched, as if it were not stored, and nothing is out") {
    for (const auto behind : {read_result::lost, read_result::refused}) {
        hitting one;
        one.give();
        one.reads(0, behind);
        REQUIRE(one.how);
        REQUIRE(std::holds_alternative<answer>(*one.how));
        CHECK(std::holds_alternative<answers::fetched>(std::get<answer>(*one.how)));
        CHECK(one.sink.sent.empty());
        CHECK(!one.state->x.out.has_pieces());
        CHECK(one.state->x.sending == nullptr);
    }
}

TEST_CASE(
    "one that fails in the middle goes on from the origin, under the validator of what is out") {
    hitting one;
    one.give();
    one.reads(4, read_result::refused);
    REQUIRE(one.orders.size() == 1);
    auto rest = one.origin();
    const auto* order = rest.order->as<fetch::wanted::rest>();
    REQUIRE(order);
    CHECK(order->at == 4);
    CHECK(order->etag == "\"1\"");
    SUBCASE("which has it") {
        rest.head("206 Partial Content\r\nETag: \"1\"\r\nContent-Range: bytes 4-599/600\r\n"
                  "Content-Length: 596\r\n");
        rest.body(text.substr(4));
        rest.end();
        one.settle();
        CHECK(one.end() == ended::keep);
        CHECK(one.said().body == text);
    }
    SUBCASE("which has another") {
        rest.head("200 OK\r\nETag: \"2\"\r\nContent-Length: 600\r\n");
        one.settle();
        CHECK(one.end() == ended::gone);
        CHECK(one.sink.broken_off);
        CHECK(one.said().body == text.substr(0, 4));
        CHECK(one.state->x.book.reason == "disk");
    }
}

TEST_CASE("in the middle of a part, or without a strong ETag, it is broken off") {
    hitting ranged{"Range: bytes=2-8\r\n"};
    hitting weak{"", "200 OK\r\nCache-Control: max-age=60\r\nETag: W/\"1\"\r\n"};
    for (auto* one : {&ranged, &weak}) {
        one->give();
        one->reads(4, read_result::lost);
        CHECK(one->end() == ended::gone);
        CHECK(one->sink.broken_off);
        CHECK(one->sink.wholes == 0);
        CHECK(one->orders.size() == 0);
    }
}

TEST_CASE("that a client does not take what it is sent is told, so that little is held for it") {
    using std::chrono::milliseconds;
    hitting one;
    one.sink.takes(10);
    one.from.there = 600;
    const auto before = steady_now();
    one.give();
    CHECK(!one.how);
    auto& timer = one.at.w.timer;
    timer.tick(before + milliseconds{20});
    CHECK(one.from.lags == 0);
    timer.tick(steady_now() + milliseconds{1000});
    CHECK(one.from.lags == 1);
    timer.tick(steady_now() + milliseconds{2000});
    CHECK(one.from.lags == 1);  // once for each batch
    one.sink.takes(10'000);
    one.settle();
    CHECK(one.end() == ended::keep);
    CHECK(one.said().body == text);
    timer.tick(steady_now() + milliseconds{3000});
    CHECK(one.from.lags == 1);
}

TEST_CASE("a client that leaves while the disk is awaited is gone") {
    hitting one;
    one.give();
    one.sink.leaves();
    one.settle();
    CHECK(one.end() == ended::gone);
    CHECK(one.sink.sent.empty());
    CHECK(one.state->x.book.how == outcome::client_gone);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_disk_body_reply
