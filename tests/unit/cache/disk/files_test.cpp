#include "proxy/cache/disk/files.hpp"

#include <doctest/doctest.h>

#include <cerrno>

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
}

}  // namespace reprise::proxy::cache::disk
