#include "proxy/base/live_feed.hpp"

#include "proxy/base/ascii.hpp"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace reprise::proxy {

namespace {

constexpr std::chrono::milliseconds slot_length{250};
constexpr std::size_t most_in_slot = live_feed::most_a_second / 4;
constexpr std::size_t most_of_url = 1024;

bool ends_alike(std::string_view host, std::string_view with) noexcept {
    return host.size() >= with.size() &&
           std::equal(with.begin(),
                      with.end(),
                      host.end() - static_cast<std::ptrdiff_t>(with.size()),
                      [](char a, char b) { return a == ascii_lower(b); });
}

bool is_wanted(const live_feed::wanted& what, outcome how, std::string_view host) noexcept {
    if (what.how && *what.how != how) {
        return false;
    }
    const auto& name = what.host;
    return name.empty() || (ends_alike(host, name) && (host.size() == name.size() ||
                                                       host[host.size() - name.size() - 1] == '.'));
}

}  // namespace

std::string_view host_in(std::string_view target) noexcept {
    if (target.starts_with('/')) {
        return {};
    }
    if (const auto scheme = target.find("://"); scheme != std::string_view::npos) {
        target.remove_prefix(scheme + 3);
    }
    target = target.substr(0, target.find_first_of("/?#"));
    if (const auto at = target.rfind('@'); at != std::string_view::npos) {
        target.remove_prefix(at + 1);
    }
    if (target.starts_with('[')) {
        return target.substr(1, std::min(target.find(']'), target.size()) - 1);
    }
    return target.substr(0, target.find(':'));
}

std::unique_ptr<live_feed::view> live_feed::watch(wanted what) {
    const std::lock_guard lock{guard_};
    const auto place = std::find_if(
        viewers_.begin(), viewers_.end(), [](const viewer& one) { return !one.here; });
    if (place == viewers_.end()) {
        return nullptr;
    }
    auto made = std::make_unique<view>(*this, static_cast<std::size_t>(place - viewers_.begin()));
    *place = viewer{};
    place->what = std::move(what);
    place->here = true;
    watching_.fetch_add(1, std::memory_order_relaxed);
    return made;
}

void live_feed::leave(std::size_t place) noexcept {
    const std::lock_guard lock{guard_};
    viewers_[place] = viewer{};
    watching_.fetch_sub(1, std::memory_order_relaxed);
}

live_feed::taken live_feed::take(std::size_t place) {
    const std::lock_guard lock{guard_};
    auto& one = viewers_[place];
    return {std::exchange(one.lines, {}), std::exchange(one.left_out, 0)};
}

void live_feed::note(const access_record& one, std::string_view host, steady_time now) noexcept {
    const std::lock_guard lock{guard_};
    std::string line;
    for (auto& to : viewers_) {
        if (!to.here || !is_wanted(to.what, one.how, host)) {
            continue;
        }
        if (now - to.slot >= slot_length) {
            to.slot = now;
            to.in_slot = 0;
        }
        if (to.in_slot >= most_in_slot || to.lines.size() >= most_waiting) {
            ++to.left_out;
            continue;
        }
        try {
            if (line.empty()) {
                std::string made;  // nobody sees one that there was no memory to end
                append_access_line(made, one, false, most_of_url);
                line = std::move(made);
            }
            to.lines.push_back(line);
            ++to.in_slot;
        } catch (const std::bad_alloc&) {
            ++to.left_out;
        }
    }
}

}  // namespace reprise::proxy
