#pragma once
// What was judged, and what was found wrong: told at once, counted, and kept for the table at the
// end. Any thread may tell.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace reprise::tests::judge {

struct found_in {
    std::string world;
    std::uint64_t seed = 0;
    std::string circumstances{};
};

class findings {
public:
    enum loudness { loudly, quietly };
    explicit findings(loudness how = loudly) : loud_{how == loudly} {}

    /// Something that no rule allows. `kind` is a few words, the same for the same kind of defect.
    void wrong(const found_in& where, const std::string& kind, const std::string& words);
    /// An answer was judged, or a promise looked at, and found right.
    void judged(const std::string& kind) { note(judged_, kind); }
    /// What could not be judged with certainty.
    void excused(const std::string& why) { note(excused_, why); }

    [[nodiscard]] std::uint64_t count() const;
    /// A table in Markdown.
    [[nodiscard]] std::string table() const;

private:
    using counts = std::map<std::string, std::uint64_t>;
    void note(counts& in, const std::string& kind);

    bool loud_;
    mutable std::mutex guard_;
    counts judged_, excused_, wrong_;
    std::map<std::string, std::uint64_t> told_;
};

}  // namespace reprise::tests::judge
