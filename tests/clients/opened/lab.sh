# shellcheck shell=bash
# What the tests of opened tunnels (intercept) share. The origin is nginx with TLS, which logs what it
# is asked; the certificate that it shows is of an authority that the proxy alone knows. Clients are
# told of root.pem and nothing else, by what the guide names for each (config/guides/https.md).
#
# One nginx stands for three hosts, all of them on 127.0.0.1:
#   files.test         listed and opened; its own certificate is what only the proxy takes
#   inside.files.test  listed, so that the proxy's CA may sign for it, but not opened (intercept.except):
#                      the client sees what this nginx shows, a leaf of the proxy's CA
#   outside.test       not listed: the client sees a leaf for it that was signed by the same key, as a
#                      thief of the key would make it
#
# A script puts what is served into $site and defines two functions, which run where nothing is left of
# the environment: in an empty folder that is the client's HOME too, with the proxy named by
# http_proxy and https_proxy; $trusted is the file of authorities, $authority host and port.
#   download   has the client fetch everything, and leaves it in that folder
#   compare    its status says whether that is what the origin has
# shellcheck disable=SC2034  # some of what is set here is for the scripts, some for start_proxy
owners_home=$HOME # where programs of the owner's may lie
# shellcheck source=../harness.sh
. "$(dirname "${BASH_SOURCE[0]}")/../harness.sh"
: "${MAKE_CA:?names reprise-make-ca}"
PATH=$PATH:/usr/sbin:/sbin
needs curl nginx openssl

site=$work/site
mkdir "$site"
root_pem=$work/root/root.pem
locations=''  # further lines of nginx's, for each host
given=()      # NAME=VALUE: what clients find in their environment besides
more_hosts=() # that the origin's certificate is for
more_ports=() # at which tunnels are opened
trusted='' authority='' # as functions of a client have them

# certificate NAME ISSUER EXTENSION...: $work/NAME.pem and .key, signed by $work/ISSUER.key, or by
# itself if that is ''.
certificate() {
    local one options=(-subj "/CN=$1" -keyout "$work/$1.key" -out "$work/$1.pem")
    [[ -z $2 ]] || options+=(-CA "$work/$2.pem" -CAkey "$work/$2.key")
    for one in subjectKeyIdentifier=hash authorityKeyIdentifier=keyid "${@:3}"; do
        options+=(-addext "$one")
    done
    # A configuration of its own: what the system's adds is for CAs.
    openssl req -x509 -config <(printf '[req]\ndistinguished_name=none\n[none]\n') -newkey ec \
        -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 "${options[@]}" 2>>"$work/openssl.log"
}
# leaf ISSUER HOST...: for these hosts, called after the first.
leaf() {
    local names
    names=$(printf ',DNS:%s' "${@:2}")
    certificate "$2" "$1" "subjectAltName=${names:1}" basicConstraints=critical,CA:FALSE \
        keyUsage=critical,digitalSignature extendedKeyUsage=serverAuth
}

# intercept DIRECTORY HOST...: settings, for these hosts and *.files.test, with the CA in that directory.
intercept() {
    local hosts ports
    hosts=$(printf ', "%s"' "${@:2}")
    ports=$(printf ', %s' "${port:-443}" "${more_ports[@]}")
    echo "\"intercept\": { \"hosts\": [\"*.files.test\"$hosts], \"except\": [\"inside.files.test\"],
        \"ports\": [${ports:2}], \"ca_certificate\": \"$1/ca.pem\", \"ca_key\": \"$1/ca.key\" }"
}
# make_ca DIRECTORY HOST...: that CA.
make_ca() {
    local ports
    ports=$(printf ', %s' "${port:-443}" "${more_ports[@]}")
    echo "{ \"access\": { \"connect_ports\": [${ports:2}] }, $(intercept "$@") }" >"$1.json"
    "$MAKE_CA" for "$1.json" --root "$work/root" --out "$1" >>"$work/make_ca.log" 2>&1
}

