#!/usr/bin/env bash
# Three siblings that open tunnels, each with a CA of its own under one root: what pip fetches through each in
# turn is asked of the origin twice at most, and nothing of it passes between them in the clear.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=pip_client.sh
. "$here/opened/pip_client.sh"

make_authorities
start_site
certificate nodes origins subjectAltName=IP:127.0.0.1 extendedKeyUsage=serverAuth
head -c 64 /dev/urandom >"$work/fleet"
chmod 600 "$work/fleet"
# Siblings reach each node at its first address, by TLS, clients at the second.
tls="\"tls\": { \"certificate\": \"$work/nodes.pem\", \"key\": \"$work/nodes.key\" }"
listener="$tls }, { \"address\": \"127.0.0.1:0\""

nodes=(a b c)
declare -A tls_of=([a]=127.0.0.1:9 [b]=127.0.0.1:9 [c]=127.0.0.1:9) proxy_of=() admin_of=() pid_of=()
# settings_of NODE: with the others where tls_of says. A busy machine may take its time.
settings_of() {
    local other peers=''
    for other in "${nodes[@]}"; do
        [[ $other == "$1" ]] || peers+="${peers:+, }{ \"name\": \"$other\",
            \"url\": \"https://${tls_of[$other]}\", \"refresh\": \"1s\", \"timeout\": \"10s\" }"
    done
    echo "\"digest\": { \"secret_file\": \"$work/fleet\", \"publish_after\": \"1s\" }, \"peers\": [$peers],
        \"peering\": { \"budget\": \"10s\", \"hit_worth\": \"10s\" }, $(opening "$work/ca_$1" files.test)"
}
for node in "${nodes[@]}"; do
    make_ca "$work/ca_$node" files.test
    start_proxy "$(settings_of "$node")" "$port"
    pid_of[$node]=$proxy_pid tls_of[$node]=$proxy admin_of[$node]=$admin
    proxy_of[$node]=$(sed -n 's/.*"listeners": *\["[^"]*", *"\([^"]*\)".*/\1/p' "$work/$node.ports")
done
# sees NAME ADDRESS...: has tcpdump write what passes at these addresses into $work/NAME.packets.
sees() {
    local one ports=''
    for one in "${@:2}"; do
        ports+="${ports:+ or }tcp port ${one##*:}"
    done
    start "$1" tcpdump -i lo -n -U -Z "$(id -un)" -w "$work/$1.packets" "$ports"
    watching+=("$pid")
    within 20 "$1: what passes is written down" grep -q 'listening on' "$work/$1.log"
}
watching=()
if ((EUID == 0)) && command -v tcpdump >/dev/null; then
    sees siblings "${tls_of[@]}"
    sees clients "${proxy_of[@]}"
else
    echo "not shown: what passes between siblings; that wants tcpdump and to be root"
fi

# to NODE: what follows is asked of it.
to() {
    node=$1 proxy=${proxy_of[$1]} admin=${admin_of[$1]} proxy_pid=${pid_of[$1]}
}
for node in "${nodes[@]}"; do
    to "$node"
    reload_proxy "$(settings_of "$node")" "$port"
done

# install NODE
install() {
    to "$1"
    as_client "client_of_$1" "$root_pem" files.test
    check "pip by way of $1" 0 "$status"
    is_whole "client_of_$1"
}
# ask URL: its Cache-Status.
ask() {
    CURL_CA_BUNDLE=$root_pem curl -sS --max-time 20 -x "http://$proxy" -D "$work/head" -o "$work/body" "$1"
    cache_status "$work/head"
}
# knows_what_a_saw: so does b. It has been told of everything that came before, then.
tried=0
knows_what_a_saw() {
    local url="https://files.test:$port/data?$((++tried))"
    to a
    ask "$url" >/dev/null
    # The first question to b is a sight of its own: there is but one try with each, and each waits for longer.
    sleep "$((tried / 2)).$((tried % 2 * 5))"
    to b
    [[ $(ask "$url") == *stored* ]]
}
# names NODE URL: its digest, as the node in hand has it.
names() {
    curl -sS --max-time 5 "http://$admin/digest?of=$1&url=$2" | grep -q ': listed$'
}

cp "$work/data" "$site/data"
install a
within 30 "b is told what was asked for" knows_what_a_saw
install b
to c
within 30 "c is told what b has" names b "https://files.test:$port/$wheel"
install c
times=$(asked site "GET /$wheel 200 ")
((times >= 1 && times <= 2)) || fail "the origin was asked $times times for the wheel"
echo "ok: the origin was asked for the wheel so many times: $times"
is_at_least "bytes that c had of b" 300000 figure 'reprise_sibling_bytes_total{sibling="b"}'

if ((${#watching[@]})); then
    # The kernel hands packets over by the second; what is still with it when tcpdump ends is lost.
    is_captured() {
        (($(stat -c %s "$work/siblings.packets") >= 300000 && $(grep -acF 'CONNECT files.test' "$work/clients.packets") >= 3))
    }
    within 10 "what passed between siblings is captured" is_captured
    sleep 1.2
    kill -INT "${watching[@]}" # it writes what it has, and ends
    wait "${watching[@]}"
    is_at_least "bytes that passed between siblings" 300000 stat -c %s "$work/siblings.packets"
    for word in files.test "$wheel" simple/ /data; do
        check "packets between siblings that say $word" 0 "$(grep -acF "$word" "$work/siblings.packets" || true)"
    done
    is_at_least "while clients say where they want to go" 3 \
        grep -acF 'CONNECT files.test' "$work/clients.packets"
    check "but not for what" 0 "$(grep -acF "$wheel" "$work/clients.packets" || true)"
fi
for node in "${nodes[@]}"; do
    to "$node"
    stop_proxy
done
