#!/usr/bin/env bash
# The VMOD in the real varnishd, in a root of its own: second-hit admission by the README's lines of VCL, what is kept over
# reload, stop and kill, what is refused, and the counters in varnishstat.
# shellcheck source=../clients/harness.sh
. "$(dirname "$0")/../clients/harness.sh"
PATH=$PATH:/usr/sbin:/sbin
: "${BUILD:?names the build}"
needs curl varnishd varnishadm varnishstat gcc
vmods=$BUILD/filter/plugins/varnish
if [[ ! -s $vmods/libvmod_reprise.so ]]; then
    echo "skipped: the VMOD was not built"
    exit 77
fi
instance=$work/instance
state=$work/state
mkdir "$instance" "$state"

start_origin origin
origin=$port

# vcl FILE [OPTIONS [MORE_INIT]]: a VCL with the lines of the README.
vcl() {
    cat >"$work/$1" <<END
vcl 4.1;
import reprise;
backend default { .host = "127.0.0.1"; .port = "$origin"; }
sub vcl_init {
    new gate = reprise.admission(${2-"\"objects=100k\", state = \"$state/gate\", save = 1s"});
    ${3-}
}
sub vcl_hit { gate.refresh(); }
sub vcl_miss { if (!gate.seen()) { return (pass); } }
sub vcl_deliver {
    gate.note();
    if (req.url ~ "restart=" && req.restarts == 0) { return (restart); }
    if (obj.hits > 0) { set resp.http.X-Cache = "hit"; } else { set resp.http.X-Cache = "miss"; }
    if (obj.uncacheable) { set resp.http.X-Cache = "pass"; }
}
sub vcl_recv { if (req.http.X-Hash) { return (hash); } }
sub vcl_backend_response {
    if (bereq.url ~ "expires=past") { unset beresp.http.Cache-Control; set beresp.http.Expires = "0"; }
    if (bereq.url ~ "cookie=") { set beresp.http.Set-Cookie = "a=b"; }
    if (bereq.url ~ "control=private") { set beresp.http.Cache-Control = "private, max-age=60"; }
    if (bereq.url ~ "vary=all") { set beresp.http.Vary = "Accept, *"; }
    if (bereq.url ~ "brief=") { set beresp.ttl = 0.001s; set beresp.grace = 0s; set beresp.keep = 1h; }
}
END
}
vcl gate.vcl

adm() {
    varnishadm -n "$instance" -t 60 "$@" 2>&1 # a compiler is run for some of it
}
is_up() {
    [[ $(adm status 2>/dev/null) == *running* ]]
}
# start_varnish VCL: $varnish is its address, $manager the manager's process.
start_varnish() {
    # Varnish compiles what it is given: quickly is good enough here.
    start varnish varnishd -F -n "$instance" -j none -a 127.0.0.1:0 -T 127.0.0.1:0 -f "$work/$1" -s malloc,64m \
        -p "vmod_path=$vmods" -p 'cc_command=exec gcc -O0 -fPIC -shared -w -o %o %s' -p thread_pools=1 -p thread_pool_min=20
    manager=$pid
    within 20 "varnishd runs" is_up
    varnish=$(adm debug.listen_address | awk '/127.0.0.1/ { print "127.0.0.1:" $3; exit }')
}
stop_varnish() {
    kill -TERM "$manager"
    wait "$manager" 2>/dev/null || true
}
# ask PATH [OPTION...]: X-Cache of the answer: pass, miss or hit. The host is the same at any port, for it is in the hash.
ask() {
    curl -sS --max-time 10 -o /dev/null -D- -H 'Host: www.example.org' "http://$varnish$1" "${@:2}" | tr -d '\r' | sed -n 's/^X-Cache: //p'
}
# stat NAME: a counter, as varnishstat -j has it.
stat() {
    varnishstat -n "$instance" -j -f "$1" | sed -n 's/.*"value": \([0-9]*\).*/\1/p'
}
stat_is_at_least() {
    (($(stat "$1") >= $2))
}
stat_is() {
    [[ $(stat "$1") == "$2" ]]
}
# is_said PATTERN: by the VMOD, in varnishd's log.
is_said() {
    grep -q "reprise: $1" "$work/varnish.log"
}
saves_beyond() {
    (($(stat REPRISE.gate.saves) > $1))
}
# await_save: until what was seen before is on disk. A save may be under way as this begins, so the second counts; and one is
# only written where something came since.
unique=0
await_save() {
    local saves
    for _ in 1 2; do
        saves=$(stat REPRISE.gate.saves)
        ask "/hello?save=$((++unique))" >/dev/null
        within 10 "what was seen is saved" saves_beyond "$saves"
    done
}

# What was stored before there was a gate, and is stale by now, is revalidated: it need not be seen first.
sed -e '/gate/d; /^import/d; /new gate/d' "$work/gate.vcl" >"$work/none.vcl"
start_varnish none.vcl
check "without a gate the first request is stored" miss "$(ask '/hello?brief=1')"
adm vcl.load gate "$work/gate.vcl" >/dev/null
adm vcl.use gate >/dev/null
check "what is stale is revalidated, though never seen" "miss 2" "$(ask '/hello?brief=1') $(asked origin 'brief=1')"

