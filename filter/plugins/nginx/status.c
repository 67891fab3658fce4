/*
 * The figures of all zones, as JSON and for Prometheus. See module.h.
 *
 * The names are those of every plug-in (filter/plugins/README.md). A zone's name needs no quoting in either form.
 */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "module.h"

typedef enum { whole, share, seconds } kind_t;

typedef struct {
    const char* name;
    const char* type;
    const char* help;
    kind_t kind;
} figure_t;

/* In the order in which read_figures fills them in. */
static const figure_t figures[] = {
    {"objects_not_stored",
     "counter",
     "Storable responses that the filter kept out of the cache.",
     whole},
    {"bytes_not_stored", "counter", "Their bodies' bytes.", whole},
    {"objects_admitted", "counter", "Storable responses that the filter let in.", whole},
    {"bytes_admitted", "counter", "Their bodies' bytes.", whole},
    {"hits_lost",
     "counter",
     "Requests that would have been hits, had the first one been stored, at most.",
     whole},
    {"refreshes", "counter", "Hits that wrote into the filter.", whole},
    {"first_sights", "counter", "Sights of keys that were not known.", whole},
    {"repeats", "counter", "Sights of keys that were.", whole},
    {"young_fill", "gauge", "Share of bits that are on in the young generation.", share},
    {"old_fill", "gauge", "Share of bits that are on in the old generation.", share},
    {"strangers_known", "gauge", "Share of the keys never seen that are taken for seen.", share},
    {"remembers_for",
     "gauge",
     "Seconds that a key is remembered at least at the present rate.",
     seconds},
    {"memory", "gauge", "Bytes of the zone's shared memory.", whole},
    {"generation", "counter", "How often the young generation became old.", whole},
    {"objects", "gauge", "Keys to remember at least.", whole},
    {"age", "gauge", "Seconds to remember a key, unless as many others came since.", seconds},
    {"rate",
     "gauge",
     "Strangers that may be taken for seen when both generations are full.",
     share},
    {"hits", "gauge", "At which request an object is stored.", whole},
    {"saves", "counter", "How often the state was written.", whole},
    {"saves_failed", "counter", "How often it could not be.", whole},
    {"saved_at",
     "gauge",
     "When it was written last, in seconds since 1970; 0: not since the start.",
     seconds},
};

enum { figure_count = sizeof figures / sizeof figures[0], most_line = 400, most_number = 32 };

typedef double values_t[figure_count];

static void read_figures(const reprise_zone_t* zone, values_t out) {
    reprise_admission_figures of = REPRISE_ADMISSION_FIGURES_INIT;
    const reprise_shared_t* shared = zone->shared;
    double* next = out;
    (void)reprise_admission_read(zone->gate, ngx_time(), &of);
    *next++ = (double)shared->objects_not_stored;
    *next++ = (double)shared->bytes_not_stored;
    *next++ = (double)shared->objects_admitted;
    *next++ = (double)shared->bytes_admitted;
    *next++ = (double)shared->hits_lost;
    *next++ = (double)of.refreshes;
    *next++ = (double)of.first_sights;
    *next++ = (double)of.repeats;
    *next++ = of.young_fill;
    *next++ = of.old_fill;
    *next++ = of.strangers_known;
    *next++ = (double)of.remembers_for;
    *next++ = (double)zone->shm->shm.size;
    *next++ = (double)of.generation;
    *next++ = (double)of.objects;
    *next++ = (double)of.age;
    *next++ = of.rate;
    *next++ = (double)of.hits;
    *next++ = (double)shared->saves;
    *next++ = (double)shared->saves_failed;
    *next++ = (double)shared->saved_at;
}

typedef struct {
    u_char* at;
    u_char* end;
} text_t;

__attribute__((format(printf, 2, 3))) static void add(text_t* text, const char* format, ...) {
    const size_t room = (size_t)(text->end - text->at);
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vsnprintf((char*)text->at, room, format, arguments);
    va_end(arguments);
    if (length > 0) {
        text->at += (size_t)length < room ? (size_t)length : (room > 0 ? room - 1 : 0);
    }
}

static void add_number(text_t* text, const figure_t* figure, double value) {
    if (!isfinite(value)) {
        value = 0;
    }
    add(text, figure->kind == share ? "%.9g" : "%.0f", value);
}

static void write_json(text_t* text,
                       reprise_zone_t* const* zones,
                       values_t* values,
                       ngx_uint_t count) {
    ngx_uint_t i, one;
    add(text, "{\"zones\":{");
    for (i = 0; i < count; ++i) {
        add(text, "%s\"%.*s\":{", i > 0 ? "," : "", (int)zones[i]->name.len, zones[i]->name.data);
        for (one = 0; one < figure_count; ++one) {
            add(text, "%s\"%s\":", one > 0 ? "," : "", figures[one].name);
            add_number(text, &figures[one], values[i][one]);
        }
        add(text, "}");
    }
    add(text, "}}\n");
}

