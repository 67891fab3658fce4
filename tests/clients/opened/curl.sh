#!/usr/bin/env bash
# curl through opened tunnels (lab.sh); and a host that is added by a new CA and SIGHUP, of which its
# clients are told nothing.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"

head -c 300000 /dev/urandom >"$site/archive.bin"
echo '{ "from": "https://@authority@/" }' >"$site/about.json"

download() {
    CURL_CA_BUNDLE=$trusted curl -sS --fail --fail-early --max-time 20 -O "https://$authority/archive.bin" \
        -O "https://$authority/about.json"
}
compare() {
    cmp archive.bin "$site/archive.bin"
    grep -qE '"https://[a-z.]+:[0-9]+/"' about.json
}

more_hosts=(added.test)
start_lab
opened_three_times 2
refuses_outside 'permitted subtree violation'

# While it isn't listed curl sees the origin's own certificate, which it doesn't know.
as_client early "$root_pem" added.test
check "a host that is not listed shows its own certificate" 60 "$status"
make_ca "$work/longer_ca" files.test added.test
reload_proxy "$(opening "$work/longer_ca" files.test added.test)" "$port"
as_client late "$root_pem" added.test
check "listed, it is opened, for clients that know the root as before" 0 "$status"
is_whole late
is_at_least "tunnels to it that were opened" 1 of_host opened added.test
without_ca fails
stop_proxy
