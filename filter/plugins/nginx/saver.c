/*
 * The state's way to its file. See module.h.
 *
 * Now and then by a thread that the first worker starts for it, and that ends with it: an event loop waits for no disk, and
 * thread pools are a configuration's own (the default one is 32 threads in every worker). A worker that is to quit
 * begins none. At the end by the master, when its workers are gone and nobody writes any more; but not where a new binary
 * has taken over, whose file it is then.
 */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "module.h"

enum {
    look_again = 50, /* milliseconds, while a thread is at work */
    most_alone =
        5 /* seconds, where there is one process: a reload doesn't begin it anew, and may have a shorter save= */
};

/* One at a time in a process. Its thread owns all but `done` while it is at work. */
static struct {
    ngx_event_t timer;
    ngx_connection_t nobody; /* a timer's data, for the log */
    pthread_t thread;
    int at_work;
    int done; /* atomic */
    reprise_zone_t* zone;
    int code;
    int skipped;
    reprise_error error;
} saver;

static uint64_t counted(const reprise_zone_t* zone) {
    reprise_admission_figures figures = REPRISE_ADMISSION_FIGURES_INIT;
    (void)reprise_admission_read(zone->gate, 0, &figures);
    return 1 + figures.first_sights + figures.repeats + figures.refreshes + figures.generation;
}

