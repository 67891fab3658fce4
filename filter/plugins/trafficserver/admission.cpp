// reprise_admission.so: Traffic Server stores an object at its second request.
//
// How a miss goes. At TS_HTTP_CACHE_LOOKUP_COMPLETE_HOOK the filter is asked, before the cache is opened for
// writing: that the server spares an open, and a lock on the URL, is what makes a refusal cheaper than a store. What is not
// wanted gets "no store". At TS_HTTP_READ_RESPONSE_HDR_HOOK the server itself is asked whether it would store this response but
// for that, and only then the filter hears of it: private responses and failures fill nothing. At TS_HTTP_TXN_CLOSE_HOOK
// the body's length goes into the ledger. Nobody holds a lock; what a transaction has to remember is one `sight`.
//
// A hit does nothing but take its turn: one in eight tells the filter, and that once a generation (gate::is_to_be_told): the text of
// what was looked up is a copy of a URL, ten times what all else costs.

#include "filter/plugins/trafficserver/gates.hpp"
#include "filter/plugins/trafficserver/lookup_url.hpp"
#include "filter/plugins/trafficserver/rule_words.hpp"
#include "filter/plugins/trafficserver/server.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <ctime>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
// This order: remap.h includes nothing of what it needs.
// clang-format off
#include <ts/ts.h>
#include <ts/remap.h>
// clang-format on

namespace reprise::trafficserver {

namespace {

struct rule;

/// Who judges a transaction: in its slot, from a remap rule or the first look-up on. A rule goes before
/// plugin.config.
struct claim {
    const rule* by = nullptr;
    bool is_sight = false;
};

/// plugin.config's, or one of remap.config.
struct rule {
    explicit rule(const rule_options& words, bool is_pinned)
        : options(words),
          shared(gates::here().open(words, is_pinned)) {}
    rule(const rule&) = delete;
    rule& operator=(const rule&) = delete;
    ~rule() {
        if (lookups != nullptr) {
            TSContDestroy(lookups);
        }
    }

    rule_options options;
    std::shared_ptr<gate> shared;
    claim mark{this, false};
    TSCont lookups = nullptr;
};

/// What one transaction has to remember from its look-up on; ended by its close. The server calls it by a continuation of its
/// own, which knows it: to look it up by the transaction costs the server a dynamic_cast each time.
struct sight : claim {
    TSCont calls = nullptr;
    TSHttpTxn of = nullptr;  ///< null: it is spare
    reprise_key key{};
    unsigned before = 0;  ///< sights that the filter remembered
    bool is_wanted = false;
    bool is_refused = false;  ///< by us: nobody else had said "no store"
    bool is_range = false;    ///< the server stores no answer to such a request
    bool is_noted = false;
    bool counts_bytes = false;
};

int on_response_or_end(TSCont cont, TSEvent event, void* data);

/// Sights that have ended, with their continuations, for the next of one thread. Never destroyed: the server's threads end with the
/// process, when none of its functions may be called any more. A continuation counts for the server as a use of this library: it
/// stays where it is loaded (server.hpp), and hears of reloads that have no rule of it any more.
class spare_sights {
public:
    /// This thread's; null: there is no memory for it.
    static spare_sights* here() noexcept {
        thread_local spare_sights* mine = nullptr;
        if (mine == nullptr) {
            mine = new (std::nothrow) spare_sights;
        }
        return mine;
    }

    /// Null: there is no memory.
    sight* take() noexcept {
        if (kept_ != 0) {
            return all_[--kept_];
        }
        auto* const made = new (std::nothrow) sight;
        if (made != nullptr) {
            // No mutex: a transaction is on one thread at a time.
            made->calls = TSContCreate(on_response_or_end, nullptr);
            TSContDataSet(made->calls, made);
        }
        return made;
    }
    /// False: there is no room for it.
    bool give_back(sight* ended) noexcept {
        if (kept_ == all_.size()) {
            return false;
        }
        auto* const calls = ended->calls;
        *ended = {};
        ended->calls = calls;
        all_[kept_++] = ended;
        return true;
    }

private:
    spare_sights() noexcept : before_{last_.exchange(this)} {}

