#!/usr/bin/env bash
# Whose output can't be written says so, and ends with 1: what a full disk has of it is not taken for all.
#
#   full_output.sh <reprise> <reprise-store> <reprise-from-squid> <reprise-digest>
set -euo pipefail

reprise=$1 store=$2 from_squid=$3 digest=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "full_output: $*" >&2
    exit 1
}

# says_so COMMAND...: that its output is lost; and is content where it is not.
says_so() {
    "$@" >/dev/null 2>"$work/said" || fail "$*: $(cat "$work/said")"
    local status=0
    "$@" >/dev/full 2>"$work/said" || status=$?
    [[ $status == 1 ]] || fail "$* ends with $status though its output is lost"
    grep -q 'cannot write to standard output' "$work/said" || fail "$* does not say why: $(cat "$work/said")"
}

echo 'http_port 3128' >"$work/squid.conf"
says_so "$from_squid" "$work/squid.conf"
says_so "$digest" "${BASH_SOURCE[0]%/*}/data/formats/digest-1.bin"

# A store, by a proxy that begins one and ends.
mkdir "$work/store"
cat >"$work/settings.json" <<END
{ "listeners": [{ "address": "127.0.0.1:0" }], "admin": { "address": "off" }, "disk": { "path": "$work/store", "size": "64 MiB" } }
END
coproc proxy { exec "$reprise" --config "$work/settings.json" 2>&1; }
# shellcheck disable=SC2154  # coproc sets it
running=$proxy_PID
trap 'kill "$running" 2>/dev/null || true; rm -rf "$work"' EXIT
line=
until [[ $line == *'listening on'* ]]; do
    read -r -t 60 line <&"${proxy[0]}" || fail "the proxy does not begin: $line"
done
kill "$running"
wait "$running" || fail "the proxy did not end well"
for what in inspect verify; do
    says_so "$store" "$what" "$work/store"
done
