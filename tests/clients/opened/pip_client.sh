# shellcheck shell=bash
# shellcheck disable=SC2154  # work, trusted and authority are lab.sh's
# pip as a client of lab.sh, after which this is sourced: one wheel, and the index that leads to it (PEP 503).
: "${site:?is set by lab.sh}"
needs pip python3

# shellcheck source=../sources.sh
. "$here/sources.sh"
head -c 300000 /dev/urandom >"$work/data"
pip_index "$site" "$work/data"
# shellcheck disable=SC2034  # lab.sh's
given=("data=$work/data")

# It reads no settings of the machine's, looks for no pip that is newer, and tries again: at once, which
# is before every loop of the proxy knows of a refusal that is under way, and half a second, one and two seconds later.
download() {
    PIP_CERT=$trusted PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
        pip install -q --no-compile --retries 4 --target got --index-url "https://$authority/simple/" \
        reprise-sample
}
compare() {
    cmp got/reprise_sample/data "${data:?}"
}
