// What siblings hold: reprise_siblings_… of reprise/digest.h.

#include "filter/bit_words.hpp"
#include "filter/c/digest_keys.hpp"
#include "filter/c/face.hpp"
#include "filter/c/fleet_keys.hpp"
#include "filter/digest_replica.hpp"
#include "filter/digest_wire.hpp"
#include "filter/sibling_index.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <reprise/digest.h>
#include <span>
#include <string>
#include <utility>

namespace filter = reprise::filter;
namespace face = reprise::filter::c;

namespace {

constexpr std::size_t first_siblings_options = sizeof(reprise_siblings_options);
constexpr std::size_t first_sibling = sizeof(reprise_sibling);

const reprise_siblings_options siblings_defaults = REPRISE_SIBLINGS_OPTIONS_INIT;

/// What the siblings and their readers share; it goes with the last of them.
struct sibling_digests {
    filter::hash_secret secret;
    filter::seed_id seed;
    std::uint64_t most_bytes;
    double most_rate;
    filter::sibling_index index;

    struct known {
        filter::digest_stamp stamp;
        std::uint64_t bits;
        double rate;
        /// Its bits once more, where it is followed by news: the index can't turn them one by one.
        std::unique_ptr<filter::digest_replica> copy;
    };
    /// The bytes of the copies, but for this sibling's.
    [[nodiscard]] std::uint64_t copies_beside(unsigned number) const noexcept {
        std::uint64_t bytes = 0;
        for (unsigned each = 0; each < siblings.size(); ++each) {
            if (each != number && siblings[each] && siblings[each]->copy) {
                bytes += siblings[each]->copy->now().bytes();
            }
        }
        return bytes;
    }
    mutable std::mutex guard;  // of what follows, and around changes of the index
    std::array<std::optional<known>, REPRISE_MOST_SIBLINGS> siblings;
};

}  // namespace

struct reprise_siblings {
    std::shared_ptr<sibling_digests> all;
};

struct reprise_siblings_reader {
    std::shared_ptr<sibling_digests> of;  // outlives what follows
    filter::sibling_index::reader asks;
};

