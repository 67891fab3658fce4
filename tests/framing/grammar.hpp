#pragma once
// Messages by a grammar: whole ones first, then one or several of the ways in which implementations
// have been known to differ, then, now and then, bytes put in, taken out or doubled where it hurts.
//
// What follows from one seed is the same for ever. What a message means is not known here: that is
// the strict reader's to say, of the bytes.

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace reprise::framing {

class grammar {
public:
    /// `trial` of the run `seed`.
    grammar(std::uint64_t seed, std::uint64_t trial);

    /// A request in absolute form to `authority`, marked in its path and X-F-Id with `id`.
    [[nodiscard]] std::string request(std::string_view authority, std::string_view id);
    /// One that every server takes, and answers with a body.
    [[nodiscard]] std::string plain_request(std::string_view authority,
                                            std::string_view id,
                                            std::string_view method,
                                            std::string_view fields);

    /// A final response, perhaps behind interim ones, marked in X-F-Id with `id`.
    [[nodiscard]] std::string response(std::string_view method, std::string_view id);

    [[nodiscard]] std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
    [[nodiscard]] bool one_in(std::uint64_t times) { return below(times) == 0; }

    /// Whether what was made last is as it should be in every part.
    [[nodiscard]] bool was_plain() const { return plain_; }

private:
    // One of the texts: the first, unless this is the place to be odd.
    template <std::size_t Size>
    std::string pick(const std::string_view (&of)[Size]) {
        if (!odd()) {
            return std::string{of[0]};
        }
        plain_ = false;
        return std::string{of[below(Size)]};
    }
    bool odd() { return !sober_ && one_in(oddness_); }
    std::string eol();
    std::string framing_fields(std::size_t size, bool& chunked);
    std::string chunked_body(std::string_view body);
    std::string content();
    std::string extra_fields();
    void bend(std::string& bytes);

    std::mt19937_64 random_;
    bool sober_ = false;  ///< nothing odd at all
    std::uint64_t oddness_ = 12;
    bool plain_ = true;
};

}  // namespace reprise::framing
