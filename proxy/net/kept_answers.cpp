#include "proxy/net/kept_answers.hpp"

#include <utility>

namespace reprise::proxy::net {
namespace {

std::size_t addresses_in(const attempt<resolved>& answer) noexcept {
    return answer.has_value() ? (*answer)->addresses.size() : 0;
}

}  // namespace

const kept_answers::kept* kept_answers::find(const std::string& name, steady_time now) {
    if (const auto found = young_.find(name); found != young_.end()) {
        return found->second.valid_until > now ? &found->second : nullptr;
    }
    const auto found = old_.find(name);
    if (found == old_.end() || found->second.valid_until <= now) {
        return nullptr;
    }
    auto still_used = std::move(found->second);
    old_.erase(found);
    keep(name, std::move(still_used));
    return &young_.find(name)->second;
}

void kept_answers::keep(const std::string& name, kept answer) {
    const auto replaced = young_.find(name);
    const bool is_new = replaced == young_.end();
    auto others = young_addresses_ - (is_new ? 0 : addresses_in(replaced->second.answer));
    const auto brought = addresses_in(answer.answer);
    const bool is_full = is_new && young_.size() >= resolver::most_names / 2;
    if (is_full || others + brought > most_addresses / 2) {
        old_ = std::exchange(young_, {});
        others = young_addresses_ = 0;
    }
    young_.insert_or_assign(name, std::move(answer));
    young_addresses_ = others + brought;
}

void kept_answers::clear() noexcept {
    young_.clear();
    old_.clear();
    young_addresses_ = 0;
}

}  // namespace reprise::proxy::net
