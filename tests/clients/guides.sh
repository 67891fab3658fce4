#!/usr/bin/env bash
# Walks through a guide of config/guides (guides.sh NAME) as its reader would, word for word: the addresses and paths are
# the guide's own, on machines that are namespaces of this test's, at a switch without a way out. What it names as printed
# must be printed.
#
# Of a guide's fenced blocks
#   ```sh             is run by root's bash, in a folder that lasts for the guide; its status must be 0
#   ```sh again       is run until it prints what the next block says, for what comes to pass a moment later
#   ```text           is what the block before it printed: its lines in this order, others between; … is any run of characters
#   ```json FILE      (yaml, conf) is that file; reprise.json with more patience with siblings
#   ```… on b         is about the second machine, 10.0.0.2 (c is 10.0.0.3, and so on to e); the others about the first, 10.0.0.1
# and what is set in by four is shown alone. Every machine has a user, directories and credentials as the unit makes them, behind
# a "systemctl" of this test's; "scp" and "ssh" lead from one to another. There are two, and those that the guide has the addresses of.
# downloads.example.org and www.example.org are demo_origin's.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
: "${BUILD:?names the build}" "${SOURCE:?names the sources}"
PATH=$PATH:/usr/sbin:/sbin
needs curl ip openssl unshare nsenter setpriv mount
guide=$SOURCE/config/guides/${1:?names a guide}.md
[[ -s $guide ]] || fail "there is no $guide"
! grep -q 'systemctl.* haproxy' "$guide" || needs haproxy ss pgrep
machines=(a b)
for machine in c=3 d=4 e=5; do
    ! grep -qF "10.0.0.${machine#*=}:" "$guide" || machines+=("${machine%=*}")
done

if [[ ${2:-} != inside ]]; then
    if ! unshare --mount --net --pid --fork --propagation private ip link add switch type bridge 2>"$work/unshare.err"; then
        echo "skipped: no namespaces here: $(head -n 1 "$work/unshare.err")"
        exit 77
    fi
    # Processes too: what is left when this ends, however it ends, ends with it.
    unshare --mount --net --propagation private --pid --fork --kill-child --mount-proc "$0" "$1" inside
    exit
fi

# What is installed, for all machines.
bin=$work/bin
mkdir "$bin"
for program in "$REPRISE" "$BUILD"/reprise-{digest,make-ca} "$BUILD"/tools/*/reprise-{from-squid,replay,store}; do
    [[ ! -x $program ]] || ln -s "$program" "$bin/"
done
cat >"$bin/systemctl" <<'END'
#!/usr/bin/env bash
# systemctl start|stop|restart|reload reprise, and what the unit promises; kill -s SIGNAL reprise; restart|reload|stop haproxy.
set -euo pipefail
say() { echo "systemctl: $*" >&2; exit 1; }
if [[ ${*: -1} == haproxy ]]; then
    loads() { grep -c 'Loading success' /run/haproxy.log || true; }
    # Whether a worker of before still takes connections: HAProxy says that it has loaded before it bids its old workers stop.
    old_ones_take() {
        local worker
        for worker in "${workers[@]}"; do
            ! ss -Htlnp | grep -F "pid=$worker," >/dev/null || return 0
        done
        return 1
    }
    before=$(loads 2>/dev/null)
    workers=()
    case $1 in
        restart)
            [[ ! -s /run/haproxy.pid ]] || kill "$(</run/haproxy.pid)"
            setsid -f bash -c 'echo $$ >/run/haproxy.pid; exec haproxy -W -f /etc/haproxy/haproxy.cfg' >>/run/haproxy.log 2>&1 </dev/null ;;
        reload)
            haproxy -c -q -f /etc/haproxy/haproxy.cfg
            mapfile -t workers < <(pgrep -P "$(</run/haproxy.pid)")
            kill -USR2 "$(</run/haproxy.pid)" ;;
        stop)
            [[ ! -s /run/haproxy.pid ]] || kill "$(</run/haproxy.pid)"
            exit 0 ;;
        *) say "no verb $1" ;;
    esac
    for ((turn = 0; turn < 400; ++turn)); do
        (($(loads) == ${before:-0})) || old_ones_take || exit 0
        sleep 0.05
    done
    cat /run/haproxy.log >&2
    say "not ready in time"
fi
if [[ $1 == kill ]]; then
    [[ $2 == -s && ${4:-} == reprise ]] || say "kill -s SIGNAL reprise"
    kill -s "$3" "$(</run/unit.pid)"
    rm /run/unit.pid
    exit 0
fi
[[ ${2:-} == reprise ]] || say "no unit ${2:-}"
log=/run/unit.log
as_unit=(env RUNTIME_DIRECTORY=/run/reprise setpriv --reuid 64321 --regid 64321 --clear-groups --no-new-privs)
stop() {
    [[ -s /run/unit.pid ]] || return 0
    local pid turn
    pid=$(</run/unit.pid)
    kill "$pid"
    for ((turn = 0; turn < 400; ++turn)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    rm /run/unit.pid
}
start() {
    local file directory turn
    for directory in /var/cache/reprise /var/lib/reprise /var/log/reprise /run/reprise; do
        install -d -m 700 -o 64321 "$directory"
    done
    rm -rf /run/credentials /run/unit.ports
    for file in /etc/reprise/private/*; do
        [[ ! -f $file ]] || install -D -m 400 -o 64321 "$file" "/run/credentials/reprise.service/private_${file##*/}"
    done
    "${as_unit[@]}" reprise --check-config --config /etc/reprise/reprise.json >>"$log" 2>&1 || { cat "$log" >&2; say "not started"; }
    setsid -f bash -c 'echo $$ >/run/unit.pid; exec "$@"' - "${as_unit[@]}" reprise \
        --config /etc/reprise/reprise.json --ports-file /var/lib/reprise/ports >>/run/access.log 2>>"$log" </dev/null
    for ((turn = 0; turn < 400; ++turn)); do
        [[ ! -s /var/lib/reprise/ports ]] || return 0
        sleep 0.05
    done
    cat "$log" >&2
    say "not ready in time"
}
rm_ports() { rm -f /var/lib/reprise/ports; }
case $1 in
    start) rm_ports; start ;;
    stop) stop ;;
    restart) stop; rm_ports; start ;;
    reload)
        before=$(grep -c 'settings reloaded' "$log" || true)
        "${as_unit[@]}" reprise reload --config /etc/reprise/reprise.json --process "$(</run/unit.pid)" >>"$log" 2>&1 ||
            { cat "$log" >&2; say "not reloaded"; }
        for ((turn = 0; turn < 400; ++turn)); do
            (($(grep -c 'settings reloaded' "$log" || true) == before)) || exit 0
            sleep 0.05
        done
        cat "$log" >&2
        say "not reloaded" ;;
    *) say "no verb $1" ;;
