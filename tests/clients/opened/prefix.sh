#!/usr/bin/env bash
# apt and an https repository that it is told of as http://HTTPS///…: it needs no CA of ours, and what is
# stored is the same as through opened tunnels.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=../sources.sh
. "$here/sources.sh"
needs apt-get apt-ftparchive dpkg-deb
apt_repository "$site"

download() {
    apt_client "$HOME" "http://HTTPS///$authority/" "Acquire::http::Proxy \"http://$proxy\";"
    apt_get "$HOME" update
    apt_get "$HOME" download reprise-sample
}
compare() {
    cmp download/reprise-sample_1.0_all.deb "$site/reprise-sample_1.0_all.deb"
}

access='"https_prefix": ["files.test"]'
start_lab
three_times 5
check "no tunnel was made" 0 "$(of_host opened files.test)"
as_client refused '' inside.files.test
((status != 0)) || fail "a host was asked over TLS that access.https_prefix does not name"
check "other hosts are not reached that way" 0 "$(asked site ' inside\.files\.test ')"

# What came this way is a hit for those whose tunnels are opened.
stop_site
package=reprise-sample_1.0_all.deb
CURL_CA_BUNDLE=$root_pem curl -sS --fail --max-time 20 -x "http://$proxy" -o "$work/$package" --path-as-is \
    "https://files.test:$port/./$package" # as apt spells it
cmp "$work/$package" "$site/$package"
echo "ok: an opened tunnel has it from the store, too"
stop_proxy
