#!/usr/bin/env bash
# git through opened tunnels (lab.sh): clones of a repository that is plain files.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=../sources.sh
. "$here/sources.sh"
needs git
git_repository "$site" 3
given=("head=$(git -C "$seed" rev-parse HEAD)")

download() {
    export GIT_CONFIG_NOSYSTEM=1 GIT_TERMINAL_PROMPT=0 GIT_SSL_CAINFO=$trusted
    git clone -q "https://$authority/project.git" got
}
compare() {
    [[ $(git -C got rev-parse HEAD) == "${head:?}" ]]
    git -C got fsck --strict --no-progress
}

start_lab
opened_three_times 8
refuses_outside 'certificate verification failed'
without_ca fails
stop_proxy
