#!/usr/bin/env bash
# pip through opened tunnels (lab.sh): one wheel, and the index that leads to it.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=pip_client.sh
. "$here/opened/pip_client.sh"

start_lab
opened_three_times 2
refuses_outside 'permitted subtree violation'
without_ca recovers
stop_proxy
