#pragma once
// The options of an admission filter as words, and whether they are in range.

#include <reprise/admission.h>

namespace reprise::filter::c {

/// As reprise_admission_parse, of options that are of this release.
[[nodiscard]] int parse_words(reprise_admission_options& options,
                              const char* text,
                              reprise_error* error);

/// REPRISE_OK, or REPRISE_BAD_OPTION and which it is.
[[nodiscard]] int judge(const reprise_admission_options& options, reprise_error* error) noexcept;

}  // namespace reprise::filter::c
