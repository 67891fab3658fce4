#pragma once
// The beginning of a body, known by its hash: what readers had of one source, so that another may
// go on behind it when it has sent the same again.

#include <cstdint>
#include <memory>
#include <string_view>

namespace reprise::proxy::fetch {

/// Threads   one.
/// Memory    1.2 KiB. Cost: XXH3's.
/// Errs      two beginnings of one length with the same 128-bit hash count as one: a sender of
///           bodies can make such a pair, and harms only its own.
class prefix_hash {
public:
    /// @throws std::bad_alloc
    prefix_hash();
    ~prefix_hash();
    prefix_hash(const prefix_hash&) = delete;
    prefix_hash& operator=(const prefix_hash&) = delete;

    /// Readers have these now.
    void note(std::string_view bytes) noexcept;

    /// Another source begins; so many bytes readers have already.
    void begin_skipping(std::uint64_t bytes) noexcept;
    [[nodiscard]] std::uint64_t left_to_skip() const noexcept { return left_; }
    /// The other source's. False: all are there, and are not the same. @pre at most left_to_skip()
    [[nodiscard]] bool skip(std::string_view bytes) noexcept;

private:
    struct states;
    std::unique_ptr<states> states_;
    std::uint64_t left_ = 0;
};

}  // namespace reprise::proxy::fetch
