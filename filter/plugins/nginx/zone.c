/*
 * A zone: a filter in memory that all workers share. See module.h.
 *
 * The master opens it before workers are forked, so that each has it at the same address. A reload has nginx hand the old
 * memory to the new configuration where name and size are the same; old workers go on writing into it until they are
 * done. So other options must never begin anew in memory that is in use: a zone whose options changed asks for a page
 * more where its size would be the same, and gets memory of its own.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "module.h"

enum { most_name = 64, most_shown = 100 };

static const char* const words_known = "zone=, objects=, age=, rate=, hits=, state= and save=";

static int is_name(const ngx_str_t* text) {
    size_t i;
    for (i = 0; i < text->len; ++i) {
        const u_char c = text->data[i];
        const int is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '_' && c != '-' && c != '.') {
            return 0;
        }
    }
    return text->len > 0 && text->len <= most_name;
}

/* As much of a word that is wrong as leaves room for what would be right. */
static ngx_str_t shown(const ngx_str_t* word) {
    const ngx_str_t start = {ngx_min(word->len, most_shown), word->data};
    return start;
}

reprise_zone_t* reprise_zone_named(ngx_conf_t* cf, const ngx_str_t* name) {
    reprise_main_conf_t* all = ngx_http_conf_get_module_main_conf(cf, ngx_http_reprise_module);
    reprise_zone_t** known = all->zones.elts;
    reprise_zone_t** place;
    reprise_zone_t* made;
    ngx_uint_t i;
    for (i = 0; i < all->zones.nelts; ++i) {
        if (known[i]->name.len == name->len &&
            ngx_memcmp(known[i]->name.data, name->data, name->len) == 0) {
            return known[i];
        }
    }
    if (!is_name(name)) {
        const ngx_str_t start = shown(name);
        ngx_conf_log_error(NGX_LOG_EMERG,
                           cf,
                           0,
                           "\"%V\" is no name of a zone: right would be 1 to %d letters, digits, "
                           "\"_\", \"-\" and \".\"",
                           &start,
                           most_name);
        return NULL;
    }
    made = ngx_pcalloc(cf->pool, sizeof *made);
    place = ngx_array_push(&all->zones);
    if (made == NULL || place == NULL) {
        return NULL;
    }
    made->name = *name;
    made->cycle = cf->cycle;
    made->file = cf->conf_file->file.name.data;
    made->line = cf->conf_file->line;
    *place = made;
    return made;
}

/* ---- Memory ---- */

static void* take_from_zone(void* context, size_t bytes, size_t alignment) {
    reprise_zone_t* zone = context;
    ngx_slab_pool_t* pool = (ngx_slab_pool_t*)zone->shm->shm.addr;
    if (alignment > ngx_pagesize) {
        return NULL; /* never of a filter */
    }
    /* Pages lie on their boundaries; what is less than one lies where the pool likes, so a small filter has one to itself. */
    zone->shared->memory = ngx_slab_alloc(pool, bytes < ngx_pagesize ? ngx_pagesize : bytes);
    zone->shared->bytes = bytes;
    return zone->shared->memory;
}

/* nginx gives back the whole zone. */
static void give_nothing_back(void* context, void* memory, size_t bytes) {
    (void)context;
    (void)memory;
    (void)bytes;
}

static void close_gate(void* data) {
    reprise_zone_t* zone = data;
    reprise_saver_wait();
    if (zone->gate != NULL) {
        reprise_admission_close(zone->gate);
        zone->gate = NULL;
    }
}

/* A folder that is not there is made, one step, and is the workers' then; none that is there is touched. */
static void make_folder(const reprise_zone_t* zone) {
    const ngx_core_conf_t* core = (ngx_core_conf_t*)ngx_get_conf(zone->cycle->conf_ctx,
                                                                 ngx_core_module);
    char folder[NGX_MAX_PATH + 1];
    const u_char* slash = (u_char*)strrchr((char*)zone->state.data, '/');
    const size_t length = slash != NULL ? (size_t)(slash - zone->state.data) : 0;
    if (length == 0 || length > NGX_MAX_PATH) {
        return;
    }
    ngx_memcpy(folder, zone->state.data, length);
    folder[length] = '\0';
    if (mkdir(folder, 0700) != 0) {
        if (ngx_errno != NGX_EEXIST) {
            ngx_log_error(NGX_LOG_ERR,
                          zone->cycle->log,
                          ngx_errno,
                          "reprise: zone \"%V\": mkdir \"%s\" failed: nothing will be kept there",
                          &zone->name,
                          folder);
        }
        return;
    }
    if (geteuid() == 0 && core->user != (ngx_uid_t)NGX_CONF_UNSET_UINT &&
        lchown(folder, core->user, (gid_t)-1) != 0) {
        ngx_log_error(NGX_LOG_ERR,
                      zone->cycle->log,
                      ngx_errno,
                      "reprise: zone \"%V\": lchown \"%s\" failed",
                      &zone->name,
                      folder);
    }
}

