#!/usr/bin/env bash
# curl: the three requests of the demonstration, then what else curl can say.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs curl sha256sum openssl

start_pages_and_secret
start_proxy '' "${pages#*:}" "${secret#*:}"

# ask [option...] URL: body in $work/body, heads in $work/head, the status in $status.
ask() {
    status=$(curl -sS --max-time 30 -x "http://$proxy" -D "$work/head" -o "$work/body" -w '%{http_code}' "$@")
}

hello=http://$pages/hello
ask "$hello"
check "the first request is answered" 200 "$status"
check_matches "it is a miss, and not stored" '^reprise.*fwd=.*first-request' "$(cache_status "$work/head")"
ask "$hello"
check_matches "the second is a miss and is stored" '^reprise.*fwd=.*stored' "$(cache_status "$work/head")"
ask "$hello"
check_matches "the third is a hit" '^reprise.*; *hit' "$(cache_status "$work/head")"
check "the hit's body is the origin's" "Hello from the origin." "$(<"$work/body")"
check "the origin was asked twice" 2 "$(asked pages '^GET /hello ')"

ask -0 "$hello"
check "an HTTP/1.0 client has the hit too" "200 Hello from the origin." "$status $(<"$work/body")"
ask -I "$hello"
check "HEAD is answered from what is stored" "200 0" "$status $(asked pages '^HEAD ')"
ask -H 'If-None-Match: "hello-1"' "$hello"
check "a condition on a stored response is answered here" "304 2" "$status $(asked pages ' /hello ')"
ask "http://$pages/never"
ask "http://$pages/never"
check_matches "what says no-store never enters" 'no-store' "$(cache_status "$work/head")"
ask "http://$pages/absent"
check "the origin's 404 arrives" 404 "$status"

# Twice with a body of its own, to see that nothing of an upload is kept or lost.
head -c 3000001 /dev/urandom >"$work/upload"
sum="3000001 $(sha256sum <"$work/upload" | cut -d' ' -f1)"
ask --data-binary "@$work/upload" "http://$pages/upload"
check "an upload arrives whole (Content-Length, Expect)" "200 $sum" "$status $(<"$work/body")"
ask -T - -H 'Expect:' "http://$pages/upload" <"$work/upload"
check "an upload arrives whole (chunked)" "200 $sum" "$status $(<"$work/body")"

for _ in 1 2 3; do
    ask "http://$pages/bytes/1000000"
done
check "a megabyte is a hit the third time" "1000000 2" \
    "$(stat -c %s "$work/body") $(asked pages ' /bytes/1000000 ')"
ask -r 10-19 "http://$pages/bytes/1000000"
check "a range is cut from what is stored" "206 10 2" \
    "$status $(stat -c %s "$work/body") $(asked pages ' /bytes/1000000 ')"

ask --proxytunnel "http://$pages/hello"
check "a tunnel reaches the origin itself" "200 3" "$status $(asked pages '^GET /hello 200 ')"
ask --cacert "$work/cert.pem" "https://$secret/hello"
check "https goes through a tunnel" "200 Hello from the origin." "$status $(<"$work/body")"
ask --proxytunnel "http://127.0.0.1:1/" 2>/dev/null && fail "CONNECT reached a port that is not allowed"
echo "ok: CONNECT to another port is refused"

ask "http://nowhere.example/"
check_matches "a name that does not resolve is the proxy's answer" '^50[24]$' "$status"
stop_proxy
