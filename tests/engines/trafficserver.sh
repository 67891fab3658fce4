#!/usr/bin/env bash
# reprise_admission.so in a real Traffic Server: what is stored, what is counted and what outlives what.
# shellcheck source=../clients/harness.sh
. "$(dirname "$0")/../clients/harness.sh"
# shellcheck source=trafficserver_process.sh
. "$(dirname "$0")/trafficserver_process.sh"

start_origin pages
pages=127.0.0.1:$port
mkdir "$work/files"
head -c 20000 /dev/zero >"$work/files/part"
start_origin files --root "$work/files"
files=127.0.0.1:$port

# one_each FIRST LAST: each of these URLs once, by way of $server.
one_each() {
    seq -f "url = \"http://$pages/bytes/1000?%.0f\"
output = /dev/null" "$1" "$2" |
        curl -s --max-time 30 -x "http://$server" -K - -w '%{http_code}\n' | sort | uniq -c | tr -d '\n'
}
is_figure() {
    [[ $(ledger "$1") == "$2" ]]
}

# ---- plugin.config ----

make_server one <<END
$plugins/reprise_admission.so objects=100k state=seen save=1s name=all refresh=1
stats_over_http.so _stats
END
start_server one
check "a first request is not stored" miss "$(how "http://$pages/hello")"
check "the second is" stored "$(how "http://$pages/hello")"
check "the third is a hit" hit "$(how "http://$pages/hello")"
check "two of them reached the origin" 2 "$(asked pages 'GET /hello')"

check "a hundred URLs are asked for once each" "100 200" "$(one_each 1 100 | xargs)"
within 20 "none of them is stored: the ledger" is_figure objects_not_stored 101
one_was_written() {
    [[ $(stat proxy.process.cache.write.success) == 1 && $(stat proxy.process.cache.direntries.used) == 1 ]]
}
within 20 "nor by the cache's own figures: one object was written, in one entry" one_was_written
within 20 "their bytes are counted" is_figure bytes_not_stored $((100000 + 23))
within 20 "one was admitted" is_figure objects_admitted 1
within 20 "which cost one hit" is_figure hits_lost 1
within 20 "the filter has them all" is_figure first_sights 101

for path in private never; do
    how "http://$pages/$path" >"$work/first"
    check "/$path is never stored" "miss miss" "$(<"$work/first") $(how "http://$pages/$path")"
done
for _ in 1 2; do how "http://$pages/nothing" >"$work/first"; done
check "nor is what is not found" miss "$(<"$work/first")"
how -I "http://$pages/bytes/7" >"$work/first"
check "a HEAD is no sight" miss "$(how "http://$pages/bytes/7")"
how -X POST -d x "http://$pages/bytes/8" >"$work/first"
check "nor is a POST" miss "$(how "http://$pages/bytes/8")"
within 20 "the filter knows of none of these but the two GETs" is_figure first_sights 103
check "part of an object is a sight" "miss stored hit" \
    "$(how -r 5-99 "http://$files/part") $(how "http://$files/part") $(how "http://$files/part")"
check "and so is a 304 to a client that has it" "miss stored" \
    "$(how -H 'If-None-Match: "hello-1"' "http://$pages/hello?a") $(how "http://$pages/hello?a")"
check "a stored object that is validated is not asked for" hit "$(how -H 'Cache-Control: max-age=0' "http://$pages/hello")"
wrote_refreshes() {
    (($(ledger refreshes) == 0))
}
within 20 "hits of what the young generation knows write nothing" wrote_refreshes

# ---- ends ----

check "what is to be seen again is seen" miss "$(how "http://$pages/hello?term")"
stop_server
start_server one
check "after an orderly end its second request is stored" stored "$(how "http://$pages/hello?term")"
check "and another is seen" miss "$(how "http://$pages/hello?kill")"
saves=$(ledger saves)
was_saved() {
    (($(ledger saves) > saves + 1))
}
within 10 "the state was saved since" was_saved
kill -KILL "$server_pid"
wait "$server_pid" 2>/dev/null || true
start_server one
check "after kill -9 too" stored "$(how "http://$pages/hello?kill")"
stop_server
head -c 1000 /dev/urandom | dd of="$work/one/run/seen" bs=1 seek=100 conv=notrunc status=none
start_server one
check "a damaged state is named" 1 "$(grep -c "all begins empty: .*$work/one/run/seen" "$work/one/log/diags.log")"
check "and the server begins with an empty one" "miss stored" \
    "$(how "http://$pages/hello?kill2") $(how "http://$pages/hello?kill2")"
stop_server

# ---- words ----

# refused WORD...: what is said of these in plugin.config. refused_rules RULES: of these.
refused() {
    refused_by "$plugins/reprise_admission.so $*" "" 'reprise_admission: .*'
}
refused_rules() {
    refused_by "" "$1" 'reprise_admission: .*'
}
check_matches "a number that is none is refused" 'plugin.config: .*objects.*10X' "$(refused objects=10X)"
check_matches "an option that is none is refused, and those that are, named" \
    '"objekts=10": no such option; there are policy, hits, .*internal' "$(refused objekts=10)"
check_matches "a policy that can't be here says why" 'policy=tinylfu.*does not tell; second-hit' "$(refused policy=tinylfu)"
check_matches "save has bounds" 'save=2d.*must be 1s to 24h' "$(refused save=2d)"

