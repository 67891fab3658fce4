#include "config/kinds.hpp"

#include "config/url.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

// How each kind reads a JSON value: what it refuses, it refuses with a sentence on what would be
// right. Texts are taken apart by the parsers of address.hpp, quantity.hpp and url.hpp.

namespace reprise::config {
namespace {

constexpr std::string_view rate_unit = "bytes a second";
constexpr std::size_t most_path = 4095;  // Linux's PATH_MAX without the terminating zero

std::string number_to_string(double value) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
}

std::string as_written(const std::string& text) {
    return text;
}

// What is wrong with a rate that names its second too ("1MiB/s"), or nothing.
std::string names_its_second(std::string_view text) {
    for (const std::string_view end : {"/s", "/sec", "/second", "ps"}) {
        const auto size = text.substr(0, text.size() - std::min(text.size(), end.size()));
        if (text.ends_with(end) && value_of(parse_size(size)) != nullptr) {
            return "a second is meant as it is: write " + in_quotes(std::string{size});
        }
    }
    return {};
}

// Whole numbers between bounds; every count of ours fits the JSON reader's 64 bits.
template <class M>
kind<M> whole_between(M least, M most, std::string unit) {
    kind<M> made;
    made.type = "whole number";
    made.unit = std::move(unit);
    made.bounds = std::to_string(least) + " to " + std::to_string(most);
    made.read = [least, most, bounds = made.bounds](const json_value& from,
                                                    const place& here) -> std::optional<M> {
        if (from.kind != json_kind::integer && from.kind != json_kind::real) {
            return here.wrong(from, "must be a whole number, " + bounds);
        }
        if (from.kind == json_kind::real) {
            return here.wrong(from,
                              "must be a whole number, " + bounds + ", written in digits alone");
        }
        if (from.negative || from.whole < least || from.whole > most) {
            return here.wrong(from, "must be " + bounds);
        }
        return static_cast<M>(from.whole);
    };
    made.show = [](const M& value) { return std::to_string(value); };
    return made;
}

template <class Duration>
kind<Duration> duration_between(Duration least, Duration most) {
    kind<Duration> made;
    made.type = "duration";
    made.bounds = duration_to_string(least) + " to " + duration_to_string(most);
    made.read = [least, most, bounds = made.bounds](const json_value& from,
                                                    const place& here) -> std::optional<Duration> {
        if (from.kind != json_kind::text) {
            const bool number = from.kind == json_kind::integer || from.kind == json_kind::real;
            return here.wrong(from,
                              "must be a duration such as \"10s\" or \"500ms\"" +
                                  std::string{number ? ": the unit is missing" : ""});
        }
        const auto answer = parse_duration(from.text);
        const auto* time = value_of(answer);
        if (!time) {
            return here.wrong(from, std::get<refusal>(answer).right);
        }
        if (*time < least || *time > most) {
            return here.wrong(from, "must be " + bounds);
        }
        const auto value = std::chrono::duration_cast<Duration>(*time);
        if (value != *time) {
            return here.wrong(from, "must be a whole number of seconds");
        }
        return value;
    };
    made.show = [](const Duration& value) { return in_quotes(duration_to_string(value)); };
    return made;
}

parsed<std::string> parse_path(std::string_view text) {
    if (text.empty() || text.size() > most_path) {
        return refusal{"a path has 1 to " + std::to_string(most_path) + " bytes"};
    }
    if (text.find('\0') != text.npos) {
        return refusal{"a path has no zero bytes"};
    }
    if (text.find("://") != text.npos) {
        return refusal{"is a URL: write the path of a file or directory of this machine"};
    }
    return std::string{text};
}

parsed<std::string> parse_pseudonym(std::string_view text) {
    const bool word = std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return c < 0x80 && (std::isalnum(c) || c == '-' || c == '_' || c == '.');
    });
    const bool letter_first = text.empty() || std::isalpha(static_cast<unsigned char>(text[0]));
    if (!word || !letter_first || text.size() > 64) {
        return refusal{"must be a letter and then letters, digits, '-', '_' or '.', at most 64 "
                       "characters; or empty"};
    }
    return std::string{text};
}

parsed<std::string> parse_field_name(std::string_view text) {
    constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
    const bool token = std::all_of(text.begin(), text.end(), [&](unsigned char c) {
        return c < 0x80 && (std::isalnum(c) || marks.find(static_cast<char>(c)) != marks.npos);
    });
    if (!token || text.empty() || text.size() > 64) {
        return refusal{"must be a field's name: letters, digits or '-', at most 64 characters"};
    }
    std::string lower{text};
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
        return static_cast<char>(std::tolower(c));
    });
    if (lower == "cache-control" || lower == "expires") {
        return refusal{"is what everybody reads: leave it out, it counts where none of the list "
                       "is there"};
    }
    return std::string{text};
}

}  // namespace

