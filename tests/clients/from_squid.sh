#!/usr/bin/env bash
# Ten configurations of Squid, each on a real Squid and, converted, on Reprise: the same requests from
# three clients, to hosts that some of them block. What is allowed, what is served from the store and
# what goes to a parent must be the same; where ours is stricter it is listed here, and a comment in
# the settings says so. Never is anything allowed that Squid denies, unless the converter said that.
#
# The networks and the places that a configuration names are put on loopback first; what this machine
# does not have (intercepted connections, helper programs, disks) is taken out before both read it.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=squid_process.sh
. "$(dirname "$0")/squid_process.sh"
converter=$BUILD/tools/from_squid/reprise-from-squid
needs "$converter"
confs=$SOURCE/tests/data/squid_conf


start_origin pages
pages=$port
squid_hosts=$squid_dir/hosts
for host in www.site.test sub.blocked.test blocked.test bad.test deep.worse.test registry.test; do
    echo "127.0.0.1 $host"
done >"$squid_hosts"
chmod 644 "$squid_hosts"

# The clients: this machine, the network 10/8 of the configurations, 192.168/16, and somebody else.
clients=(here=127.0.0.1 ten=127.0.10.5 home=127.0.192.5 stranger=127.0.99.1)

# A parent for those that want one: a Reprise that asks the origin.
node=parent
start_proxy ""
parent=$proxy
node=

# on_loopback CONF: as both read it.
on_loopback() {
    sed -E \
        -e 's#^(http_port) \S+#\1 127.0.0.1:PORT#' \
        -e 's#10\.0\.0\.0/(8|255\.0\.0\.0)#127.0.10.0/24#; s#192\.168\.0\.0/(16|255\.255\.0\.0)#127.0.192.0/24#' \
        -e 's#192\.168\.8\.1-192\.168\.8\.14#127.0.192.1-127.0.192.14#' \
        -e "s#\"office.banned\"#\"$squid_dir/office.banned\"#" \
        -e "s#^cache_peer parent.test parent 3128#cache_peer ${parent%:*} parent ${parent##*:}#; s# login=\\S+##" \
        -e "s#^cache_peer 192.0.2.80 parent 8080#cache_peer 127.0.0.1 parent $pages#" \
        -e '/^http_port .*intercept|^https_port|^ssl_bump|^sslcrtd|SslBump/d' \
        -e '/^(cache_dir|access_log|cache_access_log|cache_log|cache_store_log|coredump_dir|pid_filename)/d' \
        -e '/^(auth_param|external_acl_type|url_rewrite|redirect_program|icap_|icp_port|icp_access)/d' \
        -e '/proxy_auth|members|sibling.test|^workers|^dns_nameservers|^max_filedescriptors/d' \
        "$confs/$1.conf"
}

# for_squid CONF PORT
for_squid() {
    on_loopback "$1" | sed "s/:PORT/:$2/"
}

# start_converted CONF: $proxy is its address, $work/CONF.json its settings.
start_converted() {
    local settings=$work/$1.json
    { for_squid "$1" 3128 && squid_settings "$1"; } >"$work/$1.conf"
    "$converter" "$work/$1.conf" --output "$settings" 2>"$work/$1.told"
    # Where the test is: ports that the system picks, names and an origin on loopback.
    sed -i -E -e 's#"address":"127.0.0.1:3128"#"address":"127.0.0.1:0"#' \
        -e 's#^  "access": \{#  "admin": { "address": "127.0.0.1:0" },\n  "access": {\n    "allow_destinations": ["127.0.0.0/8"],#' \
        -e "s#\"servers\": \\[\"127.0.0.1\"\\]#\"servers\": [\"127.0.0.1:$(<"$work/names.port")\"]#" "$settings"
    "$REPRISE" --config "$settings" --check-config >"$work/check.log" 2>&1 || fail "$1: --check-config refuses it"
    start "$1" "$REPRISE" --config "$settings" --ports-file "$work/$1.ports"
    proxy_pid=$pid
    await "$work/$1.ports" "$pid"
    proxy=$(sed -n 's/.*"listeners": *\["\([^"]*\)".*/\1/p' "$work/$1.ports")
}

# ask PROXY FROM METHOD URL: the status, of a tunnel that of CONNECT. An accelerator is asked for the
# host that it stands for.
ask() {
    local options=(-sS --max-time 20 -o /dev/null --interface "$2")
    if [[ $3 == CONNECT ]]; then
        curl "${options[@]}" -x "http://$1" -p -w '%{http_connect}' "$4" 2>>"$work/asked.log" || true
    elif [[ $conf == accelerator ]]; then
        curl "${options[@]}" -H "Host: www.site.test" -w '%{http_code}' "http://$1/${4#*//*/}" 2>>"$work/asked.log" || true
    else
        curl "${options[@]}" -x "http://$1" -w '%{http_code}' "$4" 2>>"$work/asked.log" || true
    fi
}

# ask_all PROXY FROM URL...: GET of each, by one curl; a line with the status of each.
ask_all() {
    local at=$1 from=$2 url urls=()
    shift 2
    for url; do
        urls+=(-o /dev/null "$url")
    done
    curl -sS --max-time 20 --interface "$from" -x "http://$at" -w '%{http_code}\n' "${urls[@]}" 2>>"$work/asked.log" || true
}

