#!/usr/bin/env bash
# gRPC at a host whose tunnels are opened: its clients speak HTTP/2 alone, and say so in their hello, so
# their tunnels are passed on and they see the origin's own certificate. Calls and streams work, at once
# and as often as they are made.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
needs python3
python=''
for one in python3 /usr/bin/python3; do # Debian's package is for Debian's own
    ! "$one" -c 'import grpc' 2>/dev/null || python=$one
done
if [[ -z $python ]]; then
    echo "skipped: python3-grpcio is not installed"
    exit 77
fi

make_authorities
speaker=$here/opened/grpc_echo.py
start grpc "$python" "$speaker" serve "$work/files.test.pem" "$work/files.test.key" "$work/grpc.port"
await "$work/grpc.port" "$pid"
port=$(<"$work/grpc.port")
start_proxy "$(opening "$work/ca" files.test)" "$port"

# ask TRUSTED WORD: what came back, in one line; or why nothing did, in $work/ask.log.
ask() {
    env -i "PATH=$PATH" LC_ALL=C "https_proxy=http://$proxy" timeout -k 5 60 \
        "$python" "$speaker" ask "files.test:$port" "$1" "$2" 2>>"$work/ask.log" | tr '\n' ';'
}

for time in 1 2 3; do
    check "calls and streams come back, time $time" "whole: cba;part: a 50000;part: b 50000;part: c 50000;" \
        "$(ask "$work/origins.pem" abc)"
    check "their tunnels were passed on for HTTP/2" "$time" "$(of_host passed_on files.test alpn)"
done
check "a client that trusts the proxy's CA alone is shown nothing of it" "" "$(ask "$root_pem" abc)"
check "none was opened" 0 "$(of_host opened files.test)"
stop_proxy
