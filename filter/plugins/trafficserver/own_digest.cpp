#include "filter/plugins/trafficserver/own_digest.hpp"

#include "filter/plugins/trafficserver/follower.hpp"
#include "filter/plugins/trafficserver/ring_bytes.hpp"
#include "filter/plugins/trafficserver/server.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ts/ts.h>

// tick() does all that takes time: it opens the source once the cache is there, learns the room,
// publishes and saves. came() only adds to what the source has, on whatever thread the server
// stores.

namespace reprise::trafficserver {

namespace {

constexpr std::array<const char*, 10> own_names{"objects",
                                                "room",
                                                "generation",
                                                "places_on",
                                                "rate",
                                                "memory",
                                                "answers",
                                                "refused",
                                                "saves",
                                                "failed_saves"};
constexpr std::uint64_t usual_object = 16 << 10;
constexpr std::uint64_t least_objects = 10'000;
constexpr std::uint32_t remembered_digests = 3;

std::int64_t server_figure(const char* name) noexcept {
    TSMgmtInt value = 0;
    return TSMgmtIntGet(name, &value) == TS_SUCCESS ? value : 0;
}

std::int64_t server_total() noexcept {
    return server_figure("proxy.process.cache.bytes_total");
}

/// A stripe for each span of each volume; 0: the server does not tell.
std::uint64_t stripes_told() noexcept {
    const auto spans = server_figure("proxy.process.cache.span.online");
    if (spans <= 0) {
        return 0;
    }
    constexpr int most_volumes = 255;  // volume.config's numbers
    std::int64_t volumes = 0;
    for (int i = 0; i <= most_volumes; ++i) {
        std::array<char, 64> name;
        std::snprintf(name.data(), name.size(), "proxy.process.cache.volume_%d.bytes_total", i);
        volumes += server_figure(name.data()) > 0 ? 1 : 0;
    }
    return static_cast<std::uint64_t>(spans * std::max<std::int64_t>(volumes, 1));
}

int append_wire(void* to, const void* piece, size_t bytes) {
    static_cast<std::string*>(to)->append(static_cast<const char*>(piece), bytes);
    return 0;
}

}  // namespace

own_digest::own_digest(const fleet_options& options, const unsigned char* seed)
    : options_(options),
      seed_(seed) {
    for (std::size_t i = 0; i < own_names.size(); ++i) {
        figures_[i] = figure_for(std::string{"plugin.reprise_siblings.own."} + own_names[i]);
    }
    warn_without("reprise_siblings", "own", figures_);
}

void own_digest::came(reprise_key key, std::uint64_t bytes) noexcept {
    const auto taken = ring_bytes(bytes, sector_.load(std::memory_order_relaxed));
    objects_.fetch_add(1, std::memory_order_relaxed);
    written_.fetch_add(taken, std::memory_order_relaxed);
    if (auto* const source = source_.load(std::memory_order_acquire)) {
        reprise_source_came(source, key, taken);
    }
}

void own_digest::open() {
    const auto told = static_cast<std::uint64_t>(std::max<std::int64_t>(0, server_total()));
    const auto room = options_.room != 0 ? options_.room : told;
    if (room == 0) {
        return;  // the cache is not there yet
    }
    sector_.store(sector_of((std::string{TSConfigDirGet()} + "/storage.config").c_str(),
                            TSInstallDirGet(),
                            static_cast<std::uint64_t>(std::max<std::int64_t>(
                                0, server_figure("proxy.config.cache.force_sector_size")))),
                  std::memory_order_relaxed);
    reprise_source_options wanted = REPRISE_SOURCE_OPTIONS_INIT;
    wanted.kind = REPRISE_STAMPED;
    wanted.room = room;
    wanted.keys = std::min(options_.objects != 0 ? options_.objects
                                                 : std::max(room / usual_object, least_objects),
                           most_objects);
    wanted.history = remembered_digests;
    wanted.seed = seed_;
    wanted.state = options_.state.empty() ? nullptr : options_.state.c_str();
    reprise_error error = REPRISE_ERROR_INIT;
    reprise_source* made = nullptr;
    if (reprise_source_open(&wanted, &made, &error) != REPRISE_OK) {
        if (!open_failed_) {
            open_failed_ = true;
            TSError("reprise_siblings: there is no digest of this cache: %s", error.text);
        }
        return;
    }
    if (error.code != REPRISE_OK) {
        TSWarning("reprise_siblings: the digest begins empty: %s", error.text);
    }
    if (options_.room != 0) {
        (void)reprise_source_set_room(made, room);
    } else {
        follow_total(made);
    }
    next_save_ = std::chrono::steady_clock::now() + options_.save;
    source_.store(made, std::memory_order_release);
}

// The room by which the source goes is that of a state, or what wraps have shown: each of a cache that had another size, once the
// server says another total. That is so at a start after the cache was made smaller or larger, and when a disk is lost while the server runs.
// More than the total it can't keep; and much less is what a state says that was kept before objects were counted by what they take,
// for with them counted so, a cache that keeps much less than its size has not been seen.
void own_digest::follow_total(reprise_source* source) noexcept {
    const auto now = server_total();
    if (options_.room != 0 || now <= 0 || now == total_) {
        return;
    }
    total_ = now;
    first_wraps_.reset();  // those that were counted are of other stripes
    const auto room = static_cast<std::uint64_t>(now);
    reprise_source_figures read = REPRISE_SOURCE_FIGURES_INIT;
    (void)reprise_source_read(source, &read);
    if (read.room > room || read.room < room / 10 * 9) {
        (void)reprise_source_set_room(source, room);
    }
}

// A wrap of one of the stripes comes when that is full: so many of them as there are stripes are the whole of what the cache keeps.
// Counted from the first that is seen, so that what statistics are behind matters less with each. More than the server says the cache
// has it can't keep.
void own_digest::calibrate() noexcept {
    if (options_.room != 0) {
        return;
    }
    const auto wraps = server_figure("proxy.process.cache.wrap_count");
    const auto written = written_.load(std::memory_order_relaxed);
    if (!last_wraps_) {
        last_wraps_ = wraps;
        return;
    }
    if (wraps == *last_wraps_) {
        return;
    }
    const bool is_first = !first_wraps_ || wraps < *first_wraps_;
    last_wraps_ = wraps;
    if (is_first) {
        first_wraps_ = wraps;
        written_at_first_ = written;
        return;
    }
    const auto count = static_cast<double>(wraps - *first_wraps_);
    const auto each = static_cast<double>(written - written_at_first_) / count;
    const auto total = static_cast<double>(total_);
    if (each < 1) {
        return;
    }
    // Where the server does not tell, as many as make the bytes between two wraps the whole: small objects, which take more room than
    // they are counted for, would make it twice as many as there are.
    const auto told = options_.stripes != 0 ? options_.stripes : stripes_told();
    const auto stripes = told != 0 ? static_cast<double>(told)
                                   : std::max(1.0, std::round(total / each));
    if (count >= stripes) {
        (void)reprise_source_set_room(source_.load(std::memory_order_acquire),
                                      static_cast<std::uint64_t>(std::min(each * stripes, total)));
    }
}

void own_digest::show() noexcept {
    reprise_source_figures read = REPRISE_SOURCE_FIGURES_INIT;
    if (auto* const source = source_.load(std::memory_order_acquire)) {
        (void)reprise_source_read(source, &read);
    }
    const auto of = [](const std::atomic<std::uint64_t>& one) {
        return one.load(std::memory_order_relaxed);
    };
    const std::array<std::uint64_t, own_names.size()> values{
        of(objects_),
        read.room,
        read.generation,
        read.places_on,
        static_cast<std::uint64_t>(std::llround(read.rate * 1e6)),
        read.memory,
        of(answers_),
        of(refusals_),
        of(saves_),
        of(failed_saves_)};
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (figures_[i] >= 0) {
            TSStatIntSet(figures_[i], static_cast<TSMgmtInt>(values[i]));
        }
    }
}

