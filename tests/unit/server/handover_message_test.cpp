#include "proxy/server/handover_message.hpp"
#include "proxy/thread/purge_order.hpp"

#include <doctest/doctest.h>

#include <string>

TEST_SUITE("server/handover_message") {

    using namespace reprise::proxy;
    using namespace reprise::proxy::server;

    TEST_CASE("a message is read as it was written") {
        const handover_message sent{
            handover_kind::heard, 0x0123456789abcdef, std::string{"\0any bytes\xff", 11}};
        const auto wire = encode(sent);
        const auto got = decode_handover(wire);
        REQUIRE(got);
        CHECK(got->kind == sent.kind);
        CHECK(got->number == sent.number);
        CHECK(got->bytes == sent.bytes);
        CHECK(wire.substr(1, 2) == "\xef\xcd");
    }

    TEST_CASE("every kind is known again") {
        using enum handover_kind;
        for (const auto kind :
             {hello, listener, admin, prepared, yours, history, serving, purge, more, heard}) {
            CAPTURE(static_cast<char>(kind));
            const auto got = decode_handover(encode({kind, 3}));
            REQUIRE(got);
            CHECK(got->kind == kind);
        }
    }

    TEST_CASE("what is too short, or of a kind that is not known, is no message") {
        const auto wire = encode({handover_kind::hello, 1});
        for (std::size_t cut = 0; cut < wire.size(); ++cut) {
            CHECK_FALSE(decode_handover(std::string_view{wire}.substr(0, cut)));
        }
        auto unknown = wire;
        unknown[0] = 'Z';
        CHECK_FALSE(decode_handover(unknown));
    }

    TEST_CASE("an order is read as it was written, and nothing of any piece of it") {
        const thread::purge_order sent{.kind = thread::purge_kind::tag,
                                       .mode = cache::purge_mode::soft,
                                       .keys = {"http://a.example/", ""},
                                       .tags = {"one", std::string{"\0", 1}, "three"}};
        const auto wire = encode(sent);
        CHECK(thread::decode_purge(wire) == sent);
        for (std::size_t cut = 0; cut < wire.size(); ++cut) {
            CAPTURE(cut);
            CHECK_FALSE(thread::decode_purge(std::string_view{wire}.substr(0, cut)));
        }
        CHECK_FALSE(thread::decode_purge(wire + "x"));
        auto many = wire;
        many[2] = many[3] = many[4] = many[5] = '\xff';  // so many keys
        CHECK_FALSE(thread::decode_purge(many));
        auto of_no_kind = wire;
        of_no_kind[0] = 3;
        CHECK_FALSE(thread::decode_purge(of_no_kind));
    }
}