    static inline std::atomic<spare_sights*> last_ = nullptr;  ///< so that a search for leaks finds them all

    spare_sights* before_;
    std::array<sight*, 256> all_{};
    std::size_t kept_ = 0;
};

int slot = -1;
/// plugin.config has a line: then a rule has to say that a transaction is its own. Nothing is said where nobody asks.
bool is_for_all = false;

bool is_get(TSHttpTxn txn, bool& is_range) noexcept {
    TSMBuffer buffer = nullptr;
    TSMLoc head = TS_NULL_MLOC;
    if (TSHttpTxnClientReqGet(txn, &buffer, &head) != TS_SUCCESS) {
        return false;
    }
    int length = 0;
    const bool is_it = TSHttpHdrMethodGet(buffer, head, &length) == TS_HTTP_METHOD_GET;
    if (is_it) {
        auto* const range = TSMimeHdrFieldFind(
            buffer, head, TS_MIME_FIELD_RANGE, TS_MIME_LEN_RANGE);
        is_range = range != TS_NULL_MLOC;
        if (is_range) {
            TSHandleMLocRelease(buffer, head, range);
        }
    }
    TSHandleMLocRelease(buffer, TS_NULL_MLOC, head);
    return is_it;
}

bool concerns(const rule& by, TSHttpTxn txn) noexcept {
    return by.options.internal || TSHttpTxnIsInternal(txn) == 0;
}

/// The key of what was looked up; false where the rule is not for it.
bool key_of(const rule& by, TSHttpTxn txn, reprise_key& key) noexcept {
    lookup_url url;
    const auto text = url.read(txn);
    if (text.empty() || !is_for(by.options, text)) {
        return false;
    }
    key = reprise_admission_key(by.shared->filter(), text.data(), text.size());
    return true;
}

// ---- the three moments ----

/// The sight of this transaction that is the rule's; null where somebody else judges it, or there is no memory.
sight* sight_for(const rule& by, TSHttpTxn txn) noexcept {
    auto* const there = static_cast<claim*>(TSUserArgGet(txn, slot));
    if (there != nullptr && there->by != &by) {
        return nullptr;
    }
    if (there != nullptr && there->is_sight) {
        return static_cast<sight*>(
            there);  // a second look-up: after a redirect, or while another wrote
    }
    auto* const spare = spare_sights::here();
    auto* const made = spare != nullptr ? spare->take() : nullptr;
    if (made != nullptr) {
        made->by = &by;
        made->of = txn;
        made->is_sight = true;
        TSUserArgSet(txn, slot, static_cast<claim*>(made));
        TSHttpTxnHookAdd(txn, TS_HTTP_READ_RESPONSE_HDR_HOOK, made->calls);
        TSHttpTxnHookAdd(txn, TS_HTTP_TXN_CLOSE_HOOK, made->calls);
    }
    return made;
}

void missed(const rule& by, TSHttpTxn txn) noexcept {
    bool is_range = false;
    reprise_key key{};
    if (!concerns(by, txn) || !is_get(txn, is_range) || !key_of(by, txn, key)) {
        return;
    }
    auto* const now = sight_for(by, txn);
    if (now == nullptr) {
        return;
    }
    if (now->is_refused) {
        TSHttpTxnServerRespNoStoreSet(txn, 0);  // that was another URL, or the same is judged anew
        now->is_refused = false;
    }
    if (now->key.low != key.low || now->key.high != key.high) {
        now->is_noted = false;
    }
    auto* const filter = by.shared->filter();
    now->key = key;
    now->is_range = is_range;
    now->before = reprise_admission_peek(filter, key);
    now->is_wanted = by.options.when == policy::always ||
                     (by.options.when == policy::hits &&
                      reprise_admission_wanted(filter, now->before) != 0);
    if (!now->is_wanted && !TSHttpTxnServerRespNoStoreGet(txn)) {
        // Also of a range, which is stored by nobody here: what fetches the whole behind it (background_fetch) asks for this.
        TSHttpTxnServerRespNoStoreSet(txn, 1);
        now->is_refused = true;
    }
}

/// Whether the server would store this response, were it whole and nobody had said "no store".
bool is_storable(TSHttpTxn txn) noexcept {
    TSMBuffer buffer = nullptr;
    TSMLoc head = TS_NULL_MLOC;
    if (TSHttpTxnServerRespGet(txn, &buffer, &head) != TS_SUCCESS) {
        return false;
    }
    // As background_fetch does: with a header of our own in its place the server would read beyond it.
    const auto status = TSHttpHdrStatusGet(buffer, head);
    const bool is_of_whole = status == TS_HTTP_STATUS_PARTIAL_CONTENT ||
                             status == TS_HTTP_STATUS_NOT_MODIFIED;
    const bool is_refused = TSHttpTxnServerRespNoStoreGet(txn);
    if (is_of_whole) {
        TSHttpHdrStatusSet(buffer, head, TS_HTTP_STATUS_OK);
    }
    TSHttpTxnServerRespNoStoreSet(txn, 0);
    const bool is_it = TSHttpTxnIsCacheable(txn, nullptr, nullptr) != 0;
    TSHttpTxnServerRespNoStoreSet(txn, is_refused ? 1 : 0);
    if (is_of_whole) {
        TSHttpHdrStatusSet(buffer, head, status);
    }
    TSHandleMLocRelease(buffer, TS_NULL_MLOC, head);
    return is_it;
}

void came(const rule& by, TSHttpTxn txn, sight& now) noexcept {
    if (now.is_noted || !is_storable(txn)) {
        return;
    }
    now.is_noted = true;
    (void)reprise_admission_note(by.shared->filter(), now.key, std::time(nullptr));
    if (now.is_range) {
        return;
    }
    if (now.is_refused) {
        by.shared->count(counted::objects_not_stored, 1);
        now.counts_bytes = true;
    } else if (now.is_wanted && !TSHttpTxnServerRespNoStoreGet(txn)) {
        by.shared->count(counted::objects_admitted, 1);
        by.shared->count(counted::hits_lost, by.options.when == policy::hits ? now.before : 0);
        now.counts_bytes = true;
    }
}

void ended(const rule& by, TSHttpTxn txn, const sight& was) noexcept {
    if (was.counts_bytes) {
        by.shared->count(was.is_refused ? counted::bytes_not_stored : counted::bytes_admitted,
                         TSHttpTxnServerRespBodyBytesGet(txn));
    }
}

/// Takes turns by the transaction's number, mixed: clients that ask in rounds of eight would else be all or none of it.
bool is_turn(const rule& by, TSHttpTxn txn) noexcept {
    const auto one_in = by.options.refresh;
    if (one_in <= 1) {
        return one_in == 1;
    }
    const auto mixed = TSHttpTxnIdGet(txn) * 0x9e37'79b9'7f4a'7c15U;
    return (mixed >> 32) % one_in == 0;
}

/// A mark of the URL that was asked for; 0 where it was no GET. A tenth of what the text of the looked-up URL costs, which is a copy of it.
std::uint64_t mark_of(const rule& by, TSHttpTxn txn) noexcept {
    TSMBuffer buffer = nullptr;
    TSMLoc head = TS_NULL_MLOC;
    TSMLoc url = TS_NULL_MLOC;
    if (TSHttpTxnClientReqGet(txn, &buffer, &head) != TS_SUCCESS) {
        return 0;
    }
    std::uint64_t mark = 0;
    int length = 0;
    if (TSHttpHdrMethodGet(buffer, head, &length) == TS_HTTP_METHOD_GET &&
        TSHttpHdrUrlGet(buffer, head, &url) == TS_SUCCESS) {
        mark = 1;
        for (auto* const part : {TSUrlHostGet, TSUrlPathGet, TSUrlHttpQueryGet}) {
            const char* const text = part(buffer, url, &length);
            const auto size = text == nullptr ? 0 : static_cast<std::size_t>(length);
            mark = mark * 0x9e37'79b9'7f4a'7c15U +
                   reprise_admission_key(by.shared->filter(), size == 0 ? "" : text, size).low;
        }
        mark |= std::uint64_t{1} << 63;  // not 0
        TSHandleMLocRelease(buffer, head, url);
    }
    TSHandleMLocRelease(buffer, TS_NULL_MLOC, head);
    return mark;
}

void hit(const rule& by, TSHttpTxn txn) noexcept {
    if (!is_turn(by, txn) || !concerns(by, txn)) {
        return;
    }
    const auto* const there = static_cast<const claim*>(TSUserArgGet(txn, slot));
    const auto mark = there == nullptr || there->by == &by ? mark_of(by, txn) : 0;
    reprise_key key{};
    if (mark != 0 && by.shared->is_to_be_told(mark) && key_of(by, txn, key)) {
        reprise_admission_refresh(by.shared->filter(), key, std::time(nullptr));
    }
}

// ---- as the server calls them ----

int on_lookup(TSCont cont, TSEvent, void* data) {
    auto* const txn = static_cast<TSHttpTxn>(data);
    const auto& by = *static_cast<const rule*>(TSContDataGet(cont));
    int found = -1;
    if (TSHttpTxnCacheLookupStatusGet(txn, &found) == TS_SUCCESS) {
        if (found == TS_CACHE_LOOKUP_HIT_FRESH || found == TS_CACHE_LOOKUP_HIT_STALE) {
            hit(by, txn);
        } else if (found == TS_CACHE_LOOKUP_MISS) {
            missed(by, txn);
        }
    }
    TSHttpTxnReenable(txn, TS_EVENT_HTTP_CONTINUE);
    return 0;
}

int on_response_or_end(TSCont cont, TSEvent event, void* data) {
    auto* const txn = static_cast<TSHttpTxn>(data);
    auto* const now = static_cast<sight*>(TSContDataGet(cont));
    const bool is_its = now->of == txn;  // not where a transaction is closed twice
    if (is_its && event == TS_EVENT_HTTP_READ_RESPONSE_HDR) {
        came(*now->by, txn, *now);
    } else if (is_its && event == TS_EVENT_HTTP_TXN_CLOSE) {
        ended(*now->by, txn, *now);
        auto* const spare = spare_sights::here();
        if (spare == nullptr || !spare->give_back(now)) {
            TSContDestroy(cont);
            delete now;
        }  // nobody looks into the transaction's slot behind its close
    }
    TSHttpTxnReenable(txn, TS_EVENT_HTTP_CONTINUE);
    return 0;
}

std::unique_ptr<rule> make_rule(std::span<const char* const> words, bool is_pinned) {
    auto made = std::make_unique<rule>(parse_rule(words, TSRuntimeDirGet()), is_pinned);
    made->lookups = TSContCreate(on_lookup, nullptr);
    TSContDataSet(made->lookups, made.get());
    return made;
}

bool begin() {
    stay_loaded();
    if (TSUserArgIndexReserve(TS_USER_ARGS_TXN,
                              "reprise_admission",
                              "what is known of a transaction's miss",
                              &slot) != TS_SUCCESS) {
        return false;
    }
    start_keeping();
    return true;
}

constexpr const char* no_slot =
    "the server has no slot left in its transactions: there are too many plug-ins";

}  // namespace

}  // namespace reprise::trafficserver

