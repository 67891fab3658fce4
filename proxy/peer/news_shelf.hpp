#pragma once
// News as it is handed out: from each generation that somebody asks from to the newest.
//
// The keeper's thread makes the messages, on which no event loop waits: from the generation before,
// which is where most askers are, as soon as there is a new one and if anybody asked since the last;
// from others once somebody asks from there. What is asked for and not there yet is a wish, which
// stirs the keeper. Only messages to the newest generation are kept, so all of them together are few
// and short.
//
// Pure: no socket, no clock.

#include "filter/digest.hpp"
#include "proxy/peer/publication.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace reprise::proxy::peer {

/// Threads   look, reaches, want_whole, note_plain, newest: any, a short lock. take_wishes, put:
///           the keeper's.
class news_shelf {
public:
    /// More are told the whole, but for the generation before the newest: nearly all ask from there, and whoever
    /// asks from many others must not keep it from them.
    static constexpr std::size_t most_bases = 64;

    /// @param wished  wakes the keeper: called, on whatever thread, when there is a wish
    explicit news_shelf(std::function<void()> wished) : wished_{std::move(wished)} {}

    enum class state : std::uint8_t {
        current,  ///< that is the newest: there is no news
        ready,
        soon,    ///< the keeper makes it
        beyond,  ///< nobody knows from there any more: the whole
    };
    struct found {
        state what = state::beyond;
        wire_bytes wire{};                   ///< ready: the news
        filter::digest_generation newest{};  ///< to which it leads; not of `beyond`
    };
    [[nodiscard]] found look(const filter::digest_generation& since);
    /// Whether a follower that holds this generation can go on by news: it is not only known what
    /// turned since, but also not so much that the whole would be sent. A follower that is sent
    /// that very whole would ask for ever.
    [[nodiscard]] bool reaches(const filter::digest_generation& whole) const;
    /// Its counter is 0: nothing was put yet.
    [[nodiscard]] filter::digest_generation newest() const;

    /// The whole digest is wanted, of a generation that news goes on from.
    void want_whole();
    /// A sibling asked that does not follow by news.
    void note_plain();

    struct wishes {
        std::vector<std::uint64_t> bases;  ///< generations from which to tell
        bool current = false;              ///< somebody waits for what is newer than the newest
        bool whole = false, plain = false;
    };
    [[nodiscard]] wishes take_wishes();
    struct form {
        std::uint64_t base = 0;
        wire_bytes wire;  ///< null: the whole is shorter
    };
    /// These lead to `newest`, and it is known from `oldest` on. Those put before stay where the
    /// newest is the same.
    void put(const filter::digest_generation& newest,
             std::uint64_t oldest,
             std::vector<form> forms);

private:
    [[nodiscard]] bool reaches_locked(const filter::digest_generation& from) const noexcept;

    std::function<void()> wished_;
    mutable std::mutex guard_;
    filter::digest_generation newest_;
    std::uint64_t oldest_ = 0;
    std::vector<form> forms_;
    wishes wishes_;
};

}  // namespace reprise::proxy::peer
