#pragma once
// Why two filters can't be combined, or one not be made: the errors that all filters share. What
// bytes from outside may have wrong with them is said by the decoders' own codes.

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <type_traits>

namespace reprise::filter {

enum class filter_errc {
    sizes_differ = 1,  ///< filters of different numbers of bits (blocks, cells): fold the larger
    probes_differ,     ///< filters that set different numbers of bits per key
    odd_size,          ///< halving needs an even number of bits (blocks)
    too_small,         ///< halving would leave fewer bits (blocks) than a filter needs
};

[[nodiscard]] const boost::system::error_category& filter_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(filter_errc code) noexcept;

}  // namespace reprise::filter

template <>
struct boost::system::is_error_code_enum<reprise::filter::filter_errc> : std::true_type {};
