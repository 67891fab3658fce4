#include "proxy/base/access_lane.hpp"
#include "proxy/base/access_log.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/waiting.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace reprise;
using namespace reprise::proxy;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> lines_in(const std::string& path) {
    std::vector<std::string> lines;
    std::ifstream file{path};
    for (std::string line; std::getline(file, line);) {
        lines.push_back(line);
    }
    return lines;
}

access_record record_of(std::uint64_t id, std::string_view client = "c") {
    access_record record;
    record.request_id = id;
    record.client = client;
    record.method = "GET";
    record.url = "http://example.org/?q=secret";
    return record;
}

}  // namespace

TEST_SUITE("base/access_log") {

    TEST_CASE("it is off until it has a target") {
        access_log log;
        CHECK_FALSE(log.enabled());
        log.write(record_of(1));
        CHECK_FALSE(log.retarget({.access = "off"}));
        CHECK_FALSE(log.enabled());
        CHECK(log.figures().lines == 0);
    }

    TEST_CASE("lines reach the file by themselves, soon") {
        const tests::temp_dir folder;
        access_log log;
        REQUIRE_FALSE(log.retarget({.access = folder.file("log")}));
        CHECK(log.enabled());
        log.write(record_of(7));
        CHECK(tests::eventually([&] { return lines_in(folder.file("log")).size() == 1; }));
        const auto line = nlohmann::json::parse(lines_in(folder.file("log")).at(0));
        CHECK(line["id"] == "0000000000000007");
        CHECK(line["url"] == "http://example.org/?q=*");
        CHECK((fs::status(folder.file("log")).permissions() & fs::perms::others_all) ==
              fs::perms::none);
    }

    TEST_CASE("stop writes what was handed over, and keeps the order of each thread") {
        const tests::temp_dir folder;
        constexpr int threads = 4;
        constexpr std::uint64_t each = 1'500;
        access_log log;
        REQUIRE_FALSE(log.retarget({.access = folder.file("log")}));
        std::vector<std::jthread> writers;
        for (int i = 0; i < threads; ++i) {
            writers.emplace_back([&log, name = std::to_string(i)] {
                for (std::uint64_t id = 1; id <= each; ++id) {
                    log.write(record_of(id, name));
                }
            });
        }
        writers.clear();
        log.stop();
        std::map<std::string, std::uint64_t> last;
        for (const auto& text : lines_in(folder.file("log"))) {
            const auto line = nlohmann::json::parse(text);
            const auto id = std::stoull(line["id"].get<std::string>(), nullptr, 16);
            auto& before = last[line["client"]];
            REQUIRE(id == before + 1);
            before = id;
        }
        CHECK(last.size() == threads);
        const auto figures = log.figures();
        CHECK(figures.lines == threads * each);
        CHECK(figures.dropped == 0);
    }

    TEST_CASE("what is written after stop goes nowhere") {
        const tests::temp_dir folder;
        access_log log;
        REQUIRE_FALSE(log.retarget({.access = folder.file("log")}));
        log.stop();
        log.stop();
        log.write(record_of(1));
        CHECK(lines_in(folder.file("log")).empty());
    }

    TEST_CASE(
        "reopen leaves the lines before it in the moved file and puts those after in a new one") {
        const tests::temp_dir folder;
        access_log log;
        REQUIRE_FALSE(log.retarget({.access = folder.file("log")}));
        log.write(record_of(1));
        fs::rename(folder.file("log"), folder.file("log.1"));
        log.reopen();
        log.write(record_of(2));
        log.stop();
        REQUIRE(lines_in(folder.file("log.1")).size() == 1);
        REQUIRE(lines_in(folder.file("log")).size() == 1);
        CHECK(nlohmann::json::parse(lines_in(folder.file("log"))[0])["id"] == "0000000000000002");
    }

    TEST_CASE("however busy the log is, nothing after a reopening goes into the moved file") {
        const tests::temp_dir folder;
        access_log log;
        REQUIRE_FALSE(log.retarget({.access = folder.file("log")}));
        // Their lanes come first, and hold much: a round is long before it comes to ours.
        std::atomic<bool> done{false};
        std::atomic<unsigned> begun{0};
        std::vector<std::jthread> noise;
        for (unsigned n = 0; n < 4; ++n) {
            noise.emplace_back([&] {
                log.write(record_of(1'000'000));
                ++begun;
                while (!done) {
                    log.write(record_of(1'000'000));
                }
            });
        }
        CHECK(tests::eventually([&] { return begun == 4; }));
        constexpr unsigned turns = 60;
        for (unsigned i = 0; i < turns; ++i) {
            log.write(record_of(2 * i + 1));
            fs::rename(folder.file("log"), folder.file("log." + std::to_string(i)));
            log.reopen();
            log.write(record_of(2 * i + 2));
            if (!tests::eventually([&] { return fs::exists(folder.file("log")); })) {
                break;
            }
        }
        done = true;
        noise.clear();
        log.stop();
        unsigned seen = 0;
        for (unsigned i = 0; i < turns; ++i) {
            CAPTURE(i);
            for (const auto& text : lines_in(folder.file("log." + std::to_string(i)))) {
                if (text.find("\"00000000000f4240\"") != std::string::npos) {
                    continue;  // noise
                }
                const auto line = nlohmann::json::parse(text);
                const auto id = std::stoull(line["id"].get<std::string>(), nullptr, 16);
                REQUIRE((id == 2 * i || id == 2 * i + 1));
                ++seen;
            }
        }
        CHECK(seen == 2 * turns - 1);
    }

    TEST_CASE("a reopening that fails goes on with the old file") {
        const tests::temp_dir folder;
        fs::create_directory(folder.file("d"));
        access_log log;
        REQUIRE_FALSE(log.retarget({.access = folder.file("d/log")}));
        fs::rename(folder.file("d"), folder.file("e"));
        log.reopen();
        log.write(record_of(1));
        log.stop();
        CHECK(lines_in(folder.file("e/log")).size() == 1);
        CHECK(log.figures().errors == 1);
    }

    TEST_CASE("retarget sends earlier lines to the old file and later ones to the new") {
        const tests::temp_dir folder;
        access_log log;
        REQUIRE_FALSE(log.retarget({.access = folder.file("a")}));
        log.write(record_of(1));
        REQUIRE_FALSE(log.retarget({.access = folder.file("b"), .query_values = true}));
        log.write(record_of(2));
        REQUIRE_FALSE(log.retarget({.access = "off"}));
        log.write(record_of(3));
        log.stop();
        CHECK(lines_in(folder.file("a")).size() == 1);
        REQUIRE(lines_in(folder.file("b")).size() == 1);
        CHECK(lines_in(folder.file("b"))[0].find("q=secret") != std::string::npos);
    }

    TEST_CASE("a target that cannot be opened changes nothing") {
        const tests::temp_dir folder;
        access_log log;
        REQUIRE_FALSE(log.retarget({.access = folder.file("a")}));
        CHECK(log.retarget({.access = folder.file("absent/b")}));
        CHECK(log.enabled());
        log.write(record_of(1));
        log.stop();
        CHECK(lines_in(folder.file("a")).size() == 1);
    }

    TEST_CASE("a reader that reads nothing costs lines, never a wait, and stop is bounded") {
        const tests::temp_dir folder;
        const auto fifo = folder.file("fifo");
        REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
        const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
        REQUIRE(reader >= 0);
        access_log log;
        REQUIRE_FALSE(log.retarget({.access = fifo}));
        const std::string agent(access_line_limits::text, 'a');
        auto record = record_of(1);
        record.user_agent = agent;
        // More than pipe, queue and lane hold together.
        for (int i = 0; i < 60'000 && log.figures().dropped == 0; ++i) {
            log.write(record);
        }
        CHECK(log.figures().dropped > 0);
        const auto before = std::chrono::steady_clock::now();
        log.stop();
        CHECK(std::chrono::steady_clock::now() - before < 10s);
        CHECK(log.figures().dropped > 1000);
        ::close(reader);
    }

    TEST_CASE("a reader that goes away costs lines, not the process") {
        const tests::temp_dir folder;
        const auto fifo = folder.file("fifo");
        REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
        const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
        access_log log;
        REQUIRE_FALSE(log.retarget({.access = fifo}));
        ::close(reader);
        log.write(record_of(1));
        log.stop();
        CHECK(log.figures().dropped == 1);
        CHECK(log.figures().errors == 1);
    }

    TEST_CASE("a FIFO that nobody reads is an error, not a wait") {
        const tests::temp_dir folder;
        const auto fifo = folder.file("fifo");
        REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
        access_log log;
        CHECK(log.retarget({.access = fifo}));
    }

    TEST_CASE("a full disk costs lines and is counted") {
        access_log log;
        REQUIRE_FALSE(log.retarget({.access = "/dev/full"}));
        log.write(record_of(1));
        log.stop();
        CHECK(log.figures().dropped == 1);
        CHECK(log.figures().errors == 1);
        REQUIRE(log.figures().last_refusal);
        CHECK(log.figures().last_refusal->why == boost::system::errc::no_space_on_device);
    }

    TEST_CASE("lane: lines come out as they went in, across the ring's end") {
        access_lane lane{100};
        std::string in, out;
        const auto empty_it = [&] {
            for (auto text = lane.peek(lane.head()); !text.empty(); text = lane.peek(lane.head())) {
                out.append(text);
                lane.take(text.size());
            }
        };
        for (int i = 0; i < 500; ++i) {
            const auto line = std::string(static_cast<std::size_t>(i % 37), 'x') + "\n";
            if (!lane.push(line)) {
                empty_it();
                REQUIRE(lane.push(line));
            }
            in += line;
        }
        empty_it();
        CHECK(out == in);
        CHECK(lane.empty());
    }

    TEST_CASE("lane: a line that does not fit is refused whole") {
        access_lane lane{10};
        CHECK_FALSE(lane.push("eleven bytes"));
        CHECK(lane.push("123456789\n"));
        CHECK_FALSE(lane.push("x"));
        CHECK(lane.peek(lane.head()) == "123456789\n");
    }

}  // TEST_SUITE
