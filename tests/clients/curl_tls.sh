#!/usr/bin/env bash
# curl, which speaks TLS to the proxy itself (an HTTPS proxy, as browsers call it), and reprise-digest.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
: "${DIGEST:?names reprise-digest}"
needs curl sha256sum openssl

# certificate NAME: a new one for 127.0.0.1, signed by itself, in $work/NAME.pem and its key beside.
certificate() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$work/$1.key" -out "$work/$1.pem" 2>/dev/null
}

certificate proxy
certificate origin
start_origin pages
pages=127.0.0.1:$port
start_origin secret --certificate "$work/origin.pem" --key "$work/origin.key"
secret=127.0.0.1:$port
# shellcheck disable=SC2034  # start_proxy's
listener="\"tls\": { \"certificate\": \"$work/proxy.pem\", \"key\": \"$work/proxy.key\" }"
head -c 64 /dev/urandom >"$work/fleet"
start_proxy "
  \"digest\": { \"secret_file\": \"$work/fleet\", \"publish_after\": \"1s\" },
  \"peers\": [{ \"name\": \"digest\", \"url\": \"https://127.0.0.1:9\" }]" "${pages#*:}" "${secret#*:}"

# ask [option...] URL: body in $work/body, heads in $work/head, the status in $status.
ask() {
    status=$(curl -sS --max-time 30 --proxy "https://$proxy" --proxy-cacert "$work/proxy.pem" \
        -D "$work/head" -o "$work/body" -w '%{http_code}' "$@")
}

hello=http://$pages/hello
ask "$hello"
ask "$hello"
ask "$hello"
check_matches "the third request is a hit" '^reprise.*; *hit' "$(cache_status "$work/head")"
check "the hit's body is the origin's" "Hello from the origin." "$(<"$work/body")"
check "the origin was asked twice" 2 "$(asked pages '^GET /hello ')"

for version in 1.2 1.3; do
    ask --proxy-tlsv1 --tls-max "$version" "$hello"
    check "TLS up to $version has it too" 200 "$status"
done
curl -sS --max-time 30 --proxy "https://$proxy" --proxy-cacert "$work/origin.pem" -o /dev/null "$hello" \
    2>"$work/refused" && fail "curl took a certificate that it does not know"
check_matches "curl verifies the certificate" 'certificate' "$(<"$work/refused")"
curl -sS --max-time 30 --proxy "http://$proxy" -o /dev/null "$hello" 2>/dev/null &&
    fail "the TLS listener answered without TLS"
echo "ok: without TLS there is no answer"

head -c 3000001 /dev/urandom >"$work/upload"
sum="3000001 $(sha256sum <"$work/upload" | cut -d' ' -f1)"
ask --data-binary "@$work/upload" "http://$pages/upload"
check "an upload arrives whole" "200 $sum" "$status $(<"$work/body")"
for _ in 1 2 3; do
    ask "http://$pages/bytes/3000000"
done
check "three megabytes are a hit the third time" "3000000 2" \
    "$(stat -c %s "$work/body") $(asked pages ' /bytes/3000000 ')"

ask --cacert "$work/origin.pem" "https://$secret/hello"
check "https goes through a tunnel: TLS in TLS" "200 Hello from the origin." "$status $(<"$work/body")"
ask --cacert "$work/origin.pem" "https://$secret/bytes/5000000"
check "five megabytes too" "200 5000000" "$status $(stat -c %s "$work/body")"

# The digest, as a sibling has it.
lists_hello() {
    SSL_CERT_FILE=$work/proxy.pem "$DIGEST" "https://$proxy" --secret "$work/fleet" --url "$hello" >"$work/digest.log"
}
within 20 "reprise-digest reads the digest over TLS, and finds in it what is stored" lists_hello
SSL_CERT_FILE=$work/origin.pem "$DIGEST" "https://$proxy" --secret "$work/fleet" 2>"$work/refused" &&
    fail "reprise-digest took a certificate that it does not know"
check_matches "and verifies the certificate" 'certificate' "$(<"$work/refused")"
kill -STOP "$proxy_pid" # the kernel still takes connections for it
begin=$SECONDS
SSL_CERT_FILE=$work/proxy.pem "$DIGEST" "https://$proxy" --secret "$work/fleet" --timeout 1 2>"$work/refused" &&
    fail "reprise-digest had an answer of a stopped proxy"
kill -CONT "$proxy_pid"
check_matches "and waits no longer than it was told" 'no answer within 1 s' "$(<"$work/refused")"
((SECONDS - begin < 20)) || fail "it waited for $((SECONDS - begin)) s"

# A renewed certificate: what curl knew is refused, the new one taken.
cp "$work/proxy.pem" "$work/old.pem"
certificate proxy
before=$(reloads)
kill -HUP "$proxy_pid"
within 20 "it is read again" has_reloaded_since "$before" # by every thread then
curl -sS --max-time 30 --proxy "https://$proxy" --proxy-cacert "$work/proxy.pem" -o "$work/body" "$hello"
check "a renewed certificate is shown after SIGHUP" "Hello from the origin." "$(<"$work/body")"
curl -s --max-time 30 --proxy "https://$proxy" --proxy-cacert "$work/old.pem" -o /dev/null "$hello" &&
    fail "the old certificate is still shown"
echo "ok: and the old one no more"
stop_proxy