namespace ats = reprise::trafficserver;

// ---- plugin.config ----

[[gnu::visibility("default")]] void TSPluginInit(int count, const char* words[]) {
    static const char own_name[] = "reprise_admission";
    TSPluginRegistrationInfo info{};
    info.plugin_name = own_name;
    info.vendor_name = "Reprise";
    info.support_email = "";
    if (TSPluginRegister(&info) != TS_SUCCESS) {
        TSError("reprise_admission: the server does not register it");
    }
    // Rules are to share what is here, and not to load a copy that has the same files.
    (void)TSPluginDSOReloadEnable(0);
    try {
        if (!ats::begin()) {
            throw std::runtime_error{ats::no_slot};
        }
        const std::span all{words, static_cast<std::size_t>(count)};
        // Never deleted: transactions go on until the process has ended.
        auto* const all_urls = ats::make_rule(all.subspan(all.empty() ? 0 : 1), true).release();
        TSHttpHookAdd(TS_HTTP_CACHE_LOOKUP_COMPLETE_HOOK, all_urls->lookups);
        ats::is_for_all = true;
    } catch (const std::exception& failure) {
        // A server that stores everything, where it was told not to, would be noticed by its disk's wear alone.
        TSEmergency("reprise_admission: plugin.config: %s", failure.what());
    }
}