# verdict STATUS: allowed or denied; what could not be reached was allowed.
verdict() {
    case $1 in
        401 | 403 | 407 | 000) echo denied ;;
        *) echo allowed ;;
    esac
}

# What ours refuses and Squid does not, by design; each has its comment in the settings.
#   egress    only some destinations: nobody is served
#   private   passwords are another test's: both have none here
#   school    what is blocked for pupils is blocked for all; and no port is bounded, see packages.
#             Pupils are not compared: which hour it is decides what Squid says of them
#   packages  no rule bounds ports there: ours are 80, 443 and those from 1024 on, and CONNECT has 443
#   child, accelerator, cluster  the same
stricter() {
    case $conf/$1 in
        egress/ten*) true ;;
        school/*blocked.test* | school/*:25 | school/*CONNECT*) true ;;
        packages/*:25 | packages/*CONNECT* | child/*:25 | child/*CONNECT*) true ;;
        accelerator/*CONNECT* | cluster/*:25 | cluster/*CONNECT*) true ;;
        *) false ;;
    esac
}

compared=0
# compare CLIENT FROM METHOD URL
compare() {
    judge "$1 $3 $4" "$(ask "$squid" "$2" "$3" "$4")" "$(ask "$proxy" "$2" "$3" "$4")"
}

# compare_all CLIENT FROM URL...
compare_all() {
    local client=$1 from=$2 of_theirs of_ours
    shift 2
    mapfile -t of_theirs < <(ask_all "$squid" "$from" "$@")
    mapfile -t of_ours < <(ask_all "$proxy" "$from" "$@")
    ((${#of_theirs[@]} == $# && ${#of_ours[@]} == $#)) || fail "$conf: $client: not every request has a status"
    while (($#)); do
        judge "$client GET $1" "${of_theirs[0]}" "${of_ours[0]}"
        of_theirs=("${of_theirs[@]:1}") of_ours=("${of_ours[@]:1}")
        shift
    done
}

# judge WHAT THEIRS OURS: what was asked, and both statuses
judge() {
    local theirs ours key=${1%/hello*}
    theirs=$(verdict "$2")
    ours=$(verdict "$3")
    compared=$((compared + 1))
    [[ $theirs == "$ours" ]] && return
    if [[ $ours == allowed ]]; then
        # What is said of addresses, wherever hosts are denied, is of none of these requests.
        [[ -n $(sed '/is not looked up for its name/d; /ALLOWS MORE/!d' "$work/$conf.json") ]] &&
            { echo "said: $conf: $key is allowed now"; return; }
        fail "$conf: $key: Squid says $theirs, ours $ours, and nothing was said of that"
    fi
    stricter "$key" || fail "$conf: $key: Squid says $theirs, ours $ours"
    echo "stricter: $conf: $key"
}

# stored PROXY FROM PATH: whether the second of two requests stays with the proxy.
stored() {
    local before
    ask "$1" "$2" GET "http://www.site.test:$pages$3" >/dev/null
    before=$(asked pages "GET .*$3")
    ask "$1" "$2" GET "http://www.site.test:$pages$3" >/dev/null
    if (($(asked pages "GET .*$3") > before)); then echo fetched; else echo stored; fi
}

start names "$ORIGIN" --no-names --port-file "$work/names.port.new"
await "$work/names.port.new" "$pid"
cp "$work/names.port.new" "$work/names.port"
cp "$confs/office.banned" "$squid_dir/"

for conf in distribution office packages child accelerator cluster private egress school old; do
    start_squid "$conf" for_squid "$conf"
    start_converted "$conf"
    for client in "${clients[@]}"; do
        name=${client%=*}
        [[ $conf/$name == school/home ]] && continue
        from=${client#*=}
        if [[ $conf == accelerator ]]; then
            compare "$name" "$from" GET "http://www.site.test:$pages/hello"
            continue
        fi
        compare_all "$name" "$from" http://{www.site,sub.blocked,bad,deep.worse,registry}.test:"$pages/hello" \
            http://www.site.test:25/hello
        compare "$name" "$from" CONNECT "http://www.site.test:$pages/hello"
    done
    from=127.0.0.1
    for path in /hello /never; do
        theirs=$(stored "$squid" "$from" "$path?$conf-theirs")
        ours=$(stored "$proxy" "$from" "$path?$conf-ours")
        if [[ $conf == egress ]]; then continue; fi
        check "$conf: what becomes of $path" "$theirs" "$ours"
    done
    if [[ $conf == child ]]; then
        ask "$squid" "$from" GET "http://www.site.test:$pages/bytes/1001" >/dev/null
        ask "$proxy" "$from" GET "http://www.site.test:$pages/bytes/1002" >/dev/null
        within 10 "child: Squid asks the parent" grep -q /bytes/1001 "$work/parent.access.log"
        within 10 "child: ours asks the parent" grep -q /bytes/1002 "$work/parent.access.log"
    fi
    echo "ok: $conf: $compared requests compared so far"
    stop_proxy >/dev/null
    stop_squid
done