/* Words at the end that Prometheus wants: what is counted, and in what. */
static const char* suffix_of(const figure_t* figure) {
    return figure->type[0] == 'c' ? "_total" : (figure->kind == seconds ? "_seconds" : "");
}

static void write_prometheus(text_t* text,
                             reprise_zone_t* const* zones,
                             values_t* values,
                             ngx_uint_t count) {
    ngx_uint_t i, one;
    for (one = 0; one < figure_count; ++one) {
        const figure_t* figure = &figures[one];
        const char* suffix = suffix_of(figure);
        add(text, "# HELP reprise_%s%s %s\n", figure->name, suffix, figure->help);
        add(text, "# TYPE reprise_%s%s %s\n", figure->name, suffix, figure->type);
        for (i = 0; i < count; ++i) {
            add(text,
                "reprise_%s%s{zone=\"%.*s\"} ",
                figure->name,
                suffix,
                (int)zones[i]->name.len,
                zones[i]->name.data);
            add_number(text, figure, values[i][one]);
            add(text, "\n");
        }
    }
}

static int has(const ngx_str_t* text, char* word) {
    return text->len > 0 &&
           ngx_strlcasestrn(
               text->data, text->data + text->len, (u_char*)word, ngx_strlen(word) - 1) != NULL;
}

static const ngx_str_t* accept_of(const ngx_http_request_t* r) {
    static const ngx_str_t none = ngx_null_string;
    const ngx_list_part_t* part;
    for (part = &r->headers_in.headers.part; part != NULL; part = part->next) {
        const ngx_table_elt_t* fields = part->elts;
        ngx_uint_t i;
        for (i = 0; i < part->nelts; ++i) {
            if (fields[i].key.len == 6 &&
                ngx_strncasecmp(fields[i].key.data, (u_char*)"accept", 6) == 0) {
                return &fields[i].value;
            }
        }
    }
    return &none;
}

/* The location's, else ?format=, else what the client accepts. False where the argument is none of ours. */
static int form_for(ngx_http_request_t* r, reprise_form_t asked, reprise_form_t* out) {
    const ngx_str_t* accept;
    ngx_str_t value;
    *out = asked;
    if (asked != reprise_by_request) {
        return 1;
    }
    if (ngx_http_arg(r, (u_char*)"format", 6, &value) == NGX_OK) {
        const int is_json = value.len == 4 && ngx_memcmp(value.data, "json", 4) == 0;
        *out = is_json ? reprise_json : reprise_prometheus;
        return is_json || (value.len == 10 && ngx_memcmp(value.data, "prometheus", 10) == 0);
    }
    accept = accept_of(r);
    *out = !has(accept, "application/json") &&
                   (has(accept, "text/plain") || has(accept, "openmetrics-text"))
               ? reprise_prometheus
               : reprise_json;
    return 1;
}

static ngx_int_t send_page(ngx_http_request_t* r, reprise_form_t form, ngx_buf_t* body) {
    static ngx_str_t json = ngx_string("application/json");
    static ngx_str_t prometheus = ngx_string("text/plain; version=0.0.4; charset=utf-8");
    ngx_chain_t out = {body, NULL};
    ngx_int_t rc;
    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = body->last - body->pos;
    r->headers_out.content_type = form == reprise_json ? json : prometheus;
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;
    rc = ngx_http_send_header(r);
    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }
    return ngx_http_output_filter(r, &out);
}

ngx_int_t reprise_status_handler(ngx_http_request_t* r) {
    const reprise_main_conf_t* all = ngx_http_get_module_main_conf(r, ngx_http_reprise_module);
    const reprise_loc_conf_t* here = ngx_http_get_module_loc_conf(r, ngx_http_reprise_module);
    reprise_zone_t* const* zones = all->zones.elts;
    const ngx_uint_t count = all->zones.nelts;
    const size_t room = (count + 1) * figure_count * most_line;
    reprise_form_t form;
    values_t* values;
    ngx_buf_t* body;
    text_t text;
    ngx_uint_t i;
    ngx_int_t rc;
    if (!(r->method & (NGX_HTTP_GET | NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }
    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }
    if (!form_for(r, here->form, &form)) {
        return NGX_HTTP_BAD_REQUEST;
    }
    values = ngx_pcalloc(r->pool, (count + 1) * sizeof *values);
    body = ngx_create_temp_buf(r->pool, room);
    if (values == NULL || body == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }
    for (i = 0; i < count; ++i) {
        read_figures(zones[i], values[i]);
    }
    text.at = body->last;
    text.end = body->end;
    if (form == reprise_json) {
        write_json(&text, zones, values, count);
    } else {
        write_prometheus(&text, zones, values, count);
    }
    body->last = text.at;
    body->last_buf = r == r->main;
    body->last_in_chain = 1;
    return send_page(r, form, body);
}
