#include "tests/support/temp_dir.hpp"
#include "tools/replay/line_source.hpp"
#include "tools/replay/trace.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>
#include <zlib.h>
#include <zstd.h>

using namespace reprise::replay;
using reprise::tests::temp_dir;

namespace {

std::string written(const temp_dir& directory, const std::string& name, const std::string& text) {
    const auto path = directory.file(name);
    std::ofstream{path, std::ios::binary} << text;
    return path;
}

std::string compressed(const std::string& text) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
    return out;
}

std::string gzipped(const std::string& text) {
    z_stream stream{};
    constexpr int as_gzip = 16;
    REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, as_gzip + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) ==
            Z_OK);
    std::string from = text, out(deflateBound(&stream, from.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(from.data());
    stream.avail_in = static_cast<uInt>(from.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

std::vector<std::string> lines_of(const std::string& path) {
    line_source source{path};
    std::vector<std::string> out;
    std::string_view line;
    while (source.next(line)) {
        out.emplace_back(line);
    }
    return out;
}

std::vector<request> all_of(trace& from) {
    std::vector<request> out, batch;
    for (from.next(batch, 3); !batch.empty(); from.next(batch, 3)) {
        out.insert(out.end(), batch.begin(), batch.end());
    }
    return out;
}

std::string refusal(const std::string& path) {
    try {
        (void)lines_of(path);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_SUITE_BEGIN("replay/trace");

TEST_CASE("lines come one by one, the last without its newline too, plain and compressed") {
    const temp_dir directory;
    const std::vector<std::string> wanted{"a", "", "bc", "d"};
    CHECK(lines_of(written(directory, "plain", "a\n\nbc\nd")) == wanted);
    CHECK(lines_of(written(directory, "zstd", compressed("a\n\nbc\nd\n"))) == wanted);
    CHECK(lines_of(written(directory, "gzip", gzipped("a\n\nbc\nd\n"))) == wanted);
    CHECK(lines_of(written(directory, "none", "")).empty());
    CHECK(lines_of(written(directory, "short", "a\n")) == std::vector<std::string>{"a"});
}

TEST_CASE("of traces that are played one behind another each is other traffic, and later") {
    const temp_dir directory;
    const std::vector<std::string> paths{written(directory, "a", "0,1,10\n5,2,20\n7,1,10\n"),
                                         written(directory, "b", "100,1,30\n101,3,40\n")};
    trace behind{paths, log_format::trace};
    behind.one_behind_another();
    std::vector<request> all;
    behind.next(all, 10);
    REQUIRE(all.size() == 5);
    CHECK(behind.objects().size() == 4);
    CHECK(all[3].object == 2);
    CHECK(std::uint64_t{all[3].bytes} == 30);
    CHECK(all[0].key == all[2].key);
    CHECK_FALSE(all[3].key == all[0].key);
    CHECK(all[3].seconds == 8);
    CHECK(all[4].seconds == 9);
    CHECK(behind.last_began().requests == 3);
    CHECK(behind.last_began().objects == 2);
    CHECK(behind.objects().sum(behind.last_began().objects).bytes == 70);
}

TEST_CASE("two zstd frames behind each other are one text") {
    const temp_dir directory;
    const auto path = written(directory, "two", compressed("a\nb") + compressed("c\nd\n"));
    CHECK(lines_of(path) == std::vector<std::string>{"a", "bc", "d"});
}

TEST_CASE(
    "two gzip members behind each other are one text, whatever zeros fill up the last block") {
    const temp_dir directory;
    const auto text = gzipped("a\nb") + gzipped("c\nd\n");
    const std::vector<std::string> wanted{"a", "bc", "d"};
    CHECK(lines_of(written(directory, "two", text)) == wanted);
    CHECK(lines_of(written(directory, "padded", text + std::string(300, '\0'))) == wanted);
    CHECK(lines_of(written(directory, "nothing", gzipped(""))).empty());
    const auto path = written(directory, "more", text + "more");
    CHECK(refusal(path) == path + ": gzip: incorrect header check");
}

TEST_CASE(
    "text that fills the room for it to the byte is whole, however little it was packed into") {
    const temp_dir directory;
    for (const std::size_t length : {(1u << 20) - 1, 1u << 20, (1u << 20) + 1, 5u << 20}) {
        CAPTURE(length);
        const std::string text(length - 1, 'x');
        for (const auto& file : {compressed(text + "\n"), gzipped(text + "\n")}) {
            const auto lines = lines_of(written(directory, "full", file));
            REQUIRE(lines.size() == 1);
            CHECK(lines[0] == text);
        }
    }
}

TEST_CASE("a line may be longer than what is read at once") {
    const temp_dir directory;
    const std::string text(3'000'000, 'x');
    for (const auto& file :
         {text + "\nend\n", compressed(text + "\nend\n"), gzipped(text + "\nend\n")}) {
        const auto lines = lines_of(written(directory, "long", file));
        REQUIRE(lines.size() == 2);
        CHECK(lines[0] == text);
        CHECK(lines[1] == "end");
    }
}

TEST_CASE("a file that is not there, or cut off, is named with the reason") {
    const temp_dir directory;
    CHECK(refusal("/nowhere/at/all").find("/nowhere/at/all: No such file") == 0);
    const auto whole = compressed(std::string(10'000, 'x') + "\nsome more text\n");
    const auto path = written(directory, "cut", whole.substr(0, whole.size() - 5));
    CHECK(refusal(path) == path + ": the zstd stream is cut off");
}

TEST_CASE("a gzip file that is cut off anywhere, or damaged, is named with the reason") {
    const temp_dir directory;
    auto whole = gzipped("some text\nand some more\n");
    for (std::size_t cut = 2; cut < whole.size(); ++cut) {
        CAPTURE(cut);
        const auto path = written(directory, "cut", whole.substr(0, cut));
        CHECK(refusal(path) == path + ": the gzip stream is cut off");
    }
    whole[whole.size() - 6] ^= 1;  // of the checksum
    const auto path = written(directory, "damaged", whole);
    CHECK(refusal(path) == path + ": gzip: incorrect data check");
}

TEST_CASE("objects are numbered by first appearance, and have the largest size seen") {
    const temp_dir directory;
    trace source{{written(directory, "t", "1,b,10\n2,a,20\n3,b,15\n4,b,5\n")}, std::nullopt};
    const auto requests = all_of(source);
    REQUIRE(requests.size() == 4);
    CHECK(requests[0].object == 0);
    CHECK(requests[1].object == 1);
    CHECK(requests[2].object == 0);
    CHECK(requests[2].bytes == 15);
    CHECK(requests[3].bytes == 15);
    CHECK(requests[3].seconds == 4);
    CHECK(requests[0].key == requests[3].key);
    CHECK(source.figures().requests == 4);
    CHECK(source.figures().bytes == 60);
    const auto totals = source.objects().sum();
    CHECK(totals.objects == 2);
    CHECK(totals.bytes == 35);
    CHECK(totals.asked_once == 1);
    CHECK(totals.asked_once_bytes == 20);
}

TEST_CASE(
    "a request's wait is what its object's fetch took last, or is drawn where nothing is told") {
    using reprise::proxy::cache::packed_wait;
    const temp_dir directory;
    const auto wait_of = [](int ms) { return packed_wait{std::chrono::milliseconds{ms}}; };
    const auto path = written(
        directory, "t", "1,b,10\n2,b,10,5000\n3,b,10\n4,b,10,50000\n5,b,10\n");
    {
        trace source{{path}, std::nullopt};
        const auto requests = all_of(source);
        REQUIRE(requests.size() == 5);
        CHECK_FALSE(requests[0].wait().is_known());
        CHECK(requests[1].wait() == wait_of(5));
        CHECK(requests[2].wait() == wait_of(5));
        CHECK(requests[3].wait() == wait_of(50));
        CHECK(requests[4].wait() == wait_of(50));
        CHECK(requests[4].bytes == 10);
    }
    trace source{{path}, std::nullopt};
    source.draw_waits({wait_of(500)});
    const auto requests = all_of(source);
    CHECK(requests[0].wait() == wait_of(500));
    CHECK(requests[1].wait() == wait_of(5));

    // All of one host have one of these.
    std::string urls;
    for (int i = 0; i < 200; ++i) {
        urls += "1,http://h" + std::to_string(i % 20) + "/" + std::to_string(i) + ",10\n";
    }
    trace hosts{{written(directory, "u", urls)}, std::nullopt};
    hosts.draw_waits({wait_of(5), wait_of(50), wait_of(500)});
    const auto drawn = all_of(hosts);
    std::set<unsigned> different;
    for (std::size_t i = 20; i < drawn.size(); ++i) {
        CHECK(drawn[i].wait() == drawn[i - 20].wait());
        different.insert(drawn[i].wait().code());
    }
    CHECK(different.size() == 3);
}

TEST_CASE("a 304 has its object's size; before that is known it has its own, and is counted") {
    const temp_dir directory;
    const std::string front = "c - - [10/Oct/2000:13:55:36 +0000] \"GET /x H\" ";
    trace source{
        {written(directory, "t", front + "304 7\n" + front + "200 99\n" + front + "304 0\n")},
        std::nullopt};
    const auto requests = all_of(source);
    REQUIRE(requests.size() == 3);
    CHECK(requests[0].bytes == 7);
    CHECK(requests[1].bytes == 99);
    CHECK(requests[2].bytes == 99);
    CHECK(source.figures().size_unknown == 1);
    CHECK(source.format() == log_format::combined);
}

TEST_CASE("files follow each other, each in its own format") {
    const temp_dir directory;
    trace source{{written(directory, "a", "1,http://x/,10\n"),
                  written(directory, "b", "2.5 1 c TCP_HIT/200 30 GET http://x/ - y/z t\n")},
                 std::nullopt};
    const auto requests = all_of(source);
    REQUIRE(requests.size() == 2);
    CHECK(requests[0].object == requests[1].object);
    CHECK(source.share_read() == doctest::Approx(1));
    using formats = std::vector<std::optional<log_format>>;
    CHECK(source.formats() == formats{log_format::trace, log_format::squid});
}

TEST_CASE(
    "rotated logs are put in the order of their requests, whatever the order of their names") {
    const temp_dir directory;
    const auto of_second = [](const std::string& second) {
        return "# a comment\n" + second + ".0 1 c TCP_HIT/200 30 GET http://x/ - y/z t\n";
    };
    const auto newest = written(directory, "log", of_second("30"));
    const auto middle = written(directory, "log.1", of_second("20"));
    const auto oldest = written(directory, "log.2.gz", gzipped(of_second("10")));
    using paths = std::vector<std::string>;
    CHECK(by_first_request({newest, middle, oldest}, std::nullopt) ==
          paths{oldest, middle, newest});
    CHECK(by_first_request({newest}, std::nullopt) == paths{newest});
    // What can be read only once leaves them as they are named.
    CHECK(by_first_request({newest, "-", oldest}, std::nullopt) == paths{newest, "-", oldest});
    const auto again = written(directory, "again", of_second("20"));
    CHECK(by_first_request({again, middle, oldest}, log_format::squid) ==
          paths{oldest, again, middle});
}

TEST_CASE("a log's place is known by its first line, whatever was asked for and answered") {
    const temp_dir directory;
    const auto tunnels = [](const std::string& second) {
        std::string out;
        for (int i = 0; i < 150; ++i) {
            out += second + ".0 1 c TCP_TUNNEL/200 30 CONNECT x:443 - y/z -\n";
        }
        return out + second + ".0 1 c TCP_HIT/200 30 GET http://x/ - y/z t\n";
    };
    const auto newest = written(directory, "log", tunnels("30"));
    const auto denied = written(
        directory, "log.1", "20.0 1 c TCP_DENIED/403 30 GET http://x/ - y/z t\n");
    const auto oldest = written(directory, "log.2", tunnels("10"));
    using paths = std::vector<std::string>;
    CHECK(by_first_request({newest, denied, oldest}, std::nullopt) ==
          paths{oldest, denied, newest});
    // Bytes that were no request have a time too.
    const auto combined = [](const std::string& second) {
        return "c - - [10/Oct/2000:13:55:" + second + " +0000] \"-\" 400 0\n";
    };
    const auto json = [](const std::string& second) {
        return R"({"time":"2000-10-10T13:55:)" + second +
               R"(.0Z","method":"?","url":"","status":400,"bytes_out":0})" + "\n";
    };
    const auto first = written(directory, "first", combined("10"));
    const auto second = written(directory, "second", json("20"));
    const auto third = written(directory, "third", combined("30"));
    CHECK(by_first_request({third, second, first}, std::nullopt) == paths{first, second, third});
}

TEST_CASE("a log of no known time is read behind those that have one, which are in order") {
    const temp_dir directory;
    const auto of_second = [](const std::string& second) {
        return second + ".0 1 c TCP_HIT/200 30 GET http://x/ - y/z t\n";
    };
    const auto newest = written(directory, "log", of_second("30"));
    const auto empty = written(directory, "log.1", "");
    const auto oldest = written(directory, "log.2", of_second("10"));
    const auto comments = written(directory, "log.3", "# begun\n# ended\n");
    using paths = std::vector<std::string>;
    CHECK(by_first_request({newest, empty, oldest, comments}, std::nullopt) ==
          paths{oldest, newest, empty, comments});
    CHECK(by_first_request({comments, newest, oldest, empty}, log_format::squid) ==
          paths{oldest, newest, comments, empty});
}

TEST_CASE("lines that are no requests are counted by why") {
    const temp_dir directory;
    trace source{{written(directory,
                          "t",
                          "1 1 c M/200 3 GET u - p t\n1 1 c M/200 3 POST u - p t\n"
                          "1 1 c M/500 3 GET u - p t\nnonsense\n1 1 c M/200 3 GET u - p t\n")},
                 std::nullopt};
    CHECK(all_of(source).size() == 2);
    CHECK(source.figures().lines == 5);
    CHECK(source.figures().other_method == 1);
    CHECK(source.figures().other_status == 1);
    CHECK(source.figures().malformed == 1);
}

TEST_CASE("requests whose query the log hides are counted") {
    const temp_dir directory;
    trace source{{written(directory,
                          "t",
                          "1 1 c M/200 3 GET http://x/? - p t\n1 1 c M/200 3 GET http://x/ - p t\n"
                          "1 1 c M/500 3 GET http://x/? - p t\n")},
                 std::nullopt};
    CHECK(all_of(source).size() == 2);
    CHECK(source.figures().query_hidden == 1);
}

TEST_CASE("each request's client has a number, where that is asked for") {
    const temp_dir directory;
    const auto line = [](const std::string& client, const std::string& status) {
        return "1.5 2 " + client + " TCP_MISS/" + status + " 99 GET http://x/ - y/z t\n";
    };
    const auto path = written(directory,
                              "log",
                              line("a", "200") + line("b", "200") + line("c", "503") +
                                  line("b", "200") + line("a", "200"));
    trace plain{{path}, log_format::squid};
    (void)all_of(plain);
    CHECK(plain.clients().empty());
    trace keeping{{path}, log_format::squid};
    keeping.keep_clients();
    REQUIRE(all_of(keeping).size() == 4);
    CHECK(keeping.clients() == std::vector<std::uint32_t>{0, 1, 1, 0});
    CHECK(keeping.different_clients() == 2);
}

TEST_CASE("a file of no format is refused by its name") {
    const temp_dir directory;
    const auto path = written(directory, "t", "hello\nworld\n");
    trace source{{path}, std::nullopt};
    std::vector<request> batch;
    CHECK_THROWS_WITH_AS(source.next(batch, 10),
                         (path + ": no format that is known; name one with --format").c_str(),
                         std::runtime_error);
}

TEST_CASE("a table of many objects finds each again") {
    object_table table;
    const auto key_of = [](std::uint64_t n) {
        return reprise::filter::key_hash{n * 0x9e3779b97f4a7c15, n};
    };
    for (std::uint64_t n = 0; n < 20'000; ++n) {
        REQUIRE(table.note(key_of(n), 1) == n);
    }
    for (std::uint64_t n = 0; n < 20'000; n += 7) {
        CHECK(table.note(key_of(n), 1) == n);
    }
    CHECK(table.size() == 20'000);
}

TEST_SUITE_END();
