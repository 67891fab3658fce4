#!/usr/bin/env bash
# npm through opened tunnels (lab.sh): one package, and what the registry says of it.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
needs npm sha512sum

mkdir -p "$work/package" "$site/files"
head -c 300000 /dev/urandom >"$work/package/data"
echo '{ "name": "reprise-sample", "version": "1.0.0" }' >"$work/package/package.json"
tar -C "$work" -czf "$site/files/reprise-sample-1.0.0.tgz" package
integrity=$(openssl dgst -sha512 -binary "$site/files/reprise-sample-1.0.0.tgz" | base64 -w 0)
cat >"$site/reprise-sample" <<END
{ "name": "reprise-sample", "dist-tags": { "latest": "1.0.0" }, "versions": { "1.0.0": {
    "name": "reprise-sample", "version": "1.0.0", "dist": { "integrity": "sha512-$integrity",
        "tarball": "https://@authority@/files/reprise-sample-1.0.0.tgz" } } } }
END
locations='location = /reprise-sample { types { } default_type application/json; }'
given=("data=$work/package/data")

download() {
    echo '{ "private": true }' >package.json
    # It would try again after ten seconds.
    NODE_EXTRA_CA_CERTS=$trusted npm_config_fetch_retries=1 npm_config_fetch_retry_mintimeout=100 \
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
