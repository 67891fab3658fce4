// What is stored, and which version of it: parts whose gaps an origin does not fill, slow answers
// that end after newer ones, late 304s, Dates and clocks that are off, restarts, surplus bytes.

#include "tests/judge/worlds.hpp"
#include "tests/support/stepped_clock.hpp"

namespace reprise::tests::judge {

namespace {

std::string range_of(std::uint64_t first, std::uint64_t count) {
    return "bytes=" + std::to_string(first) + "-" + std::to_string(first + count - 1);
}

void wait(milliseconds so_long) {
    std::this_thread::sleep_for(so_long);
}

// Enough others, asked for twice, that nothing small stays in a memory of 2 MiB.
void flood(world& w) {
    std::vector<std::string> paths;
    for (int i = 0; i < 60; ++i) {
        paths.push_back(w.fresh({.name = "flood", .size = 100'000}));
    }
    asker one{w.place()};
    for (const auto& path : paths) {
        for (int i = 0; i < 2; ++i) {
            (void)w.get(one, wish{.path = path});
        }
    }
}

}  // namespace

// Ranges lay parts; then the origin will not, or cannot, send what is missing.
void play_parts(world& w) {
    w.start(w.settings());
    while (w.goes_on()) {
        object what;
        what.size = 50'000 + w.below(400'000);
        const auto path = w.fresh(what);
        for (std::uint64_t i = 0, n = 1 + w.below(2); i < n; ++i) {
            const auto first = i == 0 && w.one_in(2) ? 0 : w.below(what.size - 20'000);
            (void)w.get(wish{.path = path, .range = range_of(first, 1'000 + w.below(19'000))});
        }
        const auto how = w.below(9);
        switch (how) {
        case 0: w.origin.behave(path, {.to_ranges = 404}); break;
        case 1: w.origin.behave(path, {.to_ranges = 500}); break;
        case 2: w.origin.behave(path, {.status = 404}); break;
        case 3: w.origin.behave(path, {.status = 503}); break;
        case 4: w.origin.behave(path, {.no_answer = true}); break;
        case 5: w.origin.behave(path, {.other_range = true}); break;
        case 6: w.origin.behave(path, {.ignores_ranges = true}); break;
        case 7: (void)w.record.change(path); break;
        default: break;
        }
        for (int i = 0; i < 3; ++i) {
            const auto first = w.below(what.size / 2);
            const auto count = 1 + w.below(what.size - first);
            // Where the origin itself sends another range than was asked for, it may be passed on.
            wish next{.path = path, .http10 = w.one_in(4)};
            if (how != 5 && w.one_in(3)) {
                next.range = range_of(first, count);
            }
            (void)w.get(next);
        }
        w.origin.behave(path, {});
        (void)w.get(path);
    }
}

// A slow download that ends after a reload has stored the next version; a Date in the future.
void play_recency(world& w) {
    w.start(w.settings());
    while (w.goes_on()) {
        object what;
        what.size = 200'000;
        what.framed = w.one_in(2) ? framing::chunked : framing::length;
        const auto path = w.fresh(what);
        const auto dated = w.fresh({.name = "dated"});
        w.origin.behave(path, {.pace = 70'000});
        std::thread slow{[&] { (void)w.get(path); }};

        w.origin.behave(dated, {.date = seconds{86'400}});
        (void)w.get(dated);
        (void)w.get(dated);
        wait(milliseconds{1'300});  // so that Dates differ, too
        w.origin.behave(path, {});
        (void)w.record.change(path);
        (void)w.get(wish{.path = path, .reload = true});
        (void)w.get(path);

        w.origin.behave(dated, {});
        const auto newer = w.record.change(dated);
        const auto got = w.get(wish{.path = dated, .reload = true});
        if (got.end == answer_end::whole && got.status == 200) {
            // Nothing overlapped: what was asked for later is the more recent.
            w.record.promise(dated,
                             {.version = newer,
                              .since = got.ended,
                              .why = "was the answer to a reload",
                              .date = 0,
                              .kept_only = true});
        }
        (void)w.get(dated);
        slow.join();
        wait(milliseconds{50});
        (void)w.get(path);
        (void)w.get(path);
    }
}

// A validation of what is on disk alone is answered after a reload has stored the next version.
void play_late_answers_on_disk(world& w) {
    while (w.goes_on()) {
        const temp_dir files;
        const auto settings = with_disk(w.settings(), files, "admission", "64MiB");
        w.start(settings);
        std::vector<std::string> paths;
        for (int i = 0; i < 4; ++i) {
            paths.push_back(w.fresh({.size = 20'000, .lifetime = 3}));
            (void)w.get(paths.back());
            (void)w.get(paths.back());
        }
        wait(milliseconds{500});
        w.stop();
        w.start(settings);
        wait(milliseconds{4'200});
        std::vector<std::jthread> late;
        for (const auto& path : paths) {
            w.origin.behave(path, {.validation_after = milliseconds{2'500}});
            late.emplace_back([&w, path] { (void)w.get(path); });
        }
        wait(milliseconds{1'300});
        for (const auto& path : paths) {
            w.origin.behave(path, {});
            (void)w.record.change(path);
            (void)w.get(wish{.path = path, .reload = true});
            (void)w.get(path);
        }
        late.clear();
        wait(milliseconds{50});
        for (const auto& path : paths) {
            (void)w.get(path);
        }
        w.stop();
    }
}

// Memory and disk hold different versions; memory loses its own, or the program ends.
void play_restarts(world& w) {
    while (w.goes_on()) {
        const temp_dir files;
        auto settings = with_disk(
            w.settings(), files, w.one_in(3) ? "admission" : "eviction", "64MiB");
        settings["memory"] = {{"size", "2MiB"}};
        w.start(settings);
        std::vector<std::string> paths;
        for (int i = 0; i < 6; ++i) {
            paths.push_back(w.fresh({.size = 20'000}));
            (void)w.get(paths.back());
            (void)w.get(paths.back());
        }
        flood(w);
        wait(milliseconds{300});
        for (const auto& path : paths) {
            (void)w.record.change(path);
            (void)w.get(wish{.path = path, .reload = true});
            (void)w.get(path);
        }
        if (w.one_in(2)) {
            wait(milliseconds{1'300});
            flood(w);
        }
        for (const auto& path : paths) {
            (void)w.get(path);
        }
        if (w.one_in(4)) {
            w.kill();
            w.forget_what_may_be_lost();
        } else {
            w.stop();
        }
        w.start(settings);
        wait(milliseconds{200});
        for (const auto& path : paths) {
            (void)w.get(path);
            (void)w.get(path);
        }
        w.stop();
    }
}

// The wall clock is set back or forward while things are stored.
void play_clock(world& w) {
    stepped_clock clock;
    w.start(w.settings(), clock.environment());
    while (w.goes_on()) {
        std::vector<std::string> paths;
        for (int i = 0; i < 4; ++i) {
            paths.push_back(w.fresh({.size = 3'000, .lifetime = 1 + i % 2}));
            (void)w.get(paths.back());
            (void)w.get(paths.back());
        }
        clock.advance(w.one_in(3) ? 30 : -3'600);
        for (const auto& path : paths) {
            (void)w.record.change(path);
        }
        wait(milliseconds{5'600});
        for (const auto& path : paths) {
            (void)w.get(path);
        }
        clock.advance(w.one_in(2) ? 3'600 : 0);
    }
}

// An origin that sends more than it said, on connections that are kept. Once it has been caught its
// connections are used no more: only then is a stray answer a fault of the program's.
void play_surplus(world& w) {
    w.start(w.settings());
    const std::string stray = "HTTP/1.1 200 OK\r\nX-Object: 000000000000\r\nX-Version: 0\r\n"
                              "Cache-Control: max-age=60\r\nContent-Length: 6\r\n\r\nstray\n";
    for (int i = 0; i < 10; ++i) {
        const auto path = w.fresh({.name = "caught", .lifetime = -1});
        w.origin.behave(path, {.surplus = stray, .surplus_after = milliseconds{2}});
        (void)w.get(path);
        wait(milliseconds{30});
    }
    while (w.goes_on()) {
        std::vector<std::string> paths;
        for (int i = 0; i < 400; ++i) {
            paths.push_back(w.fresh({.size = 500, .lifetime = -1}));
            if (w.one_in(3)) {
                w.origin.behave(
                    paths.back(),
                    {.surplus = stray, .surplus_after = std::chrono::microseconds{w.below(600)}});
            }
        }
        std::vector<std::jthread> threads;
        for (std::size_t of = 0; of < 4; ++of) {
            threads.emplace_back([&, of] {
                asker one{w.place()};
                for (std::size_t i = of; i < paths.size(); i += 4) {
                    (void)w.get(one, wish{.path = paths[i]});
                }
            });
        }
        threads.clear();
        wait(milliseconds{200});  // every request may take a port of its own
    }
}

}  // namespace reprise::tests::judge