rule="@plugin=$plugins/reprise_admission.so"
check_matches "so are two rules that differ under one name" 'name=a has other objects, age, .* in the first rule' "$(
    refused_rules "map http://a.test/ http://$pages/ $rule @pparam=name=a @pparam=objects=1k
map http://b.test/ http://$pages/ $rule @pparam=name=a @pparam=objects=2k"
)"
check_matches "and two names with one file" 'state=/.*/seen is that of name=a' "$(
    refused_rules "map http://a.test/ http://$pages/ $rule @pparam=name=a @pparam=state=seen
map http://b.test/ http://$pages/ $rule @pparam=name=b @pparam=state=seen"
)"

# ---- remap.config, and reloads ----

make_server two <<<"stats_over_http.so _stats"
cat >"$work/two/etc/remap.config" <<END
map http://a.test/ http://$pages/ $rule @pparam=name=all @pparam=objects=100k @pparam=state=seen
map http://b.test/ http://$pages/ $rule @pparam=name=all
map http://three.test/ http://$pages/ $rule @pparam=name=three @pparam=policy=nth-hit @pparam=hits=3 \
    @pparam=match=*/hello* @pparam=match=!*/hello?not
map http://all.test/ http://$pages/
map http://both.test/ http://$pages/ @plugin=cache_promote.so @pparam=--policy=lru @pparam=--hits=3 @pparam=--buckets=1000 \
    $rule @pparam=name=both
map http://behind.test/ http://$files/ @plugin=background_fetch.so $rule @pparam=name=behind
END
sed -i -e ':a;/\\$/{N;s/\\\n *//;ba}' "$work/two/etc/remap.config"
start_managed two
check "a rule is for its own URLs" "miss stored stored" \
    "$(how http://a.test/hello?a) $(how http://a.test/hello?a) $(how http://all.test/hello?1)"
check "a third request" "miss miss stored hit" "$(for _ in 1 2 3 4; do how http://three.test/hello?3; done | xargs)"
check "what no pattern matches is stored at once" stored "$(how http://three.test/bytes/9)"
check "and what is excepted" stored "$(how "http://three.test/hello?not")"
check "behind cache_promote, which wants a third: what both let in" "miss miss stored hit" \
    "$(for _ in 1 2 3 4; do how http://both.test/hello?both; done | xargs)"
ctl_reads() {
    [[ $(ctl metric get plugin.reprise_admission.three.objects_admitted 2>/dev/null) == *" 1" ]]
}
within 15 "traffic_ctl reads the figures" ctl_reads
check "a range that is refused is not fetched whole behind it" "miss miss" \
    "$(how -r 0-9 http://behind.test/part) $(sleep 0.3; how -r 0-9 http://behind.test/part)"
fetched_whole() {
    [[ $(how -r 0-9 http://behind.test/part) == hit ]]
}
within 10 "one that is wanted is" fetched_whole

# Under load (the server takes some four seconds to notice): each of these is asked for once before and once after, others
# all the while.
ask_on() {
    local i=0
    while [[ ! -e $work/enough ]]; do
        i=$((i + 200))
        seq -f "url = \"http://a.test/bytes/300?load-%.0f\"
output = /dev/null" "$i" $((i + 199)) |
            curl -s --max-time 30 -x "http://$server" -K - -w '%{http_code}\n'
    done >"$work/load.answers" || true
}
by_rule() {
    seq -f "url = \"http://a.test/bytes/1000?%.0f\"
output = /dev/null" 1 300 | curl -s --max-time 30 -x "http://$server" -K - -w '%{http_code}\n' | sort | uniq -c | xargs
}
reloaded() {
    (($(grep -c 'remap.config finished loading' "$work/two/log/diags.log") > loads))
}
# The manager loses a question now and then that comes soon after another: it is asked again.
reloaded_when_asked() {
    if ((SECONDS >= ask_again)); then
        ask_again=$((SECONDS + 8))
        touch "$work/two/etc/remap.config"
        ctl config reload
    fi
    reloaded
}
reload() {
    loads=$(grep -c 'remap.config finished loading' "$work/two/log/diags.log")
    ask_again=0
    within 60 "remap.config is read anew" reloaded_when_asked >/dev/null
}
ask_on &
load_pid=$!
started+=("$load_pid") # should this script fail: ctest waits for whoever holds its output
check "300 URLs are seen" "300 200" "$(by_rule)"
reload
admitted=$(ledger objects_admitted)
check "and asked for again after a reload" "300 200" "$(by_rule)"
all_admitted() {
    (($(ledger objects_admitted) == admitted + 300))
}
within 20 "all of them are stored: nothing was forgotten" all_admitted

# A newer library: the server loads it beside the one before.
check "one is seen by the old library" miss "$(how http://a.test/hello?new)"
cp "$plugins/reprise_admission.so" "$work/newer.so"
mv "$work/newer.so" "$plugins/reprise_admission.so"
touch "$plugins/reprise_admission.so"
reload
check "and known to a new one" stored "$(how http://a.test/hello?new)"

touch "$work/enough"
wait "$load_pid"
check "no request of the load failed" 0 "$(grep -vc '^200$' "$work/load.answers" || true)"

check "a last one is seen" miss "$(how http://b.test/hello?last)"
stop_managed
start_server two
check "and known after an orderly end" stored "$(how http://b.test/hello?last)"
stop_server
