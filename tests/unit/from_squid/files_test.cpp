#include "tests/support/temp_dir.hpp"
#include "tools/from_squid/files.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace reprise::from_squid {

namespace {

namespace fs = std::filesystem;

unsigned mode_bits(const std::string& path) {
    struct ::stat found {};
    REQUIRE(::stat(path.c_str(), &found) == 0);
    return found.st_mode & 07777u;
}

std::size_t files_in(const tests::temp_dir& at) {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator{at.path()}, fs::directory_iterator{}));
}

}  // namespace

TEST_SUITE("from_squid/files") {
    TEST_CASE("a pipe is read once, and is that text whenever it is named") {
        int ends[2]{};
        REQUIRE(::pipe(ends) == 0);
        const std::string text = "http_port 3128\nhttp_access allow all\n";
        REQUIRE(::write(ends[1], text.data(), text.size()) == std::ssize(text));
        ::close(ends[1]);
        const auto path = "/dev/fd/" + std::to_string(ends[0]);
        const auto read = contents_of(path);
        ::close(ends[0]);
        REQUIRE(read == text);
        const auto conf = read_squid_conf(path, files_beside(path, *read));
        CHECK(conf.statements.size() == 2);
        CHECK(conf.problems.empty());
    }

    TEST_CASE("what is included beside a pipe is read where it is") {
        const tests::temp_dir at;
        const auto more = at.write("more.conf", "via on\n");
        const auto conf = read_squid_conf(
            "a pipe", files_beside("a pipe", "include " + at.file("*.conf") + "\ninclude gone\n"));
        REQUIRE(conf.statements.size() == 1);
        CHECK(conf.statements[0].where.file == more);
        CHECK(conf.problems.size() == 1);
    }

    TEST_CASE("what cannot be read is no text, and an empty file is an empty one") {
        const tests::temp_dir at;
        CHECK_FALSE(contents_of(at.file("gone")));
        CHECK_FALSE(contents_of(at.path().string()));
        CHECK(contents_of(at.write("empty", "")) == "");
        const auto large = at.write("large", "");
        fs::resize_file(large, (16u << 20) + 1);
        CHECK_FALSE(contents_of(large));
    }

    TEST_CASE("two names of one file are told, and of two files") {
        const tests::temp_dir at;
        const auto conf = at.write("squid.conf", "via on\n");
        fs::create_symlink(conf, at.file("link"));
        fs::create_hard_link(conf, at.file("second"));
        CHECK(is_one_file(conf, at.file("link")));
        CHECK(is_one_file(conf, at.file("second")));
        CHECK(is_one_file(conf, at.file("./squid.conf")));
        CHECK_FALSE(is_one_file(conf, at.write("other", "via on\n")));
        CHECK_FALSE(is_one_file(conf, at.file("gone")));
    }

    TEST_CASE("what replaces a file has its mode, and leaves nothing beside it") {
        const tests::temp_dir at;
        const auto path = at.write("reprise.json", "the old one, which is longer");
        fs::permissions(path, fs::perms{0640});
        replace_file(path, "the new one");
        CHECK(tests::read_file(path) == "the new one");
        CHECK(mode_bits(path) == 0640);
        CHECK(files_in(at) == 1);
    }

    TEST_CASE("who has the old file open goes on reading the old one, whole") {
        const tests::temp_dir at;
        const auto path = at.write("reprise.json", "old");
        fs::create_hard_link(path, at.file("held"));
        replace_file(path, "new");
        CHECK(tests::read_file(at.file("held")) == "old");
        CHECK(tests::read_file(path) == "new");
    }

    TEST_CASE("a new file has the mode that new files have") {
        const tests::temp_dir at;
        replace_file(at.file("reprise.json"), "{}");
        CHECK(tests::read_file(at.file("reprise.json")) == "{}");
        CHECK(mode_bits(at.file("reprise.json")) == mode_bits(at.write("any", "")));
        CHECK(files_in(at) == 2);
    }

    TEST_CASE("a link stays one, and what it leads to is replaced") {
        const tests::temp_dir at;
        fs::create_directory(at.file("there"));
        const auto target = at.write("there/reprise.json", "old");
        fs::create_symlink(target, at.file("link"));
        replace_file(at.file("link"), "new");
        CHECK(fs::is_symlink(at.file("link")));
        CHECK(tests::read_file(target) == "new");
        CHECK(files_in(at) == 2);
    }

    TEST_CASE("what is no file is written to, and stays what it is") {
        replace_file("/dev/null", "new");
        CHECK(fs::is_character_file("/dev/null"));
        CHECK_THROWS_AS(replace_file("/dev/full", "new"), std::system_error);
    }

    TEST_CASE("what could not be written is told, and what was there stays") {
        const tests::temp_dir at;
        CHECK_THROWS_AS(replace_file(at.file("gone/reprise.json"), "new"), std::system_error);
        CHECK_THROWS_AS(replace_file(at.path().string(), "new"), std::system_error);
        CHECK(files_in(at) == 0);
    }
}

}  // namespace reprise::from_squid