// ---- remap.config ----

[[gnu::visibility("default")]] TSReturnCode TSRemapInit(TSRemapInterface* server,
                                                        char* error,
                                                        int room) {
    if (server->size < sizeof(TSRemapInterface)) {
        std::snprintf(
            error, static_cast<std::size_t>(room), "reprise_admission: made for another server");
        return TS_ERROR;
    }
    try {
        if (!ats::begin()) {
            throw std::runtime_error{ats::no_slot};
        }
        return TS_SUCCESS;
    } catch (const std::exception& failure) {
        std::snprintf(
            error, static_cast<std::size_t>(room), "reprise_admission: %s", failure.what());
        return TS_ERROR;
    }
}

[[gnu::visibility("default")]] void TSRemapPreConfigReload() {
    ats::gates::here().before_reload();
}

[[gnu::visibility("default")]] void TSRemapPostConfigReload(TSRemapReloadStatus status) {
    ats::gates::here().after_reload(status != TSREMAP_CONFIG_RELOAD_FAILURE,
                                    status == TSREMAP_CONFIG_RELOAD_SUCCESS_PLUGIN_USED);
}

[[gnu::visibility("default")]] TSReturnCode TSRemapNewInstance(
    int count, char* words[], void** instance, char* error, int room) {
    try {
        const std::span<const char* const> all{words, static_cast<std::size_t>(count)};
        *instance =
            ats::make_rule(all.subspan(std::min<std::size_t>(2, all.size())), false).release();
        return TS_SUCCESS;
    } catch (const std::exception& failure) {
        std::snprintf(
            error, static_cast<std::size_t>(room), "reprise_admission: %s", failure.what());
        return TS_ERROR;
    }
}

[[gnu::visibility("default")]] void TSRemapDeleteInstance(void* instance) {
    delete static_cast<ats::rule*>(instance);
}

[[gnu::visibility("default")]] TSRemapStatus TSRemapDoRemap(void* instance,
                                                            TSHttpTxn txn,
                                                            TSRemapRequestInfo*) {
    auto& by = *static_cast<ats::rule*>(instance);
    if (ats::is_for_all) {
        if (TSUserArgGet(txn, ats::slot) != nullptr) {
            return TSREMAP_NO_REMAP;  // the first of two rules of ours is the one
        }
        TSUserArgSet(txn, ats::slot, &by.mark);
    }
    TSHttpTxnHookAdd(txn, TS_HTTP_CACHE_LOOKUP_COMPLETE_HOOK, by.lookups);
    return TSREMAP_NO_REMAP;
}
