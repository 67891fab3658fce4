#include "proxy/peer/refusals_told.hpp"

#include "proxy/base/log.hpp"

#include <algorithm>

namespace reprise::proxy::peer {

void refusals_told::refused(const std::string& address, std::string_view reason) {
    auto text = address + ": " + std::string{reason};
    {
        const std::scoped_lock lock{guard_};
        if (std::find(told_.begin(), told_.end(), text) != told_.end()) {
            return;
        }
        if (told_.size() == most) {
            if (!crowded_.due()) {
                return;
            }
            told_.erase(told_.begin());
        }
        told_.push_back(text);
    }
    log::warn("peers: a digest was asked for and refused: ", text, " (said once)");
}

void refusals_told::forget() {
    const std::scoped_lock lock{guard_};
    told_.clear();
}

}  // namespace reprise::proxy::peer
