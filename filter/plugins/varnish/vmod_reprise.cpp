// The VMOD: what VCL calls (vmod_reprise.vcc), over gates and judge().
//
// All happens in the client's task: vcl_miss asks, vcl_deliver knows what came of it and what was asked, and the end of the task how
// many bytes went. A passed fetch has a task of its own in which none of that is known, but by fields of the request that
// clients could set and origins would see.

#include "filter/plugins/varnish/gates.hpp"
#include "filter/plugins/varnish/storable.hpp"

extern "C" {
#include <cache/cache.h>
#include <common/common_param.h>
#include <vcl.h>
#include <vtim.h>
// After what it needs.
#include <VSC_reprise.h>
#include <vcc_if.h>

extern volatile struct params* cache_param;  // of cache_varnishd.h, which is no C++
}

#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>

namespace varnish = reprise::varnish;

struct vmod_reprise_admission {
    unsigned magic;
    std::shared_ptr<varnish::gate> gate;
};

namespace {

constexpr unsigned admission_magic = 0x5245'5052;

/// What became of a request so far. In the workspace of the client's task, found by the VCL object: over restarts of the request,
/// which are not another one.
struct asked {
    reprise_key key;
    bool was_wanted;
    bool was_noted;             ///< under this key: it is one sight, however often it is restarted
    std::uint64_t* bytes_into;  ///< counts the body's bytes when the task ends, or null
};

bool was_noted_as(const asked& request, reprise_key key) noexcept {
    return request.was_noted && request.key.low == key.low && request.key.high == key.high;
}

bool is_get(const struct http* request) noexcept {
    return std::strcmp(request->hd[HTTP_HDR_METHOD].b, "GET") == 0;
}

bool is_head(const struct http* request) noexcept {
    return std::strcmp(request->hd[HTTP_HDR_METHOD].b, "HEAD") == 0;
}

std::int64_t now_of(VRT_CTX) noexcept {
    return static_cast<std::int64_t>(ctx->now);
}

void count_bytes(VRT_CTX, void* priv) {
    const auto* request = static_cast<const asked*>(priv);
    if (request->bytes_into != nullptr && ctx->req != nullptr) {
        varnish::count(*request->bytes_into, ctx->req->acct.resp_bodybytes);
    }
}

const struct vmod_priv_methods at_the_end = {VMOD_PRIV_METHODS_MAGIC, "reprise_asked", count_bytes};

asked* record_there(VRT_CTX, const vmod_reprise_admission* object) {
    const auto* priv = VRT_priv_task_get(ctx, object);
    return priv != nullptr ? static_cast<asked*>(priv->priv) : nullptr;
}

/// Null, where the workspace is used up: the request then leaves no trace.
asked* record_of(VRT_CTX, const vmod_reprise_admission* object) {
    if (auto* const there = record_there(ctx, object)) {
        return there;
    }
    constexpr unsigned enough =
        160;  // the record, Varnish's own entry for it, and how both are aligned
    const auto left = WS_ReserveAll(ctx->ws);
    WS_Release(ctx->ws, 0);
    if (left < enough) {
        return nullptr;
    }
    auto* priv = VRT_priv_task(ctx, object);
    if (priv == nullptr) {
        return nullptr;
    }
    if (priv->priv == nullptr) {
        priv->priv = WS_Alloc(ctx->ws, sizeof(asked));
        if (priv->priv == nullptr) {
            return nullptr;
        }
        new (priv->priv) asked{};
        priv->methods = &at_the_end;
    }
    return static_cast<asked*>(priv->priv);
}

/// The key of the text, or where there is none of the hash; nothing, and the request fails, where that is not known yet.
std::optional<reprise_key> key_of(
    VRT_CTX, const varnish::gate& gate, bool is_given, VCL_STRING text, const char* method) {
    constexpr unsigned after_hash = VCL_MET_HIT | VCL_MET_MISS | VCL_MET_PASS | VCL_MET_DELIVER |
                                    VCL_MET_PURGE;
    if (ctx->req == nullptr) {
        VRT_fail(
            ctx, "reprise: %s is for the client's side: vcl_hit, vcl_miss, vcl_deliver", method);
        return std::nullopt;
    }
    if (is_given) {
        const auto* const known = text != nullptr ? text : "";
        return reprise_admission_key(gate.filter(), known, std::strlen(known));
    }
    if ((ctx->method & after_hash) == 0) {
        VRT_fail(
            ctx, "reprise: %s without a key is for after vcl_hash: there is no hash yet", method);
        return std::nullopt;
    }
    return reprise_admission_key(gate.filter(), ctx->req->digest, DIGEST_LEN);
}

std::string_view field(VRT_CTX, hdr_t name) {
    const auto* const found = HTTP_GetHdrPack(ctx->req->wrk, ctx->req->objcore, name);
    return found != nullptr ? std::string_view{found} : std::string_view{};
}

double time_in(VRT_CTX, hdr_t name) {
    const auto* const found = HTTP_GetHdrPack(ctx->req->wrk, ctx->req->objcore, name);
    return found != nullptr ? VTIM_parse(found) : 0;
}

/// As it came from the origin and vcl_backend_response left it; what vcl_deliver did to it since is for the client.
bool is_storable(VRT_CTX) {
    static const char surrogate_control[] = "\022Surrogate-Control:";
    const auto* const object = ctx->req->objcore;
    const auto surrogate = field(ctx, surrogate_control);
    return varnish::judge(
               {.status = HTTP_GetStatusPack(ctx->req->wrk, ctx->req->objcore),
                .cache_control = field(ctx, H_Cache_Control),
                .surrogate_control = surrogate,
                .vary = field(ctx, H_Vary),
                .has_expires = field(ctx, H_Expires).data() != nullptr,
                .expires = time_in(ctx, H_Expires),
                .date = time_in(ctx, H_Date),
                .sets_cookie = field(ctx, H_Set_Cookie).data() != nullptr,
                .was_authorized = http_GetHdr(ctx->http_req, H_Authorization, nullptr) != 0,
                .age = ctx->now - object->t_origin,
                .now = ctx->now,
                .default_ttl = cache_param->default_ttl,
                .clock_skew = static_cast<double>(cache_param->clock_skew)}) ==
           varnish::verdict::storable;
}

constexpr unsigned not_shared = OC_F_PRIVATE | OC_F_HFM | OC_F_HFP;

/// A miss that became an object which others can hit.
bool was_stored(VRT_CTX) {
    const auto* const object = ctx->req->objcore;
    return (object->flags & not_shared) == 0 && object->ttl > 0;
}

/// The body's length as the origin said it; else what will have gone to the client.
void charge(VRT_CTX, asked& request, std::uint64_t& bytes) {
    const auto length = field(ctx, H_Content_Length);
    if (length.data() == nullptr) {
        request.bytes_into = &bytes;
        return;
    }
    varnish::count(bytes, std::strtoull(length.data(), nullptr, 10));
}

bool note_of(VRT_CTX, vmod_reprise_admission* object, const VARGS(admission_note) * given) {
    auto& gate = *object->gate;
    auto* request = record_there(ctx, object);
    if ((request == nullptr && given->valid_key == 0) || ctx->req == nullptr ||
        ctx->req->objcore == nullptr || !is_get(ctx->http_req)) {
        return false;
    }
    if (request == nullptr) {
        request = record_of(ctx, object);
        if (request == nullptr) {
            return false;
        }
        request->was_wanted = false;
    }
    const auto key = given->valid_key != 0 ? *key_of(ctx, gate, true, given->key, "note")
                                           : request->key;
    if (was_noted_as(*request, key)) {
        return false;
    }
    request->key = key;
    request->was_noted = false;
    const bool is_passed = (ctx->req->objcore->flags & OC_F_PRIVATE) != 0;
    const bool is_refused = !request->was_wanted && is_passed;
    // A fetch that failed is kept for a moment for those who wait for it: that is no object.
    constexpr unsigned first_failure = 500;
    const bool is_admitted = request->was_wanted && was_stored(ctx) &&
                             HTTP_GetStatusPack(ctx->req->wrk, ctx->req->objcore) < first_failure;
    const bool counts = given->valid_storable != 0
                            ? given->storable != 0
                            : is_admitted || (is_refused && is_storable(ctx));
    // Neither: what the restart of a request found stored, or an answer of VCL's own.
    if (!counts || (!is_refused && !is_admitted && given->valid_key == 0)) {
        return false;
    }
    const auto sights = reprise_admission_note(gate.filter(), request->key, now_of(ctx));
    request->was_noted = true;
    auto& ledger = gate.counters();
    if (is_admitted) {
        varnish::count(ledger.objects_admitted);
        varnish::count(ledger.hits_lost, sights);
        charge(ctx, *request, ledger.bytes_admitted);
    } else if (is_refused) {
        varnish::count(ledger.objects_not_stored);
        charge(ctx, *request, ledger.bytes_not_stored);
    }
    return true;
}

}  // namespace

