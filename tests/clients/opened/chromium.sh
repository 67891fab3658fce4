#!/usr/bin/env bash
# Chromium through opened tunnels (lab.sh): a page that fetches a file and says what its checksum is.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
# shellcheck source=../browser.sh
. "$here/browser.sh"
needs chromium certutil sha256sum

head -c 300000 /dev/urandom >"$site/archive.bin"
given=("sum=$(sha256sum <"$site/archive.bin" | cut -d' ' -f1)")
cat >"$site/index.html" <<'END'
<!doctype html>
<title>What came</title>
<link rel="icon" href="data:,">
<p id="sum"></p>
<script>
const hex = byte => byte.toString(16).padStart(2, '0');
fetch('archive.bin')
    .then(answer => answer.arrayBuffer())
    .then(bytes => crypto.subtle.digest('SHA-256', bytes))
    .then(sum => document.getElementById('sum').textContent = Array.from(new Uint8Array(sum), hex).join(''));
</script>
END

download() {
    mkdir -p .pki/nssdb
    certutil -d "sql:$HOME/.pki/nssdb" -A -n reprise -t C,, -i "$trusted"
    browse "$HOME/profile" "--proxy-server=http://$proxy" --virtual-time-budget=10000 --dump-dom \
        "https://$authority/" >dom
    # Of a page that doesn't come it makes one of its own, and ends well.
    grep '<title>What came' dom || { cat dom && false; }
}
compare() {
    grep -F "<p id=\"sum\">${sum:?}</p>" dom
}

start_lab
opened_three_times 2
refuses_outside 'ERR_CERT_INVALID'
# It opens two connections: whether the second is begun before the first is refused is chance.
without_ca either
stop_proxy