namespace {

std::string name_of(unsigned number) {
    return "the digest of sibling " + std::to_string(number);
}

int refuse(reprise_error* error, unsigned number, const boost::system::error_code& why) {
    const auto code = why == filter::digest_errc::wrong_base ? REPRISE_ASK_WHOLE : REPRISE_REFUSED;
    return face::fail(
        error, code, 0, "%s is not used: %s", name_of(number).c_str(), why.message().c_str());
}

void keep(sibling_digests& all, unsigned number, const filter::digest& made) {
    all.siblings[number] = sibling_digests::known{.stamp = made.stamp(),
                                                  .bits = made.shape().bits,
                                                  .rate = made.false_positive_rate(),
                                                  .copy = nullptr};
}

int take_whole(sibling_digests& all,
               unsigned number,
               std::span<const std::byte> wire,
               const filter::digest_head& head,
               reprise_error* error) {
    if (head.shape.layout != filter::digest_layout::standard) {
        return face::fail(
            error,
            REPRISE_REFUSED,
            0,
            "%s is not used: it is blocked, which what was seen is told in, and not what is held",
            name_of(number).c_str());
    }
    // 0 says that there is none (reprise_sibling): a reader would ask for the whole again and again.
    if (head.stamp.generation.counter == 0) {
        return refuse(error, number, filter::digest_errc::bad_header);
    }
    // Before there is memory for it: what the table would take, and the bits while they are read.
    const filter::bloom_size size{.bits = head.shape.bits, .probes = head.shape.probes};
    if (all.index.bytes_with(number, size) + all.copies_beside(number) > all.most_bytes) {
        return refuse(error, number, filter::digest_errc::over_limit);
    }
    auto made = filter::decode_digest(
        wire, all.seed, {.bytes = all.most_bytes, .false_positive_rate = all.most_rate});
    if (!made) {
        return refuse(error, number, made.error());
    }
    all.index.put(number, size, made->words());
    keep(all, number, *made);
    return REPRISE_OK;
}

/// @pre it has a digest here, of this size
filter::digest digest_in(const sibling_digests& all, unsigned number, filter::bloom_size size) {
    // The table is the only place where its bits are kept, but for what news are applied to.
    const filter::digest_shape shape{
        .layout = filter::digest_layout::standard, .bits = size.bits, .probes = size.probes};
    return {shape, all.index.words_of(number), all.siblings[number]->stamp};
}

int take_delta(sibling_digests& all,
               unsigned number,
               std::span<const std::byte> wire,
               const filter::digest_head& head,
               reprise_error* error) {
    const auto& held = all.siblings[number];
    const auto size = all.index.size_of(number);
    if (!held || !size) {
        return refuse(error, number, filter::digest_errc::wrong_base);
    }
    const filter::digest_generation from{.epoch = head.stamp.generation.epoch,
                                         .counter = head.base_counter};
    // Before all bits are looked at for it.
    if (held->stamp.generation != from) {
        return refuse(error, number, filter::digest_errc::wrong_base);
    }
    const auto base = digest_in(all, number, *size);
    auto made = filter::apply_delta(
        wire, base, {.bytes = all.most_bytes, .false_positive_rate = all.most_rate});
    if (!made) {
        return refuse(error, number, made.error());
    }
    if (const auto places = filter::few_flipped_places(base, *made); !places) {
        all.index.put(number, *size, made->words());
    } else if (!all.index.flip(number, *size, *places)) {
        return refuse(error, number, filter::digest_errc::wrong_base);
    }
    keep(all, number, *made);
    return REPRISE_OK;
}

/// Damage on the way, or a difference that was there: the whole mends both.
boost::system::error_code of_news(const boost::system::error_code& why) noexcept {
    return why == filter::digest_errc::corrupt || why == filter::digest_errc::bad_body
               ? filter::digest_errc::wrong_base
               : why;
}

int take_news(sibling_digests& all,
              unsigned number,
              std::span<const std::byte> wire,
              const filter::digest_head& head,
              reprise_error* error) {
    auto& held = all.siblings[number];
    const auto size = all.index.size_of(number);
    const filter::digest_generation from{.epoch = head.stamp.generation.epoch,
                                         .counter = head.base_counter};
    // Before all bits are looked at for it.
    if (!held || !size || held->stamp.generation != from) {
        return refuse(error, number, filter::digest_errc::wrong_base);
    }
    if (!held->copy) {
        const auto copies = all.copies_beside(number) + filter::words_for(size->bits) * 8;
        if (all.index.bytes_with(number, *size) + copies > all.most_bytes) {
            return refuse(error, number, filter::digest_errc::over_limit);
        }
        held->copy = std::make_unique<filter::digest_replica>(digest_in(all, number, *size));
    }
    const auto turned = held->copy->apply(
        wire,
        [&all](std::uint64_t name) { return face::key_of_name(name, all.secret); },
        {.bytes = all.most_bytes, .false_positive_rate = all.most_rate});
    if (turned.has_error()) {
        return refuse(error, number, of_news(turned.error()));
    }
    auto copy = std::move(held->copy);  // to be kept once the table says the same
    if (!all.index.flip(number, *size, *turned)) {
        return refuse(error, number, filter::digest_errc::wrong_base);
    }
    held->stamp = copy->now().stamp();
    held->rate = copy->now().false_positive_rate();
    held->copy = std::move(copy);
    return REPRISE_OK;
}

int take(sibling_digests& all,
         unsigned number,
         std::span<const std::byte> wire,
         reprise_error* error) {
    const auto head = filter::read_digest_head(wire);
    if (!head) {
        return refuse(error, number, head.error());
    }
    const std::scoped_lock lock{all.guard};
    switch (head->form) {
    case filter::digest_form::whole: return take_whole(all, number, wire, *head, error);
    case filter::digest_form::delta: return take_delta(all, number, wire, *head, error);
    case filter::digest_form::news: return take_news(all, number, wire, *head, error);
    }
    return refuse(error, number, filter::digest_errc::bad_header);
}

}  // namespace

