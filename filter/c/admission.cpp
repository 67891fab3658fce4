// See reprise/admission.h. All that processes share lies in one piece of memory: what the filter was
// opened with (region), and behind it the filter's own memory, in which nothing points anywhere. A
// handle is a process's own.

#include "filter/admission.hpp"

#include "filter/admission_state.hpp"
#include "filter/c/admission_words.hpp"
#include "filter/c/face.hpp"
#include "filter/c/memory_piece.hpp"
#include "filter/c/state_file.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <reprise/admission.h>
#include <span>
#include <string>
#include <sys/random.h>

namespace filter = reprise::filter;
namespace face = reprise::filter::c;

using filter::admission_filter;
using std::chrono::sys_seconds;

namespace {

constexpr std::size_t first_options = sizeof(reprise_admission_options);
constexpr std::size_t first_figures = sizeof(reprise_admission_figures);
constexpr std::uint64_t region_magic = 0x314d'4853'5045'5252;  // of this layout
constexpr std::int64_t latest_time = std::int64_t{1} << 40;
constexpr std::size_t boundary = admission_filter::memory_alignment;

/// What the others of a shared filter must know of it.
struct alignas(64) region {
    std::atomic<std::uint64_t> magic;  // last of all: 0 until it is open
    std::uint64_t bytes;
    std::uint64_t objects;
    std::int64_t age;
    double rate;
    std::uint32_t hits;
    std::uint32_t reserved;
    filter::hash_seed seed;
};

sys_seconds time_of(std::int64_t seconds) noexcept {
    return sys_seconds{
        std::chrono::seconds{seconds < 0 ? 0 : (seconds > latest_time ? latest_time : seconds)}};
}

/// @pre judged
filter::admission_settings settings_of(const reprise_admission_options& options) noexcept {
    return {.objects = options.objects,
            .age = std::chrono::seconds{options.age},
            .false_positive_rate = options.rate,
            .layers = options.hits - 1};
}

std::uint64_t bytes_for(const reprise_admission_options& options) noexcept {
    return sizeof(region) + admission_filter::memory_for(settings_of(options));
}

}  // namespace

struct reprise_admission {
    face::memory_piece taken;
    filter::hash_secret secret;
    std::unique_ptr<admission_filter> seen;
    std::string state;
};

