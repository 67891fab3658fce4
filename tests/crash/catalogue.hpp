#pragma once
// Everything there is to ask for, and what is right to get.
//
// A body is made from its URL, its flavour (what Vary selects) and a stamp: how often this URL,
// its group (a folder, purged by prefix) and its tag had been changed when the origin sent it. The
// stamp also is its ETag. So any reply can be judged from itself and from the floor: the stamp that
// the last acknowledged purge left. One byte of another URL, another flavour or another stamp is
// found, and so is the head of one version before the body of another.
//
// Threads   every member: any number. Stamps are atomic words; the rest never changes.

#include "tests/support/client.hpp"
#include "tools/mix.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::tests::crash {

using tools::mix;

enum class kind : std::uint8_t {
    small,      ///< up to 16 KB, one in a hundred up to 200 KB; fresh for a day
    freshened,  ///< the same, fresh for a second at first, then for a day by a 304
    varied,     ///< three flavours of one URL
    large,      ///< 300 KB to 1.5 MB with Content-Length
    chunked,    ///< the same without
};

inline constexpr unsigned flavours = 3;
inline constexpr unsigned groups = 240;
inline constexpr unsigned tags = 97;

/// How many URLs of each kind.
struct stock {
    std::uint32_t small = 24'000, freshened = 1'000, varied = 700, large = 60, chunked = 30;
};

/// How often what an object depends on was changed.
struct stamp {
    std::uint32_t own = 0, group = 0, tag = 0;
    bool operator==(const stamp&) const = default;
    /// Not older in any of the three.
    [[nodiscard]] bool reaches(const stamp& floor) const noexcept {
        return own >= floor.own && group >= floor.group && tag >= floor.tag;
    }
};

enum class ruling : std::uint8_t {
    right,
    stale,  ///< of a version that an acknowledged purge or unsafe method had ended
    wrong,  ///< torn, mixed, another URL's, or never sent by the origin
};

/// How often something changed at the origin, and what the proxy is held to know of that.
struct count {
    std::atomic<std::uint32_t> now{0};
    std::atomic<std::uint32_t> held{0};  ///< whatever happens
    std::atomic<std::uint32_t> told{0};  ///< as long as it is not killed
    /// A change at the origin. The purge that tells the proxy of it comes after.
    [[nodiscard]] std::uint32_t change() noexcept { return now.fetch_add(1) + 1; }
    /// The proxy said that what is older than `number` is gone.
    void acknowledge(std::uint32_t number) noexcept { raise(held, number); }
    /// The same of a method that said nothing of what a restart would know.
    void tell(std::uint32_t number) noexcept { raise(told, number); }
    [[nodiscard]] std::uint32_t floor() const noexcept {
        return std::max(held.load(), told.load());
    }

private:
    static void raise(std::atomic<std::uint32_t>& to, std::uint32_t number) noexcept {
        auto before = to.load();
        while (before < number && !to.compare_exchange_weak(before, number)) {
        }
    }
};

class catalogue {
public:
    explicit catalogue(const stock& of);

    [[nodiscard]] std::uint32_t urls() const noexcept { return urls_; }
    [[nodiscard]] const stock& of() const noexcept { return stock_; }
    [[nodiscard]] kind kind_of(std::uint32_t url) const noexcept;
    /// The first URL of a kind; they follow one another.
    [[nodiscard]] std::uint32_t first_of(kind what) const noexcept;
    [[nodiscard]] std::uint32_t count_of(kind what) const noexcept;

    /// "/g17/small/123"
    [[nodiscard]] std::string path_of(std::uint32_t url) const;
    [[nodiscard]] std::optional<std::uint32_t> url_of(std::string_view path) const;
    [[nodiscard]] static unsigned group_of(std::uint32_t url) noexcept { return url % groups; }
    [[nodiscard]] static unsigned tag_of(std::uint32_t url) noexcept { return url / 7 % tags; }

    [[nodiscard]] count& own(std::uint32_t url) noexcept { return own_[url]; }
    [[nodiscard]] count& group(unsigned which) noexcept { return groups_[which]; }
    [[nodiscard]] count& tag(unsigned which) noexcept { return tags_[which]; }

    /// What the origin sends now.
    [[nodiscard]] stamp current(std::uint32_t url) const noexcept;
    /// What must not be fallen short of by a reply to a request that is sent now.
    [[nodiscard]] stamp floor(std::uint32_t url) const noexcept;

    /// The body, made anew. @pre flavour < flavours
    void make_body(std::uint32_t url, unsigned flavour, const stamp& at, std::string& into) const;
    [[nodiscard]] static std::string etag_of(unsigned flavour, const stamp& at);

    struct judgement {
        ruling what = ruling::wrong;
        stamp seen;
        std::string why;  ///< empty when right
    };
    /// A 200 or a 206 with one range; one that was cut short is judged by the bytes that came.
    [[nodiscard]] judgement judge(std::uint32_t url,
                                  unsigned flavour,
                                  const response& answer,
                                  const stamp& floor) const;

private:
    stock stock_;
    std::uint32_t urls_;
    std::unique_ptr<count[]> own_;
    std::array<count, groups> groups_;
    std::array<count, tags> tags_;
};

}  // namespace reprise::tests::crash
