#include "tests/unit/filter/plugins/trafficserver/threads/fake_server.hpp"

#include <atomic>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <string_view>

namespace reprise::trafficserver::test {

namespace {

struct fake_cont {
    TSEventFunc on_event;
    void* data = nullptr;
};

struct fake_url {
    const fake_txn* of = nullptr;
};

// What a loc stands for: nothing is allocated for any.
enum class place : std::uintptr_t { head = 1, url = 2, copy = 3 };
TSMLoc loc_of(place what) noexcept {
    return reinterpret_cast<TSMLoc>(what);
}
bool is_at(TSMLoc loc, place what) noexcept {
    return reinterpret_cast<std::uintptr_t>(loc) == static_cast<std::uintptr_t>(what);
}
const fake_txn& txn_in(TSMBuffer buffer, TSMLoc loc) noexcept {
    return is_at(loc, place::copy) ? *reinterpret_cast<fake_url*>(buffer)->of
                                   : *reinterpret_cast<fake_txn*>(buffer);
}
fake_txn& txn_of(TSHttpTxn txn) noexcept {
    return *reinterpret_cast<fake_txn*>(txn);
}
const char* text(const char* what, int* length) noexcept {
    *length = static_cast<int>(std::string_view{what}.size());
    return what;
}

struct server {
    std::mutex guard;  // of what follows
    std::map<std::string, int> numbers;
    std::deque<std::atomic<std::int64_t>> values;
    std::map<std::string, std::int64_t> own;
    std::vector<TSCont> global, lifecycle, each_second;
    int slots = 0;
};
server& it() {
    static auto* const only =
        new server;  // plug-ins leave what must not end before the process does
    return *only;
}
void fire(std::vector<TSCont> server::*which, TSEvent event) {
    std::vector<TSCont> all;
    {
        const std::scoped_lock hold{it().guard};
        all = it().*which;
    }
    for (auto* const each : all) {
        reinterpret_cast<fake_cont*>(each)->on_event(each, event, nullptr);
    }
}
std::atomic<std::int64_t> clock_is_back{0};

std::atomic<std::int64_t>* value_of(int id) {
    const std::scoped_lock hold{it().guard};
    return &it().values[static_cast<std::size_t>(id)];
}

TSEvent event_of(TSHttpHookID moment) {
    switch (moment) {
    case TS_HTTP_CACHE_LOOKUP_COMPLETE_HOOK: return TS_EVENT_HTTP_CACHE_LOOKUP_COMPLETE;
    case TS_HTTP_READ_RESPONSE_HDR_HOOK: return TS_EVENT_HTTP_READ_RESPONSE_HDR;
    case TS_HTTP_TXN_CLOSE_HOOK: return TS_EVENT_HTTP_TXN_CLOSE;
    default: return TS_EVENT_NONE;
    }
}

}  // namespace

void fake_txn::reach(TSHttpHookID moment) {
    std::vector<TSCont> waiting;
    if (moment == TS_HTTP_CACHE_LOOKUP_COMPLETE_HOOK) {
        const std::scoped_lock hold{it().guard};
        waiting = it().global;
    }
    for (const auto& [when, cont] : hooks) {
        if (when == moment) {
            waiting.push_back(cont);
        }
    }
    for (auto* const each : waiting) {
        reinterpret_cast<fake_cont*>(each)->on_event(each, event_of(moment), as_txn());
    }
}

void fake_txn::run() {
    reach(TS_HTTP_CACHE_LOOKUP_COMPLETE_HOOK);
    if (found == TS_CACHE_LOOKUP_MISS) {
        reach(TS_HTTP_READ_RESPONSE_HDR_HOOK);
    }
    reach(TS_HTTP_TXN_CLOSE_HOOK);
}

void threads_are_ready() {
    fire(&server::lifecycle, TS_EVENT_LIFECYCLE_TASK_THREADS_READY);
}
void second_passes() {
    fire(&server::each_second, TS_EVENT_TIMEOUT);
}
void server_ends() {
    fire(&server::lifecycle, TS_EVENT_LIFECYCLE_SHUTDOWN);
}

void set_clock_back(std::int64_t by) {
    clock_is_back = by;
}

std::int64_t figure(const std::string& name) {
    int id = -1;
    return TSStatFindName(name.c_str(), &id) == TS_SUCCESS ? value_of(id)->load() : -1;
}

void set_figure(const std::string& name, std::int64_t value) {
    const std::scoped_lock hold{it().guard};
    it().own[name] = value;
}

}  // namespace reprise::trafficserver::test

