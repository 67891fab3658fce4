# shellcheck shell=bash
# Real Traffic Servers, for scripts that have sourced ../clients/harness.sh: each below a folder of its own, on ports that the
# system picked, with nothing of the machine's configuration. Sourcing this finds $modules, where the server's own
# plug-ins lie, and $plugins, where ours do.
PATH=$PATH:/usr/sbin:/sbin
needs curl traffic_server traffic_manager traffic_ctl traffic_layout
modules=$(traffic_layout info | sed -n 's/^PLUGINDIR: *//p')
[[ -f $BUILD/filter/plugins/trafficserver/reprise_admission.so ]] || {
    echo "skipped: the plug-ins were not built"
    exit 77
}
# Copies: whole in one file, and where whoever the server runs as may read them.
plugins=$work/plugins
mkdir "$plugins"
cp "$BUILD"/filter/plugins/trafficserver/*.so "$plugins"
as_user=()
if ((EUID == 0)); then # the server does not serve as root
    chmod 711 "$work"
    as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi

# spare_port: one that the system gave, and gives to nobody else while this test runs: it is bound, with SO_REUSEADDR as the
# server binds it, and nobody listens there. In $spare.
spare_port() {
    rm -f "$work/spare.port"
    start spare python3 -c 'import signal, socket, sys
one = socket.socket()
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
one.bind(("127.0.0.1", 0))
with open(sys.argv[1], "w") as to:
    to.write(str(one.getsockname()[1]))
signal.pause()' "$work/spare.port"
    await "$work/spare.port" "$pid"
    spare=$(<"$work/spare.port")
}

# make_server NAME [SIZE]: its folder $work/NAME, its cache of SIZE (64M). Lines for plugin.config on standard input.
# What a test adds: $work/NAME/etc/remap.config, further lines of records.config in $records.
make_server() {
    local at=$work/$1
    mkdir -p "$at"/{etc/body_factory,run,log,cache,var,share}
    cp -r /etc/trafficserver/body_factory/. "$at/etc/body_factory" 2>/dev/null || true
    cat >"$at/runroot.yaml" <<END
prefix: $at
exec_prefix: $at
bindir: /usr/bin
sbindir: /usr/bin
sysconfdir: $at/etc
datadir: $at/share
includedir: /usr/include
libdir: /usr/lib/trafficserver
libexecdir: $modules
localstatedir: $at/var
runtimedir: $at/run
logdir: $at/log
mandir: $at/share
infodir: $at/share
cachedir: $at/cache
END
    cat >"$at/etc/plugin.config"
    echo "$at/cache ${2:-64M}" >"$at/etc/storage.config"
    : >"$at/etc/remap.config"
    : >"$at/etc/parent.config"
    printf 'ip_allow:\n  - apply: in\n    ip_addrs: 0/0\n    action: allow\n    methods: ALL\n' >"$at/etc/ip_allow.yaml"
}

# server_settings NAME PORT. (Statistics that are summed up before all of the server's threads run crash it: no sooner than half a
# second after its start. With each remote_sync the server writes its statistics to a file, on a thread that serves: beside what
# keeps the disk busy that held all answers up for ten seconds.)
server_settings() {
    cat >"$work/$1/etc/records.config" <<END
CONFIG proxy.config.http.server_ports STRING $2:ip-in=127.0.0.1
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT ${threads:-2}
CONFIG proxy.config.task_threads INT 2
CONFIG proxy.config.cache.ram_cache.size INT 8388608
CONFIG proxy.config.url_remap.remap_required INT 0
CONFIG proxy.config.reverse_proxy.enabled INT 1
CONFIG proxy.config.http.insert_response_via_str INT 2
CONFIG proxy.config.http.cache.required_headers INT 2
CONFIG proxy.config.http.wait_for_cache INT 1
CONFIG proxy.config.raw_stat_sync_interval_ms INT 500
CONFIG proxy.config.remote_sync_interval_ms INT ${sync:-60000}
CONFIG proxy.config.config_update_interval_ms INT 100
CONFIG proxy.config.diags.debug.enabled INT 0
CONFIG proxy.config.dns.nameservers STRING 127.0.0.1
CONFIG proxy.config.dns.resolv_conf STRING NULL
CONFIG proxy.config.core_limit INT 0
${records:-}
END
}

# start_server NAME [PORT]: its address in $server, the process traffic_server in $server_pid.
start_server() {
    local at=$work/$1
    for _ in 1 2 3 4 5; do
        [[ -n ${2:-} ]] && spare=$2 || spare_port
        server=127.0.0.1:$spare
        server_settings "$1" "$spare"
        ((EUID != 0)) || chown -R 65534:65534 "$at"
        start "$1" "${as_user[@]}" setpriv --pdeathsig KILL env TS_RUNROOT="$at/runroot.yaml" traffic_server
        server_pid=$pid
        if is_up "$server_pid" "$spare"; then
            return
        fi
        echo "Traffic Server did not start with port $spare"
    done
    fail "Traffic Server does not start as $1"
}
# is_up PID PORT: waits until the process listens there; false where it ends.
is_up() {
    while kill -0 "$1" 2>/dev/null; do
        if (exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null; then
            return
        fi
        sleep 0.05
    done
    return 1
}
stop_server() {
    kill -TERM "$server_pid"
    wait "$server_pid" || true
}

# start_managed NAME: the same under traffic_manager, which starts the server and starts it again, and which traffic_ctl talks to.
start_managed() {
    local at=$work/$1
    for _ in 1 2 3 4 5; do
        spare_port
        server=127.0.0.1:$spare
        sync=100 server_settings "$1" "$spare" # traffic_ctl reads what was written so
        ((EUID != 0)) || chown -R 65534:65534 "$at"
        start "$1" "${as_user[@]}" setpriv --pdeathsig KILL env TS_RUNROOT="$at/runroot.yaml" traffic_manager
        manager_pid=$pid
        managed=$at
        if within 20 "$1 answers" answers "$server"; then
            return
        fi
    done
    fail "Traffic Server does not start as $1"
}
answers() {
    curl -s --max-time 2 -o /dev/null "http://$1/"
}
stop_managed() {
    kill -TERM "$manager_pid"
    wait "$manager_pid" || true
}
# ctl WORD...: traffic_ctl, to what start_managed started last.
ctl() {
    TS_RUNROOT=$managed/runroot.yaml timeout 20 traffic_ctl "$@" 2>>"$work/ctl.log"
}

# stats_of SERVER NAME: one of its figures, by stats_over_http.
stats_of() {
    curl -s --max-time 5 "http://$1/_stats" | sed -n "s/^\"$2\": \"\(.*\)\",\{0,1\}$/\1/p"
}
# ledger NAME: a figure of the filter "all" at $server; stat NAME: any figure.
ledger() {
    stats_of "$server" "plugin.reprise_admission.${gate:-all}.$1"
}
stat() {
    stats_of "$server" "$1"
}
# how URL: what a GET by way of $server was, by its Via: "hit", "miss" (not stored) or "stored"; else its status.
how() {
    local head
    head=$(curl -s --max-time 10 -o /dev/null -D - -x "http://$server" "$@" | tr -d '\r')
    case $(sed -n 's/^Via:.*\[\(.*\)\]).*/\1/Ip' <<<"$head" | tail -n 1) in
        c[HRW]*) echo hit ;; # from the disk, from memory, from what is still being written
        c*W*) echo stored ;;
        c*) echo miss ;;
        *) head -n 1 <<<"$head" ;;
    esac
}

# refused_by PLUGIN_CONFIG REMAP_CONFIG PATTERN: the last line of diags.log that matches, of a server with these, which doesn't start.
refused_by() {
    make_server bad <<<"$1"
    printf '%s\n' "$2" >"$work/bad/etc/remap.config"
    rm -f "$work/bad/log/diags.log"
    server_settings bad 9
    ((EUID != 0)) || chown -R 65534:65534 "$work/bad"
    if timeout 60 "${as_user[@]}" env TS_RUNROOT="$work/bad/runroot.yaml" traffic_server >"$work/bad.out" 2>&1; then
        fail "Traffic Server starts with bad words"
    fi
    grep -o "$3" "$work/bad/log/diags.log" | tail -n 1
}