extern "C" {

int reprise_siblings_open(const reprise_siblings_options* options,
                          reprise_siblings** siblings,
                          reprise_error* error) {
    if (siblings != nullptr) {
        *siblings = nullptr;
    }
    return face::guarded(error, [&]() -> int {
        if (options == nullptr || siblings == nullptr) {
            return face::fail(
                error, REPRISE_BAD_ARGUMENT, 0, "options and siblings must not be null");
        }
        auto known = siblings_defaults;
        if (!face::take(options, first_siblings_options, known)) {
            return face::bad_size(error, "options", options->size, sizeof known);
        }
        if (known.seed == nullptr) {
            return face::fail(
                error, REPRISE_BAD_OPTION, 0, "seed is null: it must be the fleet's 32 bytes");
        }
        if (!(known.most_rate > 0 && known.most_rate <= 1)) {
            return face::fail(error,
                              REPRISE_BAD_OPTION,
                              0,
                              "most_rate is %g: it must be above 0, and at most 1",
                              known.most_rate);
        }
        const auto seed = face::seed_of(known.seed);
        auto all = std::shared_ptr<sibling_digests>{
            new sibling_digests{.secret = filter::hash_secret::from_seed(seed),
                                .seed = filter::identify(seed),
                                .most_bytes = known.most_bytes,
                                .most_rate = known.most_rate,
                                .index = {},
                                .guard = {},
                                .siblings = {}}};
        *siblings = new reprise_siblings{std::move(all)};
        return REPRISE_OK;
    });
}

void reprise_siblings_close(reprise_siblings* siblings) {
    delete siblings;
}

reprise_key reprise_siblings_key(const reprise_siblings* siblings,
                                 const void* text,
                                 size_t length) {
    return face::key_of(siblings->all->secret, text, length);
}

int reprise_siblings_take(reprise_siblings* siblings,
                          unsigned number,
                          const void* bytes,
                          size_t length,
                          reprise_error* error) {
    return face::guarded(error, [&]() -> int {
        if (siblings == nullptr || (bytes == nullptr && length > 0)) {
            return face::fail(
                error, REPRISE_BAD_ARGUMENT, 0, "siblings and bytes must not be null");
        }
        if (number >= REPRISE_MOST_SIBLINGS) {
            return face::fail(
                error, REPRISE_BAD_ARGUMENT, 0, "number is %u: it must be 0 to 63", number);
        }
        return take(*siblings->all, number, {static_cast<const std::byte*>(bytes), length}, error);
    });
}

void reprise_siblings_forget(reprise_siblings* siblings, unsigned number) {
    if (siblings == nullptr || number >= REPRISE_MOST_SIBLINGS) {
        return;
    }
    (void)face::guarded(nullptr, [&]() -> int {
        auto& all = *siblings->all;
        const std::scoped_lock lock{all.guard};
        (void)all.index.remove(number);  // or there is no memory for it, and all stays
        all.siblings[number].reset();
        return REPRISE_OK;
    });
}

int reprise_siblings_read(const reprise_siblings* siblings,
                          unsigned number,
                          reprise_sibling* sibling) {
    return face::guarded(nullptr, [&]() -> int {
        if (siblings == nullptr || sibling == nullptr || number >= REPRISE_MOST_SIBLINGS) {
            return REPRISE_BAD_ARGUMENT;
        }
        reprise_sibling out{};
        out.size = sizeof out;
        {
            const auto& all = *siblings->all;
            const std::scoped_lock lock{all.guard};
            if (const auto& known = all.siblings[number]) {
                out.epoch = known->stamp.generation.epoch;
                out.counter = known->stamp.generation.counter;
                out.keys = known->stamp.keys;
                out.places = known->bits;
                out.rate = known->rate;
            }
        }
        return face::give(out, first_sibling, sibling) ? REPRISE_OK : REPRISE_BAD_SIZE;
    });
}

int reprise_siblings_reader_open(reprise_siblings* siblings,
                                 reprise_siblings_reader** reader,
                                 reprise_error* error) {
    if (reader != nullptr) {
        *reader = nullptr;
    }
    return face::guarded(error, [&]() -> int {
        if (siblings == nullptr || reader == nullptr) {
            return face::fail(
                error, REPRISE_BAD_ARGUMENT, 0, "siblings and reader must not be null");
        }
        *reader = new reprise_siblings_reader{
            .of = siblings->all, .asks = filter::sibling_index::reader{siblings->all->index}};
        return REPRISE_OK;
    });
}

void reprise_siblings_reader_close(reprise_siblings_reader* reader) {
    delete reader;
}

uint64_t reprise_siblings_ask(reprise_siblings_reader* reader, reprise_key key) {
    return reader->asks.may_hold(face::hash_from(key));
}

void reprise_siblings_rest(reprise_siblings_reader* reader) {
    reader->asks.rest();
}

const char* reprise_digest_version(void) {
    return REPRISE_FILTER_VERSION;
}

}  // extern "C"
