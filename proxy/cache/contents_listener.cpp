#include "proxy/cache/contents_listener.hpp"

namespace reprise::proxy::cache {

wall_time useful_until(const http::freshness_facts& freshness,
                       const http::response_directives& directives) noexcept {
    return directives.no_cache ? wall_time::min() : http::fresh_until(freshness);
}

}  // namespace reprise::proxy::cache
