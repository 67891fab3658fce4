#include "proxy/cache/admission/admission_gate.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/unit/filter/keys.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <utility>

namespace reprise::proxy::cache::test::of_admission_gate {

using config::admission_choice;
using config::admission_policy;
using filter::test::nth_key;

namespace {

constexpr wall_time now{std::chrono::hours{500'000}};
constexpr auto no_rule = ~std::size_t{0};

constexpr admission_choice_for second_hit{{admission_policy::second_hit, 2}, no_rule};

config::options few_objects() {
    config::options options;
    options.admission.remember = {.automatic = false, .objects = 1'000};
    return options;
}

/// A gate by tinylfu. What has left its store was asked for as often as a sketch counts.
struct shut_gate {
    explicit shut_gate(std::shared_ptr<frequency_sketch> requests)
        : gate{options(), now, nullptr, std::move(requests)} {
        for (unsigned i = 0; i < 2 * frequency_sketch::most; ++i) {
            gate.count_request(nth_key(1, 1));
        }
        for (unsigned i = 0; i < 2 * frequency_sketch::most; ++i) {
            gate.evicted(nth_key(1, 1));
        }
    }
    static config::options options() {
        auto set = few_objects();
        set.admission.choice = {admission_policy::tinylfu, 2};
        return set;
    }
    bool admits(const filter::key_hash& key) {
        gate.count_request(key);
        return gate.note(key, {options().admission.choice, no_rule}, now).admitted;
    }
    admission_gate gate;
};

}  // namespace

TEST_SUITE_BEGIN("cache/admission/admission_gate");

TEST_CASE("a URL pattern is the whole URL, with * for any run of characters") {
    struct row {
        const char* pattern;
        const char* url;
        bool matches;
    };
    for (const auto& [pattern, url, matches] : {
             row{"http://a.test/x", "http://a.test/x", true},
             row{"http://a.test/x", "http://a.test/xy", false},
             row{"http://a.test/xy", "http://a.test/x", false},
             row{"http://a.test/X", "http://a.test/x", false},
             row{"*", "", true},
             row{"*", "http://a.test/", true},
             row{"***", "http://a.test/", true},
             row{"", "", true},
             row{"", "x", false},
             row{"http://a.test/*", "http://a.test/", true},
             row{"http://a.test/*", "http://a.test/x/y?z", true},
             row{"http://a.test/*", "http://b.test/", false},
             row{"*.deb", "http://a.test/pool/x.deb", true},
             row{"*.deb", "http://a.test/pool/x.deb?y", false},
             row{"http://*/pool/*.deb", "http://a.test/pool/x.deb", true},
             row{"http://*/pool/*.deb", "http://a.test/dists/x.deb", false},
             row{"*a*b*c*", "xxaxxbxxcxx", true},
             row{"*a*b*c*", "xxaxxcxxbxx", false},
             row{"*aab", "aaab", true},
             row{"a*a", "a", false},
             row{"http://a.test/?.deb", "http://a.test/x.deb", false},
             row{"http://a.test/?.deb", "http://a.test/?.deb", true},
         }) {
        CAPTURE(pattern);
        CAPTURE(url);
        CHECK(url_matches(pattern, url) == matches);
    }
}

TEST_CASE("a rule is asked of what an accelerator's clients ask for, not of its key") {
    constexpr std::string_view key{"//a.test/x.iso http://10.0.0.1:8000"};
    CHECK(url_matches("http://a.test/*", key));
    CHECK(url_matches("*.iso", key));
    CHECK(url_matches("http*://a.test/x.iso", key));
    CHECK_FALSE(url_matches("*8000", key));
    CHECK_FALSE(url_matches("http://b.test/*", key));
    CHECK(url_matches("https://a.test/*.iso", "https://a.test/x.iso http://10.0.0.1:8000"));
}

TEST_CASE("a pattern of many stars against a long URL takes no longer than their product") {
    std::string pattern;
    for (int i = 0; i < 200; ++i) {
        pattern += "*a";
    }
    CHECK(!url_matches(pattern + "b", std::string(16'384, 'a')));
}

TEST_CASE("the listener's policy comes first, then the first rule that matches, then the default") {
    config::admission_options options;
    options.choice = {admission_policy::second_hit, 2};
    options.rules = {{"http://a.test/*", {admission_policy::always, 2}},
                     {"*/big/*", {admission_policy::never, 2}},
                     {"http://a.test/x", {admission_policy::nth_hit, 5}}};
    const auto by_default = choice_for(options, std::nullopt, "http://b.test/");
    CHECK(by_default.choice == options.choice);
    CHECK(by_default.rule == no_rule);
    const auto first = choice_for(options, std::nullopt, "http://a.test/big/x");
    CHECK(first.choice.policy == admission_policy::always);
    CHECK(first.rule == 0);
    const auto second = choice_for(options, std::nullopt, "http://b.test/big/x");
    CHECK(second.choice.policy == admission_policy::never);
    CHECK(second.rule == 1);
    const admission_choice own{admission_policy::nth_hit, 3};
    const auto of_listener = choice_for(options, own, "http://a.test/x");
    CHECK(of_listener.choice == own);
    CHECK(of_listener.rule == no_rule);
}

TEST_CASE("the filter has as many layers as the largest nth-hit of any policy asks for") {
    auto options = few_objects();
    options.admission.remember.age = std::chrono::hours{7};
    options.admission.false_positive_rate = 0.02;
    CHECK(filter_settings(options).objects == 1'000);
    CHECK(filter_settings(options).age == std::chrono::hours{7});
    CHECK(filter_settings(options).false_positive_rate == 0.02);
    CHECK(filter_settings(options).layers == 1);
    options.admission.choice = {admission_policy::always, 9};  // `hits` means nothing here
    CHECK(filter_settings(options).layers == 1);
    options.admission.choice = {admission_policy::nth_hit, 3};
    CHECK(filter_settings(options).layers == 2);
    options.admission.rules = {{"*", {admission_policy::nth_hit, 5}}};
    CHECK(filter_settings(options).layers == 4);
    options.listeners[0].admission = admission_choice{admission_policy::nth_hit, 7};
    CHECK(filter_settings(options).layers == 6);
    options.listeners[0].admission = admission_choice{admission_policy::nth_hit, 1'000};
    CHECK(filter_settings(options).layers == filter::admission_filter::max_layers);
}

TEST_CASE("each policy admits at its own sight, and every sight is remembered") {
    auto options = few_objects();
    options.admission.choice = {admission_policy::nth_hit, 4};
    admission_gate gate{options, now};
    struct row {
        admission_choice choice;
        bool admitted[4];
    };
    std::uint64_t key = 0;
    for (const auto& [choice, admitted] : {
             row{{admission_policy::always, 2}, {true, true, true, true}},
             row{{admission_policy::never, 2}, {false, false, false, false}},
             row{{admission_policy::second_hit, 2}, {false, true, true, true}},
             row{{admission_policy::nth_hit, 1}, {true, true, true, true}},
             row{{admission_policy::nth_hit, 3}, {false, false, true, true}},
             row{{admission_policy::nth_hit, 4}, {false, false, false, true}},
         }) {
        ++key;
        const admission_choice_for by{choice, 3};
        for (unsigned sight = 0; sight < 4; ++sight) {
            CAPTURE(key);
            CAPTURE(sight);
            CHECK(gate.peek(nth_key(1, key), by).admitted == admitted[sight]);
            const auto ruling = gate.note(nth_key(1, key), by, now);
            CHECK(ruling.admitted == admitted[sight]);
            CHECK(ruling.seen_before == std::min(sight, 3u));
            CHECK(ruling.policy == choice.policy);
            CHECK(ruling.rule == 3);
        }
        // Whatever was in force, second-hit would find its memory filled.
        CHECK(gate.peek(nth_key(1, key), second_hit).admitted);
    }
}

TEST_CASE("a request may have cost a hit where it is no first sight and its policy refuses some") {
    admission_gate gate{few_objects(), now};
    std::uint64_t key = 0;
    const auto costs = [&](admission_policy policy) {
        const admission_choice_for by{{policy, 2}, no_rule};
        ++key;
        CHECK_FALSE(gate.peek(nth_key(1, key), by).may_have_cost_a_hit());
        CHECK_FALSE(gate.note(nth_key(1, key), by, now).may_have_cost_a_hit());
        const bool is_said = gate.peek(nth_key(1, key), by).may_have_cost_a_hit();
        CHECK(gate.note(nth_key(1, key), by, now).may_have_cost_a_hit() == is_said);
        return is_said;
    };
    CHECK_FALSE(costs(admission_policy::always));
    CHECK(costs(admission_policy::second_hit));
    CHECK(costs(admission_policy::nth_hit));
    CHECK(costs(admission_policy::never));
    CHECK(costs(admission_policy::automatic));
    gate.obey({admission_policy::always, 2}, 0);
    CHECK_FALSE(costs(admission_policy::automatic));
}

TEST_CASE("peek records nothing") {
    const admission_gate gate{few_objects(), now};
    CHECK(!gate.peek(nth_key(1, 1), second_hit).admitted);
    CHECK(!gate.peek(nth_key(1, 1), second_hit).admitted);
}

TEST_CASE("what was hit is no stranger after its eviction, whatever its policy") {
    auto options = few_objects();
    options.admission.choice = {admission_policy::nth_hit, 4};
    admission_gate gate{options, now};
    gate.hit(nth_key(1, 1), now);
    CHECK(gate.peek(nth_key(1, 1), second_hit).admitted);
    CHECK(gate.peek(nth_key(1, 1), {options.admission.choice, no_rule}).admitted);
}

TEST_CASE("two gates begin with secrets of their own") {
    const admission_gate one{few_objects(), now};
    const admission_gate two{few_objects(), now};
    CHECK(one.secret().seed() != two.secret().seed());
}

TEST_CASE("what was seen before a restart is known after it, under the same secret") {
    const tests::temp_dir directory;
    auto options = few_objects();
    options.admission.state = directory.file("state");
    filter::hash_seed seed{};
    {
        admission_gate gate{options, now};
        seed = gate.secret().seed();
        for (std::uint64_t n = 0; n < 500; ++n) {
            (void)gate.note(nth_key(1, n), second_hit, now);
        }
        REQUIRE(!gate.save(options.admission.state));
        REQUIRE(!gate.save(options.admission.state));  // over the first one
    }
    CHECK(!std::filesystem::exists(options.admission.state + ".new"));
    const admission_gate again{options, now + std::chrono::hours{1}};
    CHECK(again.secret().seed() == seed);
    for (std::uint64_t n = 0; n < 500; ++n) {
        CAPTURE(n);
        CHECK(again.peek(nth_key(1, n), second_hit).admitted);
    }
}

TEST_CASE("the state is for nobody else to read, whatever stood there before") {
    const tests::temp_dir directory;
    const auto path = directory.file("state");
    directory.write("state", "readable");
    directory.write("state.new", "left by a crash");
    ::chmod(path.c_str(), 0644);
    ::chmod((path + ".new").c_str(), 0644);
    const admission_gate gate{few_objects(), now};
    REQUIRE(!gate.save(path));
    struct stat facts {};
    REQUIRE(::stat(path.c_str(), &facts) == 0);
    CHECK((facts.st_mode & 07777) == 0600);
}

TEST_CASE("a state that cannot be written is an error, and leaves nothing behind") {
    const tests::temp_dir directory;
    const admission_gate gate{few_objects(), now};
    CHECK(gate.save(directory.file("missing/state")));
    const auto occupied = directory.file("folder");
    std::filesystem::create_directories(occupied + "/full");
    CHECK(gate.save(occupied));
    CHECK(!std::filesystem::exists(occupied + ".new"));
}

TEST_CASE("a file that is no usable state is refused, and the filter starts empty") {
    const tests::temp_dir directory;
    auto options = few_objects();
    options.admission.state = directory.file("state");
    filter::hash_seed seed{};
    {
        admission_gate gate{options, now};
        seed = gate.secret().seed();
        (void)gate.note(nth_key(1, 1), second_hit, now);
        REQUIRE(!gate.save(options.admission.state));
    }
    const auto whole = tests::read_file(options.admission.state);
    REQUIRE(whole.size() > 200);
    SUBCASE("damaged") {
        auto damaged = whole;
        damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 1);
        directory.write("state", damaged);
    }
    SUBCASE("cut short") {
        directory.write("state", whole.substr(0, 200));
    }
    SUBCASE("longer") {
        directory.write("state", whole + "x");
    }
    SUBCASE("empty") {
        directory.write("state", "");
    }
    SUBCASE("something else") {
        directory.write("state", "{}");
    }
    SUBCASE("of other settings") {
        options.admission.remember.objects = 2'000;
    }
    SUBCASE("of other layers") {
        options.admission.choice = {admission_policy::nth_hit, 4};
    }
    SUBCASE("a folder") {
        std::filesystem::remove(options.admission.state);
        std::filesystem::create_directory(options.admission.state);
    }
    SUBCASE("a pipe that nobody writes to") {
        std::filesystem::remove(options.admission.state);
        REQUIRE(::mkfifo(options.admission.state.c_str(), 0600) == 0);
    }
    SUBCASE("missing") {
        std::filesystem::remove(options.admission.state);
    }
    admission_gate gate{options, now};
    CHECK(gate.secret().seed() != seed);
    CHECK(!gate.note(nth_key(1, 1), second_hit, now).admitted);
    CHECK(gate.note(nth_key(1, 1), second_hit, now).admitted);
}

TEST_CASE("what is refused may wait on probation where that has a share, but never of never") {
    auto options = few_objects();
    options.admission.choice = {admission_policy::nth_hit, 4};
    options.admission.probation = 0.02;
    admission_gate gate{options, now};
    CHECK(gate.probation() == 0.02);
    const auto key = nth_key(1, 1);
    const auto first = gate.note(key, {options.admission.choice, no_rule}, now);
    CHECK_FALSE(first.admitted);
    CHECK(first.may_wait);
    CHECK(first.uses_to_admit == 3);
    CHECK(gate.note(key, {options.admission.choice, no_rule}, now).uses_to_admit == 2);
    CHECK_FALSE(gate.peek(key, {{admission_policy::never, 2}, no_rule}).may_wait);
    const auto admitted = gate.peek(key, second_hit);
    CHECK(admitted.admitted);
    CHECK_FALSE(admitted.may_wait);
    options.admission.probation = 0;
    gate.adopt(options);
    CHECK_FALSE(gate.peek(nth_key(1, 2), second_hit).may_wait);
}

TEST_CASE("tinylfu admits what was asked for more often than what leaves nowadays") {
    auto options = few_objects();
    options.admission.choice = {admission_policy::tinylfu, 2};
    admission_gate gate{options, now};
    const admission_choice_for by{options.admission.choice, no_rule};
    const auto ask = [&](std::uint64_t n) {
        gate.count_request(nth_key(1, n));
        return gate.note(nth_key(1, n), by, now);
    };
    // Nothing has left: nobody loses a place.
    CHECK(ask(1).admitted);
    CHECK(ask(1).policy == admission_policy::tinylfu);
    CHECK(ask(1).seen_before == 1);  // as far as the filter counts
    for (int times = 0; times < 5; ++times) {
        gate.evicted(nth_key(1, 1));  // which was asked for three times
    }
    for (unsigned sight = 1; sight <= 3; ++sight) {
        CAPTURE(sight);
        CHECK_FALSE(ask(2).admitted);
    }
    CHECK(ask(2).admitted);
    // Hits count as well: the gate is told of every request.
    gate.count_request(nth_key(1, 3));
    gate.count_request(nth_key(1, 3));
    gate.count_request(nth_key(1, 3));
    CHECK(ask(3).admitted);
    gate.evicted(nth_key(1, 99));  // never asked for, as far as anybody remembers
    CHECK(ask(4).admitted);
}

TEST_CASE("whatever has left, tinylfu admits what is asked for as often as anything can be") {
    shut_gate shut{nullptr};
    for (unsigned sight = 1; sight < frequency_sketch::most; ++sight) {
        CAPTURE(sight);
        CHECK_FALSE(shut.admits(nth_key(2, 1)));
    }
    CHECK(shut.admits(nth_key(2, 1)));
}

TEST_CASE(
    "while nothing leaves, refusals make tinylfu ask for less, but for two requests at least") {
    shut_gate shut{nullptr};
    constexpr auto enough = frequency_sketch::most * tinylfu_bar::refusals_a_step;
    for (unsigned n = 0; n < enough; ++n) {
        CHECK_FALSE(shut.admits(nth_key(2, n)));
    }
    CHECK_FALSE(shut.admits(nth_key(3, 1)));
    CHECK(shut.admits(nth_key(3, 1)));
    // Looking is no refusal.
    shut_gate looked_at{nullptr};
    for (unsigned n = 0; n < enough; ++n) {
        (void)looked_at.gate.peek(nth_key(2, n), {shut_gate::options().admission.choice, no_rule});
    }
    CHECK_FALSE(looked_at.admits(nth_key(3, 1)));
    CHECK_FALSE(looked_at.admits(nth_key(3, 1)));
}

TEST_CASE("tinylfu asks for less as what it counts by fades") {
    const auto requests = std::make_shared<frequency_sketch>(1'000);
    shut_gate shut{requests};
    CHECK_FALSE(shut.admits(nth_key(3, 1)));
    for (std::uint64_t n = 0; requests->agings() < 4; ++n) {
        shut.gate.count_request(nth_key(2, n));
    }
    CHECK(shut.admits(nth_key(3, 2)));
}

TEST_CASE("tinylfu set by a reload, with nothing that counts, is second-hit") {
    admission_gate gate{few_objects(), now};
    const admission_choice_for by{{admission_policy::tinylfu, 2}, no_rule};
    CHECK_FALSE(gate.note(nth_key(1, 1), by, now).admitted);
    CHECK(gate.note(nth_key(1, 1), by, now).admitted);
}

TEST_CASE("auto is second-hit until it is told otherwise") {
    auto options = few_objects();
    options.admission.choice = {admission_policy::automatic, 2};
    admission_gate gate{options, now};
    const admission_choice_for by{options.admission.choice, no_rule};
    CHECK_FALSE(gate.note(nth_key(1, 1), by, now).admitted);
    CHECK(gate.note(nth_key(1, 1), by, now).admitted);
    gate.obey({admission_policy::nth_hit, 3}, 0.1);
    CHECK_FALSE(gate.note(nth_key(1, 2), by, now).admitted);
    CHECK_FALSE(gate.note(nth_key(1, 2), by, now).admitted);
    CHECK(gate.note(nth_key(1, 2), by, now).admitted);
    CHECK(gate.peek(nth_key(1, 3), by).may_wait);
    // Other policies are not concerned by what auto was told.
    CHECK(gate.peek(nth_key(1, 3), {{admission_policy::always, 2}, no_rule}).admitted);
}

TEST_CASE("how much of its room the young generation has used is counted in objects") {
    const auto options = few_objects();
    const auto objects = options.admission.remember.objects;
    admission_gate gate{options, now};
    CHECK(gate.figures(now).young_used == 0);
    std::uint64_t key = 0;
    for (; key < objects * 3 / 4; ++key) {
        (void)gate.note(nth_key(1, key), second_hit, now);
        (void)gate.note(nth_key(1, key), second_hit, now);
    }
    CHECK(gate.figures(now).young_used == doctest::Approx(0.75).epsilon(0.01));
    // It comes to 1 before the generations turn over, and not beyond.
    double most = 0;
    while (gate.figures(now).swaps == 0) {
        REQUIRE(key < 2 * objects);
        (void)gate.note(nth_key(1, key++), second_hit, now);
        const auto told = gate.figures(now);
        most = told.swaps == 0 ? told.young_used : most;
    }
    CHECK(most == 1);
    CHECK(gate.figures(now).young_used < 0.1);
}

TEST_SUITE_END();

}  // namespace reprise::proxy::cache::test::of_admission_gate
