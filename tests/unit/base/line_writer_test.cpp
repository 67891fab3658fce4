#include "proxy/base/line_writer.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace reprise;
using namespace reprise::proxy;
using namespace std::chrono_literals;

namespace {

/// Reads of a pipe what it is told to, when it is told to.
struct slow_reader {
    tests::temp_dir folder;
    std::string path = folder.file("fifo");
    int pipe = -1;

    slow_reader() {
        REQUIRE(mkfifo(path.c_str(), 0600) == 0);
        pipe = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
        REQUIRE(pipe >= 0);
    }
    ~slow_reader() { ::close(pipe); }
    slow_reader(const slow_reader&) = delete;
    slow_reader& operator=(const slow_reader&) = delete;

    [[nodiscard]] std::string all() const {
        std::string got;
        char bytes[65536];
        for (ssize_t n = 0; (n = ::read(pipe, bytes, sizeof bytes)) > 0;) {
            got.append(bytes, static_cast<std::size_t>(n));
        }
        return got;
    }
};

}  // namespace

TEST_SUITE("base/line_writer") {

    TEST_CASE("a pipe is given whole lines, since others may write to it between two pieces") {
        const slow_reader reader;
        auto output = log_output::open(reader.path).value();
        std::string lines;
        for (int i = 0; i < 60; ++i) {
            lines += std::string(99, 'a') + "\n";
        }
        const auto wrote = output.write_some(lines, 1'000, -1);
        CHECK(wrote.bytes >= 100);
        CHECK(wrote.bytes < lines.size());
        CHECK(reader.all().ends_with("a\n"));
        // One that is longer than a piece is cut where that ends.
        CHECK(output.write_some(std::string(10'000, 'b') + "\n", 1'000, -1).bytes > 100);
    }

    TEST_CASE("a line that was cut off is ended before the next begins") {
        const slow_reader reader;
        line_writer writer;
        writer.replace(log_output::open(reader.path).value());
        writer.append(std::string(1 << 20, 'a') + "\n");  // more than a pipe holds
        writer.flush(std::chrono::steady_clock::now(), -1);
        CHECK(writer.dropped() == 1);
        auto got = reader.all();
        writer.append("whole\n");
        writer.flush(std::chrono::steady_clock::now() + 5s, -1);
        got += reader.all();
        CHECK(got.ends_with("a\nwhole\n"));
        CHECK(writer.queued() == 0);
    }

    TEST_CASE("the end of a line that was cut off is owed until it is written") {
        const tests::temp_dir folder;
        const auto path = folder.file("log");
        const auto ignored = ::signal(SIGXFSZ, SIG_IGN);
        rlimit before{};
        REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
        line_writer writer;
        writer.replace(log_output::open(path).value());
        {
            auto full = before;
            full.rlim_cur = 10;  // as on a disk that is full
            REQUIRE(::setrlimit(RLIMIT_FSIZE, &full) == 0);
            for (const auto* line : {"0123456789abc\n", "second\n", "third\n"}) {
                writer.append(line);
                writer.flush({}, -1);
            }
            REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
        }
        (void)::signal(SIGXFSZ, ignored);
        CHECK(writer.dropped() == 3);
        writer.replace(log_output::open(path).value());  // a reload, and the file is there yet
        writer.append("fourth\n");
        writer.append("fifth\n");
        writer.flush({}, -1);
        std::ifstream in{path};
        CHECK(std::string{std::istreambuf_iterator<char>{in}, {}} == "0123456789\nfourth\nfifth\n");
    }

    TEST_CASE("a reader that is behind for ever costs no more than what it is behind") {
        const slow_reader reader;
        line_writer writer;
        writer.replace(log_output::open(reader.path).value());
        writer.append(std::string(200'000, 'a') + "\n");
        int wake[2]{};
        REQUIRE(::pipe(wake) == 0);
        REQUIRE(::write(wake[1], "x", 1) == 1);  // nobody waits here
        std::string room(60'000, ' ');
        std::size_t most = 0;
        for (int i = 0; i < 400; ++i) {
            writer.append(std::string(room.size() - 1, 'b') + "\n");
            writer.flush({}, wake[0]);
            REQUIRE(writer.queued() > 0);
            REQUIRE(::read(reader.pipe, room.data(), room.size()) > 0);
            most = std::max(most, writer.held());
        }
        CHECK(most < 4u << 20);  // of 24 MB that have passed
        for (const int fd : wake) {
            ::close(fd);
        }
    }

}  // TEST_SUITE