using namespace reprise::trafficserver::test;

extern "C" {

// In the place of the C library's.
std::time_t time(std::time_t* to) noexcept {
    std::timespec now{};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const auto said = static_cast<std::time_t>(now.tv_sec - clock_is_back);
    if (to != nullptr) {
        *to = said;
    }
    return said;
}

const char* TS_MIME_FIELD_RANGE = "Range";
int TS_MIME_LEN_RANGE = 5;
const char* TS_HTTP_METHOD_GET = "GET";

void TSError(const char*, ...) {}
void TSWarning(const char*, ...) {}
void TSNote(const char*, ...) {}
void TSEmergency(const char*, ...) {
    std::abort();
}
const char* TSConfigDirGet() {
    return "/nowhere";
}
const char* TSInstallDirGet() {
    return "/nowhere";
}
const char* TSRuntimeDirGet() {
    return "/nowhere";
}
TSReturnCode TSPluginRegister(const TSPluginRegistrationInfo*) {
    return TS_SUCCESS;
}
TSReturnCode TSPluginDSOReloadEnable(int) {
    return TS_SUCCESS;
}

TSMutex TSMutexCreate() {
    return nullptr;
}
TSCont TSContCreate(TSEventFunc on_event, TSMutex) {
    return reinterpret_cast<TSCont>(new fake_cont{on_event});
}
void TSContDestroy(TSCont cont) {
    delete reinterpret_cast<fake_cont*>(cont);
}
void TSContDataSet(TSCont cont, void* data) {
    reinterpret_cast<fake_cont*>(cont)->data = data;
}
void* TSContDataGet(TSCont cont) {
    return reinterpret_cast<fake_cont*>(cont)->data;
}
TSAction TSContScheduleEveryOnPool(TSCont cont, TSHRTime, TSThreadPool) {
    const std::scoped_lock hold{it().guard};
    it().each_second.push_back(cont);
    return nullptr;
}
TSThread TSThreadCreate(TSThreadFunc, void*) {
    return nullptr;
}
void TSLifecycleHookAdd(TSLifecycleHookID, TSCont cont) {
    const std::scoped_lock hold{it().guard};
    for (auto* const each : it().lifecycle) {
        if (each == cont) {
            return;
        }
    }
    it().lifecycle.push_back(cont);
}
void TSHttpHookAdd(TSHttpHookID, TSCont cont) {
    const std::scoped_lock hold{it().guard};
    it().global.push_back(cont);
}

TSReturnCode TSUserArgIndexReserve(TSUserArgType type, const char*, const char*, int* index) {
    const std::scoped_lock hold{it().guard};
    *index = type == TS_USER_ARGS_TXN ? it().slots++ : 0;
    return TS_SUCCESS;
}
void TSUserArgSet(void* of, int index, void* value) {
    if (of != nullptr) {
        static_cast<fake_txn*>(of)->slots[static_cast<std::size_t>(index)] = value;
    }
}
void* TSUserArgGet(void* of, int index) {
    return of != nullptr ? static_cast<fake_txn*>(of)->slots[static_cast<std::size_t>(index)]
                         : nullptr;
}

TSReturnCode TSStatFindName(const char* name, int* id) {
    const std::scoped_lock hold{it().guard};
    const auto there = it().numbers.find(name);
    if (there == it().numbers.end()) {
        return TS_ERROR;
    }
    *id = there->second;
    return TS_SUCCESS;
}
int TSStatCreate(const char* name, TSRecordDataType, TSStatPersistence, TSStatSync) {
    const std::scoped_lock hold{it().guard};
    const auto id = static_cast<int>(it().values.size());
    it().values.emplace_back(0);
    it().numbers.emplace(name, id);
    return id;
}
void TSStatIntIncrement(int id, TSMgmtInt by) {
    *value_of(id) += by;
}
void TSStatIntSet(int id, TSMgmtInt value) {
    *value_of(id) = value;
}
TSReturnCode TSMgmtIntGet(const char* name, TSMgmtInt* value) {
    const std::scoped_lock hold{it().guard};
    const auto there = it().own.find(name);
    *value = there != it().own.end() ? there->second : 0;
    return there != it().own.end() ? TS_SUCCESS : TS_ERROR;
}

void TSHttpTxnHookAdd(TSHttpTxn txn, TSHttpHookID when, TSCont cont) {
    txn_of(txn).hooks.emplace_back(when, cont);
}
void TSHttpTxnReenable(TSHttpTxn txn, TSEvent) {
    ++txn_of(txn).reenabled;
}
uint64_t TSHttpTxnIdGet(TSHttpTxn txn) {
    return txn_of(txn).id;
}
int TSHttpTxnIsInternal(TSHttpTxn) {
    return 0;
}
TSReturnCode TSHttpTxnCacheLookupStatusGet(TSHttpTxn txn, int* found) {
    *found = txn_of(txn).found;
    return TS_SUCCESS;
}
int TSHttpTxnIsCacheable(TSHttpTxn txn, TSMBuffer, TSMBuffer) {
    return txn_of(txn).is_cacheable && !txn_of(txn).is_refused ? 1 : 0;
}
TSReturnCode TSHttpTxnServerRespNoStoreSet(TSHttpTxn txn, int is_refused) {
    txn_of(txn).is_refused = is_refused != 0;
    return TS_SUCCESS;
}
bool TSHttpTxnServerRespNoStoreGet(TSHttpTxn txn) {
    return txn_of(txn).is_refused;
}
int64_t TSHttpTxnServerRespBodyBytesGet(TSHttpTxn txn) {
    return txn_of(txn).body;
}
TSReturnCode TSHttpTxnClientReqGet(TSHttpTxn txn, TSMBuffer* buffer, TSMLoc* head) {
    *buffer = reinterpret_cast<TSMBuffer>(txn);
    *head = loc_of(place::head);
    return TS_SUCCESS;
}
TSReturnCode TSHttpTxnServerRespGet(TSHttpTxn txn, TSMBuffer* buffer, TSMLoc* head) {
    return TSHttpTxnClientReqGet(txn, buffer, head);
}
TSReturnCode TSHandleMLocRelease(TSMBuffer, TSMLoc, TSMLoc) {
    return TS_SUCCESS;
}
const char* TSHttpHdrMethodGet(TSMBuffer, TSMLoc, int* length) {
    return text(TS_HTTP_METHOD_GET, length);
}
TSHttpStatus TSHttpHdrStatusGet(TSMBuffer, TSMLoc) {
    return TS_HTTP_STATUS_OK;
}
TSReturnCode TSHttpHdrStatusSet(TSMBuffer, TSMLoc, TSHttpStatus) {
    return TS_SUCCESS;
}
TSMLoc TSMimeHdrFieldFind(TSMBuffer, TSMLoc, const char*, int) {
    return TS_NULL_MLOC;
}
TSReturnCode TSHttpHdrUrlGet(TSMBuffer, TSMLoc, TSMLoc* url) {
    *url = loc_of(place::url);
    return TS_SUCCESS;
}

TSMBuffer TSMBufferCreate() {
    return reinterpret_cast<TSMBuffer>(new fake_url);
}
TSReturnCode TSMBufferDestroy(TSMBuffer buffer) {
    delete reinterpret_cast<fake_url*>(buffer);
    return TS_SUCCESS;
}
TSReturnCode TSUrlCreate(TSMBuffer, TSMLoc* url) {
    *url = loc_of(place::copy);
    return TS_SUCCESS;
}
TSReturnCode TSHttpTxnCacheLookupUrlGet(TSHttpTxn txn, TSMBuffer buffer, TSMLoc) {
    reinterpret_cast<fake_url*>(buffer)->of = &txn_of(txn);
    return TS_SUCCESS;
}
const char* TSUrlSchemeGet(TSMBuffer, TSMLoc, int* length) {
    return text("http", length);
}
const char* TSUrlHostGet(TSMBuffer, TSMLoc, int* length) {
    return text("origin.test", length);
}
int TSUrlPortGet(TSMBuffer, TSMLoc) {
    return 80;
}
const char* TSUrlPathGet(TSMBuffer buffer, TSMLoc loc, int* length) {
    return text(txn_in(buffer, loc).path.c_str(), length);
}
const char* TSUrlHttpParamsGet(TSMBuffer, TSMLoc, int* length) {
    return text("", length);
}
const char* TSUrlHttpQueryGet(TSMBuffer, TSMLoc, int* length) {
    return text("", length);
}

}  // extern "C"
