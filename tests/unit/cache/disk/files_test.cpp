#include "proxy/cache/disk/files.hpp"

#include <doctest/doctest.h>

#include <cerrno>

namespace reprise::proxy::cache::disk {

TEST_SUITE("cache/disk/files") {

    TEST_CASE("a quota that is used up is want of room, and all else what the system said") {
        CHECK(error_of(EDQUOT) == boost::system::errc::no_space_on_device);
        CHECK(error_of(ENOSPC) == boost::system::errc::no_space_on_device);
        CHECK(error_of(EIO) == boost::system::errc::io_error);
        CHECK(error_of(ENOENT) == boost::system::errc::no_such_file_or_directory);
    }
}

}  // namespace reprise::proxy::cache::disk
