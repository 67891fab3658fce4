#include "proxy/base/file_content.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <string>
#include <sys/stat.h>

namespace reprise::proxy {

TEST_SUITE("base/file_content") {

    TEST_CASE("a file is read whole, up to a bound") {
        const tests::temp_dir at;
        const std::string zeroes(3, '\0');
        CHECK(read_regular_file(at.write("a", zeroes), 3).bytes == zeroes);
        CHECK(read_regular_file(at.write("empty", ""), 3).wrong.empty());
        const auto longer = read_regular_file(at.write("b", "four"), 3);
        CHECK(longer.wrong == "is larger than 3 bytes");
        CHECK(longer.is_too_long);
        CHECK(longer.bytes.empty());
        CHECK(read_regular_file("/proc/self/comm", 100).bytes.starts_with("unit_base"));
    }

    TEST_CASE("what is no file is named, and a pipe is not waited for") {
        const tests::temp_dir at;
        CHECK(read_regular_file(at.file("none"), 3).wrong ==
              "cannot be read: No such file or directory");
        CHECK(read_regular_file(at.path(), 3).wrong == "is no regular file");
        REQUIRE(::mkfifo(at.file("pipe").c_str(), 0600) == 0);
        CHECK(read_regular_file(at.file("pipe"), 3).wrong == "is no regular file");
        CHECK_FALSE(read_regular_file(at.file("pipe"), 3).is_too_long);
    }
}

}  // namespace reprise::proxy
