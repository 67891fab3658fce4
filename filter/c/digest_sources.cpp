// What this cache holds: reprise_source_… of reprise/digest.h.

#include "filter/c/digest_keys.hpp"
#include "filter/c/face.hpp"
#include "filter/c/memory_piece.hpp"
#include "filter/c/source.hpp"
#include "filter/c/state_file.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <reprise/digest.h>
#include <string>
#include <sys/random.h>
#include <utility>
#include <vector>

namespace filter = reprise::filter;
namespace face = reprise::filter::c;

namespace {

constexpr std::size_t first_source_options = offsetof(reprise_source_options, memory_take);
constexpr std::size_t first_source_figures = sizeof(reprise_source_figures);

constexpr std::uint64_t most_keys = 1'000'000'000;
constexpr double least_source_rate = 1e-6;
constexpr double most_source_rate = 0.2;
constexpr unsigned most_history = 16;
constexpr std::uint64_t most_news = std::uint64_t{1} << 26;
constexpr std::size_t boundary = alignof(face::source_region);

const reprise_source_options source_defaults = REPRISE_SOURCE_OPTIONS_INIT;

int judge_source(const reprise_source_options& options, reprise_error* error) noexcept {
    const auto refuse = [&](const char* format, auto value) {
        return face::fail(error, REPRISE_BAD_OPTION, 0, format, value);
    };
    if (options.kind != REPRISE_COUNTING && options.kind != REPRISE_STAMPED) {
        return refuse("kind is %u: it must be REPRISE_COUNTING or REPRISE_STAMPED", options.kind);
    }
    if (options.kind == REPRISE_STAMPED &&
        (options.generations < 2 ||
         options.generations > filter::stamped_bloom::most_generations)) {
        return refuse("generations is %u: it must be 2 to 14", options.generations);
    }
    if (options.kind == REPRISE_STAMPED && options.room == 0) {
        return refuse("room is %u: it must be how many bytes the store keeps", 0U);
    }
    if (options.keys < 1 || options.keys > most_keys) {
        return refuse("keys is %llu: it must be 1 to 1,000,000,000",
                      static_cast<unsigned long long>(options.keys));
    }
    if (!(options.rate >= least_source_rate && options.rate <= most_source_rate)) {
        return refuse("rate is %g: it must be 0.000001 to 0.2", options.rate);
    }
    if (options.history > most_history) {
        return refuse("history is %u: it must be 0 to 16", options.history);
    }
    if (options.reserved != 0) {
        return refuse("reserved is %u: it must be 0", options.reserved);
    }
    if (options.state != nullptr && options.kind == REPRISE_COUNTING) {
        return refuse("state is %.100s: a counting source takes none, its store tells it of all",
                      options.state);
    }
    if (options.seed == nullptr) {
        return refuse("seed is %s: it must be the fleet's 32 bytes", "null");
    }
    if ((options.memory_take == nullptr) != (options.memory_give == nullptr)) {
        return refuse("memory_take and memory_give: there must be both or %s", "none");
    }
    if (options.news > most_news) {
        return refuse("news is %llu: it must be 0 to 67,108,864",
                      static_cast<unsigned long long>(options.news));
    }
    return REPRISE_OK;
}

/// @pre judged
face::source_shape shape_of(const reprise_source_options& options) noexcept {
    const bool is_ring = options.kind == REPRISE_STAMPED;
    const auto keys = is_ring ? filter::stamped_keys(options.keys, options.generations)
                              : options.keys;
    return {.size = filter::digest_size(keys, options.rate),
            .generations = is_ring ? options.generations : 0,
            .history = options.history,
            .news = options.news};
}

}  // namespace

struct reprise_source {
    reprise_source(face::memory_piece memory, face::source_region& region, const char* path)
        : taken(std::move(memory)),
          secret(filter::hash_secret::from_seed(region.seed)),
          seed(filter::identify(region.seed)),
          state(path != nullptr ? path : ""),
          tells_news(region.shape.news > 0),
          held(region) {}

    face::memory_piece taken;  // or none; outlives what follows
    filter::hash_secret secret;
    filter::seed_id seed;
    std::string state;
    bool tells_news;
    face::source held;
};