esac
END
cat >"$bin/ssh" <<END
#!/usr/bin/env bash
# ssh root@10.0.0.N COMMAND...
set -euo pipefail
name=\$(printf '\\x6'"\${1#root@10.0.0.}")
[[ -s "$work/\$name.pid" ]] || { echo "ssh: no way to \$1" >&2; exit 1; }
exec nsenter -t "\$(<"$work/\$name.pid")" -m -n --wd=/ -- env "PATH=\$PATH" bash -c "\${*:2}"
END
cat >"$bin/scp" <<END
#!/usr/bin/env bash
# scp FILE... root@10.0.0.N:DIRECTORY/
set -euo pipefail
to=\${*: -1}
[[ \$to == root@10.0.0.?:/*/ ]] || { echo "scp: no way to \$to" >&2; exit 1; }
for file in "\${@:1:\$#-1}"; do
    there=\${to#*:}\${file##*/}
    ssh "\${to%%:*}" "umask 077; cat >\$there; chmod \$(stat -c %a "\$file") \$there" <"\$file"
done
END
chmod +x "$bin"/{systemctl,scp,ssh}

# An origin's authority, which machines trust as they do any other of the public ones.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj '/CN=an authority of the tests' \
    -keyout "$work/authority.key" -out "$work/authority.pem" 2>>"$work/openssl.log"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=downloads.example.org \
    -CA "$work/authority.pem" -CAkey "$work/authority.key" -addext basicConstraints=critical,CA:FALSE \
    -addext subjectAltName=DNS:downloads.example.org,DNS:www.example.org \
    -keyout "$work/origin.key" -out "$work/origin.pem" 2>>"$work/openssl.log"

ip link add switch type bridge
ip link set switch up
# machine NAME ADDRESS: its process, whose namespaces are the machine, in $work/NAME.pid.
machine() {
    start "machine_$1" unshare --mount --net --propagation private sleep infinity
    echo "$pid" >"$work/$1.pid"
    until [[ $(readlink "/proc/$pid/ns/net") != "$(readlink /proc/self/ns/net)" && $(</proc/"$pid"/comm) == sleep ]]; do
        kill -0 "$pid" || fail "machine $1 did not start"
        sleep 0.01
    done
    ip link add "port_$1" type veth peer name eth0 netns "$pid"
    ip link set "port_$1" master switch up
    on "$1" bash -e <<END
ip link set lo up
ip addr add $2/24 dev eth0
ip link set eth0 up
mkdir "$work/etc_$1" "$work/folder_$1"
mount -t tmpfs tmpfs "$work/etc_$1"
cp -a /etc/. "$work/etc_$1"
mount --bind "$work/etc_$1" /etc
rm -rf /etc/reprise /etc/squid
mkdir -m 755 /etc/reprise /etc/squid
mkdir -m 700 /etc/reprise/private
cp "$SOURCE/tools/packaging/reprise.json" /etc/reprise/
cp "$work/authority.pem" "/etc/ssl/certs/$(openssl x509 -in "$work/authority.pem" -noout -hash).0"
printf '127.0.0.1 localhost\n10.0.0.80 downloads.example.org www.example.org\n' >/etc/hosts
for directory in /run /var/lib /var/cache /var/log; do
    mount -t tmpfs -o mode=755,size=100G tmpfs "\$directory"
    [[ \$directory == /run ]] || install -d -m 700 -o 64321 "\$directory/reprise"
done
END
}
# on NAME COMMAND...
on() {
    local holder
    holder=$(<"$work/$1.pid")
    nsenter -t "$holder" -m -n --wd=/ -- env "PATH=$bin:$PATH" "${@:2}"
}
machine o 10.0.0.80
for name in "${machines[@]}"; do
    machine "$name" "10.0.0.$(($(printf '%d' "'$name") - 96))"
done
for served in 80 "443 --certificate $work/origin.pem --key $work/origin.key"; do
    read -ra served <<<"$served"
    start "origin_${served[0]}" nsenter -t "$(<"$work/o.pid")" -m -n -- "$ORIGIN" --address 10.0.0.80 --port "${served[@]}" \
        --port-file "$work/origin_${served[0]}.port"
    await "$work/origin_${served[0]}.port" "$pid"
done
stop_all() {
    local name
    for name in "${machines[@]}"; do
        on "$name" systemctl stop reprise || true
        on "$name" systemctl stop haproxy || true
    done
}
trap 'status=$?; stop_all; (exit "$status"); finish' EXIT

# prints EXPECTED ACTUAL: whether every line of the first is in the second, in this order; $missing is the first that is not.
missing=''
prints() {
    local pattern number=0 actual
    mapfile -t actual <<<"${2//$'\r'/}"
    while IFS= read -r missing; do
        [[ -n $missing ]] || continue
        # In locale C the three bytes of … are three characters.
        pattern=$(sed 's/[][\\*?]/\\&/g; s/…/*/g' <<<"$missing")
        # shellcheck disable=SC2053  # a pattern
        until [[ ${actual[number]-} == $pattern ]]; do
            number=$((number + 1))
            ((number < ${#actual[@]})) || return 1
        done
        number=$((number + 1))
    done <<<"$1"
}
# run WHERE TEXT: what it prints in $output.
run() {
    output=$(on "$1" env --chdir="$work/folder_$1" timeout 60 bash -euo pipefail -c "$2" 2>&1)
}

blocks=0 output='' ran='' ran_on='' again=''
# take INFO LINE TEXT: one block.
take() {
    local kind where=a file words number=$2
    read -ra words <<<"$1"
    kind=${words[0]-}
    words=("${words[@]:1}")
    if [[ ${words[*]: -2:1} == on ]]; then
        where=${words[-1]}
        words=("${words[@]:0:${#words[@]}-2}")
    fi
    file=${words[0]-}
    case $kind in
        sh)
            ran=$3 ran_on=$where again=$file
            run "$where" "$3" || [[ -n $again ]] ||
                fail "${guide##*/}:$number: a block failed"$'\n'"$3"$'\n'"which printed"$'\n'"$output"
            ;;
        text)
            local deadline=$((SECONDS + 60)) seen=''
            until prints "$3" "$output"; do
                # Each output once, for what was printed in between says more than what was printed at the end.
                [[ $seen == *$'\n'"$output" ]] || seen+=$'\n'$output
                [[ -n $again ]] && ((SECONDS < deadline)) ||
                    fail "${guide##*/}:$number: not printed: $missing"$'\n'"but"$'\n'"$(tail -n 40 <<<"${seen#?}")"
                sleep 0.2
                run "$ran_on" "$ran" || true
            done
            ;;
        json | yaml | conf)
            [[ $file == /etc/* ]] || fail "${guide##*/}:$number: a $kind block says which file it is"
            local written=$3
            # A sibling's answer is waited for peering.budget, a tenth of a second, for which a busy machine may well stop a node:
            # then the origin has the answer, and the guide speaks of a hit.
            [[ $file != */reprise.json ]] ||
                written=${3/"{"/"{ \"peering\": { \"budget\": \"10s\", \"hit_worth\": \"10s\" },"}
            on "$where" tee "$file" <<<"$written" >/dev/null
            ;;
        *) fail "${guide##*/}:$number: a block of a kind that is not walked: $kind" ;;
    esac
    blocks=$((blocks + 1))
    echo "ok: ${guide##*/}:$number: $kind${file:+ $file} on $where"
}

info='' text='' inside='' line_number=0
while IFS= read -r line; do
    line_number=$((line_number + 1))
    if [[ $line == '```'* ]]; then
        if [[ -z $inside ]]; then
            inside=$line_number info=${line#'```'} text=''
        else
            take "$info" "$inside" "$text"
            inside=''
        fi
    elif [[ -n $inside ]]; then
        text+=${text:+$'\n'}$line
    fi
done <"$guide"
[[ -z $inside ]] || fail "${guide##*/}:$inside: a block that does not end"
((blocks >= 3)) || fail "${guide##*/} has $blocks blocks"
