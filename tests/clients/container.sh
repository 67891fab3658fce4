#!/usr/bin/env bash
# The image of tools/packaging/container.
#   container.sh files   its files, from the program of this build, run as a runtime would run them: another user, no
#                        capability, a root that nobody can write to; its health check, whatever becomes of its settings, a hit,
#                        and the end
#   container.sh build   the image, where buildah, podman or docker can build one, and the same questions
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
: "${SOURCE:?names the sources}"
PATH=$PATH:/usr/sbin:/sbin
container=$SOURCE/tools/packaging/container
needs curl ip unshare nsenter setpriv mount chroot strip
# words INSTRUCTION: those of its JSON array in the Containerfile.
words() {
    sed -n "s/^$1 \\[\\(.*\\)\\]\$/\\1/p" "$container/Containerfile" | tr -d '",'
}
read -ra health <<<"$(words 'HEALTHCHECK.* CMD')"
read -ra entry <<<"$(words ENTRYPOINT) $(words CMD)"
user=$(sed -n 's/^USER \([0-9]*\):.*/\1/p' "$container/Containerfile")
((${#health[@]} >= 3 && ${#entry[@]} >= 3 && user > 0)) || fail "the Containerfile is not as expected"

if [[ $1 == build ]]; then
    for builder in buildah podman docker; do
        command -v "$builder" >/dev/null && "$builder" info >"$work/builder.log" 2>&1 && break
        builder=''
    done
    if [[ -z $builder ]]; then
        echo "skipped: neither buildah nor podman nor docker can build here"
        exit 77
    fi
    # buildah's own isolation asks for nothing that a container or an old kernel's cgroups would not give.
    export BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}
    base=$(sed -n 's/^FROM \([^ ]*\) AS build$/\1/p' "$container/Containerfile")
    if ! timeout 120 "$builder" pull "$base" >"$work/pull.log" 2>&1; then
        echo "skipped: $builder has no $base and can fetch none: $(tail -n 1 "$work/pull.log")"
        exit 77
    fi
    options=()
    [[ $builder == docker ]] || options=(--format docker)
    "$builder" build "${options[@]}" -f "$container/Containerfile" -t reprise-of-the-tests "$SOURCE" >"$work/build.log" 2>&1
    echo "ok: $builder builds it"
    if [[ $builder == buildah ]]; then # which runs what it built in the foreground alone; on a network of its own
        name=$(buildah from reprise-of-the-tests)
        trap 'status=$?; buildah rm "$name" >/dev/null 2>&1; (exit "$status"); finish' EXIT
        start contained unshare --net --pid --fork --kill-child \
            bash -c 'ip link set lo up && exec buildah run "$1" -- "${@:2}"' - "$name" "${entry[@]}"
        within 20 "it is alive by its own check" nsenter -t "$pid" -n buildah run "$name" -- "${health[@]}"
        kill -KILL "$pid" # unshare blocks the gentler ones; what it began dies with it
        exit
    fi
    name=$("$builder" run -d --read-only --cap-drop=all --security-opt=no-new-privileges reprise-of-the-tests)
    remove() { "$builder" rm -f "$name" >/dev/null 2>&1 || true; }
    trap 'status=$?; remove; (exit "$status"); finish' EXIT
    within 20 "it is alive by its own check" "$builder" exec "$name" "${health[@]}"
    exit
fi

if [[ ${2:-} != inside ]]; then
    if ! unshare --mount --net --pid --fork true 2>"$work/unshare.err"; then
        echo "skipped: no namespaces here: $(head -n 1 "$work/unshare.err")"
        exit 77
    fi
    unshare --mount --net --propagation private --pid --fork --kill-child --mount-proc "$0" files inside
    exit
fi

"$container/assemble" "$REPRISE" "$work/image"
root=$work/image/root
check "there is no shell in it, nor another program" /usr/bin/reprise "$(cd "$root" && find usr/bin -type f -printf '/%p\n')"
size=$(du -sm "$root" | cut -f1)
((size < 100)) || fail "the image has $size MiB"
echo "ok: it has $size MiB"

# As a runtime does: what it writes is mounted, all else is read-only.
ip link set lo up
mount --bind "$root" /mnt # in this test's namespace; $work itself holds no mount
root=/mnt
trap 'status=$?; umount -R -l /mnt; (exit "$status"); finish' EXIT
for volume in $(words VOLUME); do
    mkdir -p "$root$volume"
    mount -t tmpfs -o "mode=700,uid=$user,gid=$user,size=8G" tmpfs "$root$volume"
done
install -D -m 644 "$container/reprise.json" "$work/settings/reprise.json"
mount --bind "$work/settings" "$root/etc/reprise"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
RUNTIME_DIRECTORY=$(sed -n 's/^ENV RUNTIME_DIRECTORY=//p' "$container/Containerfile")
[[ -n $RUNTIME_DIRECTORY ]] || fail "the Containerfile names no directory for the socket"
export RUNTIME_DIRECTORY # as every program in the container has it
# inside COMMAND...: as the container's user; setpriv is the runtime's, so it changes the root last.
inside() {
    chroot --userspec="$user:$user" --groups= "$root" "$@"
}
check "nothing can be written" "no" "$(touch "$root/here" 2>/dev/null && echo yes || echo no)"
not_yet=0
inside "${health[@]}" >/dev/null 2>&1 || not_yet=$?
check "the check fails while nothing runs" 3 "$not_yet"
start contained chroot --userspec="$user:$user" --groups= "$root" "${entry[@]}"
program=$pid
within 20 "it is alive by its own check" inside "${health[@]}"
check "it runs as its user" "$user" "$(stat -c %u "/proc/$program")"

# Whoever starts it anew for one of these turns a slip of the pen into an outage: the first three end a start.
for edit in 's/"memory": {/"memory" {/' 's/256MiB/much/' 's/127.0.0.1:3180/nowhere/' 's/127.0.0.1:3180/127.0.0.1:3181/'; do
    sed "$edit" "$container/reprise.json" >"$work/settings/reprise.json"
    ! cmp -s "$container/reprise.json" "$work/settings/reprise.json" || fail "$edit changes nothing"
    check "it is alive with settings after $edit" ok "$(inside "${health[@]}" 2>"$work/warning.log")"
done
cp "$container/reprise.json" "$work/settings/reprise.json"

# An origin on a machine of its own: what is on this one is refused.
start far unshare --net sleep infinity
far=$pid
until [[ $(readlink "/proc/$far/ns/net") != "$(readlink /proc/self/ns/net)" && $(<"/proc/$far/comm") == sleep ]]; do
    kill -0 "$far" || fail "the origin's machine did not start"
    sleep 0.01
done
ip link add eth0 type veth peer name eth0 netns "$far"
ip addr add 10.0.0.1/24 dev eth0
ip link set eth0 up
nsenter -t "$far" -n ip addr add 10.0.0.80/24 dev eth0
nsenter -t "$far" -n ip link set eth0 up
start origin nsenter -t "$far" -n "$ORIGIN" --address 10.0.0.80 --port 80 --port-file "$work/origin.port" --log "$work/origin.requests"
await "$work/origin.port" "$pid"
for _ in 1 2 3; do
    curl -sS --max-time 20 -o "$work/body" -D "$work/head" -x http://10.0.0.1:3128 http://10.0.0.80/hello
done
check_matches "what it has stored is a hit" 'hit' "$(cache_status "$work/head")"
[[ -s $root/var/cache/reprise/store ]] || within 20 "its store is on the volume" test -s "$root/var/cache/reprise/store"

# As a runtime ends it, with the time that README has it give. A download that goes on is worth the whole drain, as long as what a
# runtime gives by itself; what memory alone holds is written after that.
grace=$(sed -n 's/.* --stop-timeout \([0-9]*\) .*/\1/p' "$container/README.md")
((grace > 0)) || fail "README gives no time to stop"
start download curl -sS --limit-rate 100k -o "$work/slow" -x http://10.0.0.1:3128 http://10.0.0.80/bytes/100000000
within 20 "a download goes on" test -s "$work/slow"
status=0
began=$SECONDS
kill -TERM "$program"
while kill -0 "$program" 2>/dev/null; do
    ((SECONDS - began < grace)) || kill -KILL "$program"
    sleep 0.1
done
wait "$program" || status=$?
check "it ends well" 0 "$status"
((SECONDS - began >= 9)) || fail "it was not held up by the download"
check "what was asked for is kept on the other volume" yes "$([[ -s $root/var/lib/reprise/admission ]] && echo yes)"
before=$(asked origin '^GET /hello ')
start contained chroot --userspec="$user:$user" --groups= "$root" "${entry[@]}"
program=$pid
within 20 "it is alive again" inside "${health[@]}"
curl -sS --max-time 20 -o "$work/body" -D "$work/head" -x http://10.0.0.1:3128 http://10.0.0.80/hello
check_matches "what memory held at the stop is a hit after it" 'hit' "$(cache_status "$work/head")"
check "the origin was not asked for it" "$before" "$(asked origin '^GET /hello ')"
status=0
kill -TERM "$program"
wait "$program" || status=$?
check "it ends well again" 0 "$status"
