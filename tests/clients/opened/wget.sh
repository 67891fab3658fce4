#!/usr/bin/env bash
# wget through opened tunnels (lab.sh). Debian's is of GnuTLS: it looks at a certificate when the handshake
# is over, and leaves without a word if it doesn't like it.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
needs wget

head -c 300000 /dev/urandom >"$site/archive.bin"
echo '<a href="archive.bin">all of it</a>' >"$site/index.html"

download() {
    echo "ca_certificate = $trusted" >.wgetrc
    wget -nv -r -nH -P got -e robots=off --timeout 20 --tries 1 "https://$authority/"
}
compare() {
    diff -r got "$site"
}

start_lab
opened_three_times 2
refuses_outside 'The certificate of .* is not trusted'
without_ca fails
stop_proxy
