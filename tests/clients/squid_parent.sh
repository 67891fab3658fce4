#!/usr/bin/env bash
# Squid as the only way out: it wants Basic credentials, and alone knows the names that are asked for.
# Requests and tunnels go through it, and without the right credentials each says what is missing.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=squid_process.sh
. "$(dirname "$0")/squid_process.sh"
needs openssl
basic_auth=/usr/lib/squid/basic_ncsa_auth
needs "$basic_auth"


start_origin pages
pages=only.squid.knows.test:$port
printf 'child:%s\n' "$(openssl passwd -apr1 'open sesame')" >"$squid_dir/passwords"
echo "127.0.0.1 only.squid.knows.test" >"$squid_dir/hosts"
chmod 644 "$squid_dir/passwords" "$squid_dir/hosts"

# parent_settings PORT
parent_settings() {
    cat <<END
http_port 127.0.0.1:$1
auth_param basic program $basic_auth $squid_dir/passwords
auth_param basic children 1
auth_param basic realm test
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
cache deny all
END
}
squid_hosts=$squid_dir/hosts
origin_port=$port
start_squid parent parent_settings

status_of() {
    curl -sS --max-time 20 -o "$work/body" -w '%{http_code}' -x "http://$proxy" "$@"
}
tunnel_status_of() {
    curl -sS --max-time 20 -o "$work/body" -w '%{http_connect} %{http_code}' -p -x "http://$proxy" "$@" \
        2>>"$work/curl.log" || true
}

(umask 077 && echo "child:open sesame" >"$work/credentials")
start_proxy '
  "peers": [{ "name": "squid", "url": "http://'"$squid"'", "kind": "parent", "protocol": "squid",
              "credentials_file": "'"$work"'/credentials" }],
  "peering": { "never_direct": true }' "$origin_port"

check "a page by a name that Squid alone knows" 200 "$(status_of "http://$pages/hello")"
within 20 "came by Squid" squid_logged_once parent ' child '
check "a HEAD" 200 "$(status_of -I "http://$pages/hello?head")"
check "a POST" 200 "$(status_of -d a=b "http://$pages/hello?post")"
check "a tunnel" "200 200" "$(tunnel_status_of "http://$pages/hello?tunnel")"
within 20 "came by Squid too" squid_logged_once parent 'TCP_TUNNEL/200 .* CONNECT .* child '
grep -q "open sesame" "$work/access.log" "$work/proxy.log" && fail "credentials in a log"

(umask 077 && echo "child:wrong" >"$work/credentials")
kill -HUP "$proxy_pid"
is_refused() {
    [[ $(status_of "http://$pages/hello?$RANDOM") == 502 ]]
}
within 20 "the new credentials are in use" is_refused
check "a tunnel by wrong credentials" "502 000" "$(tunnel_status_of "http://$pages/hello")"
is_explained() {
    grep -q '"error":"[^"]*credentials_file' "$work/access.log"
}
within 20 "the log says why" is_explained
stop_proxy
