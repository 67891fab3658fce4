/*
 * Admission for nginx's caches: what the parts of the module know of each other.
 *
 *     module.c     directives, variables, and the module itself
 *     zone.c       a filter in memory that all workers share: begun, kept over a reload, given back
 *     sight.c      the one question, when an upstream's head has come; and what a hit tells
 *     saver.c      the state, now and then by a thread of one worker, and at the end by the master
 *     status.c     the figures, as JSON and for Prometheus
 *
 * In a request nothing locks, nothing waits, and memory comes from the request's pool alone.
 */
#ifndef REPRISE_NGINX_MODULE_H
#define REPRISE_NGINX_MODULE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include <reprise/admission.h>

/* What all workers count, beside the filter in the zone's memory. */
typedef struct {
    ngx_atomic_t objects_not_stored;
    ngx_atomic_t bytes_not_stored;
    ngx_atomic_t objects_admitted;
    ngx_atomic_t bytes_admitted;
    ngx_atomic_t hits_lost;
    ngx_atomic_t saves;
    ngx_atomic_t saves_failed;
    ngx_atomic_t saved_at; /* seconds since 1970; 0: not since the memory was made */
    ngx_atomic_t tried_at; /* likewise; when the memory was made, before the first time */
    void* memory;          /* the filter's, at the same address in every worker */
    size_t bytes;
} reprise_shared_t;

typedef struct {
    ngx_str_t name;
    ngx_cycle_t* cycle;
    /* Where it was named first, for who forgot to declare it. */
    u_char* file;
    ngx_uint_t line;
    ngx_uint_t declared;

    reprise_admission_options options;
    ngx_str_t state; /* ends in a zero; of length 0: nothing is kept */
    time_t save;

    ngx_shm_zone_t* shm;
    reprise_shared_t* shared;
    reprise_admission* gate; /* null while a configuration is only tested */
    uint64_t saved;          /* what it had counted when this process saved it last */
} reprise_zone_t;

typedef struct {
    ngx_array_t zones; /* of reprise_zone_t * */
} reprise_main_conf_t;

typedef enum { reprise_by_request, reprise_json, reprise_prometheus } reprise_form_t;

typedef struct {
    reprise_zone_t* zone; /* null: off */
    reprise_form_t form;
} reprise_loc_conf_t;

/* What was decided about a response. */
typedef struct {
    reprise_zone_t* zone;
    ngx_http_upstream_state_t* state;
    unsigned seen;
    unsigned admitted : 1;
} reprise_sight_t;

extern ngx_module_t ngx_http_reprise_module;

/* reprise_admission zone=NAME ... */
char* reprise_zone_declare(ngx_conf_t* cf, ngx_command_t* command, void* conf);
/* The zone of this name, which may be declared later; null without memory. */
reprise_zone_t* reprise_zone_named(ngx_conf_t* cf, const ngx_str_t* name);
/* Whether every zone that is used is declared, and what would be right. */
ngx_int_t reprise_zones_judge(ngx_conf_t* cf);

ngx_int_t reprise_sight_begin(void);
/* How often the request's object was seen before it; negative: nobody asked. */
int reprise_sight_count(ngx_http_request_t* r);

ngx_int_t reprise_saver_begin(ngx_cycle_t* cycle);
/* Until no thread of ours is at a zone any more. */
void reprise_saver_wait(void);
void reprise_saver_end(ngx_cycle_t* cycle);

ngx_int_t reprise_status_handler(ngx_http_request_t* r);

#endif
