#!/usr/bin/env bash
# A front before a fleet, small: that hashing by URL spares the origin what round robin asks it for again, that digests carry what moves
# when a node joins, and that one that is killed costs no request. tools/bench_front has the figures.
# shellcheck source=../clients/harness.sh
. "$(dirname "$0")/../clients/harness.sh"
PATH=$PATH:/usr/sbin:/sbin
: "${SOURCE:?names the sources}"
needs haproxy wrk curl perl pgrep
# bench OPTION...: small, in a session of its own, which ends with this script; its process in $pid. Output to $work/front.log.
bench() {
    start front env TMPDIR="$work" setsid setpriv --pdeathsig TERM "$SOURCE/tools/bench_front" --objects 1000 --window 2000 --memory 2MiB "$@"
}
# What it starts ends with it, however it ends; its load would go on for an hour.
loads() {
    pgrep -s "$1" -x wrk >/dev/null
}
is_alone() {
    ! pgrep -r D,R,S,T -s "$1" >/dev/null # what nobody has waited for yet has ended all the same
}
for signal in TERM KILL; do
    bench --settle 100000000 --only rr
    within 20 "the load begins" loads "$pid"
    kill -"$signal" "$pid"
    wait "$pid" 2>/dev/null || true
    within 20 "nothing is left of it after $signal" is_alone "$pid"
done
rm "$work/front.log"
bench --settle 10000 --only rr,hash,hash-siblings
wait "$pid"
grep '^|' "$work/front.log" >"$work/table"
cat "$work/table"
# cell ROW COLUMN
cell() {
    awk -F' *[|] *' -v row="$1" -v column="$2" '$2 == row { print $(column + 1) }' "$work/table"
}
# less WHAT SMALLER LARGER
less() {
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a != "" && b != "" && a < b) }' || fail "$1: $2 is not less than $3"
    echo "ok: $1: $2 < $3"
}
less "settled, hashing asks the origin for less than round robin" "$(cell 'consistent hashing, nothing' 2)" "$(cell 'round robin, nothing' 2)"
less "as a fourth joins, siblings have what moved" "$(cell 'consistent hashing, siblings' 3)" "$(cell 'consistent hashing, nothing' 3)"
for row in 'round robin, nothing' 'consistent hashing, nothing' 'consistent hashing, siblings'; do
    check "no request fails, though a node is killed: $row" 0 "$(cell "$row" 6)"
done
