#!/usr/bin/env bash
# What a newcomer is told: what is asked for once is not stored, and what was seen is remembered over
# a restart.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs curl

start_origin pages
start_proxy "\"admission\": { \"policy\": \"second-hit\", \"state\": \"$work/admission\" }"
ask() {
    curl -sS --max-time 30 -x "http://$proxy" -D "$work/head" -o "$work/body" "$@"
}

ask "http://127.0.0.1:$port/bytes/[1001-1100]"
check "a hundred URLs asked once are a hundred requests" 100 "$(asked pages '^GET ')"
stored=$(curl -sS --max-time 30 "http://$admin/stats" | tr -d ' \n' |
    sed -n 's/.*"store":{[^}]*"objects":\([0-9]*\).*/\1/p')
check "none of them is stored" 0 "$stored"

stop_proxy
check "the state is for its owner alone" 600 "$(stat -c %a "$work/admission")"
start_proxy "\"admission\": { \"policy\": \"second-hit\", \"state\": \"$work/admission\" }"
ask "http://127.0.0.1:$port/bytes/1050"
check_matches "after a restart the second request is admitted" 'stored' "$(cache_status "$work/head")"
ask "http://127.0.0.1:$port/bytes/1050"
check_matches "and the third a hit" '; *hit' "$(cache_status "$work/head")"
ask "http://127.0.0.1:$port/bytes/2000"
check_matches "what was never asked for is a stranger" 'first-request' "$(cache_status "$work/head")"
stop_proxy
