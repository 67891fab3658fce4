// What one client, or one origin, does to the others: long uploads, origins that recover, refusals
// behind a client's back, conditions, strangers that hold what all need.

#include "tests/judge/worlds.hpp"
#include "tests/support/certificates.hpp"

namespace reprise::tests::judge {

namespace {

std::size_t asked_since(world& w, const std::string& path, std::size_t before) {
    return w.record.count(path) - before;
}

}  // namespace

// Steady uploads that take longer than an origin may take for its head; and early answers.
void play_uploads(world& w) {
    auto settings = w.settings();
    settings["timeouts"] = {{"origin_head", "2s"}};
    w.start(settings);
    while (w.goes_on()) {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 6; ++i) {
            wish one{.method = w.one_in(2) ? "PUT" : "POST",
                     .path = w.fresh({.name = "up", .size = 1'000})};
            one.upload_chunked = w.one_in(3);
            if (i % 2 == 0) {
                one.pace = 60'000;
                one.upload = 60'000 * (3 + w.below(2));
            } else {
                one.upload = 200'000 + w.below(2'000'000);
                one.pace = w.one_in(2) ? 0 : 1'000'000;
                w.origin.behave(one.path, {.answers_early = w.one_in(2)});
            }
            threads.emplace_back([&w, one] {
                (void)w.unsafe(one);
                w.origin.behave(one.path, {});
                (void)w.get(one.path);
            });
        }
        threads.clear();
    }
}

// One failure, then fifty requests at once for what is well again.
void play_recovery(world& w) {
    auto settings = w.settings();
    settings["threads"] = 2;
    w.start(settings);
    while (w.goes_on()) {
        const auto path = w.fresh({.size = 20'000});
        const int bad[] = {500, 502, 503, 504};
        w.origin.behave(path, {.status = bad[w.below(4)]});
        (void)w.get(path);
        w.origin.behave(path, {.head_after = milliseconds{400}});
        const auto before = w.record.count(path);
        (void)w.all(std::vector<wish>(50, wish{.path = path}));
        constexpr std::size_t few = 15;  // whoever comes before the first has been seen, and more
        if (const auto asked = asked_since(w, path, before); asked > few) {
            w.wrong(kind::not_collapsed,
                    path + ": after one error 50 requests at once became " + std::to_string(asked) +
                        " of the origin's");
        } else {
            w.judged("crowds after an error");
        }
    }
}

// The origin refuses a validation behind the client's back: what is stored goes on being good for
// stale-while-revalidate.
void play_validations(world& w) {
    w.start(w.settings());
    while (w.goes_on()) {
        const auto path = w.fresh({.size = 5'000, .lifetime = 1, .while_revalidate = 120});
        (void)w.get(path);
        const auto stored = w.get(path).is_from_store();
        std::this_thread::sleep_for(milliseconds{2'200});
        const int refusals[] = {401, 403, 429, 500, 503};
        const int how = refusals[w.below(5)];
        w.origin.behave(path, {.status = how});
        const auto before = w.record.count(path);
        for (int i = 0; i < 4; ++i) {
            const auto got = w.get(path);
            if (stored && got.status != 200) {
                w.wrong(kind::given_up,
                        path + ": a validation behind a client's back was answered by " +
                            std::to_string(how) + ", and the next client gets " + got.start_line +
                            " within stale-while-revalidate");
            } else {
                w.judged("stale while revalidation is refused");
            }
            (void)eventually([&] { return asked_since(w, path, before) > 0; }, milliseconds{1'000});
            std::this_thread::sleep_for(milliseconds{100});
        }
    }
}

// Clients that have what they ask for: the origin must hear of it a few times, not of each.
void play_conditions(world& w) {
    w.start(w.settings());
    while (w.goes_on()) {
        object what{.size = 10'000};
        const auto path = w.fresh(what);
        const wish asked{.path = path, .if_none_match = object::of(path).etag(0)};
        for (int i = 0; i < 6; ++i) {
            (void)w.get(asked);
        }
        const auto before = w.record.count(path);
        (void)w.get(asked);
        if (asked_since(w, path, before) != 0) {
            w.wrong(kind::not_stored,
                    path + ": asked for seven times with a matching If-None-Match, and the origin "
                           "is asked each time");
        } else {
            w.judged("conditions answered from the store");
        }
    }
}

// Before one upstream, with TLS and without: it must be told which, by us and not by the client.
void play_accelerator(world& w) {
    const temp_dir files;
    const auto made = self_signed("IP:127.0.0.1");
    auto settings = w.settings();
    const json here{{"address", "127.0.0.1:0"},
                    {"mode", "accelerator"},
                    {"upstream", "http://" + w.origin.authority()}};
    auto secure = here;
    secure["tls"] = {{"certificate", files.write("c.pem", made.certificate)},
                     {"key", files.write("k.pem", made.key)}};
    settings["listeners"] = json::array({here, secure});
    w.start(settings);
    w.place().accelerator = true;
    while (w.goes_on()) {
        for (const bool tls : {true, false}) {
            for (const char* claim : {"", "X-Forwarded-Proto: https\r\n"}) {
                const auto path = w.fresh({.size = 2'000});
                (void)w.get(wish{.path = path, .tls = tls, .fields = claim});
                const auto told = w.origin.last_field(path, "X-Forwarded-Proto");
                const auto also = lower(w.origin.last_field(path, "Forwarded"));
                const bool https = told == "https" || also.find("proto=https") != also.npos;
                if (https != tls) {
                    w.wrong(kind::no_scheme,
                            path + std::string{tls ? ": over TLS" : ": without TLS"} + ", with \"" +
                                std::string{claim, std::string_view{claim}.find('\r') + 1} +
                                "\", the upstream was told \"" + told + "\" and \"" + also + "\"");
                } else {
                    w.judged("schemes told to an upstream");
                }
                const auto before = w.record.count(path);
                (void)w.get(wish{.path = path, .tls = !tls});
                if (w.record.count(path) == before) {
                    w.wrong(kind::no_scheme,
                            path + ": what was made for one scheme is a hit for the other");
                }
            }
        }
    }
}

// One address holds as many of an origin's connections as it can get; another asks in good faith.
void play_strangers(world& w) {
    auto settings = w.settings();
    settings["threads"] = 1;
    w.start(settings);
    while (w.goes_on()) {
        const auto never_comes = std::make_shared<gate>();
        std::vector<stream> held;
        for (int i = 0; i < 320; ++i) {
            const auto path = w.fresh({.name = "held", .lifetime = -1});
            w.origin.behave(path, {.head_at = never_comes});
            held.push_back(stream::connect(w.place().plain, "127.0.0.9"));
            held.back().send("GET " + w.origin.url(path) +
                             " HTTP/1.1\r\nHost: " + w.origin.authority() + "\r\n\r\n");
        }
        for (int i = 0; i < 4; ++i) {
            (void)w.get(w.fresh({.name = "honest", .lifetime = -1}));
        }
        held.clear();
        never_comes->open();
        (void)w.get(w.fresh({.name = "after", .lifetime = -1}));
    }
}

// Answers that were announced and do not come on: there must be room for others to be stored.
void play_stalled_answers(world& w) {
    auto settings = w.settings();
    settings["memory"] = {{"size", "16MiB"}};
    w.start(settings);
    while (w.goes_on()) {
        const auto later = std::make_shared<gate>();
        std::vector<stream> held;
        // The large ones first, then what fits beside them, so that little room is left of what
        // there is for announced bodies.
        for (const std::uint64_t size : {1'900'000,
                                         1'300'000,
                                         900'000,
                                         600'000,
                                         400'000,
                                         250'000,
                                         150'000,
                                         90'000,
                                         60'000,
                                         40'000,
                                         30'000,
                                         25'000}) {
            const auto path = w.fresh({.name = "stalled", .size = size});
            w.origin.behave(path, {.stall_at = 1'000, .stalled_until = later});
            held.push_back(stream::connect(w.place().plain, "127.0.0.9"));
            held.back().send("GET " + w.origin.url(path) +
                             " HTTP/1.1\r\nHost: " + w.origin.authority() + "\r\n\r\n");
            std::string head;
            (void)held.back().read_some(head, w.place().bound);
        }
        for (int i = 0; i < 4; ++i) {
            const auto path = w.fresh({.name = "probe", .size = 20'000});
            (void)w.get(path);
            (void)w.get(path);
            const auto got = w.get(path);
            if (!got.is_from_store()) {
                w.wrong(
                    kind::not_stored,
                    path + ": asked for three times beside stalled answers: " + got.cache_status());
            } else {
                w.judged("stored beside stalled answers");
            }
        }
        held.clear();
        later->open();
    }
}

}  // namespace reprise::tests::judge
