#include "proxy/peer/news_shelf.hpp"

#include <algorithm>

namespace reprise::proxy::peer {

bool news_shelf::reaches_locked(const filter::digest_generation& from) const noexcept {
    return from.epoch == newest_.epoch && from.counter >= oldest_ &&
           from.counter <= newest_.counter && newest_.counter != 0;
}

news_shelf::found news_shelf::look(const filter::digest_generation& since) {
    found out{.what = state::soon};
    {
        const std::scoped_lock lock{guard_};
        if (!reaches_locked(since)) {
            return {};
        }
        if (since.counter == newest_.counter) {
            wishes_.current = true;
            return {.what = state::current, .newest = newest_};
        }
        const auto is_its = [&since](const form& one) { return one.base == since.counter; };
        const auto made = std::find_if(forms_.begin(), forms_.end(), is_its);
        if (made != forms_.end()) {
            return made->wire ? found{state::ready, made->wire, newest_} : found{};
        }
        auto& bases = wishes_.bases;
        out.newest = newest_;
        if (std::find(bases.begin(), bases.end(), since.counter) != bases.end()) {
            return out;
        }
        const bool is_usual = since.counter + 1 == newest_.counter;
        if (forms_.size() + bases.size() >= most_bases && !is_usual) {
            return {};
        }
        bases.push_back(since.counter);
    }
    wished_();
    return out;
}

bool news_shelf::reaches(const filter::digest_generation& whole) const {
    const std::scoped_lock lock{guard_};
    const auto its = std::find_if(forms_.begin(), forms_.end(), [&whole](const form& one) {
        return one.base == whole.counter;
    });
    return reaches_locked(whole) && (its == forms_.end() || its->wire);
}

filter::digest_generation news_shelf::newest() const {
    const std::scoped_lock lock{guard_};
    return newest_;
}

void news_shelf::want_whole() {
    {
        const std::scoped_lock lock{guard_};
        if (wishes_.whole) {
            return;
        }
        wishes_.whole = true;
    }
    wished_();
}

void news_shelf::note_plain() {
    const std::scoped_lock lock{guard_};
    wishes_.plain = true;
}

news_shelf::wishes news_shelf::take_wishes() {
    const std::scoped_lock lock{guard_};
    return std::exchange(wishes_, {});
}

void news_shelf::put(const filter::digest_generation& newest,
                     std::uint64_t oldest,
                     std::vector<form> forms) {
    const std::scoped_lock lock{guard_};
    if (newest == newest_) {
        forms.insert(forms.end(), forms_.begin(), forms_.end());
    }
    std::swap(forms_, forms);  // what goes, goes behind the lock
    newest_ = newest;
    oldest_ = oldest;
}

}  // namespace reprise::proxy::peer
