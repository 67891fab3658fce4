#!/usr/bin/env bash
# apt through opened tunnels (lab.sh): one package, and the lists that lead to it.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=../sources.sh
. "$here/sources.sh"
needs apt-get apt-ftparchive dpkg-deb
apt_repository "$site"

download() {
    apt_client "$HOME" "https://$authority/" \
        "Acquire::https::Proxy \"http://$proxy\"; Acquire::https::CAInfo \"$trusted\";"
    apt_get "$HOME" update
    apt_get "$HOME" download reprise-sample
}
compare() {
    cmp download/reprise-sample_1.0_all.deb "$site/reprise-sample_1.0_all.deb"
}

start_lab
opened_three_times 5
refuses_outside "violates the signer's constraints"
without_ca fails
stop_proxy
