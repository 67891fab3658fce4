#include "proxy/cache/disk/files.hpp"
#include "tests/support/temp_dir.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cerrno>
#include <span>
#include <string>

namespace reprise::proxy::cache::disk {

TEST_SUITE("cache/disk/files") {

    TEST_CASE(
        "a quota that is used up is want of room, as a full file system is, and nothing else") {
        const auto said = [](int number) {
            return error_code{number, boost::system::system_category()};
        };
        CHECK(is_no_room(said(EDQUOT)));
        CHECK(is_no_room(said(ENOSPC)));
        CHECK(is_no_room(
            boost::system::errc::make_error_code(boost::system::errc::no_space_on_device)));
        CHECK_FALSE(is_no_room(said(EIO)));
        CHECK_FALSE(is_no_room({}));
    }

    TEST_CASE("what is read into several places is what one read would give, to the file's end") {
        std::string text(200'000, '\0');
        for (std::size_t i = 0; i < text.size(); ++i) {
            text[i] = static_cast<char>(i * 7 + i / 251);
        }
        const tests::temp_dir here;
        const auto files = system_files();
        const auto opened = files->open(here.write("file", text), open_mode::read);
        REQUIRE(opened.has_value());
        auto& from = **opened;

        std::string one(70'000, '?'), other(1, '?'), last(65'536, '?');
        const auto bytes_of = [](std::string& of) {
            return std::as_writable_bytes(std::span{of.data(), of.size()});
        };
        const std::array all{bytes_of(one), bytes_of(other), bytes_of(last)};
        const auto whole = one.size() + other.size() + last.size();
        REQUIRE_FALSE(read_all(from, 5, all));
        CHECK(one + other + last == text.substr(5, whole));

        one.assign(one.size(), '?');
        const auto cached = from.scatter_cached(7,
                                                all);  // as far as the system has it, and can tell
        CHECK((!cached || one.substr(0, *cached) == text.substr(7, one.size()).substr(0, *cached)));

        const auto at_end = from.scatter_some(text.size() - 70'001, all);
        CHECK((at_end && *at_end == 70'001));
        CHECK(one + other == text.substr(text.size() - 70'001));
        CHECK(read_all(from, text.size() - 70'002, all) ==
              boost::system::errc::no_message_available);
        CHECK(last.front() == text.back());
    }
}

}  // namespace reprise::proxy::cache::disk
