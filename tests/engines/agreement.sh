#!/usr/bin/env bash
# Reprise and the three plug-ins decide alike, small: what tools/judge_engines prints of some hundred requests. The whole trace and what
# differs there are in tools/results.
# shellcheck source=../clients/harness.sh
. "$(dirname "$0")/../clients/harness.sh"
PATH=$PATH:/usr/sbin:/sbin
: "${SOURCE:?names the sources}"
needs python3 zstd nginx varnishd traffic_server

# 3000 requests, some URLs far more than others; half of them for what comes once.
awk -v OFS=, 'BEGIN {
    srand(1)
    for (i = 0; i < 3000; ++i) {
        name = rand() < 0.5 ? 1000 + i : int(500 * rand() ^ 3)
        print i, name, name * 37 % 20000
    }
}' >"$work/few"
status=0
"$SOURCE/tools/judge_engines" "$work/few" --words 'objects=1k age=50h rate=0.3 hits=2' --one-seed >"$work/table" 2>"$work/judge.log" || status=$?
cat "$work/table"
((status != 77)) || exit 77
check "every answer of the four has a reason" 0 "$status"
# row WHAT: the four figures of the row that begins so.
row() {
    awk -F' *[|] *' -v what="$1" 'index($2, what) == 1 { print $3, $4, $5, $6 }' "$work/table"
}
read -r reprise trafficserver nginx varnish <<<"$(row 'a stranger taken for known')"
((reprise > 20 && nginx > 20)) || fail "so full a filter takes strangers for known: $reprise, $nginx"
check "under one seed Traffic Server's are Reprise's" "$reprise" "$trafficserver"
check "and so are Varnish's" "$reprise" "$varnish"
read -r trafficserver nginx varnish <<<"$(row 'other answers than reprise')"
check "neither answers one request otherwise than Reprise" "0 0" "$trafficserver $varnish"
echo "ok: nginx, whose keys are not a text, does so in $nginx of 3000, each for a reason"
