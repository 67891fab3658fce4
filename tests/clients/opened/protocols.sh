#!/usr/bin/env bash
# What isn't asked and answered by HTTP/1.1, at a host whose tunnels are opened: a client that speaks
# HTTP/2 alone has its tunnel passed on, and WebSocket works in an opened one.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
needs python3

make_authorities
start_site
echo "of the origin's own" >"$site/words"
speaker=$here/opened/speak.py
start echo python3 "$speaker" echo "$work/files.test.pem" "$work/files.test.key" "$work/echo.port"
await "$work/echo.port" "$pid"
echo_port=$(<"$work/echo.port")
more_ports=("$echo_port")
start_proxy "$(opening "$work/ca" files.test)" "$port" "$echo_port"

# speak KIND PORT TRUSTED WORD: what came of it, in one line; or why nothing did, in $work/speak.log.
speak() {
    timeout -k 5 60 python3 "$speaker" "$1" "$proxy" "files.test:$2" "$3" "$4" 2>>"$work/speak.log" | tr '\n' ';'
}

check "a client of HTTP/2 alone is led to the origin itself" \
    "issuer: origins;protocol: h2;came back: of the origin's own;;" \
    "$(speak h2 "$port" "$work/origins.pem" /words)"
check "its tunnel was passed on for that" 1 "$(of_host passed_on files.test alpn)"
within 20 "the origin was asked by HTTP/2" has_answered '^GET /words 200 files\.test HTTP/2\.0$' 1

check_matches "WebSocket goes both ways in a tunnel that is opened" \
    '^issuer: Reprise interception .*;protocol: http/1\.1;came back: to and fro;came back: orf dna ot;$' \
    "$(speak websocket "$echo_port" "$root_pem" "to and fro")"
check "it was opened" 1 "$(of_host opened files.test)"
stop_proxy
