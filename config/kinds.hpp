#pragma once
// The kinds of value a setting can have: how each is read from JSON, checked and shown.
// A kind knows nothing of names or of options; table.hpp joins it to a member.

#include "config/address.hpp"
#include "config/json.hpp"
#include "config/mistake.hpp"
#include "config/nearest.hpp"
#include "config/options.hpp"
#include "config/quantity.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::config {

/// What people are told of a kind.
struct kind_facts {
    std::string type;      ///< "size", "list (network)"
    std::string unit{};    ///< "bytes", "connections"; empty where the type says it all
    std::string bounds{};  ///< "1KiB to 1MiB"; empty: none
};

/// One kind of value, for settings of type M.
template <class M>
struct kind : kind_facts {
    /// The value, or none and a mistake reported.
    std::function<std::optional<M>(const json_value& from, const place& here)> read;
    /// As JSON text that `read` would take.
    std::function<std::string(const M& value)> show;
};

[[nodiscard]] kind<byte_count> size_between(byte_count least,
                                            byte_count most,
                                            std::string unit = "bytes");
[[nodiscard]] kind<std::uint64_t> count_between(std::uint64_t least,
                                                std::uint64_t most,
                                                std::string unit);
[[nodiscard]] kind<unsigned> small_count_between(unsigned least, unsigned most, std::string unit);
[[nodiscard]] kind<double> fraction_between(double least, double most);
/// A share as text, "2%" or "0.5%", held as a fraction; the bounds are fractions.
[[nodiscard]] kind<double> percentage_between(double least, double most);
[[nodiscard]] kind<bool> yes_or_no();
[[nodiscard]] kind<milliseconds> time_between(milliseconds least, milliseconds most);
/// Refuses what is not a whole number of seconds.
[[nodiscard]] kind<seconds> seconds_between(seconds least, seconds most);

/// Text that `parse` turns into a value; `show` must give back text that parses to it.
template <class M>
[[nodiscard]] kind<M> text_kind(std::string type,
                                std::function<parsed<M>(std::string_view)> parse,
                                std::function<std::string(const M&)> show);

[[nodiscard]] kind<std::string> path_kind();        ///< one that there must be
[[nodiscard]] kind<std::string> path_or_off();      ///< empty: "off"
[[nodiscard]] kind<std::string> socket_path();      ///< "auto", "off" or a path, as written
[[nodiscard]] kind<std::string> log_destination();  ///< "-", "off" or a path, as written
[[nodiscard]] kind<std::string> host_name();
[[nodiscard]] kind<std::string> pseudonym();   ///< empty, or an RFC 9110 token that begins a word
[[nodiscard]] kind<std::string> field_name();  ///< of an HTTP field, but for Cache-Control's
[[nodiscard]] kind<std::string> upstream();
[[nodiscard]] kind<std::string> url_pattern();
[[nodiscard]] kind<endpoint> listening_address();
[[nodiscard]] kind<std::optional<endpoint>> listening_address_or_off();
[[nodiscard]] kind<endpoint> name_server();  ///< port 53 unless written
[[nodiscard]] kind<network> network_kind();
[[nodiscard]] kind<destination> destination_kind();
[[nodiscard]] kind<std::uint16_t> port();
[[nodiscard]] kind<port_range> ports();  ///< a number, or "first-last"

/// One word of a few.
template <class E>
[[nodiscard]] kind<E> one_of(std::vector<std::pair<std::string_view, E>> words);

/// A value that may be left out: `show` is for one that is there.
template <class M>
[[nodiscard]] kind<std::optional<M>> optional(kind<M> of);

/// An array of at least `least` and at most `most` values of one kind.
template <class M>
[[nodiscard]] kind<std::vector<M>> list_of(kind<M> each, std::size_t least, std::size_t most);

// How the templates above are made.

namespace detail {
/// `"a", "b" or "c"`
std::string alternatives(const std::vector<std::string_view>& words);
/// Which of the words it is, or none and a mistake reported.
std::optional<std::size_t> word_index(const std::vector<std::string_view>& words,
                                      const json_value& from,
                                      const place& here);
/// Reports that an array is needed, or how many values one may have; true when neither.
bool is_list(const json_value& from, std::size_t least, std::size_t most, const place& here);
}  // namespace detail

template <class M>
kind<M> text_kind(std::string type,
                  std::function<parsed<M>(std::string_view)> parse,
                  std::function<std::string(const M&)> show) {
    kind<M> made;
    made.type = std::move(type);
    made.read = [parse = std::move(parse), called = made.type](
                    const json_value& from, const place& here) -> std::optional<M> {
        if (from.kind != json_kind::text) {
            return here.wrong(from, "must be text: " + called);
        }
        auto answer = parse(from.text);
        if (auto* value = std::get_if<0>(&answer)) {
            return std::move(*value);
        }
        return here.wrong(from, std::get<1>(answer).right);
    };
    made.show = [show = std::move(show)](const M& value) { return in_quotes(show(value), 4096); };
    return made;
}

template <class E>
kind<E> one_of(std::vector<std::pair<std::string_view, E>> words) {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : words) {
        names.push_back(name);
    }
    kind<E> made;
    made.type = detail::alternatives(names);
    made.read = [words, names](const json_value& from, const place& here) -> std::optional<E> {
        const auto index = detail::word_index(names, from, here);
        return index ? std::optional{words[*index].second} : std::nullopt;
    };
    made.show = [words](const E& shown) -> std::string {
        for (const auto& [name, value] : words) {
            if (value == shown) {
                return in_quotes(name);
            }
        }
        return "?";  // an enumerator that the table forgot; settings_test finds it
    };
    return made;
}

template <class M>
kind<std::optional<M>> optional(kind<M> of) {
    kind<std::optional<M>> made;
    made.type = of.type;
    made.unit = of.unit;
    made.bounds = of.bounds;
    made.read = [read = of.read](const json_value& from,
                                 const place& here) -> std::optional<std::optional<M>> {
        auto value = read(from, here);
        return value ? std::optional{std::move(value)} : std::nullopt;
    };
    made.show = [show = of.show](const std::optional<M>& value) {
        return value ? show(*value) : "null";
    };
    return made;
}

template <class M>
kind<std::vector<M>> list_of(kind<M> each, std::size_t least, std::size_t most) {
    kind<std::vector<M>> made;
    made.type = "list (" + each.type + ')';
    made.unit = each.unit;
    made.bounds = (least > 0 ? std::to_string(least) : "at most") + (least > 0 ? " to " : " ") +
                  std::to_string(most) + " of them";
    made.read = [each, least, most](const json_value& from,
                                    const place& here) -> std::optional<std::vector<M>> {
        if (!detail::is_list(from, least, most, here)) {
            return std::nullopt;
        }
        std::vector<M> values;
        for (std::size_t i = 0; i < from.items.size(); ++i) {
            if (auto value = each.read(from.items[i], here.element(i))) {
                values.push_back(std::move(*value));
            }
        }
        return values;  // short by what was reported, and then nobody sees it
    };
    made.show = [show = each.show](const std::vector<M>& values) {
        std::string text;
        for (const auto& value : values) {
            text += (text.empty() ? "" : ", ") + show(value);
        }
        return '[' + text + ']';
    };
    return made;
}

}  // namespace reprise::config
