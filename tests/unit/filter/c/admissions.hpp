#pragma once
// Admission by its C face, as tests want it: closed by itself, and asked in a line.

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <reprise/admission.h>
#include <string>

namespace reprise::filter::c::test {

inline constexpr std::int64_t start = 1'700'000'000;

struct closer {
    void operator()(reprise_admission* gate) const { reprise_admission_close(gate); }
};
using gate_ptr = std::unique_ptr<reprise_admission, closer>;

inline reprise_admission_options small_options() {
    reprise_admission_options options = REPRISE_ADMISSION_OPTIONS_INIT;
    options.objects = 10'000;
    return options;
}

struct opened {
    gate_ptr gate;
    int code;
    reprise_error error;
};

inline opened open_with(const reprise_admission_options& options, std::int64_t now = start) {
    opened out{nullptr, 0, REPRISE_ERROR_INIT};
    reprise_admission* gate = nullptr;
    out.code = reprise_admission_open(&options, now, &gate, &out.error);
    out.gate.reset(gate);
    return out;
}

inline gate_ptr must_open(const reprise_admission_options& options) {
    auto made = open_with(options);
    REQUIRE_MESSAGE(made.code == REPRISE_OK, made.error.text);
    CHECK_MESSAGE(made.error.code == REPRISE_OK, made.error.text);
    return std::move(made.gate);
}

inline reprise_key key_of(const gate_ptr& gate, const std::string& text) {
    return reprise_admission_key(gate.get(), text.data(), text.size());
}

inline unsigned note(const gate_ptr& gate, const std::string& text, std::int64_t now = start) {
    return reprise_admission_note(gate.get(), key_of(gate, text), now);
}
inline unsigned peek(const gate_ptr& gate, const std::string& text) {
    return reprise_admission_peek(gate.get(), key_of(gate, text));
}

inline reprise_admission_figures figures_of(const gate_ptr& gate) {
    reprise_admission_figures figures = REPRISE_ADMISSION_FIGURES_INIT;
    REQUIRE(reprise_admission_read(gate.get(), start, &figures) == REPRISE_OK);
    return figures;
}

inline bool says(const reprise_error& error, const char* words) {
    return std::strstr(error.text, words) != nullptr;
}

}  // namespace reprise::filter::c::test
