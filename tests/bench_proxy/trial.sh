#!/usr/bin/env bash
# All that tools/bench does, little of each and some rows only: that rows are made, that a result
# is written and read again, and that a worse one fails loudly. What the figures are is not looked at.
#
# BENCH, REPRISE and SHIM name the programs. A peer that is not installed must be named as skipped.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/out"

fail() {
    printf 'trial: %s\n' "$*" >&2
    cat "$work/log" >&2
    exit 1
}

# trial STATUS ROWS [options]: what it printed is in $work/log.
trial() {
    local wanted=$1 rows=$2 status=0
    shift 2
    "$BENCH" trial --program "$REPRISE" --shim "$SHIM" --out "$work/out" --results "$work/kept" \
        --dir "$work" --commit tried --only "$rows" "$@" >"$work/log" 2>&1 || status=$?
    ((status == wanted)) || fail "status $status where $wanted was to be: $rows"
}

has() { grep -qF -- "$1" "$work/log" || fail "does not say: $1"; }

# Rows of every part, that need no other program.
trial 0 "idle connection,stored,left of,tail quiet,tail generation,tail purge,tail memory" --keep
for row in "idle connection " "stored object of 1 KiB: over" "left of a peak of half heads: a minute" \
    "tail quiet: loop held longest " "tail quiet: latency p99.9 " "tail generation cleared: loop held p99.9" \
    "tail purge by tag: loop held longest by at most 4 events" "tail memory given back: loop by the wall longest"; do
    has "| $row"
done
has "kept: "
compgen -G "$work/out/*.json" >/dev/null || fail "no result was written"

trial 0 "rate 1 MiB"
has "| rate 1 MiB: tunnel: off by"

# With wrk there are the others; without, they are skipped by name.
trial 0 "hit1k,scale hits"
if command -v wrk >/dev/null; then
    has "| hit1k / bare"
    has "| scale hits: two threads / one"
else
    has "skipped: costs: wrk is not installed"
fi
if ! command -v nginx >/dev/null && [[ ! -x /usr/sbin/nginx ]]; then
    has "it is not installed"
fi

# Tunnels, opened and not, where there is an https origin to be had.
trial 0 "tunnelnew1k,new host"
if command -v openssl >/dev/null && { command -v nginx >/dev/null || [[ -x /usr/sbin/nginx ]]; }; then
    has "| tunnelnew1k / without intercept"
    has "| new host: adds"
else
    has "skipped: https: "
fi

# A kept result that is far better than what can be: loud, and named.
result() { # VALUE
    cat <<END
{ "date": "2026-01-01T00:00:00Z", "commit": "made-up", "form": "trial", "machine": $machine, "skipped": [], "notes": [],
  "rows": [ { "name": "stored object of 1 KiB: over its head and body", "unit": "bytes", "rounds": [$1], "grain": 16,
              "judged": true, "commit": "made-up", "date": "2026-01-01T00:00:00Z" } ] }
END
}
kept=$(compgen -G "$work/kept/*-bench.json")
machine=$(sed -n 's/^ *"machine": \(".*"\),$/\1/p' "$kept")
[[ -n $machine ]] || fail "a result does not say of which machine it is"
result -5000 >"$kept"
trial 1 "stored"
has "WORSE: stored object of 1 KiB: over its head and body"
has "measured once more"
result 50000 >"$kept"
trial 0 "stored"

# Two files, without measuring anything.
result 100 >"$work/now"
result 90 >"$work/before"
status=0
"$BENCH" compare "$work/now" "$work/before" >"$work/log" 2>&1 || status=$?
((status == 0)) || fail "10 bytes more, of a grain of 16, are no change"
result 120 >"$work/now"
status=0
"$BENCH" compare "$work/now" "$work/before" >"$work/log" 2>&1 || status=$?
((status == 1)) || fail "33 % more are a change"
has "WORSE: stored object"

# What can't be measured is no good result.
status=0
"$BENCH" trial --program /bin/false --shim "$SHIM" --out "$work/out" --results "$work/kept" --dir "$work" \
    --only "idle connection" >"$work/log" 2>&1 || status=$?
((status == 2)) || fail "status $status where the proxy did not start"
has "did not start"
[[ -z $(compgen -G "$work/bench_proxy-*") ]] || fail "something is left behind"