namespace {

/// The state that is there; or why not.
std::optional<face::refusal> read_state(const reprise_source_options& options,
                                        filter::bloom_size size,
                                        const filter::seed_id& seed,
                                        std::optional<filter::stamped_state>& out) {
    try {
        const auto bytes = face::read_file(options.state, filter::encoded_stamped_size(size) + 1);
        if (!bytes) {
            return std::nullopt;
        }
        auto read = filter::decode_stamped(*bytes, size, options.generations, seed);
        if (!read) {
            auto why = read.error().message();
            if (read.error() == filter::stamped_errc::unknown_version) {
                why += face::put_aside(options.state);
            }
            return face::refusal{REPRISE_REFUSED, 0, why};
        }
        out = std::move(*read);
        return std::nullopt;
    } catch (const face::file_failure& failure) {
        return face::refused_by(failure);
    }
}

int open_source(const reprise_source_options& options,
                reprise_source** source,
                reprise_error* error) {
    std::uint64_t epoch = 0;
    if (::getrandom(&epoch, sizeof epoch, 0) != static_cast<ssize_t>(sizeof epoch)) {
        return face::fail(error,
                          REPRISE_FILE,
                          errno,
                          "the system gives no random bytes for an epoch: %s",
                          std::strerror(errno));
    }
    const auto seed = face::seed_of(options.seed);
    const auto shape = shape_of(options);
    const auto bytes = face::source_region::bytes_for(shape);
    auto taken = face::memory_piece::zeroed(options, bytes, boundary);
    if (!taken.is_on(boundary)) {
        return face::fail(error,
                          REPRISE_BAD_ARGUMENT,
                          0,
                          "memory_take returned memory that is not on a boundary of %zu bytes",
                          boundary);
    }
    std::optional<filter::stamped_state> found;
    std::optional<face::refusal> refused;
    if (options.state != nullptr) {
        refused = read_state(options, shape.size, filter::identify(seed), found);
    }
    auto& region = *new (taken.memory) face::source_region{};
    region.itself = sizeof region;
    region.bytes = bytes;
    region.shape = shape;
    region.epoch = epoch;
    region.seed = seed;
    face::make_lock(region, options.memory_take != nullptr);
    face::source::begin(region, options.room, std::move(found));
    auto made = std::make_unique<reprise_source>(std::move(taken), region, options.state);
    region.layout.store(face::source_region::this_layout, std::memory_order_release);
    *source = made.release();
    if (refused) {
        face::tell(error, options.state, *refused);
    }
    return REPRISE_OK;
}

bool can_be(const face::source_shape& shape) noexcept {
    const auto [bits, probes] = shape.size;
    return bits > 0 && bits <= filter::most_digest_bits && probes > 0 &&
           probes <= filter::most_digest_probes && shape.generations != 1 &&
           shape.generations <= filter::stamped_bloom::most_generations &&
           shape.history <= most_history && shape.news <= most_news;
}

int attach_to(void* memory, std::size_t bytes, reprise_source** source, reprise_error* error) {
    const auto refuse = [&](const char* why) {
        return face::fail(error, REPRISE_REFUSED, 0, "the memory is not used: %s", why);
    };
    if (reinterpret_cast<std::uintptr_t>(memory) % boundary != 0) {
        return refuse("it is not on a boundary of 64 bytes");
    }
    if (bytes < sizeof(face::source_region)) {
        return refuse("it is too small for a source");
    }
    auto& region = *static_cast<face::source_region*>(memory);
    const auto layout = region.layout.load(std::memory_order_acquire);
    if (layout == 0) {
        return refuse("no source was opened in it, or it is not open yet");
    }
    if (layout != face::source_region::this_layout || region.itself != sizeof region) {
        return refuse("what lies there is no source, or one of another release");
    }
    if (region.bytes > bytes) {
        return face::fail(
            error,
            REPRISE_REFUSED,
            0,
            "the memory is not used: the source in it has %llu bytes, of which %zu are here",
            static_cast<unsigned long long>(region.bytes),
            bytes);
    }
    if (!can_be(region.shape) || face::source_region::bytes_for(region.shape) != region.bytes) {
        return refuse("its size does not go with the source that it says it has");
    }
    *source = new reprise_source{{}, region, nullptr};
    return REPRISE_OK;
}

int has_no_sink(reprise_error* error) {
    return face::fail(error, REPRISE_BAD_ARGUMENT, 0, "source and sink must not be null");
}

int pour(const std::vector<std::byte>& wire,
         reprise_sink sink,
         void* context,
         reprise_error* error) {
    return sink(context, wire.data(), wire.size()) == 0
               ? REPRISE_OK
               : face::fail(error, REPRISE_STOPPED, 0, "the caller's function stopped");
}

}  // namespace

