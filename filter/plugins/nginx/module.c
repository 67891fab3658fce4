/* Directives, variables, and the module itself. See module.h. */
#include "module.h"

static char* set_zone(ngx_conf_t* cf, ngx_command_t* command, void* conf);
static char* set_status(ngx_conf_t* cf, ngx_command_t* command, void* conf);
static ngx_int_t add_variables(ngx_conf_t* cf);
static ngx_int_t begin(ngx_conf_t* cf);
static void* make_main_conf(ngx_conf_t* cf);
static void* make_loc_conf(ngx_conf_t* cf);
static char* merge_loc_conf(ngx_conf_t* cf, void* outer, void* inner);

static ngx_command_t commands[] = {
    {ngx_string("reprise_admission"),
     NGX_HTTP_MAIN_CONF | NGX_CONF_1MORE,
     reprise_zone_declare,
     NGX_HTTP_MAIN_CONF_OFFSET,
     0,
     NULL},
    {ngx_string("reprise_zone"),
     NGX_HTTP_MAIN_CONF | NGX_HTTP_SRV_CONF | NGX_HTTP_LOC_CONF | NGX_CONF_TAKE1,
     set_zone,
     NGX_HTTP_LOC_CONF_OFFSET,
     0,
     NULL},
    {ngx_string("reprise_status"),
     NGX_HTTP_LOC_CONF | NGX_CONF_NOARGS | NGX_CONF_TAKE1,
     set_status,
     NGX_HTTP_LOC_CONF_OFFSET,
     0,
     NULL},
    ngx_null_command};

static ngx_http_module_t context = {
    add_variables, begin, make_main_conf, NULL, NULL, NULL, make_loc_conf, merge_loc_conf};

ngx_module_t ngx_http_reprise_module = {NGX_MODULE_V1,
                                        &context,
                                        commands,
                                        NGX_HTTP_MODULE,
                                        NULL,
                                        NULL,
                                        reprise_saver_begin,
                                        NULL,
                                        NULL,
                                        NULL,
                                        reprise_saver_end,
                                        NGX_MODULE_V1_PADDING};

/* What nginx looks for in a dynamic module. Behind the modules that make heads, before those that make bodies: so an
 * auxiliary filter stands. */
#define SEEN_BY_NGINX __attribute__((visibility("default")))
SEEN_BY_NGINX ngx_module_t* ngx_modules[] = {&ngx_http_reprise_module, NULL};
SEEN_BY_NGINX char* ngx_module_names[] = {"ngx_http_reprise_module", NULL};
SEEN_BY_NGINX char* ngx_module_order[] = {
    "ngx_http_reprise_module", "ngx_http_copy_filter_module", NULL};

static char* set_zone(ngx_conf_t* cf, ngx_command_t* command, void* conf) {
    reprise_loc_conf_t* here = conf;
    ngx_str_t* value = cf->args->elts;
    (void)command;
    if (here->zone != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }
    if (value[1].len == 3 && ngx_strncmp(value[1].data, "off", 3) == 0) {
        here->zone = NULL;
        return NGX_CONF_OK;
    }
    here->zone = reprise_zone_named(cf, &value[1]);
    return here->zone != NULL ? NGX_CONF_OK : NGX_CONF_ERROR;
}

static char* set_status(ngx_conf_t* cf, ngx_command_t* command, void* conf) {
    reprise_loc_conf_t* here = conf;
    ngx_str_t* value = cf->args->elts;
    ngx_http_core_loc_conf_t* core = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    (void)command;
    here->form = reprise_by_request;
    if (cf->args->nelts > 1) {
        if (ngx_strcmp(value[1].data, "json") == 0) {
            here->form = reprise_json;
        } else if (ngx_strcmp(value[1].data, "prometheus") == 0) {
            here->form = reprise_prometheus;
        } else {
            ngx_conf_log_error(
                NGX_LOG_EMERG,
                cf,
                0,
                "\"reprise_status %*s\" is not understood: right would be json, prometheus, or "
                "nothing, where a request says which",
                ngx_min(value[1].len, 100),
                value[1].data);
            return NGX_CONF_ERROR;
        }
    }
    core->handler = reprise_status_handler;
    return NGX_CONF_OK;
}

static ngx_int_t seen_variable(ngx_http_request_t* r,
                               ngx_http_variable_value_t* value,
                               uintptr_t data) {
    const int seen = reprise_sight_count(r);
    u_char* text;
    (void)data;
    if (seen < 0) {
        value->not_found = 1;
        return NGX_OK;
    }
    text = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (text == NULL) {
        return NGX_ERROR;
    }
    value->data = text;
    value->len = (unsigned)(ngx_sprintf(text, "%d", seen) - text);
    value->valid = 1;
    value->no_cacheable = 0;
    value->not_found = 0;
    return NGX_OK;
}

static ngx_int_t ruling_variable(ngx_http_request_t* r,
                                 ngx_http_variable_value_t* value,
                                 uintptr_t data) {
    static const ngx_str_t admitted = ngx_string("admitted");
    static const ngx_str_t refused = ngx_string("refused");
    const reprise_sight_t* sight = ngx_http_get_module_ctx(r, ngx_http_reprise_module);
    const ngx_str_t* word = sight != NULL && sight->admitted ? &admitted : &refused;
    (void)data;
    if (sight == NULL) {
        value->not_found = 1;
        return NGX_OK;
    }
    value->data = word->data;
    value->len = (unsigned)word->len;
    value->valid = 1;
    value->no_cacheable = 0;
    value->not_found = 0;
    return NGX_OK;
}

static ngx_int_t add_variables(ngx_conf_t* cf) {
    static ngx_str_t seen = ngx_string("reprise_seen");
    static ngx_str_t ruling = ngx_string("reprise_ruling");
    /* Both change when the upstream's head has come. */
    ngx_http_variable_t* variable = ngx_http_add_variable(cf, &seen, NGX_HTTP_VAR_NOCACHEABLE);
    if (variable == NULL) {
        return NGX_ERROR;
    }
    variable->get_handler = seen_variable;
    variable = ngx_http_add_variable(cf, &ruling, NGX_HTTP_VAR_NOCACHEABLE);
    if (variable == NULL) {
        return NGX_ERROR;
    }
    variable->get_handler = ruling_variable;
    return NGX_OK;
}

static ngx_int_t begin(ngx_conf_t* cf) {
    return reprise_zones_judge(cf) == NGX_OK ? reprise_sight_begin() : NGX_ERROR;
}

static void* make_main_conf(ngx_conf_t* cf) {
    reprise_main_conf_t* made = ngx_pcalloc(cf->pool, sizeof *made);
    /* Where one process is all there is (master_process off), a thread of ours may be at memory that a reload gives back. */
    reprise_saver_wait();
    if (made == NULL ||
        ngx_array_init(&made->zones, cf->pool, 4, sizeof(reprise_zone_t*)) != NGX_OK) {
        return NULL;
    }
    return made;
}

static void* make_loc_conf(ngx_conf_t* cf) {
    reprise_loc_conf_t* made = ngx_pcalloc(cf->pool, sizeof *made);
    if (made != NULL) {
        made->zone = NGX_CONF_UNSET_PTR;
    }
    return made;
}

static char* merge_loc_conf(ngx_conf_t* cf, void* outer, void* inner) {
    const reprise_loc_conf_t* around = outer;
    reprise_loc_conf_t* here = inner;
    (void)cf;
    ngx_conf_merge_ptr_value(here->zone, around->zone, NULL);
    return NGX_CONF_OK;
}
