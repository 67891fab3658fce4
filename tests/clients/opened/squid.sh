#!/usr/bin/env bash
# Squid as a parent and as a child, over TLS both times: pages, tunnels, and https URLs that are fetched
# and stored on the way.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=../squid_process.sh
. "$(dirname "$0")/../squid_process.sh"

printf 'a page of files.test\n' >"$site/page"

# open_settings LINE... PORT: these lines, in which @ is the port; everybody may ask, and nothing is stored.
open_settings() {
    printf '%s\n' "${@:1:$#-1}" 'http_access allow all' 'cache deny all' | sed "s/@/${!#}/"
}
# through PROXY URL [OPTION...]: the status; the body in $work/body.
through() {
    curl -sS --max-time 20 -o "$work/body" -w '%{http_code}' -x "http://$1" --cacert "$work/origins.pem" "${@:3}" "$2"
}

make_authorities
squid_hosts=$hosts_file
leaf origins squid.test
leaf origins proxy.test
chmod 644 "$work/squid.test.key" "$work/origins.pem" # Squid's user reads them
printf '127.0.0.1 squid.test proxy.test only.squid.knows.test\n' >>"$hosts_file"
start_site
files=files.test:$site_port
start_origin pages
pages=127.0.0.1:$port

# A parent: the only way out.
start_squid parent open_settings "https_port 127.0.0.1:@ tls-cert=$work/squid.test.pem tls-key=$work/squid.test.key"
access='"https_prefix": ["files.test"]'
start_proxy '"origins": { "ca_file": "'"$work"'/origins.pem" }, "peering": { "never_direct": true },
    "peers": [{ "name": "squid", "url": "https://squid.test:'"${squid#*:}"'", "kind": "parent", "protocol": "squid" }]' \
    "$site_port"
check "a page by a parent over TLS" 200 "$(through "$proxy" "http://$pages/hello")"
within 20 "came by Squid" squid_logged_once parent " GET http://$pages/hello "
check "a tunnel by it" 200 "$(through "$proxy" "https://$files/page")"
check "is the origin's own" "a page of files.test" "$(<"$work/body")"
for number in 1 2; do
    check "an https URL by it, $number" 200 "$(through "$proxy" "http://HTTPS///$files/page")"
done
check "is what the origin has" "a page of files.test" "$(<"$work/body")"
check "nothing but CONNECT says where to" 0 "$(grep -c 'GET .*files.test' "$squid_dir/parent.log" || true)"
stop_squid
stop_site
check "and is stored: Squid and the origin are gone" 200 "$(through "$proxy" "http://HTTPS///$files/page")"
stop_proxy

# A child, whose parent is a listener with TLS.
start_site
# shellcheck disable=SC2034  # start_proxy's
listener='"tls": { "certificate": "'"$work"'/proxy.test.pem", "key": "'"$work"'/proxy.test.key" }'
access=""
start_proxy '' "$site_port"
start_squid child open_settings "http_port 127.0.0.1:@" \
    "cache_peer proxy.test parent ${proxy##*:} 0 no-query no-digest no-netdb-exchange default tls tls-cafile=$work/origins.pem" \
    "never_direct allow all"
for number in 1 2 3; do
    check "a page by a child, $number" 200 "$(through "$squid" "http://$pages/hello")"
done
check "asked of the origin before, and twice by this proxy" 3 "$(asked pages '^GET /hello ')"
within 20 "the child's third request is a hit, in the log" grep -q '"outcome":"hit"' "$work/access.log"
check "a tunnel by the child" 200 "$(through "$squid" "https://$files/page")"
check "which is the origin's own" "a page of files.test" "$(<"$work/body")"
stop_proxy
