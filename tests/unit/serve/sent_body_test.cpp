#include "proxy/serve/sent_body.hpp"

#include <doctest/doctest.h>

#include <random>

namespace reprise::proxy::serve::test::of_sent_body {

TEST_SUITE_BEGIN("serve/sent_body");

TEST_CASE("nothing is counted of a send in which nothing was noted") {
    sent_body body;
    CHECK(!body.any());
    CHECK(body.settle(0).bytes == 0);
    CHECK(body.settle(1'000).bytes == 0);
}

TEST_CASE("what went out before the body is no body") {
    sent_body body;
    body.note(body_source::store, 50, 1'000, 20);  // a head of 20 bytes stands before it
    CHECK(body.any());
    CHECK(body.settle(1'020).bytes == 0);
    CHECK(!body.any());
}

TEST_CASE("of a send that broke off, what went out counts; of a whole one, all") {
    for (const std::uint64_t went : {0, 19, 20, 21, 45, 70, 71, 500}) {
        CAPTURE(went);
        sent_body body;
        body.note(body_source::fetch, 50, 1'000, 20);
        const auto counted = body.settle(1'000 + went);
        CHECK(counted.bytes == (went <= 20 ? 0 : went >= 70 ? 50 : went - 20));
        CHECK(counted.from == body_source::fetch);
    }
}

TEST_CASE("several pieces of one send are one run, counted from the first") {
    sent_body body;
    body.note(body_source::store, 10, 0, 5);
    body.note(body_source::store, 30, 0, 17);  // two bytes between the two: the end of a chunk
    CHECK(body.settle(16).bytes == 11);
    body.note(body_source::store, 10, 100, 5);
    body.note(body_source::store, 30, 100, 17);
    CHECK(body.settle(200).bytes == 40);
}

TEST_CASE("a settled send is forgotten: the next begins anew, with its own source") {
    sent_body body;
    body.note(body_source::store, 10, 0, 0);
    (void)body.settle(4);
    body.note(body_source::shared, 10, 4, 0);
    const auto counted = body.settle(9);
    CHECK(counted.bytes == 5);
    CHECK(counted.from == body_source::shared);
}

TEST_CASE("over a reply of many sends no byte counts twice, and none of the body is left out") {
    for (unsigned seed = 1; seed <= 200; ++seed) {
        CAPTURE(seed);
        std::mt19937 random{seed};
        sent_body body;
        std::uint64_t sent = random() % 5'000, counted = 0, composed = 0;
        for (int sends = 0; sends < 10; ++sends) {
            const auto front = random() % 3 == 0 ? random() % 400 : 0;
            std::uint64_t before = front;
            for (auto pieces = random() % 4; pieces > 0; --pieces) {
                const auto bytes = 1 + random() % 3'000;
                body.note(body_source::store, bytes, sent, before);
                before += bytes;
                composed += bytes;
            }
            sent += before;
            counted += body.settle(sent).bytes;
        }
        CHECK(counted == composed);
    }
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_sent_body
