#!/usr/bin/env bash
# Two hosts of their own, with a network between them: siblings know each other by their addresses,
# and what one has the other serves when the origin is gone.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs curl ip

first=rp$$a second=rp$$b
drop_hosts() {
    ip netns del "$first" 2>/dev/null || true
    ip netns del "$second" 2>/dev/null || true
}
trap 'status=$?; drop_hosts; (exit "$status"); finish' EXIT
if ! ip netns add "$first" 2>"$work/netns.err" || ! ip netns add "$second" 2>>"$work/netns.err" ||
    ! ip link add "v$first" netns "$first" type veth peer name "v$second" netns "$second" 2>>"$work/netns.err"; then
    echo "skipped: no network namespaces here: $(head -n 1 "$work/netns.err")"
    exit 77
fi
ip -n "$first" addr add 10.83.0.1/24 dev "v$first"
ip -n "$first" addr add 10.83.0.10/24 dev "v$first" # the origin's
ip -n "$second" addr add 10.83.0.2/24 dev "v$second"
for host in "$first" "$second"; do
    ip -n "$host" link set lo up
    ip -n "$host" link set "v$host" up
done

start origin ip netns exec "$first" "$ORIGIN" --address 10.83.0.10 --port 8080 \
    --port-file "$work/origin.port" --log "$work/origin.requests"
origin_pid=$pid
await "$work/origin.port" "$pid"
head -c 64 /dev/urandom >"$work/secret"

# start_node HOST ADDRESS PEER
start_node() {
    cat >"$work/$1.json" <<END
{ "listeners": [{ "address": "$2:3128" }], "admin": { "address": "127.0.0.1:3180" }, "threads": 2,
  "admission": "always",
  "access": { "allow_destinations": ["10.83.0.10"] },
  "digest": { "secret_file": "$work/secret", "publish_after": "1s" },
  "peers": [{ "name": "other", "url": "http://$3:3128", "refresh": "1s" }],
  "log": { "access": "$work/$1.access", "level": "info" } }
END
    start "$1" ip netns exec "$1" "$REPRISE" --config "$work/$1.json" --ports-file "$work/$1.ports"
    await "$work/$1.ports" "$pid"
}
start_node "$first" 10.83.0.1 10.83.0.2
start_node "$second" 10.83.0.2 10.83.0.1

# ask HOST ADDRESS URL: its status
ask() {
    ip netns exec "$1" curl -sS --max-time 20 -x "http://$2:3128" -o "$work/body" -w '%{http_code}\n' "$3"
}
listed() {
    ip netns exec "$second" curl -sS --max-time 20 "http://127.0.0.1:3180/metrics" |
        sed -n 's/^reprise_sibling_estimated_objects{sibling="other"} \([0-9]*\).*/\1/p'
}

objects=200
statuses=$(ask "$first" 10.83.0.1 "http://10.83.0.10:8080/bytes/[1001-$((1000 + objects))]" | sort | uniq -c | xargs)
check "one host fetched $objects objects" "$objects 200" "$statuses"
deadline=$((SECONDS + 20))
until (($(listed) + 0 >= objects * 99 / 100)); do
    ((SECONDS < deadline)) || fail "the other host does not hold the first's digest"
    sleep 0.2
done
kill "$origin_pid"
served=$(ask "$second" 10.83.0.2 "http://10.83.0.10:8080/bytes/[1001-$((1000 + objects))]" | grep -c '^200$' || true)
((served * 100 >= objects * 99)) || fail "of $objects objects that its sibling has, $served were served"
echo "ok: $served of $objects served by the sibling, its origin gone"
check "what nobody has is refused at once" 502 "$(ask "$second" 10.83.0.2 "http://10.83.0.10:8080/bytes/77")"
denied=$(ip netns exec "$first" curl -sS --max-time 20 --interface 10.83.0.10 -o /dev/null -w '%{http_code}' \
    "http://10.83.0.1:3128/.well-known/reprise/digest")
check "a digest is no stranger's" 403 "$denied"
