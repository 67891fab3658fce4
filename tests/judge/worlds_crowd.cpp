// Many clients of one object at once, fast and slow, with 1.0 and 1.1, with and without TLS, while
// one event loop is starved: shared fetches, their windows and their ends.

#include "tests/judge/starver.hpp"
#include "tests/judge/worlds.hpp"
#include "tests/support/certificates.hpp"

namespace reprise::tests::judge {

namespace {

object shared_object(world& w) {
    object out;
    // The system's buffers hold some MB: who is to be behind needs more.
    out.size = w.one_in(3) ? 300'000 + w.below(3'000'000) : 12'000'000 + w.below(6'000'000);
    switch (w.below(4)) {
    case 0: out.framed = framing::chunked; break;
    case 1: out.framed = framing::until_close; break;
    default: break;
    }
    out.validated = w.one_in(3)   ? validator::none
                    : w.one_in(4) ? validator::weak
                                  : validator::strong;
    out.ranges = !w.one_in(4);
    return out;
}

wish crowd_member(world& w, const std::string& path, bool tls) {
    wish out{.path = path};
    out.http10 = w.one_in(4);
    out.tls = tls && w.one_in(5);
    out.from = "127.0.0." + std::to_string(1 + w.below(4));
    switch (w.below(6)) {
    case 0:
    case 1:
        out.pace = 1'000'000 + w.below(3'000'000);
        out.receive_buffer = 64'000;
        break;
    case 2: out.leave_at = w.below(400'000); break;
    default: break;
    }
    out.leave_after = milliseconds{6'000};
    return out;
}

}  // namespace

void play_crowd(world& w) {
    const temp_dir files;
    const auto made = self_signed("IP:127.0.0.1");
    auto settings = w.settings();
    const bool second_hit = w.one_in(2);
    settings["admission"] = second_hit ? "second-hit" : "always";
    settings["collapsing"] = {{"window", "64KiB"}};
    settings["memory"] = {{"size", "8MiB"}, {"max_object", w.one_in(2) ? "256KiB" : "2MiB"}};
    settings["listeners"].push_back({{"address", "127.0.0.1:0"},
                                     {"tls",
                                      {{"certificate", files.write("c.pem", made.certificate)},
                                       {"key", files.write("k.pem", made.key)}}}});
    w.start(settings);
    // First what is hardest: nobody can go on alone where there is neither length nor validator.
    object hard{.size = 16'000'000};
    hard.framed = framing::chunked;
    hard.validated = validator::none;
    const auto hardest = w.fresh(hard);
    w.origin.behave(hardest, {.head_after = milliseconds{50}});
    std::vector<wish> few(6, wish{.path = hardest, .leave_after = milliseconds{6'000}});
    for (std::size_t i = 2; i < few.size(); ++i) {
        few[i].pace = 600'000 * i;
        few[i].receive_buffer = 64'000;
    }
    (void)w.all(few);
    while (w.goes_on()) {
        const auto path = w.fresh(shared_object(w));
        behaviour how;
        if (w.one_in(2)) {
            how.head_after = milliseconds{30};
        }
        w.origin.behave(path, how);
        const starver hungry{w.program().pid(),
                             static_cast<std::size_t>(w.below(2)),
                             milliseconds{20 + w.below(60)},
                             milliseconds{1 + w.below(5)}};
        std::vector<wish> together;
        for (std::uint64_t i = 0, n = 4 + w.below(14); i < n; ++i) {
            together.push_back(crowd_member(w, path, true));
        }
        (void)w.all(together);
    }
}

// Fast clients of one object whose followers' loop gets no turn: what they missed must not be
// skipped.
void play_starved_followers(world& w) {
    auto settings = w.settings();
    settings["admission"] = "second-hit";
    settings["collapsing"] = {{"window", "64KiB"}};
    settings["memory"] = {{"max_object", "256KiB"}};  // what is stored is held whole
    w.start(settings);
    while (w.goes_on()) {
        object what;
        what.size = 600'000 + w.below(1'000'000);
        what.framed = w.one_in(2) ? framing::chunked : framing::length;
        const auto path = w.fresh(what);
        w.origin.behave(path, {.head_after = milliseconds{40}});
        const starver hungry{w.program().pid(),
                             static_cast<std::size_t>(w.below(2)),
                             milliseconds{50},
                             milliseconds{2}};
        std::vector<wish> together(12, wish{.path = path});
        for (auto& one : together) {
            one.http10 = w.one_in(4);
        }
        (void)w.all(together);
    }
}

// What ends before its end, to clients that can't see it by the framing: a client that takes
// nothing for too long, and the program's own end.
void play_ends(world& w) {
    const temp_dir files;
    const auto made = self_signed("IP:127.0.0.1");
    while (w.goes_on()) {
        auto settings = w.settings();
        settings["timeouts"] = {{"client_body", "1s"}, {"drain", "300ms"}};
        settings["limits"] = {{"body_rate", "20KB"}};
        settings["listeners"].push_back({{"address", "127.0.0.1:0"},
                                         {"tls",
                                          {{"certificate", files.write("c.pem", made.certificate)},
                                           {"key", files.write("k.pem", made.key)}}}});
        w.start(settings);
        const bool drains = w.one_in(2);
        object what;
        what.size = 6'000'000;
        what.framed = w.one_in(2) ? framing::chunked : framing::until_close;
        what.ranges = false;
        what.validated = validator::none;
        what.lifetime = w.one_in(2) ? -1 : 60;
        const auto path = w.fresh(what);
        w.origin.behave(path, {.pace = drains ? std::uint64_t{2'000'000} : 0});
        std::vector<wish> together;
        for (int i = 0; i < 6; ++i) {
            wish one{.path = path};
            one.http10 = i % 2 == 0;
            one.tls = i == 4;
            one.receive_buffer = 64'000;
            if (!drains) {
                one.stall_at = 200'000;
                one.stall = milliseconds{3'500};
            } else {
                one.pace = 1'500'000;
            }
            together.push_back(one);
        }
        std::thread readers{[&] { (void)w.all(together); }};
        if (drains) {
            std::this_thread::sleep_for(milliseconds{500 + w.below(800)});
            w.stop();
        }
        readers.join();
        w.stop();
    }
}

// Clients that read steadily, far above the least rate, behind buffers as large as may be.
void play_steady_readers(world& w) {
    auto settings = w.settings();
    settings["timeouts"] = {{"client_body", "1s"}};
    w.start(settings);
    while (w.goes_on()) {
        object what;
        what.size = 16'000'000;
        what.framed = w.one_in(3) ? framing::chunked : framing::length;
        const auto path = w.fresh(what);
        std::vector<wish> together;
        for (int i = 0; i < 4; ++i) {
            wish one{.path = path};
            one.pace = 250'000 + w.below(350'000);
            one.receive_buffer = i % 2 == 0 ? 200'000 : 0;
            one.leave_after = milliseconds{13'000};
            one.http10 = i == 3;
            together.push_back(one);
        }
        (void)w.all(together);
    }
}

}  // namespace reprise::tests::judge
