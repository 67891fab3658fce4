#!/usr/bin/env bash
# What a hit costs over TLS, counted by strace: four system calls on a connection that is kept (the
# loop's wait, recv, send, epoll_ctl).
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs curl openssl strace

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=proxy" \
    -addext subjectAltName=IP:127.0.0.1 -keyout "$work/proxy.key" -out "$work/proxy.pem" 2>/dev/null
start_origin pages
hello=http://127.0.0.1:$port/hello
# shellcheck disable=SC2034  # start_proxy's
listener="\"tls\": { \"certificate\": \"$work/proxy.pem\", \"key\": \"$work/proxy.key\" }"
start_proxy ""

# ask N: so many times on one connection; the statuses in $work/statuses.
ask() {
    local urls=()
    for ((i = 0; i < $1; ++i)); do
        urls+=("$hello" -o /dev/null)
    done
    curl -sS --max-time 120 --proxy "https://$proxy" --proxy-cacert "$work/proxy.pem" \
        -w '%{http_code} %{num_connects}\n' "${urls[@]}" >"$work/statuses"
}

ask 3 # the third is a hit
strace -f -qq -o "$work/calls" -p "$proxy_pid" 2>"$work/strace.log" &
tracer=$!
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
hits=300
ask "$hits"
kill -INT "$tracer"
wait "$tracer" || true

check "every request was answered" "$hits" "$(grep -c '^200 ' "$work/statuses")"
check "on one connection" 1 "$(grep -c ' 1$' "$work/statuses")"
check "by the store" 2 "$(asked pages '^GET /hello ')"
thread=$(awk '/ sendto\(/ { print $1 }' "$work/calls" | sort | uniq -c | sort -n | awk 'END { print $2 }')
calls=$(grep "^$thread " "$work/calls" | grep -vc ' resumed>')
echo "$calls system calls for $hits hits, the connection's beginning and end and the thread's timer included"
((calls <= 4 * hits + 150)) || fail "more than four system calls a hit: $calls for $hits"
echo "ok: at most four system calls a hit"
