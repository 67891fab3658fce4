#!/usr/bin/env bash
# go through opened tunnels (lab.sh): one module, from a proxy of modules that is plain files.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
needs go python3

module=$site/example.test/sample/@v
mkdir -p "$module"
echo 'module example.test/sample' >"$module/v1.0.0.mod"
echo '{ "Version": "v1.0.0", "Time": "2024-01-01T00:00:00Z" }' >"$module/v1.0.0.info"
head -c 300000 /dev/urandom >"$work/data"
python3 - "$module" "$work/data" <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + '/v1.0.0.zip', 'w') as module:
    module.write(sys.argv[1] + '/v1.0.0.mod', 'example.test/sample@v1.0.0/go.mod')
    module.write(sys.argv[2], 'example.test/sample@v1.0.0/data')
END
given=("data=$work/data")

download() {
    # Nobody's list of checksums has this module. Read-only folders would outlive the test.
    SSL_CERT_FILE=$trusted GOPROXY=https://$authority GONOSUMDB='*' GOTOOLCHAIN=local \
        GOFLAGS='-mod=mod -modcacherw' go mod download example.test/sample@v1.0.0
}
compare() {
    cmp go/pkg/mod/example.test/sample@v1.0.0/data "${data:?}"
}

start_lab
opened_three_times 3
refuses_outside 'not permitted by any constraint'
without_ca fails
stop_proxy
