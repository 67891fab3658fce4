# shellcheck shell=bash
# shellcheck disable=SC2034  # some of what is set here is for the scripts alone
# What every test with a real client needs: an origin, a DNS server that knows no name, the proxy on
# ports the system picked, and checks that say what was expected. Sourced by the scripts beside it,
# which ctest runs with REPRISE, ORIGIN and DIGEST naming the programs (see
# CMakeLists.txt).
#
# The proxy may reach loopback alone and resolves nothing, so whatever else a client asks for
# (browsers phone home) ends there. Everything is written below $work, which goes at the end; what
# was started ends with this script, however that ends.
set -Eeuo pipefail

: "${REPRISE:?names the program reprise}" "${ORIGIN:?names demo_origin}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
started=()

# No setting of the machine's owner takes part.
unset http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
export HOME=$work/home LC_ALL=C TZ=UTC
mkdir -p "$HOME"

# stop_started: all that was started. One that is told to end, and does not, is killed: HAProxy's master loses the word when it is
# told to read its settings at the same moment.
stop_started() {
    local pid deadline=$((SECONDS + 20))
    for pid in "${started[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
    for pid in "${started[@]}"; do
        while kill -0 "$pid" 2>/dev/null; do
            ((SECONDS < deadline)) || kill -KILL "$pid" 2>/dev/null || true
            sleep 0.02
        done
        wait "$pid" 2>/dev/null || true
    done
    started=()
}
# What each thread of what still runs does, or waits for in the kernel: no log tells that of a process that hangs.
threads_of_started() {
    local pid thread
    for pid in "${started[@]}"; do
        for thread in /proc/"$pid"/task/*; do
            printf -- '--- %s: %s, %s, in %s, call %s\n' "$pid" "$(<"$thread/comm")" "$(sed -n 's/^State:\t//p' "$thread/status")" \
                "$(<"$thread/wchan")" "$(<"$thread/syscall")"
        done 2>/dev/null
    done || true
}
finish() {
    local status=$?
    if ((status != 0 && status != 77)); then
        printf -- '--- %s\n' "test failed with status $status"
        local log
        for log in "$work"/*.log "$work"/*/log/{diags.log,traffic.out,crash*}; do
            [[ -s $log ]] && printf -- '--- %s\n' "${log#"$work"/}" && tail -n 40 "$log"
        done
        threads_of_started
    fi >&2
    stop_started
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT
trap 'echo "line $LINENO: $BASH_COMMAND: status $?" >&2' ERR

# needs PROGRAM...: skips the test by name when one is missing.
needs() {
    local program
    for program in "$@"; do
        if ! command -v "$program" >/dev/null; then
            echo "skipped: $program is not installed"
            exit 77
        fi
    done
}

fail() {
    echo "failed: $*" >&2
    exit 1
}

# check WHAT EXPECTED ACTUAL
check() {
    [[ $2 == "$3" ]] || fail "$1: expected '$2', got '$3'"
    echo "ok: $1"
}

# check_matches WHAT PATTERN ACTUAL: an extended regular expression.
check_matches() {
    [[ $3 =~ $2 ]] || fail "$1: expected something like '$2', got '$3'"
    echo "ok: $1"
}

# So many times as long as a script says it waits: it stops when what it waits for is there, and on a machine that has no time
# for it that takes ten times as long as elsewhere.
slowest=3

# await FILE PID: until the program has written the file.
await() {
    local deadline=$((SECONDS + slowest * 20))
    until [[ -s $1 ]]; do
        kill -0 "$2" 2>/dev/null || fail "a program ended before it was ready: $1"
        ((SECONDS < deadline)) || fail "a program was not ready in time: $1"
        sleep 0.02
    done
}

# within SECONDS WHAT COMMAND...: until the command succeeds.
within() {
    local deadline=$((SECONDS + slowest * $1)) what=$2
    until "${@:3}"; do
        ((SECONDS < deadline)) || fail "not in time: $what"
        sleep 0.1
    done
    echo "ok: $what"
}

# start NAME PROGRAM...: in the background, output to $work/NAME.log, pid in $pid. Should this script
# be killed outright, the kernel ends the program.
start() {
    setpriv --pdeathsig KILL "${@:2}" </dev/null >>"$work/$1.log" 2>&1 &
    pid=$!
    started+=("$pid")
}

# start_origin NAME [option...]: demo_origin; its port in $port, its requests in $work/NAME.requests.
start_origin() {
    start "$1" "$ORIGIN" --port-file "$work/$1.port" --log "$work/$1.requests" "${@:2}"
    : >>"$work/$1.requests"
    await "$work/$1.port" "$pid"
    port=$(<"$work/$1.port")
}

# start_pages_and_secret OPTION...: two origins of 127.0.0.1 with these options, pages in the clear and secret with a
# certificate of its own, $work/cert.pem; $pages and $secret are the addresses.
start_pages_and_secret() {
    start_origin pages "$@"
    pages=127.0.0.1:$port
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
    start_origin secret "$@" --certificate "$work/cert.pem" --key "$work/key.pem"
    secret=127.0.0.1:$port
}

# asked NAME PATTERN: how many requests that match reached this origin.
asked() {
    grep -cE -- "$2" "$work/$1.requests" || true
}

# write_settings MEMBERS [CONNECT_PORT...]: with further members of the settings (JSON text, may be
# empty), those in $listener for its listener and in $access for access, and the names of the file
# $hosts_file; its memory is of $memory (64MiB). One of several proxies is called $node, and so are its files: $work/$node.json, and
# .ports and .access.log.
write_settings() {
    local members=$1 connect_ports names=${hosts_file:+"\"hosts_file\": \"$hosts_file\""}
    connect_ports=$(IFS=,; echo "${*:2}")
    if [[ ! -s $work/names.port ]]; then
        start names "$ORIGIN" --no-names --port-file "$work/names.port"
        await "$work/names.port" "$pid"
    fi
    cat >"$work/${node:-reprise}.json" <<END
{
  "listeners": [{ "address": "127.0.0.1:0"${listener:+, $listener} }],
  "admin": { "address": "127.0.0.1:0" },
  "threads": 2,
  "memory": { "size": "${memory:-64MiB}" },
  "access": {
    "clients": ["127.0.0.0/8"],
    "purge_clients": ["127.0.0.0/8"],
    "connect_ports": [${connect_ports:-443}],
    "allow_destinations": ["127.0.0.0/8"],
    "deny_destinations": [
      "0.0.0.0/2", "64.0.0.0/3", "96.0.0.0/4", "112.0.0.0/5", "120.0.0.0/6", "124.0.0.0/7",
      "126.0.0.0/8", "128.0.0.0/1", "2000::/3", "fc00::/7"
    ]${access:+, $access}
  },
  "dns": { "servers": ["127.0.0.1:$(<"$work/names.port")"]${names:+, $names} },
  "log": { "access": "$work/${node:+$node.}access.log", "level": "info" }${members:+, $members}
}
END
}

# start_proxy MEMBERS [CONNECT_PORT...]: with these settings. $proxy and $admin are the addresses it
# picked, $proxy_pid the process.
start_proxy() {
    local ports=$work/${node:+$node.}ports
    write_settings "$@"
    rm -f "$ports"
    start "${node:-proxy}" "$REPRISE" --config "$work/${node:-reprise}.json" --ports-file "$ports"
    proxy_pid=$pid
    await "$ports" "$pid"
    proxy=$(sed -n 's/.*"listeners": *\["\([^"]*\)".*/\1/p' "$ports")
    admin=$(sed -n 's/.*"admin": *"\([^"]*\)".*/\1/p' "$ports")
    [[ -n $proxy && -n $admin ]] || fail "the ports file is not as expected: $(<"$ports")"
}

# reload_proxy MEMBERS [CONNECT_PORT...]: the proxy ($proxy_pid, $node) with these settings in place
# of those that it has, without a restart.
reload_proxy() {
    local before
    before=$(reloads)
    write_settings "$@"
    kill -HUP "$proxy_pid"
    within 20 "the new settings are in use" has_reloaded_since "$before"
}
reloads() {
    grep -c 'settings reloaded' "$work/${node:-proxy}.log" || true
}
has_reloaded_since() {
    (($(reloads) > $1))
}

# figure NAME: of the proxy, as it is in /metrics.
figure() {
    curl -sS --max-time 20 "http://$admin/metrics" | awk -v name="$1" '$1 == name { print $2 }'
}

# stop_proxy: as a service manager does; a status other than 0 fails the test.
stop_proxy() {
    local status=0
    kill -TERM "$proxy_pid"
    wait "$proxy_pid" || status=$?
    check "the proxy ends well when it is told to" 0 "$status"
}

# cache_status HEAD: the member that Reprise added to a saved response head.
cache_status() {
    tr -d '\r' <"$1" | sed -n 's/^[Cc]ache-[Ss]tatus: *//p' | tail -n 1
}