namespace detail {

std::string alternatives(const std::vector<std::string_view>& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        text += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
        text += in_quotes(words[i]);
    }
    return text;
}

std::optional<std::size_t> word_index(const std::vector<std::string_view>& words,
                                      const json_value& from,
                                      const place& here) {
    const auto found = std::find(words.begin(), words.end(), from.text);
    if (from.kind == json_kind::text && found != words.end()) {
        return static_cast<std::size_t>(found - words.begin());
    }
    const auto meant = nearest(from.text, words);
    const auto hint = meant.empty() ? std::string{} : did_you_mean(meant);
    return here.wrong(from, "must be " + alternatives(words) + hint);
}

bool is_list(const json_value& from, std::size_t least, std::size_t most, const place& here) {
    if (from.kind != json_kind::array) {
        here.wrong(from, "must be a list: [ ... ]");
        return false;
    }
    if (from.items.size() < least) {
        here.wrong(from, "must have at least " + std::to_string(least));
        return false;
    }
    if (from.items.size() > most) {
        here.wrong(from,
                   "has " + std::to_string(from.items.size()) + " values; at most " +
                       std::to_string(most) + " are taken");
        return false;
    }
    return true;
}

}  // namespace detail

kind<byte_count> size_between(byte_count least, byte_count most, std::string unit) {
    kind<byte_count> made;
    made.type = "size";
    made.unit = std::move(unit);
    made.bounds = size_to_string(least) + " to " + size_to_string(most);
    made.read = [least, most, bounds = made.bounds, is_rate = made.unit == rate_unit](
                    const json_value& from, const place& here) -> std::optional<byte_count> {
        byte_count size = from.whole;
        if (from.kind == json_kind::text) {
            const auto answer = parse_size(from.text);
            const auto* found = value_of(answer);
            if (!found) {
                auto why = is_rate ? names_its_second(from.text) : std::string{};
                return here.wrong(from,
                                  why.empty() ? std::get<refusal>(answer).right : std::move(why));
            }
            size = *found;
        } else if (from.kind != json_kind::integer) {
            return here.wrong(from, "must be a size such as \"256MiB\", or bytes in digits alone");
        }
        if (from.negative || size < least || size > most) {
            return here.wrong(from, "must be " + bounds);
        }
        return size;
    };
    made.show = [](const byte_count& value) { return in_quotes(size_to_string(value)); };
    return made;
}

kind<std::uint64_t> count_between(std::uint64_t least, std::uint64_t most, std::string unit) {
    return whole_between(least, most, std::move(unit));
}

kind<unsigned> small_count_between(unsigned least, unsigned most, std::string unit) {
    return whole_between(least, most, std::move(unit));
}

kind<double> fraction_between(double least, double most) {
    kind<double> made;
    made.type = "number";
    made.bounds = number_to_string(least) + " to " + number_to_string(most);
    made.read = [least, most, bounds = made.bounds](const json_value& from,
                                                    const place& here) -> std::optional<double> {
        if (from.kind != json_kind::real && from.kind != json_kind::integer) {
            return here.wrong(from, "must be a number, " + bounds);
        }
        // Written so that what compares with nothing is refused.
        if (!(from.number >= least && from.number <= most)) {
            return here.wrong(from, "must be " + bounds);
        }
        return from.number;
    };
    made.show = [](const double& value) { return number_to_string(value); };
    return made;
}

kind<double> percentage_between(double least, double most) {
    kind<double> made;
    made.type = "percentage";
    made.bounds = percentage_to_string(least) + " to " + percentage_to_string(most);
    made.read = [least, most, bounds = made.bounds](const json_value& from,
                                                    const place& here) -> std::optional<double> {
        if (from.kind != json_kind::text) {
            return here.wrong(from, "must be a percentage such as \"2%\", as text");
        }
        const auto answer = parse_percentage(from.text);
        const auto* share = value_of(answer);
        if (!share) {
            return here.wrong(from, std::get<refusal>(answer).right);
        }
        if (*share < least || *share > most) {
            return here.wrong(from, "must be " + bounds);
        }
        return *share;
    };
    made.show = [](const double& value) { return in_quotes(percentage_to_string(value)); };
    return made;
}

