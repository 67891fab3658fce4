#include "proxy/cache/kept_lately.hpp"

#include "proxy/base/relaxed.hpp"
#include "proxy/net/secret_name.hpp"

namespace reprise::proxy::cache {

kept_lately::kept_lately() {
    net::secret_name::draw_secret();
}

std::size_t kept_lately::place_of(std::string_view url) noexcept {
    const auto path = url.substr(0, url.find('?'));
    return net::secret_name{path.substr(0, path.rfind('/') + 1), {}}.bits() % places;
}

void kept_lately::note(std::string_view url, bool kept) noexcept {
    auto& count = counts_[place_of(url)];
    const auto before = count.load(relaxed);
    if (!kept) {
        count.store(0, relaxed);
    } else if (before < enough) {
        count.store(static_cast<std::uint8_t>(before + 1), relaxed);
    }
}

bool kept_lately::expects(std::string_view url) const noexcept {
    return counts_[place_of(url)].load(relaxed) >= enough;
}

}  // namespace reprise::proxy::cache