# ---- second-hit admission
check "a first request is passed" pass "$(ask /hello)"
check "a second is stored" miss "$(ask /hello)"
check "a third is a hit" hit "$(ask /hello)"
check "three requests make two at the origin" 2 "$(asked origin '/hello( |$)')"
check "two bodies crossed: one kept out, one let in" "1 1 1" \
    "$(stat REPRISE.gate.objects_not_stored) $(stat REPRISE.gate.objects_admitted) $(stat REPRISE.gate.hits_lost)"
check "and their bytes" "23 23" "$(stat REPRISE.gate.bytes_not_stored) $(stat REPRISE.gate.bytes_admitted)"

objects=$(stat MAIN.n_object)
curl -sS -o /dev/null "http://$varnish/bytes/100?once=[1-100]"
# Each worker counts by itself, and tells later.
within 20 "a hundred one-hit wonders store nothing" stat_is MAIN.n_object "$objects"
check "they stand in the ledger" 101 "$(stat REPRISE.gate.objects_not_stored)"
check "with their bytes" 10023 "$(stat REPRISE.gate.bytes_not_stored)"

# ---- what is no sight
before=$(stat REPRISE.gate.objects_not_stored)
for path in /never /none '/hello?control=private' '/hello?cookie=1' '/hello?vary=all' '/hello?expires=past'; do
    check "$path is passed" "pass pass pass" "$(ask "$path") $(ask "$path") $(ask "$path")"
done
check "HEAD is passed" "pass pass" "$(ask '/hello?head' -I) $(ask '/hello?head' -I)"
check "and was no sight" pass "$(ask '/hello?head')"
check "what came with Authorization is not for all" "pass pass" \
    "$(ask '/hello?mine' -u a:b -H 'X-Hash: 1') $(ask '/hello?mine' -u a:b -H 'X-Hash: 1')"
check "what VCL passes itself is not asked about" "pass pass" \
    "$(ask '/hello?own' -u a:b) $(ask '/hello?own' -u a:b)"
check "none of these was a sight" $((before + 1)) "$(stat REPRISE.gate.objects_not_stored)"
within 20 "and none left an object" stat_is MAIN.n_object "$objects"
check "for hits or for misses" 0 "$(stat MAIN.cache_hitmiss)"
check "a range is one" "pass miss" "$(ask '/bytes/1000?part' -r 0-9) $(ask '/bytes/1000?part')"
check "so is a 304" "pass miss" "$(ask '/hello?known' -H 'If-None-Match: "hello-1"') $(ask '/hello?known')"
check "and what has no lifetime of its own, as Varnish gives it one" "pass miss hit" "$(ask /silent) $(ask /silent) $(ask /silent)"

# ---- a request that VCL restarts is one request
admitted=$(stat REPRISE.gate.objects_admitted)
lost=$(stat REPRISE.gate.hits_lost)
refused=$(stat REPRISE.gate.objects_not_stored)
check "a first request that is restarted is passed twice" "pass 2" "$(ask '/hello?restart=1') $(asked origin 'restart=1')"
check "and is one sight" "$admitted $((refused + 1))" "$(stat REPRISE.gate.objects_admitted) $(stat REPRISE.gate.objects_not_stored)"
check "a second one is stored, and finds it stored once it is restarted" "hit 3" "$(ask '/hello?restart=1') $(asked origin 'restart=1')"
check "and is one that was admitted" "$((admitted + 1)) $((lost + 1)) $((refused + 1))" \
    "$(stat REPRISE.gate.objects_admitted) $(stat REPRISE.gate.hits_lost) $(stat REPRISE.gate.objects_not_stored)"

# ---- reload, under load
ask '/hello?before-reload' >/dev/null
(
    while [[ ! -e $work/reloaded ]]; do
        curl -sS -o /dev/null -w '%{http_code}\n' "http://$varnish/bytes/50?load=[1-50]"
    done >"$work/load.codes"
) &
load=$!
started+=("$load")
for turn in 1 2; do
    vcl "again$turn.vcl"
    adm vcl.load "again$turn" "$work/again$turn.vcl" >/dev/null
    adm vcl.use "again$turn" >/dev/null
done
adm vcl.discard gate >/dev/null
touch "$work/reloaded"
wait "$load"
check "under reloads all were answered" 200 "$(sort -u "$work/load.codes")"
check "a reload keeps what was seen" miss "$(ask '/hello?before-reload')"
check "and the account goes on" 1 "$( (($(stat REPRISE.gate.objects_not_stored) > before)) && echo 1)"

