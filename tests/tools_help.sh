#!/usr/bin/env bash
# A script of tools/ that is asked for help says what it is, and does nothing: tools/test --help built and tested for half an hour.
#
#   tools_help.sh <tools/>
set -euo pipefail

count=0
for script in "$1"/*; do
    if [[ ! -f $script || ! -x $script ]] || ! head -n 1 "$script" | grep -q bash; then
        continue
    fi
    name=$(basename "$script")
    # What these are given is the program's, which they build first.
    [[ $name != run && $name != make-ca && $name != bench ]] || continue
    for word in -h --help; do
        said=$(timeout 20 "$script" "$word" </dev/null) || { echo "$name $word: exit status $?" >&2; exit 1; }
        second=$(sed -n '2s/^# //p' "$script")
        [[ $said == "$second"* ]] || { echo "$name $word does not begin with: $second" >&2; exit 1; }
        [[ $said == *"tools/$name"* ]] || { echo "$name $word does not say how it is called" >&2; exit 1; }
        [[ $said != *"set -"* ]] || { echo "$name $word says more than its page" >&2; exit 1; }
    done
    count=$((count + 1))
done
((count >= 10)) || { echo "only $count scripts" >&2; exit 1; }
