#!/usr/bin/env bash
# What is shipped for Prometheus and Grafana: every metric, outcome and failure that an alert or a panel names is there,
# each alert has a runbook and a case in which it fires, and none fires where all is well: that says promtool, where it is
# installed, which finds nothing wrong with metrics and rules either.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs curl
shipped=$SOURCE/tools/packaging/monitoring

start_proxy '"disk": { "path": "'"$work"'/store", "size": "64MiB" }, "peers": [
    { "name": "sibling", "url": "http://127.0.0.1:9" },
    { "name": "parent", "url": "http://127.0.0.1:9", "kind": "parent" } ]'
curl -sS --max-time 10 "http://$admin/metrics" >"$work/metrics"
sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$work/metrics" | sort -u >"$work/names"

for file in alerts.yml grafana.json; do
    grep -oE '\b(reprise|process)_[a-z0-9_]+' "$shipped/$file" | sed -E 's/_(bucket|sum|count)$//' |
        sort -u >"$work/named"
    check "$file names no metric that is not there" "" "$(comm -23 "$work/named" "$work/names" | tr '\n' ' ')"
    check "$file names some" yes "$([[ -s $work/named ]] && echo yes)"
    for label in outcome failure; do
        sed -n "s/.*[{,]$label=\"\([^\"]*\)\".*/\1/p" "$work/metrics" | sort -u >"$work/values"
        sed 's/\\//g' "$shipped/$file" | { grep -oE "\\b$label=~?\"[^\"]+" || true; } | sed 's/.*"//' | tr '|' '\n' |
            sort -u >"$work/named"
        check "$file names no $label that there is none of" "" "$(comm -23 "$work/named" "$work/values" | tr '\n' ' ')"
    done
done
check "each alert has a runbook" "$(grep -c -- '- alert:' "$shipped/alerts.yml")" \
    "$(grep -c '^ *runbook:' "$shipped/alerts.yml")"
sed -n 's/.*- alert: //p' "$shipped/alerts.yml" | sort >"$work/alerts"
awk '/alertname:/ { name = $NF } /exp_alerts:/ { print name }' "$shipped/alerts_test.yml" | sort -u >"$work/fire"
check "each alert has a case in which it fires" "" "$(comm -3 "$work/alerts" "$work/fire" | tr '\n' ' ')"
if command -v promtool >/dev/null; then
    check "promtool finds nothing in the metrics" "" "$(promtool check metrics <"$work/metrics" 2>&1)"
    promtool check rules "$shipped/alerts.yml" >"$work/rules.log" 2>&1 || fail "promtool refuses the rules"
    promtool test rules "$shipped/alerts_test.yml" >"$work/fired.log" 2>&1 || fail "an alert does not fire as it should, or where all is well"
    echo "ok: promtool takes the rules, and they fire as they should"
else
    echo "promtool is not installed (Debian's prometheus): the rules are not checked by it"
fi
stop_proxy