kind<bool> yes_or_no() {
    kind<bool> made;
    made.type = "true or false";
    made.read = [](const json_value& from, const place& here) -> std::optional<bool> {
        if (from.kind != json_kind::boolean) {
            return here.wrong(from, "must be true or false, without quotes");
        }
        return from.truth;
    };
    made.show = [](const bool& value) { return std::string{value ? "true" : "false"}; };
    return made;
}

kind<milliseconds> time_between(milliseconds least, milliseconds most) {
    return duration_between(least, most);
}

kind<seconds> seconds_between(seconds least, seconds most) {
    return duration_between(least, most);
}

kind<std::string> path_kind() {
    return text_kind<std::string>(
        "path",
        [](std::string_view text) -> parsed<std::string> {
            if (text == "off") {
                return refusal{"is no path here: leave the object out for none, or write a path"};
            }
            return parse_path(text);
        },
        as_written);
}

kind<std::string> path_or_off() {
    return text_kind<std::string>(
        "a path or \"off\"",
        [](std::string_view text) -> parsed<std::string> {
            return text == "off" ? parsed<std::string>{std::string{}} : parse_path(text);
        },
        [](const std::string& path) { return path.empty() ? "off" : path; });
}

kind<std::string> socket_path() {
    return text_kind<std::string>(
        "\"auto\", \"off\" or a path",
        [](std::string_view text) -> parsed<std::string> {
            constexpr std::size_t most = 107;  // unix(7), less the zero behind it
            if (text.size() > most) {
                return refusal{"a socket's path has at most " + std::to_string(most) + " bytes"};
            }
            return parse_path(text);
        },
        as_written);
}

kind<std::string> log_destination() {
    return text_kind<std::string>("\"-\", \"off\" or a path", parse_path, as_written);
}

kind<std::string> host_name() {
    return text_kind<std::string>("host name", parse_host, as_written);
}

kind<std::string> pseudonym() {
    return text_kind<std::string>("name", parse_pseudonym, as_written);
}

kind<std::string> field_name() {
    return text_kind<std::string>("field name", parse_field_name, as_written);
}

kind<std::string> upstream() {
    return text_kind<std::string>("http(s)://host[:port]", parse_upstream, as_written);
}

kind<std::string> url_pattern() {
    return text_kind<std::string>("URL with *", parse_url_pattern, as_written);
}

kind<endpoint> listening_address() {
    return text_kind<endpoint>(
        "address:port",
        [](std::string_view text) { return parse_endpoint(text); },
        [](const endpoint& address) { return to_string(address); });
}

kind<std::optional<endpoint>> listening_address_or_off() {
    return text_kind<std::optional<endpoint>>(
        "address:port or \"off\"",
        [](std::string_view text) -> parsed<std::optional<endpoint>> {
            if (text == "off") {
                return std::optional<endpoint>{};
            }
            const auto answer = parse_endpoint(text);
            if (const auto* address = value_of(answer)) {
                return std::optional{*address};
            }
            return std::get<refusal>(answer);
        },
        [](const std::optional<endpoint>& address) {
            return address ? to_string(*address) : "off";
        });
}

kind<endpoint> name_server() {
    return text_kind<endpoint>(
        "address[:port]",
        [](std::string_view text) -> parsed<endpoint> {
            if (const auto bare = parse_ip(text)) {
                return endpoint{ip_to_string(*bare), 53};
            }
            auto answer = parse_endpoint(text, 53);
            if (const auto* address = value_of(answer); address && address->port == 0) {
                return refusal{"the port must be 1 to 65535"};
            }
            return answer;
        },
        [](const endpoint& address) { return to_string(address); });
}

kind<network> network_kind() {
    return text_kind<network>(
        "network", parse_network, [](const network& net) { return to_string(net); });
}

kind<destination> destination_kind() {
    return text_kind<destination>("destination", parse_destination, [](const destination& where) {
        return to_string(where);
    });
}

kind<std::uint16_t> port() {
    auto made = whole_between<std::uint16_t>(1, 65535, "");
    made.type = "port";
    return made;
}

kind<port_range> ports() {
    const auto number = port();
    auto made = text_kind<port_range>("port or \"first-last\"",
                                      parse_port_range,
                                      [](const port_range& range) { return to_string(range); });
    made.read = [number, range = made.read](const json_value& from,
                                            const place& here) -> std::optional<port_range> {
        if (from.kind == json_kind::text) {
            return range(from, here);
        }
        const auto one = number.read(from, here);
        return one ? std::optional{port_range{*one, *one}} : std::nullopt;
    };
    made.show = [](const port_range& range) {
        return range.first == range.last ? to_string(range) : in_quotes(to_string(range));
    };
    return made;
}

}  // namespace reprise::config