static ngx_int_t no_filter(const reprise_zone_t* zone, const reprise_error* error) {
    ngx_log_error(NGX_LOG_EMERG,
                  zone->cycle->log,
                  0,
                  "reprise: zone \"%V\": %s",
                  &zone->name,
                  error->text);
    return NGX_ERROR;
}

static ngx_int_t open_anew(reprise_zone_t* zone) {
    ngx_slab_pool_t* pool = (ngx_slab_pool_t*)zone->shm->shm.addr;
    reprise_admission_options options = zone->options;
    reprise_error error = REPRISE_ERROR_INIT;
    zone->shared = ngx_slab_calloc(pool, sizeof *zone->shared);
    if (zone->shared == NULL) {
        return NGX_ERROR;
    }
    zone->shared->tried_at = (ngx_atomic_uint_t)ngx_time();
    if (zone->state.len > 0) {
        options.state = (const char*)zone->state.data;
        make_folder(zone);
    }
    options.memory_take = take_from_zone;
    options.memory_give = give_nothing_back;
    options.memory_context = zone;
    if (reprise_admission_open(&options, ngx_time(), &zone->gate, &error) != REPRISE_OK) {
        return no_filter(zone, &error);
    }
    if (error.code != REPRISE_OK) {
        ngx_log_error(
            NGX_LOG_ERR, zone->cycle->log, 0, "reprise: zone \"%V\": %s", &zone->name, error.text);
    }
    return NGX_OK;
}

static ngx_int_t begin_zone(ngx_shm_zone_t* shm, void* before) {
    reprise_zone_t* zone = shm->data;
    const reprise_zone_t* old = before;
    reprise_error error = REPRISE_ERROR_INIT;
    ngx_pool_cleanup_t* at_end;
    if (ngx_test_config) {
        return NGX_OK;
    }
    at_end = ngx_pool_cleanup_add(zone->cycle->pool, 0);
    if (at_end == NULL) {
        return NGX_ERROR;
    }
    at_end->handler = close_gate;
    at_end->data = zone;
    if (old == NULL) {
        return open_anew(zone);
    }
    zone->shared = old->shared;
    if (reprise_admission_attach(zone->shared->memory, zone->shared->bytes, &zone->gate, &error) !=
        REPRISE_OK) {
        return no_filter(zone, &error);
    }
    if (zone->state.len > 0) {
        make_folder(zone); /* a reload may name another one */
    }
    return NGX_OK;
}

/* ---- reprise_admission ---- */

/* The zone of this name in the configuration before, if this very module has it. */
static const ngx_shm_zone_t* zone_before(const ngx_conf_t* cf, const ngx_str_t* name) {
    const ngx_list_part_t* part;
    if (cf->cycle->old_cycle == NULL || ngx_is_init_cycle(cf->cycle->old_cycle)) {
        return NULL;
    }
    for (part = &cf->cycle->old_cycle->shared_memory.part; part != NULL; part = part->next) {
        const ngx_shm_zone_t* zones = part->elts;
        ngx_uint_t i;
        for (i = 0; i < part->nelts; ++i) {
            if (zones[i].tag == &ngx_http_reprise_module && zones[i].shm.name.len == name->len &&
                ngx_memcmp(zones[i].shm.name.data, name->data, name->len) == 0) {
                return &zones[i];
            }
        }
    }
    return NULL;
}

static int same_filter(const reprise_admission_options* a, const reprise_admission_options* b) {
    return a->objects == b->objects && a->age == b->age && a->rate == b->rate && a->hits == b->hits;
}

/* Bytes of a slab pool that has room for the filter, for what workers count, and for its own book of pages. */
static size_t room_for(uint64_t bytes) {
    const size_t pages = (size_t)(bytes / ngx_pagesize) + 2;
    const size_t book = pages * (sizeof(ngx_slab_page_t) + 1);
    return (pages + book / ngx_pagesize + 8) * ngx_pagesize;
}

static char* refuse(ngx_conf_t* cf, const ngx_str_t* word, const char* right) {
    const ngx_str_t start = shown(word);
    ngx_conf_log_error(
        NGX_LOG_EMERG, cf, 0, "\"%V\" is not understood: right would be %s", &start, right);
    return NGX_CONF_ERROR;
}