void own_digest::tick() noexcept {
    auto* source = source_.load(std::memory_order_acquire);
    if (source == nullptr) {
        open();
        source = source_.load(std::memory_order_acquire);
    }
    if (source != nullptr) {
        follow_total(source);
        calibrate();
        (void)reprise_source_publish(source, nullptr);
        if (const auto now = std::chrono::steady_clock::now(); now >= next_save_) {
            next_save_ = now + options_.save;
            save();
        }
    }
    show();
}

void own_digest::save() noexcept {
    auto* const source = source_.load(std::memory_order_acquire);
    if (source == nullptr || options_.state.empty()) {
        return;
    }
    const std::lock_guard alone{saving_};
    reprise_error error = REPRISE_ERROR_INIT;
    if (reprise_source_save(source, nullptr, &error) == REPRISE_OK) {
        saves_.fetch_add(1, std::memory_order_relaxed);
        save_failed_ = false;
        return;
    }
    failed_saves_.fetch_add(1, std::memory_order_relaxed);
    if (!save_failed_) {
        save_failed_ = true;
        TSError("reprise_siblings: the digest is not saved: %s", error.text);
    }
}

own_digest::served own_digest::since(std::uint64_t epoch, std::uint64_t counter) {
    auto* const source = source_.load(std::memory_order_acquire);
    if (source == nullptr) {
        return {};
    }
    // The digest may be published anew between the two: then the tag is one too new, the bytes' own head is what counts, and the
    // next question is answered by 304 or from there.
    reprise_source_figures read = REPRISE_SOURCE_FIGURES_INIT;
    served out;
    const auto code = reprise_source_serve(source, epoch, counter, append_wire, &out.body, nullptr);
    (void)reprise_source_read(source, &read);
    if (code == REPRISE_UNCHANGED || code == REPRISE_OK) {
        out.what = code == REPRISE_OK ? served::kind::bytes : served::kind::unchanged;
        out.etag = '"' + generation_text(read.epoch, read.counter) + '"';
    }
    return out;
}

}  // namespace reprise::trafficserver