extern "C" {

uint64_t reprise_source_memory(const reprise_source_options* options) {
    auto known = source_defaults;
    if (options == nullptr || !face::take(options, first_source_options, known) ||
        judge_source(known, nullptr) != REPRISE_OK) {
        return 0;
    }
    return face::source_region::bytes_for(shape_of(known));
}

int reprise_source_open(const reprise_source_options* options,
                        reprise_source** source,
                        reprise_error* error) {
    if (source != nullptr) {
        *source = nullptr;
    }
    return face::guarded(error, [&]() -> int {
        if (options == nullptr || source == nullptr) {
            return face::fail(
                error, REPRISE_BAD_ARGUMENT, 0, "options and source must not be null");
        }
        auto known = source_defaults;
        if (!face::take(options, first_source_options, known)) {
            return face::bad_size(error, "options", options->size, sizeof known);
        }
        const auto code = judge_source(known, error);
        return code == REPRISE_OK ? open_source(known, source, error) : code;
    });
}

int reprise_source_attach(void* memory,
                          size_t bytes,
                          reprise_source** source,
                          reprise_error* error) {
    if (source != nullptr) {
        *source = nullptr;
    }
    return face::guarded(error, [&]() -> int {
        if (memory == nullptr || source == nullptr) {
            return face::fail(error, REPRISE_BAD_ARGUMENT, 0, "memory and source must not be null");
        }
        return attach_to(memory, bytes, source, error);
    });
}

void reprise_source_close(reprise_source* source) {
    delete source;
}

reprise_key reprise_source_key(const reprise_source* source, const void* text, size_t length) {
    return face::key_of(source->secret, text, length);
}

void reprise_source_came(reprise_source* source, reprise_key key, uint64_t bytes) {
    source->held.came(face::hash_from(key), bytes);
}

int reprise_source_left(reprise_source* source, reprise_key key) {
    return source->held.left(face::hash_from(key)) ? REPRISE_OK : REPRISE_REFUSED;
}

int reprise_source_set_room(reprise_source* source, uint64_t room) {
    return source != nullptr && room > 0 && source->held.set_room(room) ? REPRISE_OK
                                                                        : REPRISE_BAD_ARGUMENT;
}

void reprise_source_clear(reprise_source* source) {
    source->held.clear();
}

int reprise_source_publish(reprise_source* source, reprise_error* error) {
    return face::guarded(error, [&]() -> int {
        if (source == nullptr) {
            return face::fail(error, REPRISE_BAD_ARGUMENT, 0, "source must not be null");
        }
        return source->held.publish() ? REPRISE_OK : REPRISE_UNCHANGED;
    });
}

int reprise_source_serve(reprise_source* source,
                         uint64_t epoch,
                         uint64_t counter,
                         reprise_sink sink,
                         void* context,
                         reprise_error* error) {
    return face::guarded(error, [&]() -> int {
        if (source == nullptr || sink == nullptr) {
            return has_no_sink(error);
        }
        const auto wire = source->held.serve({.epoch = epoch, .counter = counter});
        return wire ? pour(*wire, sink, context, error) : REPRISE_UNCHANGED;
    });
}

int reprise_source_news(reprise_source* source,
                        uint64_t epoch,
                        uint64_t counter,
                        reprise_sink sink,
                        void* context,
                        reprise_error* error) {
    return face::guarded(error, [&]() -> int {
        if (source == nullptr || sink == nullptr) {
            return has_no_sink(error);
        }
        if (!source->tells_news) {
            return face::fail(error,
                              REPRISE_BAD_ARGUMENT,
                              0,
                              "the source tells no news: its options' news was 0");
        }
        std::vector<std::byte> wire;
        switch (source->held.news({.epoch = epoch, .counter = counter}, wire)) {
        case face::source::tidings::none: return REPRISE_UNCHANGED;
        case face::source::tidings::ask_whole: return REPRISE_ASK_WHOLE;
        case face::source::tidings::told: break;
        }
        return pour(wire, sink, context, error);
    });
}

int reprise_source_save(reprise_source* source, const char* path, reprise_error* error) {
    return face::guarded(error, [&]() -> int {
        if (source == nullptr || (path == nullptr && source->state.empty())) {
            return face::fail(error,
                              REPRISE_BAD_ARGUMENT,
                              0,
                              "there must be a path, here or in the options' state");
        }
        const auto where = path != nullptr ? std::string{path} : source->state;
        const auto state = source->held.state();
        if (!state) {
            return face::fail(error,
                              REPRISE_BAD_ARGUMENT,
                              0,
                              "a counting source is not saved: its store tells it of all");
        }
        const auto wire = filter::encode(*state, source->seed);
        try {
            face::write_file(where, [&](const face::piece_sink& sink) { return sink(wire); });
            return REPRISE_OK;
        } catch (const face::file_failure& failure) {
            return face::not_saved(error, where, failure);
        }
    });
}

int reprise_source_read(reprise_source* source, reprise_source_figures* figures) {
    return face::guarded(nullptr, [&]() -> int {
        if (source == nullptr || figures == nullptr) {
            return REPRISE_BAD_ARGUMENT;
        }
        const auto read = source->held.read();
        reprise_source_figures out{};
        out.size = sizeof out;
        out.places = read.size.bits;
        out.places_on = read.on;
        out.places_changed = read.changed;
        out.memory = read.memory;
        out.rate = read.rate;
        out.epoch = read.published.epoch;
        out.counter = read.published.counter;
        out.room = read.room;
        out.written = read.written;
        out.generation = read.generations_begun;
        return face::give(out, first_source_figures, figures) ? REPRISE_OK : REPRISE_BAD_SIZE;
    });
}

}  // extern "C"