void reprise::varnish::say(const std::string& line) {
    std::fprintf(stderr, "reprise: %s\n", line.c_str());
    VSL(SLT_Error, 0, "reprise: %s", line.c_str());
}

extern "C" {

VCL_VOID vmod_admission__init(VRT_CTX,
                              struct vmod_reprise_admission** object,
                              const char* vcl_name,
                              VCL_STRING options,
                              VCL_STRING state,
                              VCL_DURATION save,
                              VCL_STRING name) {
    try {
        const bool is_named = name != nullptr && *name != '\0';
        constexpr double longest = 1e9;  // whatever it is, it becomes a whole number
        varnish::gate_options given{
            .words = options != nullptr ? options : "",
            .state = state != nullptr ? state : "",
            .save = std::chrono::seconds{static_cast<std::int64_t>(
                save > longest ? longest : (save > -longest ? save : -longest))},
            .name = is_named ? name : vcl_name};
        *object = new vmod_reprise_admission{admission_magic, varnish::open_gate(given)};
    } catch (const std::exception& failure) {
        VRT_fail(ctx, "reprise.admission %s: %s", vcl_name, failure.what());
    }
}

VCL_VOID vmod_admission__fini(struct vmod_reprise_admission** object) {
    try {
        delete *object;
    } catch (...) {  // what it had to say could not be put into words
    }
    *object = nullptr;
}

VCL_BOOL vmod_admission_seen(VRT_CTX,
                             struct vmod_reprise_admission* object,
                             struct VARGS(admission_seen) * given) {
    const auto& gate = *object->gate;
    const auto key = key_of(ctx, gate, given->valid_key != 0, given->key, "seen");
    if (!key) {
        return 1;
    }
    auto* const filter = gate.filter();
    constexpr unsigned is_a_mark = OC_F_HFM | OC_F_HFP;
    const auto* const stale = ctx->req->stale_oc;
    if (stale != nullptr &&
        (stale->flags & is_a_mark) == 0) {  // stored, and to be revalidated: as good as a hit
        reprise_admission_refresh(filter, *key, now_of(ctx));
        return 1;
    }
    if (!is_get(ctx->http_req) && !is_head(ctx->http_req)) {
        return 1;
    }
    auto* const request = is_get(ctx->http_req) ? record_of(ctx, object) : nullptr;
    if (request != nullptr && was_noted_as(*request, *key)) {
        return request->was_wanted ? 1 : 0;  // what the filter knows now is this request itself
    }
    const bool is_known = reprise_admission_wanted(filter, reprise_admission_peek(filter, *key)) !=
                          0;
    if (request != nullptr) {
        *request = {.key = *key, .was_wanted = is_known, .was_noted = false, .bytes_into = nullptr};
    }
    return is_known ? 1 : 0;
}

VCL_BOOL vmod_admission_note(VRT_CTX,
                             struct vmod_reprise_admission* object,
                             struct VARGS(admission_note) * given) {
    if (ctx->method != VCL_MET_DELIVER) {
        VRT_fail(ctx, "reprise: note is for vcl_deliver, where it is known what came");
        return 0;
    }
    return note_of(ctx, object, given) ? 1 : 0;
}

VCL_VOID vmod_admission_refresh(VRT_CTX,
                                struct vmod_reprise_admission* object,
                                struct VARGS(admission_refresh) * given) {
    const auto& gate = *object->gate;
    if (const auto key = key_of(ctx, gate, given->valid_key != 0, given->key, "refresh")) {
        reprise_admission_refresh(gate.filter(), *key, now_of(ctx));
    }
}

}  // extern "C"
