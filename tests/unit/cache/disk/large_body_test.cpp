// How a large body is read for a client: in few pieces where it takes them, in small ones where it does not.

#include "proxy/cache/disk_body.hpp"
#include "tests/unit/cache/disk/disk_store.hpp"
#include "tests/unit/cache/disk/memory_files.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::proxy::cache::disk {

using namespace test;

namespace {

constexpr std::size_t one_block = 64u << 10, mebibyte = 1u << 20;
constexpr std::size_t batch = 128u << 10;  // what a reply asks for

/// A body of three extents and two blocks on disk, and its reader.
struct large_stored {
    explicit large_stored(bool is_cold) {
        s.settings.segment = 8 * mebibyte;  // so that extents are of one mebibyte
        s.open();
        s.put_surely(url, object(url, size));
        response = s.find(url).response;
        REQUIRE(response);
        files->set_cold(is_cold);
        files->set_hook([this](operation what, std::string_view) {
            reads += what == operation::read ? 1 : 0;
            cached_reads += what == operation::read_cached ? 1 : 0;
            return error_code{};
        });
        reader = response->on_disk()->read_from(0, {});
    }
    ~large_stored() { files->set_hook({}); }

    /// The next piece that the client is given.
    std::string next() {
        pieces.clear();
        auto came = disk_body_reader::read_result::waiting;
        REQUIRE(eventually([&] {
            came = reader->next(size, batch, pieces);
            return came != disk_body_reader::read_result::waiting;
        }));
        REQUIRE(came == disk_body_reader::read_result::data);
        std::string out;
        for (const auto& piece : pieces) {
            out.append(piece.view());
        }
        REQUIRE(out == content.substr(reader->offset() - out.size(), out.size()));
        return out;
    }
    void read_until(std::size_t offset) {
        while (reader->offset() < offset) {
            (void)next();
        }
    }
    /// So many, sooner or later, and no more within a moment.
    [[nodiscard]] bool comes_to_reads(unsigned many) {
        return eventually([&] { return reads >= many; }) &&
               !eventually([&] { return reads != many; }, 50ms);
    }

    const std::string url = "http://large/";
    static constexpr std::size_t size = 3 * mebibyte + 100'000;
    const std::string content = body_for(url, size);
    std::shared_ptr<memory_files> files = std::make_shared<memory_files>();
    disk_store s{files, 64 * mebibyte};
    std::atomic<unsigned> reads{0}, cached_reads{0};
    stored_ptr response;
    std::unique_ptr<disk_body_reader> reader;
    std::vector<slice> pieces;
};

}  // namespace

TEST_SUITE("cache/disk/large_body") {

    TEST_CASE("for a client that takes what it is given a piece is four blocks, and a batch two") {
        for (const bool is_cold : {false, true}) {
            CAPTURE(is_cold);
            large_stored one{is_cold};
            unsigned batches = 0;
            while (one.reader->offset() < one.size) {
                (void)one.next();
                ++batches;
            }
            // An extent's front and four pieces; the last one's, and one.
            CHECK((is_cold ? one.reads : one.cached_reads) == 3 * 5 + 2);
            CHECK(batches == 3 * 8 + 1);
            CHECK(one.s->figures().read_errors == 0);
        }
    }

    TEST_CASE("what had to come from the disk is read ahead, but not for a client that lags") {
        large_stored one{true};
        (void)one.next();
        CHECK(one.comes_to_reads(3));  // the front, the piece that is given, and the one ahead
        one.reader->client_lags();
        CHECK(one.next().size() == one_block);
        CHECK(one.comes_to_reads(4));
        CHECK(one.next().size() == one_block);
        CHECK(one.comes_to_reads(5));
    }

    TEST_CASE("of a client that lags nothing is held but what it was given") {
        for (const bool is_cold : {false, true}) {
            CAPTURE(is_cold);
            large_stored one{is_cold};
            (void)one.next();
            CHECK(one.pieces.size() == 2);
            for (const auto& piece : one.pieces) {
                // Each block lies by itself: it goes when it is sent.
                CHECK(piece.memory->capacity() == one_block);
            }
            const auto given = one.pieces;
            one.pieces.clear();
            one.reader->client_lags();
            // What it was given is nobody else's any more, and the rest is read once more.
            const auto before = one.reads + one.cached_reads;
            CHECK(one.next().size() == one_block);
            CHECK(one.reads + one.cached_reads > before);
            CHECK(one.pieces.front().memory->capacity() == one_block);
        }
    }

    TEST_CASE("a client that lagged is read for as ever when it has taken a mebibyte in time") {
        large_stored one{false};
        one.read_until(batch);
        one.reader->client_lags();
        one.cached_reads = 0;
        one.read_until(batch + mebibyte);
        CHECK(one.cached_reads == 16 + 1);  // one by one, and another extent's front
        CHECK(one.next().size() == batch);
        one.read_until(one.size);
        CHECK(one.cached_reads == 16 + 1 + (4 + 1 + 4) + 2);
    }

    TEST_CASE("one that lags in the middle of a block loses none of it") {
        large_stored one{true};
        one.pieces.clear();
        REQUIRE(eventually([&] {
            return one.reader->next(one.size, 10'000, one.pieces) ==
                   disk_body_reader::read_result::data;
        }));
        CHECK(one.reader->offset() == 10'000);
        one.reader->client_lags();
        one.read_until(3 * one_block);
        one.reader->client_lags();
        one.reader->client_lags();
        one.read_until(one.size);
        CHECK(one.s->figures().damaged == 0);
    }
}

}  // namespace reprise::proxy::cache::disk
