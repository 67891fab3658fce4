# shellcheck shell=bash
# shellcheck disable=SC2154  # work, trusted and authority are lab.sh's
# pip as a client of lab.sh, after which this is sourced: one wheel, and the index that leads to it (PEP 503).
: "${site:?is set by lab.sh}"
needs pip python3

wheel=files/reprise_sample-1.0-py3-none-any.whl # below $site; what is in it is $work/data, too
mkdir -p "$site/files" "$site/simple/reprise-sample"
head -c 300000 /dev/urandom >"$work/data"
python3 - "$site/$wheel" "$work/data" <<'END'
import sys, zipfile
about = 'reprise_sample-1.0.dist-info/'
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.write(sys.argv[2], 'reprise_sample/data')
    wheel.writestr('reprise_sample/__init__.py', '')
    wheel.writestr(about + 'METADATA', 'Metadata-Version: 2.1\nName: reprise-sample\nVersion: 1.0\n')
    wheel.writestr(about + 'WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr(about + 'RECORD', ''.join(name + ',,\n' for name in wheel.namelist()))
END
echo "<a href=\"../../$wheel#sha256=$(sha256sum <"$site/$wheel" | cut -d' ' -f1)\">${wheel#*/}</a>" \
    >"$site/simple/reprise-sample/index.html"
# shellcheck disable=SC2034  # lab.sh's
given=("data=$work/data")

# It reads no settings of the machine's, looks for no pip that is newer, and tries again: at once, which
# is before every loop of the proxy knows of a refusal that is under way, and half a second later.
download() {
    PIP_CERT=$trusted PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
        pip install -q --no-compile --retries 2 --target got --index-url "https://$authority/simple/" \
        reprise-sample
}
compare() {
    cmp got/reprise_sample/data "${data:?}"
}
