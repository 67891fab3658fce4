#!/usr/bin/env bash
# git over http: clones of a repository that is plain files (the "dumb" protocol, which can be
# cached), then a clone and a push through git's own server (POSTs, one of them chunked, which can't).
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=sources.sh
. "$here/sources.sh"
needs git

served=$work/served
git_repository "$served" 12
head=$(git -C "$seed" rev-parse HEAD)

start_origin files --root "$served"
start_proxy ''

for number in 1 2 3; do
    git -c "http.proxy=http://$proxy" clone -q "http://127.0.0.1:$port/project.git" "$work/clone$number"
    check "clone $number has the history" "$head" "$(git -C "$work/clone$number" rev-parse HEAD)"
    git -C "$work/clone$number" fsck --strict --no-progress || fail "clone $number is damaged"
done
check "the pack was asked of the origin twice" 2 "$(asked files '\.pack 200 ')"

smart=$work/smart
mkdir "$smart"
git clone -q --bare "$seed" "$smart/project.git"
start_origin backend --git "$smart"
url=http://127.0.0.1:$port/project.git
through=(git -c "http.proxy=http://$proxy")
"${through[@]}" clone -q "$url" "$work/copy"
check "a smart clone has the history" "$head" "$(git -C "$work/copy" rev-parse HEAD)"

# More than http.postBuffer, so that git sends it in chunks.
head -c 3000000 /dev/urandom >"$work/copy/large"
git -C "$work/copy" add large
git -C "$work/copy" -c user.name=nobody -c user.email=nobody@example.org commit -q -m large
"${through[@]}" -C "$work/copy" push -q origin main
check "a push arrives" "$(git -C "$work/copy" rev-parse HEAD)" "$(git -C "$smart/project.git" rev-parse main)"
check "its pack went in chunks" 1 "$(asked backend '^POST /project.git/git-receive-pack 200 chunked')"
"${through[@]}" -C "$work/copy" fetch -q origin
"${through[@]}" clone -q "$url" "$work/copy2"
check "the next clone has it: nothing old was served" "$(git -C "$work/copy" rev-parse HEAD)" \
    "$(git -C "$work/copy2" rev-parse HEAD)"
stop_proxy
