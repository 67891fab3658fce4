#!/usr/bin/env bash
# Two Traffic Servers and two Reprises behind one front, small, which a third Reprise joins: each kind has hits at each kind, and a
# Traffic Server that is killed costs no request. `tools/bench_front --mixed` has the figures.
# shellcheck source=../clients/harness.sh
. "$(dirname "$0")/../clients/harness.sh"
PATH=$PATH:/usr/sbin:/sbin
: "${SOURCE:?names the sources}"
needs haproxy wrk curl perl traffic_server
chmod 711 "$work" # Traffic Server's user goes through it
status=0
start bench env TMPDIR="$work" setpriv --pdeathsig TERM "$SOURCE/tools/bench_front" --mixed --objects 1000 --settle 10000 --window 2000 \
    --memory 2MiB --store 16M --only rr-siblings
wait "$pid" || status=$?
((status != 77)) || exit 77
check "the fleet is measured" 0 "$status"
grep '^|' "$work/bench.log"
# cells PATTERN: of that row, separated by spaces.
cells() {
    grep "$1" "$work/bench.log" | tr -d ' ' | cut -d'|' -f3- | tr '|' ' '
}
read -r _ _ _ _ failed < <(cells '^| round robin, siblings | 0')
check "no request fails, though a node is killed" 0 "$failed"
for way in "trafficserver asks trafficserver" "trafficserver asks reprise" "reprise asks trafficserver" "reprise asks reprise"; do
    read -r _ hits _ < <(cells "$way")
    ((hits > 0)) || fail "$way: no hits"
    echo "ok: $way: $hits hits"
done
