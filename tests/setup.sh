#!/usr/bin/env bash
# What tools/setup does to the machine beside installing, tried with an apt that installs nothing.
#
#   setup.sh <tools/setup>
set -euo pipefail

setup=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "setup: $*" >&2
    exit 1
}

# Nothing is installed here, all is to be had, and who is asked writes down what.
mkdir -p "$work"/{bin,etc/init.d,usr/sbin}
stub() { cat >"$work/bin/$1" && chmod +x "$work/bin/$1"; }
stub dpkg-query <<<'#!/bin/sh'
stub apt-cache <<<'#!/bin/sh'
stub update-rc.d <<'END'
#!/bin/sh
echo "$1 $2" >>"$work/disabled"
END
stub sudo <<'END'
#!/bin/sh
exec "$@"
END
stub apt-get <<'END'
#!/bin/sh
[ "$1" != update ] || exit 0
touch "$work/installing"
while [ -e "$work/wait" ]; do sleep 0.05; done
cp "$work/usr/sbin/policy-rc.d" "$work/policy"
touch "$work/etc/init.d/haproxy" "$work/etc/init.d/trafficserver"
END
export work REPRISE_SETUP_PREFIX=$work PATH=$work/bin:$PATH
policy=$work/usr/sbin/policy-rc.d

# An operator's own nginx is left as it is; what came is not started, now or at the next boot.
touch "$work/etc/init.d/nginx"
"$setup" package engines 2>"$work/said" || fail "ends with $?: $(cat "$work/said")"
[[ $(sort "$work/disabled") == $'haproxy disable\ntrafficserver disable' ]] || fail "disabled: $(cat "$work/disabled")"
grep -qx 'exit 101' "$work/policy" || fail "services were started"
[[ ! -e $policy ]] || fail "services will never be started again"

# A signal ends it when apt has ended, and not before.
touch "$work/wait"
rm "$work/installing" "$work/policy"
"$setup" package 2>"$work/said" &
setup_is=$!
for ((i = 0; i < 600; ++i)); do
    [[ ! -e $work/installing ]] || break
    sleep 0.05
done
[[ -e $policy ]] || fail "services are started while it installs"
kill -TERM "$setup_is"
for ((i = 0; i < 600; ++i)); do
    ! grep -q 'ends when apt has' "$work/said" || break
    sleep 0.05
done
kill -0 "$setup_is" || fail "it did not wait for apt"
rm "$work/wait"
status=0
wait "$setup_is" || status=$?
[[ $status == 130 ]] || fail "a signal ended it with $status"
[[ -e $work/policy && ! -e $policy ]] || fail "it left apt alone, or its policy behind"

# What kill -9 left behind is known; somebody else's stays.
cp "$work/policy" "$policy"
"$setup" package 2>"$work/said" || fail "ends with $?: $(cat "$work/said")"
[[ ! -e $policy ]] || fail "its own policy of before stays"
printf '#!/bin/sh\nexit 101\n' >"$policy"
"$setup" package 2>"$work/said" || fail "ends with $?: $(cat "$work/said")"
[[ -e $policy ]] || fail "a policy of somebody else's is gone"
