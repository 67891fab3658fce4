#include "proxy/fetch/freshening.hpp"
#include "proxy/http/date.hpp"
#include "proxy/serve/stored_reply.hpp"
#include "tests/unit/serve/exchanges.hpp"

namespace reprise::proxy::serve::test::of_stored_reply {

namespace {

const std::string text = "0123456789";
const std::string modified = "Mon, 01 Jan 2024 00:00:00 GMT";
const std::string tagged =
    "200 OK\r\nCache-Control: max-age=600\r\nETag: \"1\"\r\nLast-Modified: " + modified +
    "\r\nContent-Type: text/plain\r\n";
const std::string of_ten = tagged + "Content-Length: 10\r\n";

// A client of a node that has `text`.
struct holder : bench {
    explicit holder(const std::string& head = of_ten) { store(head, text); }
    // What a request gets, from the store and at once.
    heard ask(const std::string& request) {
        sink.sent.clear();
        sink.is_whole();
        asking one{*this, request};
        CHECK(one.begun);
        last = one.begun;
        return said();
    }
    heard ask_for(const std::string& fields) { return ask(get(fields)); }
    std::optional<ended> last;
};

// The parts of `text` that were asked for, of which `total` was known.
struct holder_of_parts : holder {
    holder_of_parts(std::initializer_list<std::pair<unsigned, unsigned>> ranges,
                    const std::string& total = "10")
        : holder{of_ten} {
        (void)at.common.store.invalidate(key(), url);
        for (const auto& [first, last_byte] : ranges) {
            const auto range = std::to_string(first) + "-" + std::to_string(last_byte);
            const auto bytes = text.substr(first, last_byte + 1 - first);
            store("206 Partial Content\r\nCache-Control: max-age=600\r\nETag: \"1\"\r\n"
                  "Content-Range: bytes " +
                      range + "/" + total + "\r\nContent-Length: " + std::to_string(bytes.size()) +
                      "\r\n",
                  bytes,
                  "Range: bytes=" + range + "\r\n");
        }
    }
};

// An origin's 304 confirms what is held of `url`, with a Date of now.
void confirm(bench& on) {
    arrival one{on.at};
    const auto& order = *one.order;
    const auto held = on.at.common.store.find(order.key, order.url, {}).response;
    REQUIRE(held);
    one.order->what = wanted::validating{held};
    const auto now = wall_now();
    const auto date = http::format_date(now);
    const auto head = "HTTP/1.1 304 Not Modified\r\nDate: " +
                      std::string{date.data(), date.size()} + "\r\n\r\n";
    fetch::received came;
    REQUIRE(http::parse_response_head(head, came.head, {}).state == http::head_state::done);
    came.requested = came.came = now;
    came.resident_requested = came.resident_came = resident_now();
    came.by = fetch::word_of::origin;
    fetch::freshening by{on.at.w, order, came, one.kept.begun_at()};
    REQUIRE(by.by_not_modified());
}

}  // namespace

TEST_SUITE_BEGIN("serve/stored_reply");

TEST_CASE("a part has one Content-Range, whatever the whole's head says of one") {
    holder at{tagged + "Content-Range: items 0-99/100\r\nX-More: 1\r\nContent-Length: 10\r\n"};
    CHECK(at.ask_for("")["Content-Range"] == "items 0-99/100");
    const auto part = at.ask_for("Range: bytes=2-4\r\n");
    CHECK(part.body == "234");
    CHECK(part["Content-Range"] == "bytes 2-4/10");
    CHECK(part["Content-Length"] == "3");
    CHECK(part["X-More"] == "1");
    CHECK(part.text.find("items") == std::string::npos);
}

TEST_CASE("a hit is the stored head and body, its age, and how long it is fresh yet") {
    holder at{of_ten + "Age: 100\r\n"};
    const auto said = at.ask_for("");
    CHECK(said.text.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(said.body == text);
    CHECK(said["Content-Length"] == "10");
    CHECK(said["ETag"] == "\"1\"");
    CHECK(said["Connection"].empty());
    CHECK(std::stoi(said["Age"]) >= 100);
    const auto status = said["Cache-Status"];
    REQUIRE(status.starts_with("reprise; hit; ttl="));
    CHECK(std::stoi(said["Age"]) + std::stoi(status.substr(18)) == 600);
    CHECK(at.counted(outcome::hit) == 1);
    CHECK(at.sink.wholes == 2);
}

TEST_CASE("HEAD gets the head of what is stored, with the body's length") {
    holder at;
    const auto said = at.ask(head_of("HEAD " + url));
    CHECK(said.status == 200);
    CHECK(said["Content-Length"] == "10");
    CHECK(said.body.empty());
}

TEST_CASE("a client that closes is told so, and one of HTTP/1.0 that stays") {
    holder at;
    CHECK(at.ask_for("Connection: close\r\n")["Connection"] == "close");
    CHECK(at.last == ended::close);
    const auto old = "GET " + url + " HTTP/1.0\r\n";
    CHECK(at.ask(old + "Connection: keep-alive\r\n\r\n")["Connection"] == "keep-alive");
    CHECK(at.last == ended::keep);
    const auto said = at.ask(old + "\r\n");
    CHECK(said["Connection"] == "close");
    CHECK(said.body == text);
    CHECK(at.last == ended::close);
}

TEST_CASE("a client whose copy still holds gets a 304 without a body or its length") {
    holder at;
    for (const auto& condition :
         {std::string{"If-None-Match: \"0\", W/\"1\""}, "If-Modified-Since: " + modified}) {
        const auto said = at.ask_for(condition + "\r\n");
        CHECK(said.status == 304);
        CHECK(said.body.empty());
        CHECK(said["Content-Length"].empty());
        CHECK(said["Content-Type"].empty());
        CHECK(said["ETag"] == "\"1\"");
        CHECK(said["Cache-Control"] == "max-age=600");
        CHECK(!said["Age"].empty());
    }
}

TEST_CASE(
    "a client whose copy is another's gets what is stored, by If-None-Match before the date") {
    holder at;
    const auto said = at.ask_for("If-None-Match: \"2\"\r\nIf-Modified-Since: " + modified + "\r\n");
    CHECK(said.status == 200);
    CHECK(said.body == text);
}

TEST_CASE("one range is a 206 of just these bytes") {
    holder at;
    struct {
        const char *asked, *range, *bytes;
    } const rows[] = {{"2-4", "bytes 2-4/10", "234"},
                      {"7-", "bytes 7-9/10", "789"},
                      {"-2", "bytes 8-9/10", "89"},
                      {"-99", "bytes 0-9/10", "0123456789"},
                      {"8-99", "bytes 8-9/10", "89"}};
    for (const auto& row : rows) {
        CAPTURE(row.asked);
        const auto said = at.ask_for("Range: bytes=" + std::string{row.asked} + "\r\n");
        CHECK(said.status == 206);
        CHECK(said["Content-Range"] == row.range);
        CHECK(said["Content-Length"] == std::to_string(said.body.size()));
        CHECK(said.body == row.bytes);
        CHECK(said["ETag"] == "\"1\"");
    }
}

TEST_CASE("a range behind the end is a 416 that says where that is") {
    holder at;
    const auto said = at.ask_for("Range: bytes=10-\r\n");
    CHECK(said.status == 416);
    CHECK(said["Content-Range"] == "bytes */10");
    CHECK(said["Content-Length"] == "0");
    CHECK(said.body.empty());
    CHECK(at.last == ended::keep);
}

TEST_CASE("several ranges are a multipart of as many bytes as it says") {
    holder at;
    const auto long_text = text + std::string(500, '-') + "abcdef";
    at.store(tagged + "Content-Length: 516\r\n", long_text);
    const auto said = at.ask_for("Range: bytes=1-2,-3\r\n");
    CHECK(said.status == 206);
    CHECK(said["Content-Range"].empty());
    CHECK(said["Content-Length"] == std::to_string(said.body.size()));
    const auto type = said["Content-Type"];
    const std::string begin = "multipart/byteranges; boundary=";
    REQUIRE(type.starts_with(begin));
    const auto boundary = type.substr(begin.size());
    const auto part = [&](const std::string& range, const std::string& bytes) {
        return "--" + boundary + "\r\nContent-Type: text/plain\r\nContent-Range: bytes " + range +
               "/516\r\n\r\n" + bytes;
    };
    CHECK(said.body.find(part("1-2", "12")) != std::string::npos);
    CHECK(said.body.find(part("513-515", "def")) != std::string::npos);
    CHECK(said.body.ends_with("\r\n--" + boundary + "--\r\n"));
    const auto again = at.ask_for("Range: bytes=1-2,-3\r\n");
    CHECK(again["Content-Type"] != type);  // whoever made the object can't know it
}

TEST_CASE("a Range is nothing where it can't be read, to HEAD, or where If-Range does not hold") {
    holder at;
    CHECK(at.ask_for("Range: lines=1-2\r\n").body == text);
    CHECK(at.ask_for("Range: bytes=4-2\r\n").body == text);
    CHECK(at.ask_for("Range: bytes=1-2\r\nIf-Range: \"2\"\r\n").status == 200);
    CHECK(at.ask_for("Range: bytes=1-2\r\nIf-Range: W/\"1\"\r\n").status == 200);
    CHECK(at.ask_for("Range: bytes=1-2\r\nIf-Range: \"1\"\r\n").body == "12");
    const auto head = at.ask(head_of("HEAD " + url, "Range: bytes=1-2\r\n"));
    CHECK(head.status == 200);
    CHECK(head["Content-Length"] == "10");
}

TEST_CASE("a date in If-Range holds where the bytes' own Date was later, not that of a 304 since") {
    for (const auto& [date, status] :
         {std::pair{modified, 200u},
          std::pair{std::string{"Mon, 01 Jan 2024 00:00:01 GMT"}, 206u}}) {
        CAPTURE(date);
        holder at{"200 OK\r\nCache-Control: max-age=1000000000\r\nLast-Modified: " + modified +
                  "\r\nDate: " + date + "\r\nContent-Length: 10\r\n"};
        const auto ranged = "Range: bytes=2-4\r\nIf-Range: " + modified + "\r\n";
        CHECK(at.ask_for(ranged).status == status);
        confirm(at);
        CHECK(at.ask_for("")["Date"] != date);
        CHECK(at.ask_for(ranged).status == status);
    }
}

TEST_CASE("a range of an error that is stored is the error") {
    holder at{"404 Not Found\r\nCache-Control: max-age=600\r\nContent-Length: 10\r\n"};
    const auto said = at.ask_for("Range: bytes=1-2\r\n");
    CHECK(said.status == 404);
    CHECK(said.body == text);
}

TEST_CASE("parts that are held answer ranges in them, and HEAD") {
    holder_of_parts at{{2, 4}, {5, 7}};
    const auto said = at.ask_for("Range: bytes=3-6\r\n");
    CHECK(said.status == 206);
    CHECK(said["Content-Range"] == "bytes 3-6/10");
    CHECK(said.body == "3456");
    CHECK(at.ask_for("Range: bytes=12-\r\n").status == 416);
    CHECK(at.ask_for("If-None-Match: \"1\"\r\n").status == 304);
    const auto head = at.ask(head_of("HEAD " + url));
    CHECK(head.status == 200);
    CHECK(head["Content-Length"] == "10");
}

TEST_CASE("parts of an object of unknown length say so") {
    holder_of_parts at{{{2, 7}}, "*"};
    const auto said = at.ask_for("Range: bytes=3-6\r\n");
    CHECK(said.status == 206);
    CHECK(said["Content-Range"] == "bytes 3-6/*");
    CHECK(said["Content-Length"] == "4");
    CHECK(said.body == "3456");
    CHECK(at.orders.size() == 0);
}

TEST_CASE("what is stale goes out where the client allows it, and says how stale it is") {
    holder at{of_ten + "Age: 700\r\n"};
    const auto said = at.ask_for("Cache-Control: max-stale=1000\r\n");
    CHECK(said.status == 200);
    CHECK(said["Cache-Status"].starts_with("reprise; hit; ttl=-"));
    CHECK(at.counted(outcome::stale) == 1);
    CHECK(at.orders.size() == 0);
}

TEST_CASE(
    "what may be stale while it is validated goes out at once, and the origin is asked once") {
    holder at{"200 OK\r\nCache-Control: max-age=600, stale-while-revalidate=600\r\nETag: \"1\"\r\n"
              "Content-Length: 10\r\nAge: 700\r\n"};
    for (int i = 0; i < 2; ++i) {
        const auto said = at.ask_for("");
        CHECK(said.body == text);
        CHECK(said["Cache-Status"].ends_with("; detail=stale-while-revalidate"));
    }
    REQUIRE(at.orders.size() == 1);
    const auto order = at.orders.next();
    CHECK(order->behind() != nullptr);
    CHECK(order->validating() == order->behind());
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_stored_reply
