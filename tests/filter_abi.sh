#!/usr/bin/env bash
# What programs rely on that were compiled against the C libraries of another day: structures, numbers, symbols and their
# versions. Of what is in the kept list nothing may change or go; what is new belongs behind it, with a new version.
#
#   filter_abi.sh <kept list> <printer> <library...>        REPRISE_UPDATE_DOCS=1 writes the list
set -euo pipefail

kept=$1 printer=$2
shift 2
now=$(mktemp)
trap 'rm -f "$now"' EXIT
{
    "$printer"
    for library in "$@"; do
        echo
        echo "$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p') exports"
        # Nothing but what the map names: a sanitizer's runtime has none of its own in a library.
        nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort
    done
} >"$now"
if [[ -n ${REPRISE_UPDATE_DOCS:-} ]]; then
    cp "$now" "$kept"
fi
diff -u "$kept" "$now" || {
    echo "filter_abi: the ABI differs from $kept (- kept, + now)" >&2
    exit 1
}
