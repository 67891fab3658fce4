#include "tests/judge/world.hpp"

#include <csignal>

namespace reprise::tests::judge {

namespace {

milliseconds duration_in(const json& settings, const char* name, milliseconds otherwise) {
    const auto found = settings["timeouts"].find(name);
    if (found == settings["timeouts"].end()) {
        return otherwise;
    }
    const auto text = found->get<std::string>();
    const auto number = std::stol(text);
    return text.ends_with("ms") ? milliseconds{number} : milliseconds{number * 1000};
}

}  // namespace

json with_disk(json settings, const temp_dir& at, const char* write, const char* size) {
    settings["disk"] = {{"path", at.file("store")}, {"size", size}, {"write", write}};
    return settings;
}

world::world(const world_kind& of, std::uint64_t seed, milliseconds length, findings& into)
    : into_{into},
      where_{of.name, seed, {}},
      length_{length},
      dice_{seed * 1000003 + identity_of(of.name)},
      name_{of.name} {
    place_.origin = origin.authority();
    place_.bound = milliseconds{sanitized ? 60'000 : 20'000};
}

world::~world() {
    stop();
}

json world::settings() const {
    auto out = storing_settings();
    out["access"]["purge_clients"] = {"127.0.0.0/8"};
    out["log"] = {{"access", "off"}, {"level", "warn"}};
    return out;
}

void world::start(json settings, const std::vector<std::string>& environment) {
    // A loop that is starved is late with handshakes too, and the court judges no timing but
    // place_.bound.
    settings["timeouts"].emplace("client_head", "60s");
    client_body_ = duration_in(settings, "client_body", milliseconds{30'000});
    program_ = std::make_unique<proxy_process>(settings, environment);
    if (!until_) {
        until_ = steady::now() + length_;
    }
    place_.plain = program_->port();
    place_.tls = settings["listeners"].size() > 1 ? program_->port(1) : 0;
    end_.how = program_end::way::none;
}

void world::stop() {
    if (!program_) {
        return;
    }
    end_.how = program_end::way::drained;
    const int status = program_->stop();
    const auto printed = program_->errors();
    if (status != 0) {
        wrong(kind::ended, "status " + std::to_string(status) + ": " + printed.substr(0, 2000));
    } else if (const auto at = printed.find("Sanitizer"); at != std::string::npos) {
        wrong(kind::ended, printed.substr(at - std::min<std::size_t>(at, 200), 4000));
    } else {
        judged("ends of the program");
    }
    program_.reset();
}

void world::kill() {
    end_.how = program_end::way::killed;
    killed_ = steady::now();
    program_->kill();
    program_.reset();
}

// What was answered within the last moments need not be on disk; what a hit showed may have been in
// memory alone, and an older copy on disk.
void world::forget_what_may_be_lost() {
    record.forget_since(killed_ - seconds{2});
    record.forget_kept();
}

bool world::goes_on() const {
    return until_ && steady::now() < *until_;
}

std::uint64_t world::below(std::uint64_t limit) {
    return std::uniform_int_distribution<std::uint64_t>{0, limit - 1}(dice_);
}

std::string world::fresh(object of) {
    of.name = name_ + std::to_string(++made_) + (of.name.empty() ? "" : "-" + of.name);
    return of.path();
}

answer_seen world::get(const wish& what, const allowance& beyond) {
    asker one{place_};
    return get(one, what, beyond);
}

answer_seen world::get(asker& by, const wish& what, const allowance& beyond) {
    auto got = by.ask(what);
    const court judge{record, into_, cookies_, where_, client_body_};
    if (judge.judge_get(what, got, beyond, end_.how)) {
        note_kept(what, got);
        if (asked_++ % 50 == 0) {
            try_the_court(what, got, beyond);
        }
    }
    return got;
}

// A court that finds nothing because it can't is worse than none.
void world::try_the_court(const wish& what, const answer_seen& got, const allowance& beyond) {
    if (got.end != answer_end::whole || got.body.empty() || !got.fields.has("X-Object") ||
        got.fields.has("Set-Cookie") || (got.status != 200 && got.status != 206) ||
        end_.how != program_end::way::none || record.troubled(what.path, got.begun, got.ended)) {
        return;
    }
    auto spoilt = got;
    const char* how = "";
    const auto place = identity_of(what.path) % got.body.size();
    switch (asked_ / 50 % 5) {
    case 0:
        how = "a byte changed";
        spoilt.body[place] = static_cast<char>(spoilt.body[place] ^ 1);
        break;
    case 1:
        how = "the tail lost";
        spoilt.body.resize(place);
        break;
    case 2:
        how = "a byte more";
        spoilt.body += '\n';
        break;
    case 3:
        how = "the version of another head";
        for (auto& line : spoilt.fields.lines) {
            // A few bytes may be the same in every version: then it is one that never was.
            const auto more = got.body.size() < 64 || got.status == 206 ? "9999999" : "1";
            line.value = line.name == "X-Version" ? line.value + more : line.value;
        }
        break;
    default:
        how = "the start lost";
        spoilt.body.erase(0, 1 + place);
        spoilt.end = answer_end::whole;
        break;
    }
    findings aside{findings::quietly};
    cookie_jar none;
    const court judge{record, aside, none, where_, client_body_};
    if (judge.judge_get(what, spoilt, beyond, program_end::way::none)) {
        wrong("the court missed what was done on purpose", what.path + ": " + how);
    } else {
        judged(std::string{"done on purpose, and seen: "} + how);
    }
}

// What a hit shows is stored, and nothing older may be a hit from then on.
void world::note_kept(const wish& what, const answer_seen& got) {
    if (got.end != answer_end::whole || got.status != 200 || !got.is_from_store() ||
        what.path.find(".vary") != std::string::npos) {
        return;
    }
    const auto version = static_cast<unsigned>(std::stoul(got.fields.get("X-Version")));
    record.promise(
        what.path,
        {.version = version,
         .since = got.ended,
         .why = "had been a hit" +
                (where_.circumstances.empty() ? std::string{} : " (" + where_.circumstances + ")"),
         .date = record.first_date(what.path, version),
         .kept_only = true});
}

answer_seen world::unsafe(wish what, const allowance& beyond) {
    if (what.upload > 0) {
        what.upload_number = record.next_upload();
    }
    const auto before = record.current(what.path);
    asker one{place_};
    auto got = one.ask(what);
    const court judge{record, into_, cookies_, where_, client_body_};
    const bool good = judge.judge_unsafe(what, got, beyond, end_.how);
    if (good && got.status / 100 == 2 && got.end == answer_end::whole) {
        record.promise(what.path,
                       {.version = before + 1,
                        .since = got.ended,
                        .why = "came with an unsafe request that was answered before",
                        .date = 0});
    }
    return got;
}

std::vector<answer_seen> world::all(const std::vector<wish>& together, const allowance& beyond) {
    std::vector<answer_seen> out(together.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < together.size(); ++i) {
        threads.emplace_back([&, i] { out[i] = get(together[i], beyond); });
    }
    threads.clear();
    return out;
}

void world::purge(const std::string& path, const allowance& beyond) {
    const auto version = record.change(path);
    asker one{place_};
    const wish what{.method = "PURGE", .path = path};
    const auto got = one.ask(what);
    if (got.status == 200 || got.status == 404) {
        record.promise(path,
                       {.version = version,
                        .since = got.ended,
                        .why = "was current when a purge was answered before",
                        .date = 0});
        judged("purge");
    } else if (end_.how == program_end::way::none &&
               std::find(beyond.statuses.begin(), beyond.statuses.end(), got.status) ==
                   beyond.statuses.end()) {
        wrong(kind::failed, "PURGE " + path + ": " + got.start_line);
    }
}

}  // namespace reprise::tests::judge
