#include "config/mistake.hpp"

#include <algorithm>
#include <utility>

namespace reprise::config {

std::string did_you_mean(std::string_view name) {
    return "; did you mean " + std::string{name} + '?';
}

std::string to_string(const mistake& wrong) {
    std::string out = wrong.path;
    for (const auto* part : {&wrong.value, &wrong.right}) {
        if (!part->empty()) {
            out += out.empty() ? "" : ": ";
            out += *part;
        }
    }
    return out;
}

void report::add(mistake wrong) {
    if (is_full()) {
        ++further_;
    } else {
        kept_.push_back(std::move(wrong));
    }
}

std::vector<mistake> report::take() && {
    if (further_ > 0) {
        kept_.push_back({"", "", "and " + std::to_string(further_) + " further mistakes"});
    }
    return std::move(kept_);
}

place place::member(std::string_view name) const {
    const bool plain = !name.empty() && name.size() <= 60 &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                  (c >= '0' && c <= '9') || c == '_' || c == '-';
                       });
    place inner{*found_};
    inner.path_ = path_;
    inner.path_ += path_.empty() ? "" : ".";
    inner.path_ += plain ? std::string{name} : in_quotes(name);
    return inner;
}

place place::element(std::size_t index) const {
    place inner{*found_};
    inner.path_ = path_ + '[' + std::to_string(index) + ']';
    return inner;
}

std::nullopt_t place::wrong(const json_value& value, std::string right) const {
    found_->add({path_, brief(value), std::move(right)});
    return std::nullopt;
}

std::nullopt_t place::wrong(std::string right) const {
    found_->add({path_, "", std::move(right)});
    return std::nullopt;
}

}  // namespace reprise::config
