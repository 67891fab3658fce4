#pragma once
// An answer in words and tables, as a page with plots, and as JSON.

#include "tools/replay/answer.hpp"
#include "tools/replay/results.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace reprise::replay {

/// One line of what clients would get.
struct answer_row {
    std::string name;
    const result* what;  ///< of the answer
    bool has_disk = false;
};
/// In the order in which they are read. @pre the answer outlives them
[[nodiscard]] std::vector<answer_row> rows_of(const answer& found);

/// "gdsf, second-hit probation 100%": what a result is beside its room.
[[nodiscard]] std::string in_words(const setup& what);

/// From which room on more brings little, what is cheapest, and what of the figures is a sample's.
[[nodiscard]] std::vector<std::string> remarks_on(const answer& found, const question& asked);

void print_answer(std::ostream& out,
                  const answer& found,
                  const question& asked,
                  const trace_summary& of,
                  std::uint64_t unit);
void print_answer_page(std::ostream& out,
                       const answer& found,
                       const question& asked,
                       const trace_summary& of,
                       std::uint64_t unit);
/// As print_json, with "answer" besides.
void print_answer_json(std::ostream& out,
                       const answer& found,
                       const question& asked,
                       const trace_summary& of,
                       std::uint64_t unit);

}  // namespace reprise::replay
