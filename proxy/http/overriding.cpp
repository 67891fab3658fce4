#include "proxy/http/overriding.hpp"

namespace reprise::proxy::http {

bool is_personal(field_list request, field_list response) noexcept {
    return find(request, field_id::authorization) != nullptr ||
           find(request, field_id::cookie) != nullptr ||
           find(response, field_id::set_cookie) != nullptr;
}

response_directives without(response_directives stated, const overrides& set_aside) noexcept {
    stated.no_store = stated.no_store && !set_aside.no_store;
    // One that names fields is obeyed whole where they can't be left out: set aside, it would share them.
    stated.no_cache = stated.no_cache && (!set_aside.no_cache || stated.no_cache_argument);
    stated.private_ = stated.private_ && (!set_aside.private_ || stated.private_argument);
    stated.must_revalidate = stated.must_revalidate && !set_aside.must_revalidate;
    stated.proxy_revalidate = stated.proxy_revalidate && !set_aside.must_revalidate;
    return stated;
}

}  // namespace reprise::proxy::http
