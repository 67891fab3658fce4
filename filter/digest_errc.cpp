// The reasons of digest_wire.hpp in words.

#include "filter/digest_wire.hpp"

#include <string>

namespace reprise::filter {

namespace {

// Boost's category has a protected destructor that is not virtual: nobody deletes one by its base.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class digest_errors final : public boost::system::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "digest"; }

    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<digest_errc>(value)) {
        case digest_errc::truncated: return "cut short";
        case digest_errc::trailing_bytes: return "bytes follow its end";
        case digest_errc::bad_magic: return "not a digest";
        case digest_errc::unknown_version: return "in another version of the format";
        case digest_errc::corrupt: return "damaged";
        case digest_errc::bad_header: return "its header contradicts itself";
        case digest_errc::bad_shape: return "its number of bits or probes can't be";
        case digest_errc::unknown_hash: return "made with another hash function";
        case digest_errc::unknown_layout: return "of an unknown layout";
        case digest_errc::unknown_encoding: return "in an unknown encoding";
        case digest_errc::bad_body: return "its body does not fit its header";
        case digest_errc::over_limit: return "larger than the limit";
        case digest_errc::saturated: return "saturated: almost anything would be found in it";
        case digest_errc::is_whole: return "a whole digest, no delta";
        case digest_errc::is_delta: return "a delta, no whole digest";
        case digest_errc::other_seed: return "made under another secret";
        case digest_errc::wrong_base: return "a delta to another digest than ours";
        case digest_errc::shapes_differ: return "no delta: the digests' sizes differ";
        case digest_errc::epochs_differ: return "no delta: the owner began anew in between";
        case digest_errc::not_newer: return "no delta: the digest is not newer than its base";
        case digest_errc::is_news: return "news of changes, no digest";
        }
        return "unknown error";
    }
};
#pragma GCC diagnostic pop

}  // namespace

const boost::system::error_category& digest_category() noexcept {
    static const digest_errors instance;
    return instance;
}

boost::system::error_code make_error_code(digest_errc code) noexcept {
    return {static_cast<int>(code), digest_category()};
}

}  // namespace reprise::filter
