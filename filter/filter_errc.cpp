#include "filter/filter_errc.hpp"

namespace reprise::filter {

namespace {

// Boost's category has a protected destructor that is not virtual: nobody deletes one by its base.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class filter_errors final : public boost::system::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "filter"; }

    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<filter_errc>(value)) {
        case filter_errc::sizes_differ: return "the filters differ in size";
        case filter_errc::probes_differ: return "the filters set different numbers of bits a key";
        case filter_errc::odd_size: return "an odd size can't be halved";
        case filter_errc::too_small: return "half of it would be too small";
        }
        return "unknown error";
    }
};
#pragma GCC diagnostic pop

}  // namespace

const boost::system::error_category& filter_category() noexcept {
    static const filter_errors instance;
    return instance;
}

boost::system::error_code make_error_code(filter_errc code) noexcept {
    return {static_cast<int>(code), filter_category()};
}

}  // namespace reprise::filter
