#pragma once
// The origin of a catalogue. It keeps nothing of what it was asked: at thousands of requests a
// second for half an hour that would be too much.
//
// GET       the body as it is now, with ETag, Surrogate-Key, Vary; ranges and conditions are
//           understood; what is `freshened` is fresh for a second, and for a day after a 304
// POST      204; what it changes the catalogue was told before

#include "tests/crash/catalogue.hpp"
#include "tests/support/fake_origin.hpp"

#include <cstdint>
#include <string>

namespace reprise::tests::crash {

/// What it does wrong on purpose, so that the checker can show that it would see it.
enum class sabotage : std::uint8_t {
    none,
    torn,   ///< now and then the end of a body is of another version
    stale,  ///< purges are counted as acknowledged and never sent
    lost,   ///< now and then a reply forbids storing
};

class origin {
public:
    origin(const catalogue& what, sabotage wrong);

    /// "127.0.0.1:41001"
    [[nodiscard]] std::string authority() const { return served_.authority(); }
    [[nodiscard]] std::uint64_t requests() const noexcept { return served_.asked(); }

private:
    void append_answer(const origin_request& asked, std::string& out);

    const catalogue& catalogue_;
    sabotage wrong_;
    fake_origin served_{{.remembers = false}};
};

}  // namespace reprise::tests::crash
