#!/usr/bin/env bash
# Clients that say who they are (access.users_file), each as its manual has it: a name and a password in the proxy's
# address for curl, wget, pip, npm and apt, and what one types into Chromium's dialog.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=sources.sh
. "$here/sources.sh"
# shellcheck source=browser.sh
. "$here/browser.sh"
needs curl wget pip npm apt-get apt-ftparchive dpkg-deb chromium openssl python3 sha512sum

printf 'ann:%s\n' "$(openssl passwd -6 "it's ann")" >"$work/users"
chmod 600 "$work/users"
access="\"users_file\": \"$work/users\""

site=$work/site
cp -r "$here/../data/site" "$site"
start_pages_and_secret --root "$site"
start_proxy '' "${secret#*:}"
through=http://ann:it%27s%20ann@$proxy

# as_ann CLIENT: what that client's program fetched was ann's.
as_ann() {
    within 20 "$1 is ann, in the log" grep -qE "\"user\":\"ann\",.*\"status\":200,.*\"user_agent\":\"[^\"]*$1" "$work/access.log"
}

check "curl without a password is asked for one" 407 \
    "$(curl -sS -o /dev/null -w '%{http_code}' -x "http://$proxy" "http://$pages/index.html")"
check "curl with another is asked again" 407 \
    "$(curl -sS -o /dev/null -w '%{http_code}' -x "http://ann:wrong@$proxy" "http://$pages/index.html")"
check "curl with the right one has the page" 200 \
    "$(curl -sS -o /dev/null -w '%{http_code}' -x "$through" "http://$pages/index.html")"
check "and a tunnel" 200 \
    "$(curl -sS -o /dev/null -w '%{http_code}' --cacert "$work/cert.pem" -x "$through" "https://$secret/index.html")"
as_ann curl

http_proxy=$through wget -q --no-config -O "$work/page" "http://$pages/index.html"
cmp "$work/page" "$site/index.html"
as_ann Wget

head -c 30000 /dev/urandom >"$work/data"
pip_index "$site" "$work/data"
PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
    pip download -q --no-deps --proxy "$through" --trusted-host 127.0.0.1 -d "$work/wheels" \
    --index-url "http://$pages/simple/" reprise-sample
cmp "$work/wheels/${wheel##*/}" "$site/$wheel"
as_ann pip

npm_registry "$site" "http://$pages" "$work/data"
mkdir "$work/project"
echo '{ "private": true }' >"$work/project/package.json"
(cd "$work/project" && npm_config_fetch_retries=0 npm install --registry "http://$pages/" --proxy "$through" \
    --globalconfig /dev/null --no-audit --no-fund --no-update-notifier reprise-sample >"$work/npm.log" 2>&1)
cmp "$work/project/node_modules/reprise-sample/data" "$work/data"
as_ann npm

apt_repository "$site/debian"
apt_client "$work/apt" "http://$pages/debian/" "Acquire::http::Proxy \"$through\";"
apt_get "$work/apt" update >"$work/apt.log" 2>&1
apt_get "$work/apt" download reprise-sample >>"$work/apt.log" 2>&1
cmp "$work/apt/download/reprise-sample_1.0_all.deb" "$site/debian/reprise-sample_1.0_all.deb"
as_ann APT

# sign_in NAME PASSWORD URL: prints what Chromium was asked, and has.
sign_in() {
    local profile
    profile=$(mktemp -d "$work/profile.XXXXXX")
    "$here/sign_in.py" "$@" chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage \
        --disable-extensions --ignore-certificate-errors --user-data-dir="$profile" \
        "--proxy-server=http://$proxy" '--proxy-bypass-list=<-loopback>' 2>>"$work/chromium.log"
    rm -rf "$profile"
}
asked_once='"challenges": \[\{"source": "Proxy", "origin": "[^"]*", "scheme": "basic", "realm": "reprise"\}\]'
answer=$(sign_in ann "it's ann" "http://$pages/index.html")
check_matches "Chromium asks for a password once" "$asked_once" "$answer"
check_matches "and has the page with its pictures" '"status": 200, .*"pictures": 4' "$answer"
as_ann Chrome
answer=$(sign_in ann "it's ann" "https://$secret/index.html")
check_matches "Chromium asks once for a tunnel" "$asked_once" "$answer"
check_matches "and has the page inside with its pictures" '"status": 200, .*"pictures": 4' "$answer"
answer=$(sign_in ann wrong "http://$pages/index.html")
check_matches "Chromium asks again after a wrong password" '"realm": "reprise"\}, .*"realm": "reprise"\}\]' "$answer"
check_matches "and whoever gives up reads why" '"status": 407, .*"pictures": 0' "$answer"

check "no origin has seen a password" 0 "$(asked pages 'proxy-authorization$')"
check "and the log has none" 0 "$(grep -cE "it's|wrong|YW5u" "$work/access.log" "$work/proxy.log" | awk -F: '{ all += $2 } END { print all }')"
stop_proxy
