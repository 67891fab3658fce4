#!/usr/bin/env bash
# The dashboard in headless Chromium, asked for at the admin address itself, while curl gives the proxy something to
# do: the figures that curl made are on the page, the policy refuses nothing of it, and the console is silent.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs chromium curl

start_origin pages
pages=127.0.0.1:$port
origin_pid=$pid
start_proxy ''

# look OPTION...: the page as a browser has it after some of its own time, in $work/page; what its console said, in
# $work/console. `virtual-time-budget` waits for the answers that it counts on, so that a slow machine sees the same.
look() {
    local profile
    profile=$(mktemp -d "$work/profile.XXXXXX")
    timeout -k 5 90 chromium --headless --no-sandbox --disable-gpu --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --disable-dev-shm-usage --disable-extensions --no-proxy-server --user-data-dir="$profile" \
        --enable-logging=stderr --v=0 --virtual-time-budget=5000 --dump-dom "$@" \
        >"$work/page" 2>"$work/chromium.said" </dev/null
    rm -rf "$profile"
    grep -E ':CONSOLE[:(]' "$work/chromium.said" >"$work/console" || true
}

# shown ID: the text of that element, its inner elements' texts one after the other.
shown() {
    tr '\n' ' ' <"$work/page" | sed -n "s/.* id=\"$1\"[^>]*>\(.*\)/\1/p" |
        sed -E 's/<\/(h1|ul|dl|ol|table|canvas|section)>.*//; s/<[^>]*>/ /g; s/  +/ /g'
}

state() {
    sed -n 's/.*<body data-state="\([a-z]*\)".*/\1/p' "$work/page"
}

silent() {
    check "$1: the console is silent" '' "$(<"$work/console")"
}

# So that silence means something: a page whose policy refuses what it names, which the console must tell.
mkdir "$work/refusing"
start_origin refusing --root "$work/refusing"
printf '<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="default-src %s"><script>0</script>' \
    "'none'" >"$work/refusing/index.html"
look "http://127.0.0.1:$port/index.html"
check_matches "what a policy refuses is told on the console" 'Content Security Policy' "$(<"$work/console")"

look "http://$admin/"
silent "just started"
check "just started: it is well" well "$(state)"
check_matches "just started: it says that nothing was asked for" 'nothing that could be stored' "$(shown text)"

# Two hits of four for one URL, and twenty that are asked for once.
ask() {
    curl -sS --max-time 30 -x "http://$proxy" -o /dev/null "$@"
}
for _ in 1 2 3 4; do
    ask "http://$pages/bytes/50000"
done
ask "http://$pages/bytes/[1001-1020]"
look "http://$admin/"
silent "under traffic"
check "under traffic: it is well" well "$(state)"
check_matches "under traffic: the hit ratio is shown" 'Answered from the store 8\.3 %' "$(shown figures)"
check_matches "under traffic: what origins were spared is shown" 'Spared the origins 98 KiB' "$(shown figures)"
check_matches "under traffic: what admission kept out is shown" '^ Kept out 21 objects' "$(shown admission-pairs)"
check_matches "under traffic: hosts are named by the hits that admission cost" '127\.0\.0\.1 1 100 %' "$(shown costly-table)"
check_matches "under traffic: hosts are named by the bytes of their answers" '127\.0\.0\.1 [0-9]+ KiB 100 % 9[0-9] KiB 4[0-9] %' "$(shown hosts-table)"
check_matches "under traffic: latencies are shown" 'Hits 2 [0-9.]+ (µs|ms)' "$(shown latency-table)"
check_matches "under traffic: the store is shown" 'Used [0-9.]+ KiB of 64 MiB' "$(shown memory-pairs)"
# A row is a minute, which may have ended between two requests.
check "under traffic: the table behind the curves has them" 24 \
    "$(shown hits-table | grep -oE '[0-9]{2}:[0-9]{2} [0-9]+ [0-9.]+ %' | awk '{ sum += $2 } END { print sum }')"
check_matches "under traffic: it follows" '^As of [0-9:]{8}<' "$(sed -n 's/.*id="fresh">\(.*\)/\1/p' "$work/page")"
check "under traffic: the charts are drawn" 4 "$(grep -oE '<canvas [^>]*style="[^"]*(height|width): [1-9]' "$work/page" | wc -l)"

kill "$origin_pid"
wait "$origin_pid" || true
fail_six_times() {
    local name
    for name in {a..f}; do
        ask "http://$pages/$name"
    done
}
fail_six_times
look "http://$admin/"
silent "origin down"
check "origin down: it is not well" unwell "$(state)"
check_matches "origin down: it says why" '6 requests failed at the origin in the last minute.* Of these: 127\.0\.0\.1 \(6\)' "$(shown troubles)"

# Without a script: what the program puts in. (A Chromium that runs no scripts prints no page either.)
fail_six_times # the minute of those before may be over
curl -sS --max-time 30 "http://$admin/" >"$work/page"
check_matches "without JavaScript: the figures are in the page" 'Hit ratio 8\.3 %' "$(shown plain-title)"
check "without JavaScript: it says that it is not well" unwell "$(state)"

# By its own address it begins to watch at once. The browser's own time stands still for an answer that does not end:
# the proxy ends it, and then the page has 5 seconds for what came.
start_origin pages_again
pages=127.0.0.1:$port
look "http://$admin/#live" &
looking=$!
for _ in {1..600}; do
    [[ $(figure reprise_live_viewers) != 1 ]] || break
    kill -0 "$looking" 2>/dev/null || break
    sleep 0.1
done
check "watched: the page watches" 1 "$(figure reprise_live_viewers)"
start beside curl -sSN "http://$admin/live"
is_beside() {
    [[ $(figure reprise_live_viewers) == 2 ]]
}
within 20 "so does curl" is_beside
for _ in 1 2 3; do
    ask "http://$pages/bytes/50000?secret=value"
done
# Behind what it shows the proxy looks for more eight times, and says that it lives: all who watch have been shown it then.
all_shown() {
    [[ $(awk '/^data:/ { ++shown; signs = 0 } /^:/ { ++signs } END { print shown + 0, (signs > 0) }' "$work/beside.log") == "3 1" ]]
}
within 20 "all of it is shown" all_shown
stop_proxy
wait "$looking"
check_matches "watched: requests are shown as they end" '/bytes/50000\?secret=\* hit 200 49 KiB' "$(shown live-table)"
check_matches "watched: it says how many" '3 shown since you watch' "$(shown live-note)"
check "watched: no value of a query is shown" '' "$(grep -o 'secret=value' "$work/page" || true)"
check "watched: outcomes may be chosen among" 16 "$(grep -oE '<option' "$work/page" | wc -l)"