static void* save_one(void* nothing) {
    const reprise_error none = REPRISE_ERROR_INIT;
    const uint64_t now = counted(saver.zone);
    (void)nothing;
    saver.error = none;
    saver.code = REPRISE_OK;
    saver.skipped = now == saver.zone->saved;
    if (!saver.skipped) {
        saver.code = reprise_admission_save(
            saver.zone->gate, (const char*)saver.zone->state.data, &saver.error);
        if (saver.code == REPRISE_OK) {
            saver.zone->saved = now;
        }
    }
    __atomic_store_n(&saver.done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void note_saved(reprise_zone_t* zone, int code, const reprise_error* error, ngx_log_t* log) {
    if (code == REPRISE_OK) {
        (void)ngx_atomic_fetch_add(&zone->shared->saves, 1);
        zone->shared->saved_at = (ngx_atomic_uint_t)ngx_time();
        return;
    }
    (void)ngx_atomic_fetch_add(&zone->shared->saves_failed, 1);
    ngx_log_error(NGX_LOG_ERR, log, 0, "reprise: zone \"%V\": %s", &zone->name, error->text);
}

void reprise_saver_wait(void) {
    if (saver.at_work) {
        (void)pthread_join(saver.thread, NULL);
        saver.at_work = 0;
        if (!saver.skipped) {
            note_saved(saver.zone, saver.code, &saver.error, ngx_cycle->log);
        }
    }
}

static void begin_thread(reprise_zone_t* zone) {
    pthread_attr_t attributes;
    sigset_t all, before;
    int failed;
    saver.zone = zone;
    saver.done = 0;
    zone->shared->tried_at = (ngx_atomic_uint_t)ngx_time();
    /* Signals are the worker's. */
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    failed = pthread_attr_init(&attributes);
    if (failed == 0) {
        (void)pthread_attr_setstacksize(&attributes, 512 * 1024);
        failed = pthread_create(&saver.thread, &attributes, save_one, NULL);
        (void)pthread_attr_destroy(&attributes);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    saver.at_work = failed == 0;
    if (failed != 0) {
        (void)ngx_atomic_fetch_add(&zone->shared->saves_failed, 1);
        ngx_log_error(NGX_LOG_ERR,
                      ngx_cycle->log,
                      failed,
                      "reprise: zone \"%V\" is not saved: no thread",
                      &zone->name);
    }
}

/* Milliseconds until the next zone is due, and that zone if it is now. */
static ngx_msec_t next_due(reprise_zone_t** due) {
    const reprise_main_conf_t* all = ngx_http_cycle_get_module_main_conf(ngx_cycle,
                                                                         ngx_http_reprise_module);
    time_t least = ngx_process == NGX_PROCESS_SINGLE ? most_alone : 3600;
    ngx_uint_t i;
    *due = NULL;
    for (i = 0; all != NULL && i < all->zones.nelts; ++i) {
        reprise_zone_t* zone = ((reprise_zone_t**)all->zones.elts)[i];
        time_t left;
        if (zone->gate == NULL || zone->state.len == 0) {
            continue;
        }
        left = (time_t)zone->shared->tried_at + zone->save - ngx_time();
        if (left > zone->save) {
            zone->shared->tried_at = (ngx_atomic_uint_t)ngx_time(); /* a clock was set back */
            left = zone->save;
        }
        if (left <= 0) {
            *due = zone;
            return 0;
        }
        least = left < least ? left : least;
    }
    return (ngx_msec_t)least * 1000;
}

static void on_timer(ngx_event_t* timer) {
    ngx_msec_t wait = look_again;
    reprise_zone_t* due;
    if (ngx_exiting || ngx_quit || ngx_terminate) {
        return;
    }
    if (!saver.at_work || __atomic_load_n(&saver.done, __ATOMIC_ACQUIRE)) {
        reprise_saver_wait();
        wait = next_due(&due);
        if (due != NULL) {
            begin_thread(due);
            wait = look_again;
        }
    }
    timer->log = ngx_cycle->log; /* one process goes on over a reload, and the log of before ends */
    ngx_add_timer(timer, wait);
}

static void name_what_cant_be_written(const reprise_zone_t* zone, ngx_log_t* log) {
    char folder[NGX_MAX_PATH + 1];
    char* slash;
    if (zone->state.len > NGX_MAX_PATH) {
        return;
    }
    ngx_memcpy(folder, zone->state.data, zone->state.len);
    folder[zone->state.len] = '\0';
    slash = strrchr(folder, '/');
    if (slash == NULL) {
        return;
    }
    slash[slash == folder ? 1 : 0] = '\0';
    if (access(folder, W_OK | X_OK) != 0) {
        ngx_log_error(NGX_LOG_ERR,
                      log,
                      ngx_errno,
                      "reprise: zone \"%V\": workers can't write in \"%s\": only an orderly end "
                      "will keep its state",
                      &zone->name,
                      folder);
    }
}

ngx_int_t reprise_saver_begin(ngx_cycle_t* cycle) {
    const reprise_main_conf_t* all = ngx_http_cycle_get_module_main_conf(cycle,
                                                                         ngx_http_reprise_module);
    ngx_uint_t i, kept = 0;
    ngx_memzero(&saver, sizeof saver); /* a fork takes over none of its parent's threads */
    if ((ngx_process != NGX_PROCESS_WORKER && ngx_process != NGX_PROCESS_SINGLE) ||
        ngx_worker != 0 || all == NULL) {
        return NGX_OK;
    }
    for (i = 0; i < all->zones.nelts; ++i) {
        const reprise_zone_t* zone = ((reprise_zone_t**)all->zones.elts)[i];
        if (zone->gate != NULL && zone->state.len > 0) {
            ++kept;
            name_what_cant_be_written(zone, cycle->log);
        }
    }
    /* One process may come to have zones by a reload, without being begun anew. */
    if (kept > 0 || ngx_process == NGX_PROCESS_SINGLE) {
        saver.nobody.fd = (ngx_socket_t)-1;
        saver.timer.handler = on_timer;
        saver.timer.data = &saver.nobody;
        saver.timer.log = cycle->log;
        saver.timer.cancelable = 1;
        ngx_add_timer(&saver.timer, 1000);
    }
    return NGX_OK;
}

void reprise_saver_end(ngx_cycle_t* cycle) {
    const reprise_main_conf_t* all = ngx_http_cycle_get_module_main_conf(cycle,
                                                                         ngx_http_reprise_module);
    ngx_uint_t i;
    reprise_saver_wait();
    for (i = 0; all != NULL && ngx_new_binary == 0 && i < all->zones.nelts; ++i) {
        reprise_zone_t* zone = ((reprise_zone_t**)all->zones.elts)[i];
        if (zone->gate != NULL && zone->state.len > 0) {
            reprise_error error = REPRISE_ERROR_INIT;
            const int code = reprise_admission_save(
                zone->gate, (const char*)zone->state.data, &error);
            note_saved(zone, code, &error, cycle->log);
        }
    }
}
