#!/usr/bin/env bash
# git clone over http, from a repository that is plain files (the "dumb" protocol).
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs git

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0
seed=$work/seed served=$work/served
git init -q -b main "$seed"
git -C "$seed" config user.name nobody
git -C "$seed" config user.email nobody@example.org
for number in $(seq 1 12); do
    head -c 20000 /dev/urandom >"$seed/file$number"
    git -C "$seed" add .
    git -C "$seed" commit -q -m "commit $number"
done
mkdir "$served"
git clone -q --bare "$seed" "$served/project.git"
git -C "$served/project.git" repack -q -a -d
git -C "$served/project.git" update-server-info
head=$(git -C "$seed" rev-parse HEAD)

start_origin files --root "$served"
start_proxy ''

for number in 1 2 3; do
    git -c "http.proxy=http://$proxy" clone -q "http://127.0.0.1:$port/project.git" "$work/clone$number"
    check "clone $number has the history" "$head" "$(git -C "$work/clone$number" rev-parse HEAD)"
    git -C "$work/clone$number" fsck --strict --no-progress || fail "clone $number is damaged"
done
check "the pack was asked of the origin twice" 2 "$(asked files '\.pack 200 ')"
stop_proxy
