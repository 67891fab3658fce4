#!/usr/bin/env bash
# The program as its unit runs it: installed below /usr/local, as a user that owns nothing but what the unit makes, with
# root's files as the unit hands them over. What README and the example show starts there, keeps what it says it keeps,
# and ends well. The directories and addresses are this test's own, in namespaces.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
needs cmake curl ip unshare setpriv mount
: "${BUILD:?names the build}" "${SOURCE:?names the sources}"

if [[ ${1:-} != inside ]]; then
    if ! unshare --mount --net true 2>"$work/unshare.err"; then
        echo "skipped: no namespaces here: $(head -n 1 "$work/unshare.err")"
        exit 77
    fi
    DESTDIR=$work/root cmake --install "$BUILD" --prefix /usr/local --strip >"$work/install"
    unshare --mount --net --propagation private "$0" inside "$work/root/usr/local"
    exit
fi

mount --bind "$2" /usr/local
for directory in /run /var/lib /var/cache /var/log; do
    mount -t tmpfs -o mode=755 tmpfs "$directory"
done
ip link set lo up
ip addr add 10.0.0.1/32 dev lo
unit=/usr/local/lib/systemd/system/reprise.service
settings=/usr/local/etc/reprise/reprise.json
user=64321
mkdir -p "${settings%/*}"

# said NAME: its values in the unit.
said() {
    sed -n "s/^$1=//p" "$unit"
}

if command -v systemd-analyze >/dev/null; then
    echo '{}' >"$settings"
    check "systemd finds nothing wrong with the unit" "" "$(systemd-analyze verify --man=no "$unit" 2>&1)"
fi

# What systemd does before it starts the program.
for kind in StateDirectory=/var/lib CacheDirectory=/var/cache LogsDirectory=/var/log RuntimeDirectory=/run; do
    for name in $(said "${kind%=*}"); do
        install -d -m 700 -o "$user" "${kind#*=}/$name"
    done
done
credential=$(said LoadCredential)
private=${credential#*:}
install -d -m 700 "$private"
head -c 64 /dev/urandom >"$private/fleet-secret"
echo token-of-the-admin >"$private/token"
chmod 600 "$private"/*
hand_over() {
    local file
    for file in "$private"/*; do
        install -D -m 400 -o "$user" "$file" "/run/credentials/reprise.service/${credential%%:*}_${file##*/}"
    done
}
hand_over

umask "$(said UMask)"
as_service=(env "RUNTIME_DIRECTORY=/run/$(said RuntimeDirectory)" setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs
    '--bounding-set=-all,+net_bind_service' --pdeathsig KILL)

# reload: what the unit's ExecReload says, line by line until one fails, in a sandbox as systemd's: of credentials it has none
# (https://github.com/systemd/systemd/issues/35227).
reload() {
    local line command
    while IFS= read -r line; do
        read -ra command <<<"$line"
        # shellcheck disable=SC2016  # the inner shell's
        unshare --mount sh -c 'mount -t tmpfs tmpfs /run/credentials && exec "$@"' - \
            "${as_service[@]}" "${command[@]//\$MAINPID/$pid}" >"$work/reload.log" 2>&1 || return
    done < <(said ExecReload)
}

# run_with NAME: checks, starts and ends the service with the settings that are there.
run_with() {
    local command bad status=0
    read -ra command <<<"$(said ExecStartPre)"
    "${as_service[@]}" "${command[@]}" >"$work/check.log" 2>&1 || fail "$1: $(<"$work/check.log")"
    read -ra command <<<"$(said ExecStart)"
    rm -f /var/lib/reprise/ports
    "${as_service[@]}" "${command[@]}" --ports-file /var/lib/reprise/ports </dev/null >"$work/service.log" 2>&1 &
    pid=$!
    started+=("$pid")
    await /var/lib/reprise/ports "$pid"
    check "$1 starts" 200 "$(curl -sS --max-time 20 -o "$work/health" -w '%{http_code}' http://127.0.0.1:3180/healthz)"
    /usr/local/bin/reprise status >"$work/status.log" 2>&1 || (($? == 1)) || # 1: a peer of the example is lost
        fail "$1 is not asked by its socket: $(<"$work/status.log")"
    reload || fail "$1 is not reloaded: $(<"$work/reload.log")"
    # The answer may be there before the line, which a thread of its own writes.
    within 20 "$1 is reloaded, and says so" grep -q 'settings reloaded' "$work/service.log"
    cp "$settings" "$work/good.json"
    for bad in '{ "memory": { "size": "much" } }' '{ "access": { "users_file": "/run/absent" } }'; do
        echo "$bad" >"$settings"
        ! reload || fail "$1: a reload with $bad does not fail"
        check "$1 goes on by the settings that it has" "200 1" "$(curl -sS --max-time 20 -o "$work/health" -w '%{http_code}' \
            http://127.0.0.1:3180/healthz) $(grep -c 'settings reloaded' "$work/service.log")"
    done
    cp "$work/good.json" "$settings"
    kill -TERM "$pid"
    wait "$pid" || status=$?
    check "$1 ends well" 0 "$status"
    check "$1 finds nothing that it can't read or write" "" \
        "$(grep -E '\berror\b' "$work/service.log" | grep -v 'settings not changed' || true)"
}

cp /usr/local/share/doc/*/example.json "$settings"
run_with "the example"

# Each example of README: lines set in by four, from a brace to an empty line.
awk -v to="$work/readme" '
    /^    \{/ { ++n; inside = 1 }
    /^$/ { inside = 0 }
    inside { print > (to n ".json") }' "$SOURCE/README.md"
kinds=0
for example in "$work"/readme*.json; do
    cp "$example" "$settings"
    if grep -q '"intercept"' "$example"; then
        [[ -d $work/ca ]] || /usr/local/bin/reprise-make-ca root --out "$work/ca" >"$work/make-ca.log"
        /usr/local/bin/reprise-make-ca for "$settings" --root "$work/ca" --out "$private" >>"$work/make-ca.log"
        hand_over
    fi
    run_with "README: $(head -c 60 "$example" | head -n 1)"
    kinds=$((kinds + 1))
done
((kinds >= 3)) || fail "README has $kinds examples of settings"
[[ -s /var/cache/reprise/store ]] || fail "no store was made where README says"
[[ -s /var/lib/reprise/admission ]] || fail "what was seen was not kept where README says"

# What the unit's own comment names.
path_of() {
    sed -n "s/^# *$1 *\(\/[^ ]*\)$/\1/p" "$unit"
}
cat >"$settings" <<END
{ "disk": { "path": "$(path_of disk.path)" }, "log": { "access": "$(path_of log.access)" },
  "admission": { "state": "$(path_of admission.state)" },
  "admin": { "token_file": "/run/credentials/reprise.service/private_token" } }
END
run_with "what the unit names"
[[ -f /var/log/reprise/access.log ]] || fail "no log was made where the unit says"

# Root's own file is nobody else's, and the check says so to whom it concerns.
echo "{ \"digest\": { \"secret_file\": \"$private/fleet-secret\" }, \"peers\": [{ \"name\": \"b\", \"url\": \"http://10.0.0.2:3128\" }] }" >"$settings"
status=0
"${as_service[@]}" /usr/local/bin/reprise --check-config --config "$settings" 2>"$work/refused.log" || status=$?
check "the check refuses a secret that the service can't read" 1 "$status"
check_matches "and says which" 'digest\.secret_file: .*Permission denied' "$(<"$work/refused.log")"
