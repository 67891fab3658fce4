#include "filter/plugins/trafficserver/server.hpp"

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <mutex>

namespace reprise::trafficserver {

namespace {

using chore = void (*)() noexcept;
chore on_each_second = nullptr;
chore on_the_end = nullptr;
std::atomic<bool> are_ready{false};

int on_tick(TSCont, TSEvent, void*) {
    on_each_second();
    return 0;
}

/// A word of the whole server's for whoever is loaded later: its task threads run.
int ready_word() {
    int index = -1;
    return TSUserArgIndexReserve(TS_USER_ARGS_GLB,
                                 "reprise_task_threads",
                                 "whether task threads run, for plug-ins that are loaded later",
                                 &index) == TS_SUCCESS
               ? index
               : -1;
}

void begin_ticking() {
    are_ready.store(true, std::memory_order_release);
    static std::once_flag once;
    std::call_once(once, [] {
        TSContScheduleEveryOnPool(
            TSContCreate(on_tick, TSMutexCreate()), 1000, TS_THREAD_POOL_TASK);
    });
}

int on_lifecycle(TSCont, TSEvent event, void*) {
    if (event == TS_EVENT_LIFECYCLE_TASK_THREADS_READY) {
        if (const auto word = ready_word(); word >= 0) {
            static char yes;
            TSUserArgSet(nullptr, word, &yes);
        }
        begin_ticking();
    } else if (event == TS_EVENT_LIFECYCLE_SHUTDOWN) {
        on_the_end();
    }
    return 0;
}

}  // namespace

int figure_for(const std::string& name) {
    int id = -1;
    if (TSStatFindName(name.c_str(), &id) == TS_SUCCESS) {
        return id;
    }
    id = TSStatCreate(
        name.c_str(), TS_RECORDDATATYPE_INT, TS_STAT_NON_PERSISTENT, TS_STAT_SYNC_SUM);
    return id == TS_ERROR ? -1 : id;
}

void warn_without(const char* plugin, const std::string& of, std::span<const int> figures) {
    if (std::ranges::any_of(figures, [](int one) { return one < 0; })) {
        TSWarning("%s: %s has no statistics, or not all: raise "
                  "proxy.config.stat_api.max_stats_allowed",
                  plugin,
                  of.c_str());
    }
}

void keep_house(chore tick, chore end) {
    static std::once_flag once;
    std::call_once(once, [tick, end] {
        on_each_second = tick;
        on_the_end = end;
        auto* const cont = TSContCreate(on_lifecycle, nullptr);
        TSLifecycleHookAdd(TS_LIFECYCLE_SHUTDOWN_HOOK, cont);
        TSLifecycleHookAdd(TS_LIFECYCLE_TASK_THREADS_READY_HOOK, cont);
        const auto word = ready_word();
        if (word >= 0 && TSUserArgGet(nullptr, word) != nullptr) {
            begin_ticking();
        }
    });
}

bool has_task_threads() noexcept {
    return are_ready.load(std::memory_order_acquire);
}

void stay_loaded() noexcept {
    Dl_info where{};
    if (dladdr(reinterpret_cast<const void*>(&stay_loaded), &where) != 0 &&
        where.dli_fname != nullptr) {
        (void)dlopen(where.dli_fname, RTLD_NOW | RTLD_NODELETE | RTLD_NOLOAD);
    }
}

}  // namespace reprise::trafficserver