static int starts_with(const ngx_str_t* text, const char* with) {
    const size_t length = ngx_strlen(with);
    return text->len >= length && ngx_memcmp(text->data, with, length) == 0;
}

static ngx_str_t behind(const ngx_str_t* text, const char* with) {
    const ngx_str_t rest = {text->len - ngx_strlen(with), text->data + ngx_strlen(with)};
    return rest;
}

/* Whether a state could be kept there, as far as that can be told without writing. */
static char* take_state(ngx_conf_t* cf, reprise_zone_t* zone, const ngx_str_t* word) {
    char folder[NGX_MAX_PATH + 1];
    struct stat facts;
    ngx_str_t path = behind(word, "state=");
    int up;
    if (path.len == 0 || path.data[path.len - 1] == '/' ||
        ngx_strlchr(path.data, path.data + path.len, '\0') != NULL) {
        return refuse(cf, word, "a file, such as state=/var/lib/nginx/reprise/seen");
    }
    if (ngx_conf_full_name(cf->cycle, &path, 0) != NGX_OK) {
        return NGX_CONF_ERROR;
    }
    if (path.len > NGX_MAX_PATH) {
        return refuse(cf, word, "a shorter path");
    }
    zone->state = path;
    if (stat((char*)path.data, &facts) == 0 && !S_ISREG(facts.st_mode)) {
        return refuse(cf, word, "a regular file, or none yet");
    }
    /* Its folder, or, where that is to be made, the one around it. */
    ngx_memcpy(folder, path.data, path.len);
    folder[path.len] = '\0';
    for (up = 0; up < 2; ++up) {
        char* slash = strrchr(folder, '/');
        if (slash == NULL || slash == folder) {
            return NGX_CONF_OK;
        }
        *slash = '\0';
        if (stat(folder, &facts) == 0) {
            return S_ISDIR(facts.st_mode) ? NGX_CONF_OK : refuse(cf, word, "a file in a folder");
        }
        if (ngx_errno != NGX_ENOENT) {
            break; /* who starts nginx may know better */
        }
        if (up == 1) {
            return refuse(cf, word, "a file in a folder that is there, or that can be made in one");
        }
    }
    return NGX_CONF_OK;
}

static char* take_word(ngx_conf_t* cf, reprise_zone_t* zone, const ngx_str_t* word) {
    reprise_error error = REPRISE_ERROR_INIT;
    if (starts_with(word, "state=")) {
        return take_state(cf, zone, word);
    }
    if (starts_with(word, "save=")) {
        ngx_str_t time = behind(word, "save=");
        zone->save = ngx_parse_time(&time, 1);
        return zone->save == (time_t)NGX_ERROR || zone->save < 1 || zone->save > 1000000
                   ? refuse(cf, word, "a time of 1s to 1000000s, such as save=300s")
                   : NGX_CONF_OK;
    }
    if (starts_with(word, "objects=") || starts_with(word, "age=") || starts_with(word, "rate=") ||
        starts_with(word, "hits=")) {
        if (reprise_admission_parse(&zone->options, (const char*)word->data, &error) !=
            REPRISE_OK) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "reprise_admission: %s", error.text);
            return NGX_CONF_ERROR;
        }
        return NGX_CONF_OK;
    }
    return refuse(cf, word, words_known);
}

static char* judge_state_alone(ngx_conf_t* cf,
                               const reprise_main_conf_t* all,
                               const reprise_zone_t* zone) {
    reprise_zone_t** zones = all->zones.elts;
    ngx_uint_t i;
    for (i = 0; i < all->zones.nelts; ++i) {
        if (zones[i] != zone && zones[i]->state.len > 0 && zones[i]->state.len == zone->state.len &&
            ngx_memcmp(zones[i]->state.data, zone->state.data, zone->state.len) == 0) {
            ngx_conf_log_error(
                NGX_LOG_EMERG,
                cf,
                0,
                "\"state=%V\" is zone \"%V\"'s too: right would be a file of its own",
                &zone->state,
                &zones[i]->name);
            return NGX_CONF_ERROR;
        }
    }
    return NGX_CONF_OK;
}

/* Where memory is made at the start, all of it is written to: more than there is would end in the kernel's choosing whom
 * to kill. */
