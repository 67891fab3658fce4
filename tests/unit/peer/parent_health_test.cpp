#include "proxy/peer/parent_health.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace reprise::proxy::peer::test::of_parent_health {

namespace {

/// One parent, of whom nothing is known.
struct one_parent : peer_book {
    one_parent() {
        parents.push_back({.name = "p", .host = "10.0.0.1", .port = 3128});
        choice = std::make_shared<parent_choice>(std::vector<std::string>{"p"});
    }
    /// At its beginning, when nothing has passed of the second for which one that failed is left alone.
    [[nodiscard]] bool is_down() const { return choice->is_down(0, begun); }

    const steady_time begun = steady_now();
};

}  // namespace

TEST_SUITE("peer/parent_health") {
    TEST_CASE("what this proxy lacks itself is no failure of the parent's") {
        const one_parent book;
        for (const auto code : {failure_code::origin_connection_limit,
                                failure_code::client_share_used,
                                failure_code::out_of_memory,
                                failure_code::draining}) {
            CAPTURE(facts_of(code).name);
            note_parent_failed(book, 0, book.begun, failure{code, ""});
            CHECK_FALSE(book.choice->has_failed(0));
            CHECK_FALSE(book.is_down());
        }
        note_parent_failed(book, 0, book.begun, failure{failure_code::connect_refused, ""});
        CHECK(book.is_down());
        note_parent_works(book, 0);
        CHECK_FALSE(book.is_down());
    }

    TEST_CASE("another parent is asked where one can't be reached, and not for our own lack") {
        CHECK(is_parents_fault(failure_code::no_parent, false));
        CHECK(is_parents_fault(failure_code::loop_detected, false));
        CHECK_FALSE(is_parents_fault(failure_code::loop_detected, true));
        CHECK_FALSE(is_parents_fault(failure_code::out_of_memory, false));
        CHECK(may_ask_another(failure_code::out_of_memory, false));
        CHECK_FALSE(may_ask_another(failure_code::draining, false));
    }
}

}  // namespace reprise::proxy::peer::test::of_parent_health