namespace {

std::span<std::byte> behind(void* memory, std::size_t bytes) noexcept {
    return std::span{static_cast<std::byte*>(memory), bytes}.subspan(sizeof(region));
}

struct no_randomness {
    int system;
};

filter::hash_seed seed_of(const reprise_admission_options& options) {
    filter::hash_seed seed{};
    if (options.seed != nullptr) {
        std::memcpy(seed.data(), options.seed, seed.size());
        return seed;
    }
    if (::getrandom(seed.data(), seed.size(), 0) != static_cast<ssize_t>(seed.size())) {
        throw no_randomness{errno};
    }
    return seed;
}

/// The state that is there, in `memory`; or why not, and then the memory is as it was.
std::optional<face::refusal> read_state(const reprise_admission_options& options,
                                        sys_seconds now,
                                        std::span<std::byte> memory,
                                        std::optional<filter::admission_state>& out) {
    const auto settings = settings_of(options);
    try {
        const auto bytes = face::read_file(options.state, filter::encoded_size(settings) + 1);
        if (!bytes) {
            return std::nullopt;
        }
        auto read = filter::decode(*bytes, settings, now, memory);
        if (!read) {
            std::string why = read.error().message();
            if (read.error() == filter::admission_errc::unknown_version) {
                why += face::put_aside(options.state);
            }
            return face::refusal{REPRISE_REFUSED, 0, why};
        }
        if (options.seed != nullptr &&
            std::memcmp(read->seed.data(), options.seed, read->seed.size()) != 0) {
            read->filter.reset();
            std::memset(memory.data(), 0, memory.size());
            return face::refusal{REPRISE_REFUSED, 0, "made under another seed"};
        }
        out = std::move(*read);
        return std::nullopt;
    } catch (const face::file_failure& failure) {
        return face::refused_by(failure);
    }
}

int open_judged(const reprise_admission_options& options,
                std::int64_t seconds,
                reprise_admission** gate,
                reprise_error* error) {
    const auto now = time_of(seconds);
    auto seed = seed_of(options);
    auto taken = face::memory_piece::zeroed(options, bytes_for(options), boundary);
    if (!taken.is_on(boundary)) {
        return face::fail(error,
                          REPRISE_BAD_ARGUMENT,
                          0,
                          "memory_take returned memory that is not on a boundary of %zu bytes",
                          boundary);
    }
    const auto memory = behind(taken.memory, taken.bytes);
    std::optional<filter::admission_state> found;
    std::optional<face::refusal> refused;
    if (options.state != nullptr) {
        refused = read_state(options, now, memory, found);
    }
    if (found) {
        seed = found->seed;
    }
    auto made = std::unique_ptr<reprise_admission>{new reprise_admission{
        .taken = {},
        .secret = filter::hash_secret::from_seed(seed),
        .seen = found ? std::move(found->filter)
                      : std::make_unique<admission_filter>(settings_of(options), now, memory),
        .state = options.state != nullptr ? options.state : ""}};
    auto& shared = *static_cast<region*>(taken.memory);
    shared.bytes = taken.bytes;
    shared.objects = options.objects;
    shared.age = options.age;
    shared.rate = options.rate;
    shared.hits = options.hits;
    shared.seed = seed;
    made->taken = std::move(taken);
    shared.magic.store(region_magic, std::memory_order_release);
    *gate = made.release();
    if (refused) {
        face::tell(error, options.state, *refused);
    }
    return REPRISE_OK;
}

int attach_to(void* memory, std::size_t bytes, reprise_admission** gate, reprise_error* error) {
    const auto refuse = [&](const char* why) {
        return face::fail(error, REPRISE_REFUSED, 0, "the memory is not used: %s", why);
    };
    if (reinterpret_cast<std::uintptr_t>(memory) % boundary != 0 || bytes < sizeof(region)) {
        return refuse("it is too small for a filter, or not on a boundary of 64 bytes");
    }
    const auto& shared = *static_cast<const region*>(memory);
    if (shared.magic.load(std::memory_order_acquire) != region_magic) {
        return refuse("no filter that this release can share lies there, or it is not open yet");
    }
    // Copied before they are judged: others can write there.
    reprise_admission_options options = REPRISE_ADMISSION_OPTIONS_INIT;
    options.objects = shared.objects;
    options.age = shared.age;
    options.rate = shared.rate;
    options.hits = shared.hits;
    const auto seed = shared.seed;
    const auto itself = shared.bytes;
    // Another release may want another size for the same, and lays its parts out by that.
    if (face::judge(options, nullptr) != REPRISE_OK || bytes_for(options) > bytes ||
        bytes_for(options) != itself) {
        return refuse("its size does not go with the filter that it says it has");
    }
    *gate = new reprise_admission{
        .taken = {},
        .secret = filter::hash_secret::from_seed(seed),
        .seen = std::make_unique<admission_filter>(
            settings_of(options), behind(memory, static_cast<std::size_t>(bytes_for(options)))),
        .state = {}};
    return REPRISE_OK;
}

filter::key_hash hash_of(reprise_key key) noexcept {
    return {.low = key.low, .high = key.high};
}

const reprise_admission_options defaults = REPRISE_ADMISSION_OPTIONS_INIT;

}  // namespace