# make_authorities: of all that is shown.
make_authorities() {
    local host
    "$MAKE_CA" root --out "$work/root" >>"$work/make_ca.log" 2>&1
    make_ca "$work/ca" files.test
    certificate origins '' keyUsage=critical,keyCertSign,cRLSign basicConstraints=critical,CA:TRUE
    leaf origins files.test "${more_hosts[@]}"
    openssl x509 -in "$work/ca/ca.pem" -out "$work/intermediate.pem"
    cp "$work/ca/ca.key" "$work/intermediate.key"
    for host in inside.files.test outside.test; do
        leaf intermediate "$host"
        cat "$work/intermediate.pem" >>"$work/$host.pem"
    done
    hosts_file=$work/hosts
    printf '127.0.0.1 %s\n' files.test inside.files.test outside.test "${more_hosts[@]}" >"$hosts_file"
}

# start_site: nginx, once more on the same port if it has run; its requests in $work/site.requests.
# "@authority@" in JSON and HTML is the host and port that is asked.
start_site() {
    local host servers known_port=${site_port:-}
    for _ in 1 2 3 4 5; do
        # nginx wants to be told its port. One below those that the system gives away is nobody
        # else's while nginx is stopped.
        site_port=${known_port:-$((20000 + RANDOM % 10000))}
        servers=''
        for host in files.test inside.files.test outside.test; do
            servers+="server { listen 127.0.0.1:$site_port ssl http2; server_name $host;
                ssl_certificate $work/$host.pem; ssl_certificate_key $work/$host.key; $locations }"
        done
        # As root its workers would run as another user, who may not reach this folder.
        cat >"$work/nginx.conf" <<END
$( ((EUID != 0)) || echo 'user root;')
daemon off; master_process off; pid $work/nginx.pid; error_log $work/nginx.log;
events { }
http {
  log_format asked '\$request_method \$request_uri \$status \$host \$server_protocol';
  access_log $work/site.requests asked;
  client_body_temp_path $work/nginx; proxy_temp_path $work/nginx; fastcgi_temp_path $work/nginx;
  uwsgi_temp_path $work/nginx; scgi_temp_path $work/nginx;
  types { text/html html; application/json json; }
  default_type application/octet-stream;
  sub_filter '@authority@' \$http_host; sub_filter_once off; sub_filter_types application/json;
  add_header Cache-Control "public, max-age=3600" always;
  root $site;
  $servers
}
END
        rm -f "$work/nginx.pid"
        start nginx nginx -c "$work/nginx.conf" -e "$work/nginx.log"
        site_pid=$pid
        while kill -0 "$site_pid" 2>/dev/null; do
            if [[ -s $work/nginx.pid ]]; then # it listens
                port=$site_port
                return
            fi
            sleep 0.02
        done
        echo "nginx did not start with port $site_port"
    done
    fail "nginx does not start"
}
stop_site() {
    kill -TERM "$site_pid"
    wait "$site_pid" || true
}

# opening DIRECTORY HOST...: settings of a proxy that opens these hosts with the CA in that directory.
opening() {
    echo "\"origins\": { \"ca_file\": \"$work/origins.pem\" }, $(intercept "$@")"
}
# start_lab: everything but the clients.
start_lab() {
    make_authorities
    start_site
    start_proxy "$(opening "$work/ca" files.test)" "$port"
}

# in_state RUN TRUSTED HOST FUNCTION: in the client's folder, with what it says in $work/RUN.log.
in_state() {
    (cd "$work/$1" && env -i "PATH=$PATH" "HOME=$work/$1" LC_ALL=C TZ=UTC "http_proxy=http://$proxy" \
        "https_proxy=http://$proxy" "trusted=$2" "authority=$3:$port" "proxy=$proxy" "site=$site" \
        "${given[@]}" setpriv --pdeathsig KILL timeout -k 5 90 \
        bash -euo pipefail -c "$(declare -f); $4") </dev/null >>"$work/$1.log" 2>&1
}
# as_client RUN TRUSTED HOST: a client without a past; its status in $status.
as_client() {
    local late
    for _ in 1 2 3; do
        mkdir "$work/$1"
        status=0 late=$(late_hellos)
        in_state "$@" download || status=$?
        # Whoever says nothing for a second after its CONNECT is passed on, as it should be: a client that a machine
        # without a moment to spare has kept from it tries again.
        ((status != 0)) || return 0
        (($(late_hellos) > late)) || return 0
        rm -r "${work:?}/$1"
    done
    fail "$1: three times no hello in time"
}
# Counted as a tunnel is passed on, so before its client knows.
late_hellos() {
    curl -sS --max-time 20 "http://$admin/metrics" |
        awk '/^reprise_intercept_host_passed_on_total\{.*why="no hello in time"/ { all += $NF } END { print all + 0 }'
}
# is_whole RUN: what it has is what the origin has.
is_whole() {
    in_state "$1" '' '' compare || fail "$1: what came is not what the origin has"
    echo "ok: $1: it is what the origin has"
}

