#!/usr/bin/env bash
# Squid as the only way out: it wants Basic credentials, and alone knows the names that are asked for.
# Requests and tunnels go through it, and without the right credentials each says what is missing.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
PATH=$PATH:/usr/sbin:/sbin
needs curl squid openssl
basic_auth=/usr/lib/squid/basic_ncsa_auth
needs "$basic_auth"

squid_dir=$work/squid
mkdir "$squid_dir"
unprivileged=()
if ((EUID == 0)); then # Squid does not run as root
    chmod 711 "$work"
    chown 65534:65534 "$squid_dir"
    unprivileged=(--reuid=65534 --regid=65534 --clear-groups)
fi

start_origin pages
pages=only.squid.knows.test:$port
printf 'child:%s\n' "$(openssl passwd -apr1 'open sesame')" >"$squid_dir/passwords"
echo "127.0.0.1 only.squid.knows.test" >"$squid_dir/hosts"
chmod 644 "$squid_dir/passwords" "$squid_dir/hosts"

# start_squid: $squid is its address.
start_squid() {
    local spare
    for _ in 1 2 3 4 5; do
        # Squid wants to be told its port. The one that the system gave to a program that has ended
        # is free, as a rule.
        rm -f "$work/spare.port"
        start_origin spare
        spare=$port
        kill "$pid"
        wait "$pid" || true
        squid=127.0.0.1:$spare
        cat >"$squid_dir/squid.conf" <<END
http_port $squid
visible_hostname squid.invalid
auth_param basic program $basic_auth $squid_dir/passwords
auth_param basic children 1
auth_param basic realm test
acl known proxy_auth REQUIRED
http_access allow known
http_access deny all
cache deny all
access_log stdio:$squid_dir/access.log squid
cache_log $work/squid_cache.log
cache_store_log none
pid_filename $squid_dir/squid.pid
coredump_dir $squid_dir
netdb_filename none
pinger_enable off
icp_port 0
dns_nameservers 127.0.0.1
hosts_file $squid_dir/hosts
max_filedescriptors 1024
shutdown_lifetime 0 seconds
END
        start squid setpriv "${unprivileged[@]}" --pdeathsig KILL squid -N -f "$squid_dir/squid.conf"
        while kill -0 "$pid" 2>/dev/null; do
            # 407, as soon as it listens
            curl -sS --max-time 5 -o /dev/null -x "http://$squid" "http://$pages/" 2>>"$work/curl.log" && return
            sleep 0.05
        done
        echo "Squid did not start with port $spare"
    done
    fail "Squid does not start"
}
origin_port=$port
start_squid

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
check "came by Squid" 1 "$(grep -c ' child ' "$squid_dir/access.log")"
check "a HEAD" 200 "$(status_of -I "http://$pages/hello?head")"
check "a POST" 200 "$(status_of -d a=b "http://$pages/hello?post")"
check "a tunnel" "200 200" "$(tunnel_status_of "http://$pages/hello?tunnel")"
check "came by Squid too" 1 "$(grep -cE 'TCP_TUNNEL/200 .* CONNECT .* child ' "$squid_dir/access.log")"
grep -q "open sesame" "$work/access.log" "$work/proxy.log" && fail "credentials in a log"

(umask 077 && echo "child:wrong" >"$work/credentials")
kill -HUP "$proxy_pid"
until [[ $(status_of "http://$pages/hello?$RANDOM") == 502 ]]; do
    ((SECONDS < 60)) || fail "the new credentials are not in use"
    sleep 0.1
done
check "a tunnel by wrong credentials" "502 000" "$(tunnel_status_of "http://$pages/hello")"
is_explained() {
    grep -q '"error":"[^"]*credentials_file' "$work/access.log"
}
until is_explained; do
    ((SECONDS < 60)) || fail "the log does not say why"
    sleep 0.1
done
echo "ok: the log says why"
stop_proxy