extern "C" {

int reprise_admission_parse(reprise_admission_options* options,
                            const char* text,
                            reprise_error* error) {
    return face::guarded(error, [&]() -> int {
        if (options == nullptr || text == nullptr) {
            return face::fail(error, REPRISE_BAD_ARGUMENT, 0, "options and text must not be null");
        }
        auto known = defaults;
        if (!face::take(options, first_options, known)) {
            return face::bad_size(error, "options", options->size, sizeof known);
        }
        const auto code = face::parse_words(known, text, error);
        if (code == REPRISE_OK) {
            const auto size = options->size;
            std::memcpy(options, &known, std::min(size, sizeof known));
            options->size = size;
        }
        return code;
    });
}

uint64_t reprise_admission_memory(const reprise_admission_options* options) {
    auto known = defaults;
    if (options == nullptr || !face::take(options, first_options, known) ||
        face::judge(known, nullptr) != REPRISE_OK) {
        return 0;
    }
    return bytes_for(known);
}

int reprise_admission_open(const reprise_admission_options* options,
                           int64_t now,
                           reprise_admission** gate,
                           reprise_error* error) {
    if (gate != nullptr) {
        *gate = nullptr;
    }
    return face::guarded(error, [&]() -> int {
        if (options == nullptr || gate == nullptr) {
            return face::fail(error, REPRISE_BAD_ARGUMENT, 0, "options and gate must not be null");
        }
        auto known = defaults;
        if (!face::take(options, first_options, known)) {
            return face::bad_size(error, "options", options->size, sizeof known);
        }
        if (const auto code = face::judge(known, error); code != REPRISE_OK) {
            return code;
        }
        try {
            return open_judged(known, now, gate, error);
        } catch (const no_randomness& failure) {
            return face::fail(error,
                              REPRISE_FILE,
                              failure.system,
                              "the system gives no random bytes for a seed: %s",
                              std::strerror(failure.system));
        } catch (const std::bad_alloc&) {
            return face::fail(error,
                              REPRISE_NO_MEMORY,
                              0,
                              "there are no %llu bytes for %llu objects",
                              static_cast<unsigned long long>(bytes_for(known)),
                              static_cast<unsigned long long>(known.objects));
        }
    });
}

int reprise_admission_attach(void* memory,
                             size_t bytes,
                             reprise_admission** gate,
                             reprise_error* error) {
    if (gate != nullptr) {
        *gate = nullptr;
    }
    return face::guarded(error, [&]() -> int {
        if (memory == nullptr || gate == nullptr) {
            return face::fail(error, REPRISE_BAD_ARGUMENT, 0, "memory and gate must not be null");
        }
        return attach_to(memory, bytes, gate, error);
    });
}

void reprise_admission_close(reprise_admission* gate) {
    delete gate;
}

reprise_key reprise_admission_key(const reprise_admission* gate, const void* text, size_t length) {
    const auto hash = filter::hash_of({static_cast<const char*>(text), length}, gate->secret);
    gate->seen->prefetch(hash);
    return {hash.low, hash.high};
}

unsigned reprise_admission_peek(const reprise_admission* gate, reprise_key key) {
    return gate->seen->peek(hash_of(key));
}

unsigned reprise_admission_note(reprise_admission* gate, reprise_key key, int64_t now) {
    return gate->seen->note(hash_of(key), time_of(now));
}

void reprise_admission_refresh(reprise_admission* gate, reprise_key key, int64_t now) {
    gate->seen->refresh(hash_of(key), time_of(now));
}

int reprise_admission_wanted(const reprise_admission* gate, unsigned sights) {
    return sights >= gate->seen->settings().layers ? 1 : 0;
}

uint32_t reprise_admission_generation(const reprise_admission* gate) {
    return gate->seen->generations();
}

int reprise_admission_read(const reprise_admission* gate,
                           int64_t now,
                           reprise_admission_figures* figures) {
    if (gate == nullptr || figures == nullptr) {
        return REPRISE_BAD_ARGUMENT;
    }
    const auto& settings = gate->seen->settings();
    const auto read = gate->seen->figures(time_of(now));
    reprise_admission_figures out{};
    out.size = sizeof out;
    out.objects = settings.objects;
    out.age = settings.age.count();
    out.rate = settings.false_positive_rate;
    out.hits = settings.layers + 1;
    out.generation = gate->seen->generations();
    out.first_sights = read.first_sights;
    out.repeats = read.repeats;
    out.refreshes = read.refreshes;
    out.young_keys = read.young.keys;
    out.old_keys = read.old.keys;
    out.young_since = read.young.since.time_since_epoch().count();
    out.old_since = read.old.since.time_since_epoch().count();
    out.young_fill = read.young.fill;
    out.old_fill = read.old.fill;
    out.strangers_known = read.false_positive_rate;
    out.remembers_for = read.remembers_for.count();
    out.memory = sizeof(region) + admission_filter::memory_for(settings);
    return face::give(out, first_figures, figures) ? REPRISE_OK : REPRISE_BAD_SIZE;
}

int reprise_admission_save(const reprise_admission* gate, const char* path, reprise_error* error) {
    return face::guarded(error, [&]() -> int {
        if (gate == nullptr || (path == nullptr && gate->state.empty())) {
            return face::fail(error,
                              REPRISE_BAD_ARGUMENT,
                              0,
                              "there must be a path, here or in the options' state");
        }
        const auto where = path != nullptr ? std::string{path} : gate->state;
        try {
            face::write_file(where, [&](const face::piece_sink& sink) {
                return filter::encode(*gate->seen, gate->secret.seed(), sink);
            });
            return REPRISE_OK;
        } catch (const face::file_failure& failure) {
            return face::not_saved(error, where, failure);
        }
    });
}

int reprise_admission_write(const reprise_admission* gate,
                            reprise_sink sink,
                            void* context,
                            reprise_error* error) {
    return face::guarded(error, [&]() -> int {
        if (gate == nullptr || sink == nullptr) {
            return face::fail(error, REPRISE_BAD_ARGUMENT, 0, "gate and sink must not be null");
        }
        const auto whole = filter::encode(*gate->seen, gate->secret.seed(), [&](auto bytes) {
            return sink(context, bytes.data(), bytes.size()) == 0;
        });
        return whole ? REPRISE_OK
                     : face::fail(error, REPRISE_STOPPED, 0, "the caller's function stopped");
    });
}

const char* reprise_admission_version(void) {
    return REPRISE_FILTER_VERSION;
}

}  // extern "C"
