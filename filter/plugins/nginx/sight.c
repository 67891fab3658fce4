/*
 * The one question, when an upstream's head has come. See module.h.
 *
 * nginx decides whether to store a response after the head has gone through the header filters: its proxy_no_cache
 * (fastcgi_, uwsgi_, scgi_) is asked then. So this filter comes when all that rules a response out is known but
 * proxy_no_cache itself, which is asked here too; and what it refuses nginx treats as any response that may not be stored.
 */
#include "module.h"

static ngx_http_output_header_filter_pt next_header_filter;

/* When the request's pool ends, the body has passed, whoever cut it short. */
static void count_bytes(void* data) {
    const reprise_sight_t* sight = data;
    const off_t bytes = sight->state != NULL ? sight->state->response_length : 0;
    if (bytes > 0) {
        (void)ngx_atomic_fetch_add(sight->admitted ? &sight->zone->shared->bytes_admitted
                                                   : &sight->zone->shared->bytes_not_stored,
                                   (ngx_atomic_int_t)bytes);
    }
}

/* Whether proxy_no_cache has nothing against it, as far as that can be told before the head is whole. nginx asks it once
 * more, when the heads' modules have been here: what a variable said now must not be kept for then, for one that speaks of the
 * answer's head ($sent_http_...) may say something else, and what is forbidden would be stored. */
static int is_not_forbidden(ngx_http_request_t* r, const ngx_http_upstream_t* u) {
    const ngx_http_core_main_conf_t* core = ngx_http_get_module_main_conf(r, ngx_http_core_module);
    const size_t bytes = core->variables.nelts * sizeof *r->variables;
    ngx_http_variable_value_t* before;
    int is_free;
    if (u->conf->no_cache == NULL) {
        return 1;
    }
    before = ngx_palloc(r->pool, bytes);
    if (before == NULL) {
        return 0;
    }
    ngx_memcpy(before, r->variables, bytes);
    is_free = ngx_http_test_predicates(r, u->conf->no_cache) == NGX_OK;
    ngx_memcpy(r->variables, before, bytes);
    return is_free;
}

/* Whether nginx would store it, but for us; and whether that is ours to judge. Failures are not: who has nginx store them
 * for some seconds protects an origin in trouble. */
static int is_for_us(ngx_http_request_t* r, const ngx_http_upstream_t* u) {
    /* An answer of nginx's own, after an upstream or in place of one: there is a clean-up exactly while an upstream is under
     * way. Nor does nginx store what a filter puts in an upstream's place, or what a post_action is answered. */
    if (u->cleanup == NULL || r->filter_finalize || r->post_action) {
        return 0;
    }
    if (!u->cacheable || !u->buffering || u->upgrade) {
        return 0;
    }
    if (!(r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD)) ||
        u->headers_in.status_n >= NGX_HTTP_INTERNAL_SERVER_ERROR) {
        return 0;
    }
    /* What is stored, and only grew old, is replaced. */
    if (u->cache_status == NGX_HTTP_CACHE_EXPIRED) {
        return 0;
    }
    if (r->cache->valid_sec == 0 &&
        ngx_http_file_cache_valid(u->conf->cache_valid, u->headers_in.status_n) == 0) {
        return 0;
    }
    return is_not_forbidden(r, u);
}

static void judge(ngx_http_request_t* r, reprise_zone_t* zone, reprise_key key) {
    ngx_http_upstream_t* u = r->upstream;
    /* A client's GET. What nginx asks for on its own (mirror) and a HEAD tell nothing of who wants the object; where it
     * is known well enough all the same, it may enter. */
    const int is_sight = (r->method & NGX_HTTP_GET) && !r->background;
    const unsigned seen = is_sight ? reprise_admission_note(zone->gate, key, ngx_time())
                                   : reprise_admission_peek(zone->gate, key);
    const int admitted = reprise_admission_wanted(zone->gate, seen);
    ngx_pool_cleanup_t* at_end;
    reprise_sight_t* sight;
    if (!admitted) {
        u->cacheable = 0;
    }
    (void)ngx_atomic_fetch_add(
        admitted ? &zone->shared->objects_admitted : &zone->shared->objects_not_stored, 1);
    if (is_sight && seen > 0) {
        (void)ngx_atomic_fetch_add(&zone->shared->hits_lost, 1);
    }
    at_end = ngx_pool_cleanup_add(r->pool, sizeof *sight);
    if (at_end == NULL) {
        return; /* its bytes are not counted */
    }
    sight = at_end->data;
    sight->zone = zone;
    sight->state = u->state;
    sight->seen = seen;
    sight->admitted = admitted ? 1 : 0;
    at_end->handler = count_bytes;
    ngx_http_set_ctx(r, sight, ngx_http_reprise_module);
}

/* proxy_cache_key's. Alternates (Vary) are one, as in the other engines: into `key` nginx writes the alternate's own as soon as another
 * one is stored, and `main` is what it was before. */
static reprise_key key_of(const ngx_http_request_t* r, const reprise_zone_t* zone) {
    return reprise_admission_key(zone->gate, r->cache->main, NGX_HTTP_CACHE_KEY_LEN);
}

static ngx_int_t header_filter(ngx_http_request_t* r) {
    if (r->cache != NULL && r->upstream != NULL) {
        const reprise_loc_conf_t* here = ngx_http_get_module_loc_conf(r, ngx_http_reprise_module);
        reprise_zone_t* zone = here->zone;
        if (zone != NULL && zone->gate != NULL) {
            if (r->cached) {
                reprise_admission_refresh(zone->gate, key_of(r, zone), ngx_time());
            } else if (is_for_us(r, r->upstream)) {
                judge(r, zone, key_of(r, zone));
            }
        }
    }
    return next_header_filter(r);
}

int reprise_sight_count(ngx_http_request_t* r) {
    const reprise_sight_t* sight = ngx_http_get_module_ctx(r, ngx_http_reprise_module);
    const reprise_loc_conf_t* here = ngx_http_get_module_loc_conf(r, ngx_http_reprise_module);
    if (sight != NULL) {
        return (int)sight->seen;
    }
    if (here->zone == NULL || here->zone->gate == NULL || r->cache == NULL ||
        r->cache->keys.nelts == 0) {
        return -1;
    }
    return (int)reprise_admission_peek(here->zone->gate, key_of(r, here->zone));
}

ngx_int_t reprise_sight_begin(void) {
    next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = header_filter;
    return NGX_OK;
}