# ---- bad options: refused with what would be right, and the VCL that serves goes on
refused() {
    vcl bad.vcl "$2" "${4-}"
    check_matches "$1" "$3" "$(adm vcl.load bad "$work/bad.vcl" | tr '\n' ' ' || true)"
}
refused "a word that is none" '"objcts=5"' "reprise.admission gate: 'objcts=5' is not understood: right would be one of objects=, age="
refused "a value out of range" '"hits=1"' 'hits is 1: it must be 2 \(the second request stores\) to 16'
refused "a state without a root" 'state = "seen"' "state='seen': right would be a path from the root"
refused "a period that is none" 'save = 0s' 'save is 0 seconds: it must be 1 to'
refused "a name that is none" 'name = "a b"' "name='a b': right would be 1 to 64 letters"
refused "another's state" "state = \"$state/gate\", name = \"other\"" "is that of admission gate: right would be a file of its own"
check "what served goes on" hit "$(ask /hello)"

# ---- other options under the same name: a filter of its own, and the one before is back when that goes
vcl other.vcl "\"objects=200k\", state = \"$state/gate\", save = 1s"
adm vcl.load other "$work/other.vcl" >/dev/null
within 10 "a filter of other options says that it can't use the state" is_said 'admission gate: .*/gate: not used'
adm vcl.discard other >/dev/null
ask '/hello?after-other' >/dev/null
check "the one before it serves on" miss "$(ask '/hello?after-other')"

# ---- a state that can't be written
vcl nowhere.vcl "state = \"$state/none/gate\", name = \"nowhere\", save = 1s"
adm vcl.load nowhere "$work/nowhere.vcl" >/dev/null
adm vcl.use nowhere >/dev/null
ask '/hello?nowhere' >/dev/null
within 10 "a state that can't be written is counted" stat_is_at_least REPRISE.nowhere.save_failures 1
within 10 "and named" is_said 'what was seen is not saved: .*/none/gate'

# ---- what notes where it can't
vcl misused.vcl
sed -i 's/^sub vcl_recv {/sub vcl_recv { if (req.url == "\/misused") { gate.seen(); }/' "$work/misused.vcl"
adm vcl.load misused "$work/misused.vcl" >/dev/null
adm vcl.use misused >/dev/null
check "seen before the hash fails the request" 503 "$(curl -sS -o /dev/null -w '%{http_code}' "http://$varnish/misused")"

# ---- restarts
ask '/hello?before-stop' >/dev/null
adm vcl.use again2 >/dev/null
ask '/hello?before-rollback' >/dev/null
adm vcl.load other "$work/other.vcl" >/dev/null
adm vcl.discard other >/dev/null
stop_varnish
[[ -s $state/gate ]] || fail "no state was saved at the end"
start_varnish gate.vcl
check "after a stop the second request is stored" miss "$(ask '/hello?before-stop')"
check "after a rollback and a stop too" miss "$(ask '/hello?before-rollback')"

ask '/hello?before-kill' >/dev/null
await_save
child=$(pgrep -P "$manager")
kill -KILL "$child"
# The state is asked for last: of the old child it says "running" for a moment after its end, and what connects
# until the new one is started is reset, for the manager opens its port anew between the two.
has_another_child() {
    local now
    now=$(pgrep -P "$manager") && [[ $now != "$child" ]] && is_up
}
within 20 "another child is started" has_another_child
check "after kill -9 of the child too" miss "$(ask '/hello?before-kill')"

ask '/hello?before-both' >/dev/null
await_save
child=$(pgrep -P "$manager")
kill -KILL "$manager" "$child"
wait "$manager" 2>/dev/null || true
printf 'damaged' | dd of="$state/gate" bs=1 seek=200 conv=notrunc status=none
start_varnish gate.vcl
within 10 "a damaged state is named" is_said "admission gate: .*$state/gate: not used, the filter begins empty: damaged"
check "and begun empty" pass "$(ask '/hello?before-both')"
await_save
child=$(pgrep -P "$manager")
kill -KILL "$manager" "$child"
wait "$manager" 2>/dev/null || true
start_varnish gate.vcl
check "after kill -9 of both" miss "$(ask '/hello?before-both')"
names=$(awk '/^\*\*The ledger/ { is_in = 1 } is_in && /^\| `/ { split($0, cell, "|"); gsub(/[`,]/, "", cell[2]); print cell[2] }' \
    "$SOURCE/filter/plugins/README.md" | xargs -n 1 | sort | xargs)
check "varnishstat has the ledger's names" "$names" \
    "$(varnishstat -n "$instance" -j -f 'REPRISE.gate.*' | sed -n 's/.*"REPRISE.gate.\([a-z_]*\)".*/\1/p' | grep -v '^save' | sort | xargs)"
stop_varnish

# ---- a bad option at the start
vcl bad.vcl '"objects=many"'
if varnishd -F -n "$instance" -j none -a 127.0.0.1:0 -T 127.0.0.1:0 -f "$work/bad.vcl" -p "vmod_path=$vmods" >"$work/refused" 2>&1 </dev/null; then
    fail "varnishd started with a bad option"
fi
check_matches "varnishd does not start with a bad option, and says why" "'objects=many' is not understood: right would be a number of keys" \
    "$(tr '\n' ' ' <"$work/refused")"
