#!/usr/bin/env bash
# A log and nothing else: the tool answers, and what it recommends is settings that the program takes.
#
#   replay_answer.sh <reprise-replay> <reprise> <traces>
set -euo pipefail

replay=$1 reprise=$2 traces=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "replay_answer: $*" >&2
    exit 1
}

# takes FILE: as settings.
takes() {
    "$reprise" --check-config --config "$1" >"$work/check" 2>&1 || fail "$(cat "$work/check" "$1")"
}

# A rotated log of Squid's format, of the first requests of a trace.
zstd -dcq "$traces/bu1998.csv.zst" |
    awk -F, 'NR <= 20000 { printf "%d.0 5 192.0.2.1 TCP_MISS/200 %d GET http://a.test/%s - DIRECT/x text/html\n", $1, $3, $2 }' |
    gzip >"$work/access.log.gz"

"$replay" "$work/access.log.gz" --html "$work/page.html" --settings "$work/settings.json" >"$work/said"
grep -q '^format: squid$' "$work/said" || fail "does not say what the log was taken for"
for words in 'as it comes: sieve, second-hit' 'plain LRU' 'best found: ' 'more room stops paying'; do
    grep -q "$words" "$work/said" || fail "does not say '$words': $(cat "$work/said")"
done
takes "$work/settings.json"
! grep -q '<script' "$work/page.html" || fail "the page has a script"
[[ $(grep -c '<svg' "$work/page.html") -ge 3 ]] || fail "the page has no plots"

"$replay" "$work/access.log.gz" --memory "4 MiB" --disk "64 MB" --settings "$work/both.json" >"$work/said"
grep -q '"disk"' "$work/both.json" || fail "a disk that was named is not in the settings"
takes "$work/both.json"

# Of a proxy that runs: at its socket and its address, before anybody has asked for anything.
cat >"$work/running.json" <<END
{ "listeners": [{ "address": "127.0.0.1:0" }], "admin": { "address": "127.0.0.1:0", "socket": "$work/socket" } }
END
"$reprise" --config "$work/running.json" --ports-file "$work/ports" >"$work/log" 2>&1 &
running=$!
trap 'kill "$running" 2>/dev/null || true; rm -rf "$work"' EXIT
for ((i = 0; i < 1200; ++i)); do
    [[ ! -s $work/ports ]] || break
    kill -0 "$running" || fail "the proxy ended: $(cat "$work/log")"
    sleep 0.05
done
admin=$(sed -n 's/.*"admin": *"\([^"]*\)".*/\1/p' "$work/ports")
for where in "http://$admin" "$admin/" "$work/socket"; do
    "$replay" --live "$where" --html "$work/live.html" --settings "$work/live.json" >"$work/said" || fail "--live $where"
    grep -q 'has seen too little' "$work/said" || fail "--live $where: $(cat "$work/said")"
    takes "$work/live.json"
done
kill "$running"
wait "$running" || fail "the proxy did not end well: $(cat "$work/log")"
for nobody in "http://$admin" "$work/socket" "http://example.org"; do
    ! "$replay" --live "$nobody" >"$work/said" 2>&1 || fail "takes $nobody for a proxy"
    grep -q '^reprise-replay: --live: ' "$work/said" || fail "$(cat "$work/said")"
done

# Cut off on its way here.
head -c 5000 "$work/access.log.gz" >"$work/cut.gz"
if "$replay" "$work/cut.gz" >"$work/said" 2>&1; then
    fail "takes half of a log for a log"
fi
grep -q 'the gzip stream is cut off' "$work/said" || fail "$(cat "$work/said")"
