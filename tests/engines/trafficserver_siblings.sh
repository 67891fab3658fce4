#!/usr/bin/env bash
# reprise_siblings.so: two Traffic Servers and a Reprise as siblings of each other, each way: what one holds, the others have from there,
# and nobody's origin hears of it.
# shellcheck source=../clients/harness.sh
. "$(dirname "$0")/../clients/harness.sh"
# shellcheck source=trafficserver_process.sh
. "$(dirname "$0")/trafficserver_process.sh"
needs python3

start_origin pages
pages=origin.test:$port # a name: the server never goes by a parent to 127.0.0.1
start_origin brief --max-age 1
brief=$port
echo "127.0.0.1 origin.test" >"$work/hosts"
hosts_file=$work/hosts
records="CONFIG proxy.config.hostdb.host_file.path STRING $work/hosts"
head -c 64 /dev/urandom >"$work/fleet"
chmod 644 "$work/fleet"
chmod 644 "$work/hosts"

# reprise_settings PORT_A PORT_B
reprise_settings() {
    echo "\"digest\": { \"secret_file\": \"$work/fleet\", \"publish_after\": \"1s\" },
        \"admission\": { \"policy\": \"always\" }, \"forwarding\": { \"pseudonym\": \"reprise-r\" },
        \"peers\": [ { \"name\": \"a\", \"url\": \"http://127.0.0.1:$1\", \"refresh\": \"1s\", \"timeout\": \"10s\" },
                     { \"name\": \"b\", \"url\": \"http://127.0.0.1:$2\", \"refresh\": \"1s\", \"timeout\": \"10s\" } ],
        \"peering\": { \"budget\": \"10s\", \"hit_worth\": \"10s\" }"
}
spare_port
port_a=$spare
spare_port
port_b=$spare
start_proxy "$(reprise_settings "$port_a" "$port_b")"
# one_of NAME PORT SIBLING...
one_of() {
    make_server "$1" <<END
$plugins/reprise_siblings.so secret=$work/fleet node=$1 state=digest save=1s timeout=5s ${*:3}
stats_over_http.so _stats
END
    start_server "$1" "$2"
}
one_of a "$port_a" "sibling=b@127.0.0.1:$port_b" "sibling=r@$proxy"
a=$server pid_a=$server_pid
one_of b "$port_b" "sibling=a@$a" "sibling=r@$proxy"
b=$server pid_b=$server_pid

# get NODE PATH OPTION...: the status of that page.
get() {
    curl -s --max-time 20 -o /dev/null -w '%{http_code}' -x "http://$1" "http://${origin:-$pages}$2" "${@:3}"
}
# get_all NODE NAME: 20 pages of this name; how many came with which status.
get_all() {
    seq -f "url = \"http://$pages/bytes/1000?$2-%.0f\"
output = /dev/null" 1 20 | curl -s --max-time 60 -x "http://$1" -K - -w '%{http_code}\n' | sort | uniq -c | xargs
}
# of NODE FIGURE: of one of the Traffic Servers.
of() {
    stats_of "$1" "plugin.reprise_siblings.$2"
}
# What a digest says of how many keys it has is an estimate.
knows() { # NODE SIBLING COUNT
    (($(of "$1" "$2.digest_keys") >= $3))
}
# hold NODE SIBLING: what it has of it, in $held, once nothing more comes: news is a second or two behind, and what came
# late of earlier stores would be taken for the next one's, or be missed in what comes by steps.
hold() {
    local last=none since=$SECONDS deadline=$((SECONDS + slowest * 20))
    until ((SECONDS - since >= 4)); do
        held=$(of "$1" "$2.digest_keys")
        [[ $held == "$last" ]] || since=$SECONDS
        last=$held
        ((SECONDS < deadline)) || fail "the digest of $2 changes without end"
        sleep 0.2
    done
}
reprise_knows() { # SIBLING COUNT
    curl -sS --max-time 5 "http://$admin/digest?of=$1" >"$work/digest" &&
        (($(sed -n 's/^keys, as its owner says: *//p' "$work/digest") >= $2))
}
is_of() { # NODE FIGURE COUNT
    [[ $(of "$1" "$2") == "$3" ]]
}
reaches() { # NODE: it has read its file of names, which takes a moment after it listens
    [[ $(curl -s --max-time 2 -o /dev/null -w '%{http_code}' -x "http://$1" "http://$pages/never") == 200 ]]
}
within 30 "a reaches the origin" reaches "$a"
within 30 "and b" reaches "$b"
within 30 "and Reprise" reaches "$proxy"

# ---- each way ----

check "20 pages by way of a" "20 200" "$(get_all "$a" one)"
within 20 "b has them in a's digest" knows "$b" a 18
hold "$b" a
check "b is asked for them" "20 200" "$(get_all "$b" one)"
check "and had them from a: the origin was asked once for each" 20 "$(asked pages '\?one-')"
within 20 "which b counts" is_of "$b" a.hits 20
check "it holds them now itself" "20 200 20" "$(get_all "$b" one) $(asked pages '\?one-')"

within 20 "Reprise has them in its digest of a" reprise_knows a 18
check "Reprise is asked for them" "20 200" "$(get_all "$proxy" one)"
check "and had them from a Traffic Server" 20 "$(asked pages '\?one-')"

check "20 others by way of Reprise" "20 200" "$(get_all "$proxy" two)"
both_wait() {
    [[ $(curl -s --max-time 5 "http://$admin/metrics" | sed -n 's/^reprise_digest_news_waiting //p') == 2 ]]
}
within 20 "both Traffic Servers keep a question open there, to be answered when there is news" both_wait
within 20 "a has them in Reprise's digest" knows "$a" r 38
hold "$a" r
check "a is asked for them" "20 200" "$(get_all "$a" two)"
check "and had them from Reprise" 20 "$(asked pages '\?two-')"
within 20 "which a counts" is_of "$a" r.hits 20

# ---- what is not so ----

# is_told NODE SIBLING: it has more of it than when `held` was read.
is_told() {
    (($(of "$1" "$2.digest_keys") > held))
}
within 20 "b knows all that a holds" knows "$b" a 39
hold "$b" a
check "what only a holds" 200 "$(get "$a" /bytes/5?gone)"
within 20 "b is told of it" is_told "$b" a
check "and a loses" 200 "$(get "$a" /bytes/5?gone -X PURGE)"
check "b goes on to the origin" 200 "$(get "$b" /bytes/5?gone)"
within 20 "and counts a false hit" is_of "$b" a.false_hits 1
check "the origin was asked twice" 2 "$(asked pages '\?gone')"
check "what came behind one is stored the next time" "200 200 3" \
    "$(get "$b" /bytes/5?gone) $(get "$b" /bytes/5?gone) $(asked pages '\?gone')"

check "what is somebody's own, or must be new, is asked of no sibling" "200 200 4" \
    "$(get "$b" /bytes/1000?two-1 -H 'Cookie: a=b') $(get "$b" /bytes/1000?two-2 -H 'Pragma: no-cache') $(asked pages '\?two-[12] ')"
hold "$b" a
# An origin of which all is gone for good.
start gone python3 -c '
import http.server, sys
class gone(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(410)
        self.send_header("Cache-Control", "max-age=600")
        self.send_header("Content-Length", "0")
        self.end_headers()
server = http.server.HTTPServer(("127.0.0.1", 0), gone)
print(server.server_port, file=open(sys.argv[1], "w"))
server.serve_forever()' "$work/gone.port"
await "$work/gone.port" "$pid"
origin=origin.test:$(<"$work/gone.port")
check "that a page is gone for good" 410 "$(get "$a" /page)"
within 20 "b is told of it" is_told "$b" a
check "and hears it of a and then of the origin" 410 "$(get "$b" /page)"
within 20 "which is a false hit, too" is_of "$b" a.false_hits 2
check "and no failure" 0 "$(of "$b" a.failed)"
unset origin

check "only-if-cached is answered from the cache" 200 "$(get "$a" /bytes/1000?one-1 -H 'Cache-Control: only-if-cached')"
check "or with 504" 504 "$(get "$a" /bytes/6?never -H 'Cache-Control: only-if-cached')"
origin=origin.test:$brief
check "what is stale soon" 200 "$(get "$a" /bytes/7?stale)"
is_stale() {
    [[ $(get "$a" /bytes/7?stale -H 'Cache-Control: only-if-cached') == 504 ]]
}
within 10 "is no answer to it when it is" is_stale
unset origin
check "and neither asked any origin" "0 1" "$(asked pages '\?never') $(asked brief '\?stale')"

# ---- who may have it ----

code() { # NODE PATH OPTION...
    curl -s --max-time 10 -o "$work/said" -w '%{http_code}' "http://$1$2" "${@:3}"
}
check "a digest is for who signs" "403 the signature is missing: the secret and the clocks must be the same" \
    "$(code "$a" /.well-known/reprise/digest) $(<"$work/said")"
check "and asks for itself" 403 "$(code "$a" /.well-known/reprise/digest -H 'Via: 1.1 x')"
check_matches "and has an address of the settings" '403 127.0.0.2 is the address of no sibling' \
    "$(code "$a" /.well-known/reprise/digest --interface 127.0.0.2) $(<"$work/said")"
check "nothing else is served there, or passed on" 404 "$(code "$a" /.well-known/reprise/seen)"

# ---- a reverse proxy: what is asked of it by no rule's name is 404 ----

spare_port
port_c=$spare
make_server c <<END
$plugins/reprise_siblings.so secret=none node=c sibling=self@127.0.0.1:$port_c
END
of_fleet=$records
records+="
CONFIG proxy.config.url_remap.remap_required INT 1"
start_server c "$port_c"
c=$server pid_c=$server_pid
records=$of_fleet
check "a page without a rule is not found" 404 "$(code "$c" /hello)"
has_digest() {
    [[ $(code "$c" /.well-known/reprise/digest) == 200 ]]
}
within 20 "its digest is there for siblings all the same" has_digest
mapfile -t many < <(seq -f '-HX-%.0f: 1' 1 70)
check "a relay's Via behind many fields does not pass" "403 the request has more than 64 fields" \
    "$(code "$c" /.well-known/reprise/digest "${many[@]}" -H 'Via: 1.1 x') $(<"$work/said")"
knows_itself() {
    grep -q 'no digest of self .*it calls itself c, as this node does' "$work/c/log/diags.log"
}
within 20 "a node that is its own sibling says so" knows_itself
kill -TERM "$pid_c"
wait "$pid_c" || true

# ---- ends ----

within 20 "a knows all that b holds" knows "$a" b 20
hold "$a" b
check "what only b holds" 200 "$(get "$b" /bytes/8?dead)"
within 20 "a is told of it" is_told "$a" b
failures=$(of "$a" b.failed)
has_failed() {
    (($(of "$a" b.failed) > failures)) || { echo "b.failed is $(of "$a" b.failed), asked $(of "$a" b.asked)" >>"$work/failures.log"; false; }
}
kill -KILL "$pid_b"
wait "$pid_b" 2>/dev/null || true
check "a sibling that is dead costs no answer" 200 "$(get "$a" /bytes/8?dead)"
within 20 "and is a failure" has_failed

saves=$(of "$a" own.saves)
is_saved() {
    (($(of "$a" own.saves) > saves + 1))
}
within 10 "a has saved what it holds" is_saved
on=$(of "$a" own.places_on)
kill -TERM "$pid_a"
wait "$pid_a" || true
start_server a "$port_a"
within 20 "and knows it after a restart" is_of "$a" own.places_on "$on"

# ---- words ----

refused() { # WORD...
    refused_by "$plugins/reprise_siblings.so $*" "" 'reprise_siblings: .*'
}
check_matches "a fleet without a word on its secret is refused" 'secret= is missing: the file .* or secret=none' "$(refused node=x)"
check_matches "a secret that is not there is named" "the secret $work/nowhere can't be read: there is no such file" \
    "$(refused secret="$work/nowhere")"
echo short >"$work/short"
chmod 644 "$work/short"
check_matches "so is one that is too short" 'short has fewer than 32 bytes: it must be a file of 32 to 4096' \
    "$(refused secret="$work/short")"
check_matches "a sibling by name is refused" 'sibling=c@host:80.*the address in numbers' "$(refused secret=none sibling=c@host:80)"
