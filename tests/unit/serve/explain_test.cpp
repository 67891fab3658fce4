#include "proxy/serve/explain.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/fetch/arrivals.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <string_view>

// What is said beside the verdict; that is held against what a client gets in scenario/explain.

namespace reprise::proxy::serve::test::of_explain {

namespace {

// A forward listener, one with TLS and an accelerator: the places 0, 1 and 2. Clients have to say who they are.
struct three_doors {
    tests::temp_dir place;
    config::options options = fetch::test::with_memory(1u << 20);

    three_doors() {
        options.access.tokens_file = place.write("tokens", "robot:0123456789abcdef\n");
        options.listeners.resize(3);
        options.listeners[2].mode = config::listener_mode::accelerator;
        options.listeners[2].upstream = "http://up.example:80";
    }
    /// Whether a sentence that has this in it is among what is assumed of who comes by that listener.
    [[nodiscard]] bool assumes(std::size_t listener, std::string_view what) const {
        const fetch::test::node at{options};
        auto as_set = *at.settings;
        as_set.options.listeners[1].tls.emplace();  // its files are of no interest here
        const auto told = explain(at.common,
                                  as_set,
                                  nullptr,
                                  "url=http%3A%2F%2Fa.example%2F&listener=" +
                                      std::to_string(listener),
                                  wall_now());
        REQUIRE(told.status == 200);
        const auto all = nlohmann::json::parse(told.json).at("assumes");
        return std::any_of(all.begin(), all.end(), [&](const nlohmann::json& one) {
            return one.get<std::string>().find(what) != std::string::npos;
        });
    }
};

}  // namespace

TEST_SUITE_BEGIN("serve/explain");

TEST_CASE("a password is assumed of whom the listener asks for one: an accelerator asks nobody") {
    const three_doors all;
    CHECK(all.assumes(0, "(else 407)"));
    CHECK(all.assumes(1, "(else 407)"));
    CHECK_FALSE(all.assumes(2, "(else 407)"));
    for (const std::size_t listener : {0u, 1u, 2u}) {
        CAPTURE(listener);
        CHECK(all.assumes(listener, "is in access.clients (else 403)"));
    }
}

TEST_CASE("where others could read the password its client is assumed to be on this machine") {
    three_doors all;
    const auto* const here = "asks from this machine";
    CHECK(all.assumes(0, here));
    CHECK_FALSE(all.assumes(1, here));
    CHECK_FALSE(all.assumes(2, here));
    all.options.access.plaintext_passwords = true;
    CHECK_FALSE(all.assumes(0, here));
}

TEST_CASE("nobody is assumed to have said a name where nobody is named") {
    three_doors all;
    all.options.access.tokens_file.clear();
    CHECK_FALSE(all.assumes(0, "(else 407)"));
}

TEST_SUITE_END();

}  // namespace reprise::proxy::serve::test::of_explain
