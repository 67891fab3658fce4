#!/usr/bin/env bash
# What a hit costs on a connection that is kept, counted by strace: three system calls (the loop's wait, recvmsg,
# send), over TLS and in the clear; and on a connection of its own, which its client says is for that alone: two
# accepts, recv, send, close and the waits.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs curl openssl strace

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=proxy" \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$work/proxy.key" -out "$work/proxy.pem" 2>/dev/null
start_origin pages
hello=http://127.0.0.1:$port/hello
# shellcheck disable=SC2034  # start_proxy's
listener="\"tls\": { \"certificate\": \"$work/proxy.pem\", \"key\": \"$work/proxy.key\" } }, { \"address\": \"127.0.0.1:0\""
start_proxy ""
plain_proxy=$(sed -n 's/.*"listeners": *\["[^"]*", *"\([^"]*\)".*/\1/p' "$work/ports")

# ask N SCHEME: so many times on one connection; the statuses in $work/statuses.
ask() {
    local urls=()
    for ((i = 0; i < $1; ++i)); do
        urls+=("$hello" -o /dev/null)
    done
    curl -sS --max-time 120 --proxy "$2://$proxy" --proxy-cacert "$work/proxy.pem" \
        -w '%{http_code} %{num_connects}\n' "${urls[@]}" >"$work/statuses"
}

# ask_anew N: each on a connection of its own.
ask_anew() {
    local urls=()
    for ((i = 0; i < $1; ++i)); do
        urls+=("$hello" -o /dev/null)
    done
    curl -sS --max-time 120 --proxy "http://$proxy" -H 'Connection: close' -H 'Proxy-Connection: close' \
        -w '%{http_code} %{num_connects}\n' "${urls[@]}" >"$work/statuses"
}

# count SCHEME MOST [HOW CONNECTIONS]: what hits cost by that scheme, at most so many calls each.
count() {
    local how=${3:-ask} connections=${4:-1}
    ask 3 "$1" # the third is a hit
    strace -f -qq -o "$work/calls" -p "$proxy_pid" 2>"$work/strace.log" &
    local tracer=$! hits=300 thread calls
    started+=("$tracer")
    # Until every thread is traced.
    for ((tries = 0; tries < 1000; ++tries)); do
        if ! kill -0 "$tracer" 2>/dev/null; then
            echo "skipped: strace may not attach here: $(<"$work/strace.log")"
            exit 77
        fi
        grep -q '^TracerPid:[[:space:]]*0$' "/proc/$proxy_pid/task/"*/status || break
        sleep 0.02
    done
    "$how" "$hits" "$1"
    kill -INT "$tracer"
    wait "$tracer" || true

    check "every request was answered" "$hits" "$(grep -c '^200 ' "$work/statuses")"
    check "on so many connections" "$connections" "$(grep -c ' 1$' "$work/statuses")"
    # The threads that answered, one for each connection's hits.
    calls=$(awk 'NR == FNR { if (/ (sendto|sendmsg)\(/) answers[$1] = 1; next }
        $1 in answers && !/ resumed>/ { ++calls } END { print calls }' "$work/calls" "$work/calls")
    echo "$1: $calls system calls for $hits hits, the connection's beginning and end and the thread's timer included"
    # Beside what a hit takes: how often the loop finds nothing to do, which is more on a busy machine.
    ((calls <= $2 * hits + 300)) || fail "more than $2 system calls a hit by $1: $calls for $hits"
}

count https 3
proxy=$plain_proxy
count http 3
count http 6 ask_anew 300
check "by the store" 2 "$(asked pages '^GET /hello ')"
echo "ok: at most three system calls a hit, over TLS and in the clear"
