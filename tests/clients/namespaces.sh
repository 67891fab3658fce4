#!/usr/bin/env bash
# Five hosts of their own and an origin's, with a network between them: siblings know each other by
# their addresses, and what one has all others serve when the origin is gone.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs curl ip

hosts=(1 2 3 4 5)
# name_of HOST: of its network namespace; "o" is the origin's, "s" the switch between them all.
name_of() {
    echo "rp$$$1"
}
drop_hosts() {
    local host
    for host in "${hosts[@]}" o s; do
        ip netns del "$(name_of "$host")" 2>/dev/null || true
    done
}
# on HOST COMMAND...
on() {
    ip netns exec "$(name_of "$1")" "${@:2}"
}
# plug HOST ADDRESS: a host with that address at the switch.
plug() {
    local name
    name=$(name_of "$1")
    ip netns add "$name" &&
        ip link add eth0 netns "$name" type veth peer name "port$1" netns "$(name_of s)" &&
        ip -n "$name" addr add "$2/24" dev eth0 &&
        ip -n "$name" link set lo up &&
        ip -n "$name" link set eth0 up &&
        ip -n "$(name_of s)" link set "port$1" master switch up
}
wire_all() {
    local host
    ip netns add "$(name_of s)" &&
        ip -n "$(name_of s)" link add switch type bridge &&
        ip -n "$(name_of s)" link set switch up &&
        plug o 10.83.0.10 || return 1
    for host in "${hosts[@]}"; do
        plug "$host" "10.83.0.$host" || return 1
    done
}
trap 'status=$?; drop_hosts; (exit "$status"); finish' EXIT
if ! wire_all 2>"$work/netns.err"; then
    echo "skipped: no network namespaces here: $(head -n 1 "$work/netns.err")"
    exit 77
fi

start origin ip netns exec "$(name_of o)" "$ORIGIN" --address 10.83.0.10 --port 8080 \
    --port-file "$work/origin.port" --log "$work/origin.requests"
origin_pid=$pid
await "$work/origin.port" "$pid"
head -c 64 /dev/urandom >"$work/secret"

# start_node HOST: a sibling of all others, of which each may take its time: where the origin is gone there is nobody else to ask.
start_node() {
    local other peers=""
    for other in "${hosts[@]}"; do
        [[ $other == "$1" ]] ||
            peers+="${peers:+, }{ \"name\": \"n$other\", \"url\": \"http://10.83.0.$other:3128\", \"refresh\": \"1s\", \"timeout\": \"10s\" }"
    done
    cat >"$work/n$1.json" <<END
{ "listeners": [{ "address": "10.83.0.$1:3128" }], "admin": { "address": "127.0.0.1:3180" }, "threads": 2,
  "admission": "always",
  "access": { "allow_destinations": ["10.83.0.10"] },
  "digest": { "secret_file": "$work/secret", "publish_after": "1s" },
  "peers": [$peers],
  "peering": { "budget": "10s", "hit_worth": "10s" },
  "log": { "access": "$work/n$1.access", "level": "info" } }
END
    start "n$1" ip netns exec "$(name_of "$1")" "$REPRISE" --config "$work/n$1.json" --ports-file "$work/n$1.ports"
    await "$work/n$1.ports" "$pid"
}
for host in "${hosts[@]}"; do
    start_node "$host"
done

# ask HOST URL: its status
ask() {
    on "$1" curl -sS --max-time 20 -x "http://10.83.0.$1:3128" -o "$work/body" -w '%{http_code}\n' "$2"
}
# listed HOST: how many objects the first has, by the digest that this host holds of it.
listed() {
    on "$1" curl -sS --max-time 20 "http://127.0.0.1:3180/digest?of=n1" |
        sed -n 's/^keys, as its owner says: //p'
}

objects=200
urls="http://10.83.0.10:8080/bytes/[1001-$((1000 + objects))]"
statuses=$(ask 1 "$urls" | sort | uniq -c | xargs)
check "one host fetched $objects objects" "$objects 200" "$statuses"
lists_all() {
    (($(listed "$1") + 0 == objects))
}
for host in "${hosts[@]:1}"; do
    within 20 "host $host holds the first's digest" lists_all "$host"
done
kill "$origin_pid"
for host in "${hosts[@]:1}"; do
    served=$(ask "$host" "$urls" | grep -c '^200$' || true)
    ((served * 100 >= objects * 99)) || fail "of $objects objects that a sibling has, $served were served by host $host"
    echo "ok: $served of $objects served by host $host, the origin gone"
    check "what nobody has is refused at once" 502 "$(ask "$host" "http://10.83.0.10:8080/bytes/77")"
done
denied=$(on o curl -sS --max-time 20 -o /dev/null -w '%{http_code}' \
    "http://10.83.0.1:3128/.well-known/reprise/digest")
check "a digest is no stranger's" 403 "$denied"
