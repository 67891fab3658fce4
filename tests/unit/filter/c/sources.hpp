#pragma once
// Sources and siblings by their C face, as tests want them: closed by themselves, and what is asked of them in a line.

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <reprise/digest.h>
#include <string>
#include <vector>

namespace reprise::filter::c::test {

inline constexpr std::array<unsigned char, 32> fleet_seed{1, 2, 3};

struct source_closer {
    void operator()(reprise_source* one) const { reprise_source_close(one); }
};
struct siblings_closer {
    void operator()(reprise_siblings* one) const { reprise_siblings_close(one); }
};
struct reader_closer {
    void operator()(reprise_siblings_reader* one) const { reprise_siblings_reader_close(one); }
};
using source_ptr = std::unique_ptr<reprise_source, source_closer>;
using siblings_ptr = std::unique_ptr<reprise_siblings, siblings_closer>;
using reader_ptr = std::unique_ptr<reprise_siblings_reader, reader_closer>;

inline reprise_source_options counting_options() {
    reprise_source_options options = REPRISE_SOURCE_OPTIONS_INIT;
    options.seed = fleet_seed.data();
    options.keys = 2'000;
    return options;
}

inline reprise_source_options ring_options(std::uint64_t room) {
    auto options = counting_options();
    options.kind = REPRISE_STAMPED;
    options.room = room;
    return options;
}

inline source_ptr source_of(const reprise_source_options& options) {
    reprise_source* made = nullptr;
    reprise_error error = REPRISE_ERROR_INIT;
    REQUIRE_MESSAGE(reprise_source_open(&options, &made, &error) == REPRISE_OK, error.text);
    return source_ptr{made};
}

inline reprise_siblings_options siblings_options() {
    reprise_siblings_options options = REPRISE_SIBLINGS_OPTIONS_INIT;
    options.seed = fleet_seed.data();
    return options;
}

inline siblings_ptr siblings_of(const reprise_siblings_options& options) {
    reprise_siblings* made = nullptr;
    reprise_error error = REPRISE_ERROR_INIT;
    REQUIRE_MESSAGE(reprise_siblings_open(&options, &made, &error) == REPRISE_OK, error.text);
    return siblings_ptr{made};
}

inline reader_ptr reader_of(const siblings_ptr& siblings) {
    reprise_siblings_reader* made = nullptr;
    REQUIRE(reprise_siblings_reader_open(siblings.get(), &made, nullptr) == REPRISE_OK);
    return reader_ptr{made};
}

inline reprise_key key_of(const source_ptr& source, std::uint64_t i) {
    const auto text = "http://host/" + std::to_string(i);
    return reprise_source_key(source.get(), text.data(), text.size());
}

/// Keys [first, last) came, each with so many bytes.
inline void came(const source_ptr& source,
                 std::uint64_t first,
                 std::uint64_t last,
                 std::uint64_t bytes) {
    for (auto i = first; i < last; ++i) {
        reprise_source_came(source.get(), key_of(source, i), bytes);
    }
}

/// What is sent to who holds this digest; empty where that is the newest.
inline std::string served(const source_ptr& source,
                          std::uint64_t epoch = 0,
                          std::uint64_t counter = 0) {
    std::string wire;
    const auto append = [](void* context, const void* piece, std::size_t bytes) {
        static_cast<std::string*>(context)->append(static_cast<const char*>(piece), bytes);
        return 0;
    };
    const auto code = reprise_source_serve(source.get(), epoch, counter, append, &wire, nullptr);
    CHECK(code == (wire.empty() ? REPRISE_UNCHANGED : REPRISE_OK));
    return wire;
}

inline reprise_sibling read_of(const siblings_ptr& siblings, unsigned number) {
    reprise_sibling read = REPRISE_SIBLING_INIT;
    REQUIRE(reprise_siblings_read(siblings.get(), number, &read) == REPRISE_OK);
    return read;
}

inline reprise_source_figures figures_of(const source_ptr& source) {
    reprise_source_figures read = REPRISE_SOURCE_FIGURES_INIT;
    REQUIRE(reprise_source_read(source.get(), &read) == REPRISE_OK);
    return read;
}

inline std::string text_of(const std::vector<std::byte>& wire) {
    return {reinterpret_cast<const char*>(wire.data()), wire.size()};
}

inline int take(const siblings_ptr& siblings, unsigned number, const std::string& wire) {
    return reprise_siblings_take(siblings.get(), number, wire.data(), wire.size(), nullptr);
}

/// One round: the sibling asks for what makes its digest the newest. How many bytes came.
inline std::size_t follow(const siblings_ptr& siblings, unsigned number, const source_ptr& source) {
    const auto held = read_of(siblings, number);
    const auto wire = served(source, held.epoch, held.counter);
    if (!wire.empty()) {
        CHECK(take(siblings, number, wire) == REPRISE_OK);
    }
    return wire.size();
}

inline std::uint64_t count_named(const reader_ptr& reader,
                                 const source_ptr& source,
                                 unsigned number,
                                 std::uint64_t first,
                                 std::uint64_t last) {
    std::uint64_t named = 0;
    for (auto i = first; i < last; ++i) {
        named += reprise_siblings_ask(reader.get(), key_of(source, i)) >> number & 1;
    }
    return named;
}

}  // namespace reprise::filter::c::test