static char* judge_memory(ngx_conf_t* cf, const reprise_zone_t* zone, uint64_t bytes) {
    const long pages = sysconf(_SC_PHYS_PAGES);
    const uint64_t there = pages > 0 ? (uint64_t)pages * ngx_pagesize : 0;
    if (there > 0 && bytes > there) {
        ngx_conf_log_error(NGX_LOG_EMERG,
                           cf,
                           0,
                           "zone \"%V\" would take %uL bytes, and this machine has %uL: right "
                           "would be fewer objects=, "
                           "fewer hits= or a larger rate=",
                           &zone->name,
                           bytes,
                           there);
        return NGX_CONF_ERROR;
    }
    return NGX_CONF_OK;
}

static char* make_shared(ngx_conf_t* cf, reprise_zone_t* zone) {
    const uint64_t bytes = reprise_admission_memory(&zone->options);
    const ngx_shm_zone_t* before = zone_before(cf, &zone->name);
    size_t size;
    if (bytes == 0 || judge_memory(cf, zone, bytes) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }
    size = room_for(bytes);
    if (before != NULL) {
        const reprise_zone_t* old = before->data;
        if (same_filter(&old->options, &zone->options)) {
            size = before->shm.size;
        } else {
            size += size == before->shm.size ? ngx_pagesize : 0;
            ngx_log_error(NGX_LOG_WARN,
                          cf->log,
                          0,
                          "reprise: zone \"%V\" has other options than before, and begins anew",
                          &zone->name);
        }
    }
    zone->shm = ngx_shared_memory_add(cf, &zone->name, size, &ngx_http_reprise_module);
    if (zone->shm == NULL) {
        return NGX_CONF_ERROR;
    }
    zone->shm->init = begin_zone;
    zone->shm->data = zone;
    return NGX_CONF_OK;
}

char* reprise_zone_declare(ngx_conf_t* cf, ngx_command_t* command, void* conf) {
    static const reprise_admission_options defaults = REPRISE_ADMISSION_OPTIONS_INIT;
    const reprise_main_conf_t* all = conf;
    ngx_str_t* words = cf->args->elts;
    reprise_zone_t* zone = NULL;
    ngx_uint_t i, other;
    (void)command;
    for (i = 1; i < cf->args->nelts; ++i) {
        const u_char* equals = ngx_strlchr(words[i].data, words[i].data + words[i].len, '=');
        const size_t name = equals != NULL ? (size_t)(equals - words[i].data) + 1 : words[i].len;
        for (other = 1; other < i; ++other) {
            if (words[other].len >= name &&
                ngx_memcmp(words[other].data, words[i].data, name) == 0) {
                return refuse(cf, &words[i], "each word once");
            }
        }
        if (starts_with(&words[i], "zone=")) {
            const ngx_str_t called = behind(&words[i], "zone=");
            zone = reprise_zone_named(cf, &called);
            if (zone == NULL) {
                return NGX_CONF_ERROR;
            }
        }
    }
    if (zone == NULL) {
        ngx_conf_log_error(
            NGX_LOG_EMERG,
            cf,
            0,
            "reprise_admission has no name: right would be zone=NAME beside the rest");
        return NGX_CONF_ERROR;
    }
    if (zone->declared) {
        ngx_conf_log_error(NGX_LOG_EMERG,
                           cf,
                           0,
                           "zone \"%V\" is declared twice: right would be another name",
                           &zone->name);
        return NGX_CONF_ERROR;
    }
    zone->declared = 1;
    zone->options = defaults;
    zone->save = 300;
    for (i = 1; i < cf->args->nelts; ++i) {
        if (!starts_with(&words[i], "zone=") && take_word(cf, zone, &words[i]) != NGX_CONF_OK) {
            return NGX_CONF_ERROR;
        }
    }
    return judge_state_alone(cf, all, zone) == NGX_CONF_OK ? make_shared(cf, zone) : NGX_CONF_ERROR;
}

ngx_int_t reprise_zones_judge(ngx_conf_t* cf) {
    const reprise_main_conf_t* all = ngx_http_conf_get_module_main_conf(cf,
                                                                        ngx_http_reprise_module);
    reprise_zone_t** zones = all->zones.elts;
    ngx_uint_t i;
    for (i = 0; i < all->zones.nelts; ++i) {
        if (!zones[i]->declared) {
            ngx_log_error(NGX_LOG_EMERG,
                          cf->log,
                          0,
                          "\"reprise_zone %V\" in %s:%ui: there is no such zone: right would be "
                          "\"reprise_admission "
                          "zone=%V ...\" in http",
                          &zones[i]->name,
                          zones[i]->file,
                          zones[i]->line,
                          &zones[i]->name);
            return NGX_ERROR;
        }
    }
    return NGX_OK;
}
