#include "proxy/cache/disk/unlisted_records.hpp"
#include "tests/unit/cache/responses.hpp"

#include <doctest/doctest.h>

namespace reprise::proxy::cache::disk {

using test::key_of;

TEST_SUITE("cache/disk/unlisted_records") {

    TEST_CASE("what was noted may be there until no segment is so old any more") {
        unlisted_records records;
        const auto key = key_of("http://a/");
        CHECK_FALSE(records.may_have(key));
        records.note(key, 5);
        records.note(key, 3);
        CHECK(records.may_have(key));
        CHECK_FALSE(records.may_have(key_of("http://b/")));
        records.forget_before(5);
        CHECK(records.may_have(key));
        records.forget_before(6);
        CHECK_FALSE(records.may_have(key));
    }

    TEST_CASE("of those that share a slot each may be there as long as one may") {
        unlisted_records records;
        const filter::key_hash one{.low = 7, .high = 1};
        const filter::key_hash same_slot{.low = 7 + 32'768, .high = 2};
        records.note(one, 2);
        CHECK(records.may_have(same_slot));
        records.note(same_slot, 9);
        records.forget_before(3);
        CHECK(records.may_have(one));
        records.forget_before(10);
        CHECK_FALSE(records.may_have(one));
    }
}

}  // namespace reprise::proxy::cache::disk
