# shellcheck shell=bash
# Chromium without a screen, as every test of it runs it. Sourced after harness.sh.

# browse PROFILE OPTION... URL: it phones home no more than it must.
browse() {
    timeout -k 5 60 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --disable-dev-shm-usage --disable-extensions --user-data-dir="$1" "${@:2}" </dev/null
}