# of_host WHAT HOST [WHY]: what its tunnels became, as the proxy counts them.
of_host() {
    local count
    count=$(figure "reprise_intercept_host_$1_total{host=\"$2\"${3:+,why=\"$3\"}}")
    echo "${count:-0}"
}
# is_at_least WHAT LEAST PROGRAM...: a number that it prints, at once or soon. What the proxy counts when a
# connection has ended may be counted a moment after its client has left.
is_at_least() {
    local deadline=$((SECONDS + slowest * 20)) actual
    until actual=$("${@:3}") && ((${actual:=0} >= $2)); do
        ((SECONDS < deadline)) || fail "$1: expected at least $2, got $actual"
        sleep 0.1
    done
    echo "ok: $1: $actual"
}

# three_times OBJECTS: from fresh state each, the third time with the origin stopped. At least so many
# objects must have been asked for.
three_times() {
    local number most
    for number in 1 2 3; do
        ((number < 3)) || stop_site
        as_client "run$number" "$root_pem" files.test
        check "run $number works" 0 "$status"
        is_whole "run$number"
    done
    sort "$work/site.requests" | uniq -c | sort -rn >"$work/most_asked"
    is_at_least "objects that the origin was asked for" "$1" grep -c '' "$work/most_asked"
    read -r most _ <"$work/most_asked"
    ((most <= 2)) || fail "asked for more often than twice: $(<"$work/most_asked")"
    echo "ok: none of them more than $most times"
    start_site
}
# opened_three_times OBJECTS: the same through tunnels that were opened.
opened_three_times() {
    three_times "$1"
    is_at_least "requests in opened tunnels that the store answered" "$1" of_host hits files.test
    check "tunnels that were passed on" 0 "$(of_host passed_on files.test client-refused)"
}

# has_answered PATTERN TIMES: so many requests like this.
has_answered() {
    (($(asked site "$1") >= $2))
}

# refuses_outside PATTERN: the client takes a leaf of the proxy's CA for a host that is listed, and none
# for another, though the same key has signed it; what it says of that looks like PATTERN.
refuses_outside() {
    as_client inside "$root_pem" inside.files.test
    check "the client takes a leaf of the CA for a listed host" 0 "$status"
    is_whole inside
    within 20 "which the origin showed it" has_answered ' inside\.files\.test ' 1
    check "its tunnel was passed on" 0 "$(of_host opened inside.files.test)"
    as_client outside "$root_pem" outside.test
    ((status != 0)) || fail "the client took a leaf for a host that its CA may not sign for"
    check "it asks nothing of a host that the CA may not sign for" 0 "$(asked site ' outside\.test ')"
    check_matches "and says why" "$1" "$(<"$work/outside.log")"
}

# without_ca fails|recovers|either: what the first run does of a client that doesn't know the root.
without_ca() {
    local before
    # The runs before had this client's address, and what one of GnuTLS leaves without a word may be a
    # spare connection of theirs. Of a proxy that begins nobody has asked anything.
    stop_proxy
    start_proxy "$(opening "$work/ca" files.test)" "$port"
    as_client stranger1 "$work/origins.pem" files.test
    if [[ $1 == fails ]]; then
        ((status != 0)) || fail "the client took a certificate of a CA that it doesn't know"
        echo "ok: without the CA the first run fails"
    elif [[ $1 == recovers ]]; then
        check "without the CA the first run recovers by itself" 0 "$status"
        is_whole stranger1
    fi
    is_at_least "certificates that it refused" 1 of_host refused files.test
    before=$(asked site ' files\.test ')
    as_client stranger2 "$work/origins.pem" files.test
    check "the second run works" 0 "$status"
    is_whole stranger2
    is_at_least "tunnels that were passed on for that" 1 of_host passed_on files.test client-refused
    within 20 "the origin answered it" has_answered ' files\.test ' "$((before + 1))"
}
