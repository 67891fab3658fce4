#!/usr/bin/env bash
# npm through opened tunnels (lab.sh): one package, and what the registry says of it.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
needs npm sha512sum

# shellcheck source=../sources.sh
. "$here/sources.sh"

head -c 300000 /dev/urandom >"$work/data"
npm_registry "$site" https://@authority@ "$work/data"
locations='location = /reprise-sample { types { } default_type application/json; }'
given=("data=$work/data")

download() {
    echo '{ "private": true }' >package.json
    # It would try again after ten seconds. The last of these tries comes three seconds after the first: by then every loop of
    # the proxy knows of a refusal that was under way.
    NODE_EXTRA_CA_CERTS=$trusted npm_config_fetch_retries=5 npm_config_fetch_retry_mintimeout=100 \
        npm_config_fetch_retry_factor=2 \
        npm install --registry "https://$authority/" --globalconfig /dev/null --no-audit --no-fund \
        --no-update-notifier reprise-sample
}
compare() {
    cmp node_modules/reprise-sample/data "${data:?}"
}

start_lab
opened_three_times 2
refuses_outside 'permitted subtree violation'
without_ca recovers
stop_proxy
