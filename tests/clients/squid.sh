#!/usr/bin/env bash
# Squid: a real one and a Reprise as siblings, each asked for what the other holds and for what neither
# does. What a digest names is counted beside what came of asking, and false hits beside what the
# digest's bits predict.
#
# A Squid takes a digest once in five minutes at most, so it is started anew when it shall see another.
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
: "${DIGEST:?names reprise-digest}"
# shellcheck source=squid_process.sh
. "$(dirname "$0")/squid_process.sh"
needs shuf


# urls FIRST LAST: of objects of so many bytes.
urls() {
    seq -f "http://$pages/bytes/%.0f" "$1" "$2"
}

# ask_all PROXY FILE: each URL in the file once; every body must be whole.
ask_all() {
    sed 's/.*/url = "&"\noutput = "\/dev\/null"/' "$2" >"$work/curl.conf"
    curl -sS --no-progress-meter -Z --parallel-max 16 --max-time 60 -x "http://$1" -K "$work/curl.conf" \
        -w '%{http_code} http://'"$pages"'/bytes/%{size_download}\n' >"$work/answers"
    sed 's/^/200 /' "$2" | sort | diff - <(sort "$work/answers") >"$work/differences.log" ||
        fail "not every answer is 200 and whole"
}

# digest_of PROXY NAME: as a Squid would have it, in $work/NAME.digest and, in words, $work/NAME.told.
digest_of() {
    curl -sS --fail --max-time 10 -o "$work/$2.digest" "http://$1/squid-internal-periodic/store_digest" \
        2>>"$work/digests.log" && "$DIGEST" "$work/$2.digest" >"$work/$2.told"
}
# told NAME WHAT: a figure of it.
told() {
    sed -n "s/^ *$2 \{2,\}//p" "$work/$1.told"
}
# listed NAME FILE: those of the URLs that are in it.
listed() {
    local arguments
    mapfile -t arguments < <(sed 's/.*/--url\n&/' "$2")
    { "$DIGEST" "$work/$1.digest" "${arguments[@]}" || true; } | sed -n 's/.*: \(http:.*\): listed$/\1/p'
}
# lists_all PROXY NAME FILE
lists_all() {
    digest_of "$1" "$2" && [[ $(listed "$2" "$3" | wc -l) == $(wc -l <"$3") ]]
}

# at_least WHAT SHARE% ACTUAL OF
at_least() {
    (($3 * 100 >= $2 * $4)) || fail "$1: $3 of $4, not $2 %"
    echo "ok: $1: $3 of $4"
}
# as_predicted WHAT COUNT OF SHARE%: within five standard deviations.
as_predicted() {
    awk -v what="$1" -v count="$2" -v of="$3" -v share="${4%\%}" 'BEGIN {
        p = share / 100; mean = of * p; wide = 5 * sqrt(of * p * (1 - p)) + 1
        good = (count >= mean - wide && count <= mean + wide)
        word = good ? "ok" : "failed"
        printf("%s: %s: %d of %d, predicted %.1f +- %.1f\n", word, what, count, of, mean, wide)
        exit !good
    }' || fail "$1"
}

# sibling_settings PORT: with Reprise, where it is now, as its sibling.
sibling_settings() {
    cat <<END
http_port 127.0.0.1:$1
http_access allow localhost
http_access deny all
cache_peer ${proxy%:*} sibling ${proxy##*:} 0 name=reprise no-query proxy-only
minimum_direct_rtt 0
minimum_direct_hops 0
cache_dir ufs $squid_dir/cache 200 4 16
cache_mem 32 MB
digest_rebuild_period 2 seconds
digest_rewrite_period 1 second
END
}
# squid_has WHAT: a figure of Reprise's digest as Squid's cache manager tells it.
squid_has() {
    curl -sS --max-time 5 "http://$squid/squid-internal-mgr/peer_select" |
        sed -n "/^peer digest from/,/^Algorithm/{s/.*$1: *\([a-z0-9]*\).*/\1/p}" | head -n 1
}
squid_uses_digest() {
    [[ $(squid_has usable) == yes ]]
}
# squid_logged PATTERN: how many lines of Squid's access log match.
squid_logged() {
    grep -cE -- "$1" "$squid_dir/squid.log" || true
}
# squid_has_logged COUNT: so many requests for objects. It writes a line when a request has ended for it, which may be a moment
# after its client has all.
squid_has_logged() {
    (($(squid_logged ' GET http://[^ ]*/bytes/') >= $1))
}
# log_is_written: every line that was handed to Reprise's access log stands in it.
log_is_written() {
    [[ $(wc -l <"$work/access.log") == "$(figure reprise_access_log_lines_total)" ]]
}
# logged PATTERN: how many lines of Reprise's access log match.
logged() {
    within 20 "the access log is written" log_is_written >/dev/null
    grep -cE -- "$1" "$work/access.log" || true
}
of_squid='{sibling="squid"}'
asked_squid() {
    figure "reprise_sibling_asked_total{sibling=\"squid\",result=\"$1\"}"
}
# asked_in_vain: the URLs that Reprise was asked for with only-if-cached, and did not have.
asked_in_vain() {
    within 20 "the access log is written" log_is_written >/dev/null
    sed -n 's/.*"url":"\([^"]*\)".*"reason":"only_if_cached_miss".*/\1/p' "$work/access.log"
}
sibling_hits() {
    squid_logged 'TCP_MISS/200 .*CD_SIBLING_HIT/127\.0\.0\.1'
}
# knows_squid: Squid has made a digest of (nearly) all that it holds, and Reprise has it.
knows_squid() {
    digest_of "$squid" theirs && listed theirs "$work/held" >"$work/named" &&
        (($(wc -l <"$work/named") * 100 >= $(wc -l <"$work/held") * 99)) &&
        [[ $(curl -sS --max-time 5 "http://$admin/digest?of=squid" | sed -n 's/^bits on: //p') == "$(told theirs 'bits on')" ]]
}
# tells_keys COUNT
tells_keys() {
    digest_of "$proxy" ours && [[ $(told ours 'keys, as its owner says') == "$1" ]]
}

# meet_squid: Reprise, which knows Squid's address, is told its port.
meet_squid() {
    sed -i "s|\"url\": \"[^\"]*\"|\"url\": \"http://$squid\"|" "$work/reprise.json"
    kill -HUP "$proxy_pid"
}
# introduce: Squid is started, and has taken the digest that ours.* tells of.
introduce() {
    start_squid squid sibling_settings
    meet_squid
    # Something that it does not have: then it looks for peers' digests.
    curl -sS --max-time 10 -x "http://$squid" -o /dev/null "http://$pages/hello?$squid"
    within 20 "Squid uses the digest" squid_uses_digest
    check "Squid has every bit of it, as it was sent" "$(told ours 'bits on' | cut -d' ' -f1)" "$(squid_has on)"
    : >"$squid_dir/squid.log"
}

start_origin pages --delay-ms 20
pages=127.0.0.1:$port
urls 1001 2200 >"$work/a" # what Reprise holds
urls 3001 5000 >"$work/b" # what Squid holds
urls 6001 8000 >"$work/c" # what nobody holds
settings='
  "disk": { "path": "'"$work"'/store", "size": "256MiB", "write": "admission", "selective": false },
  "admission": { "probation": "0%" },
  "digest": { "squid": true, "publish_after": "1s" },
  "peers": [{ "name": "squid", "url": "http://127.0.0.1:9", "protocol": "squid",
              "proxy_only": true, "refresh": "1s", "timeout": "5s" }],
  "peering": { "budget": "5s", "hit_worth": "1m" }'
start_proxy "$settings"

check "the digest is for the Squids of the settings alone" 403 "$(curl -sS --max-time 5 -o /dev/null \
    -w '%{http_code}' --interface 127.0.0.2 "http://$proxy/squid-internal-periodic/store_digest")"
check "there is no netdb" 404 "$(curl -sS --max-time 5 -o /dev/null \
    -w '%{http_code}' "http://$proxy/squid-internal-dynamic/netdb")"

ask_all "$proxy" "$work/a"
ask_all "$proxy" "$work/a"
# Nothing in a URL is made another by either.
odd=("http://$pages/bytes/90?%41=a%20b" "http://$pages/bytes/91?a=%7e%7E&b=%2f" "http://$pages/bytes/92?/../b//c;d")
ask_odd() {
    curl -sS --no-progress-meter --path-as-is --max-time 60 -x "http://$1" -w '%{http_code}' \
        "${odd[0]}" -o /dev/null "${odd[1]}" -o /dev/null "${odd[2]}" -o /dev/null
}
check "odd URLs are answered" 200200200 "$(ask_odd "$proxy")"
check "and stored" 200200200 "$(ask_odd "$proxy")"
printf '%s\n' "${odd[@]}" >"$work/odd"
within 20 "they are in the digest" lists_all "$proxy" ours "$work/odd"
# A key may be listed before it has been told, by others' bits: its own would still come, and Squid have more of
# them than were counted here.
within 20 "all that Reprise holds has been told its digest" tells_keys "$(cat "$work/a" "$work/odd" | wc -l)"
within 20 "and is in it" lists_all "$proxy" ours "$work/a"
(($(stat -c %s "$work/ours.digest") > 256)) || fail "the mask is no longer than 128 bytes"
awk -v share="$(told ours 'bits on' | sed 's/.*(\(.*\) %)/\1/')" 'BEGIN { exit share > 65 }' ||
    fail "more than 65 % of its bits are on"
introduce

# Squid asks. Afterwards it holds b, but for what it asked Reprise for in vain: that it does not keep.
ask_all "$squid" "$work/b"
asked_in_vain >"$work/vain"
as_predicted "what Squid asked Reprise for in vain" "$(wc -l <"$work/vain")" 2000 \
    "$(told ours 'false positives')"
ask_all "$squid" "$work/a"
within 20 "Squid's log is written" squid_has_logged "$(cat "$work/b" "$work/a" | wc -l)"
at_least "what Squid had from Reprise (CD_SIBLING_HIT)" 99 "$(sibling_hits)" "$(listed ours "$work/a" | wc -l)"

hits=$(sibling_hits)
check "odd URLs are answered by Squid" 200200200 "$(ask_odd "$squid")"
had_them_from_reprise() { # Squid's log, too, is a moment behind its answers
    (($(sibling_hits) - hits == 3))
}
within 20 "which had them from Reprise" had_them_from_reprise

# Reprise asks, for what Squid holds and for what nobody holds, in no order.
sort "$work/b" | comm -23 - <(sort "$work/vain") >"$work/held"
within 30 "what Squid holds is in its digest, and Reprise has that" knows_squid
cat "$work/b" "$work/c" | shuf >"$work/both"
ask_all "$proxy" "$work/both"
true_hits=$(asked_squid true-hit) false_hits=$(asked_squid false-hit)
named=$(figure "reprise_sibling_named_total$of_squid") held_back=$(figure "reprise_sibling_held_back_total$of_squid")
held=$(wc -l <"$work/named") not_held=$((4000 - $(wc -l <"$work/held")))
at_least "what Reprise had from Squid" 99 "$true_hits" "$held"
check "the access log names the sibling" "$true_hits" "$(logged '"outcome":"sibling".*"peer":"squid"')"
had_these_questions() {
    [[ "$(squid_logged 'TCP_(MEM_)?HIT/200 .*/bytes/') $(squid_logged '/504 .*/bytes/')" == \
        "$true_hits $false_hits" ]]
}
within 20 "Squid had these questions" had_these_questions
as_predicted "what Squid's digest named falsely" $((named - held)) "$not_held" "$(told theirs 'false positives')"
echo "    of these asked: $false_hits; held back, of all: $held_back; predicted by Reprise:" \
    "$(figure "reprise_sibling_expected_false_hits$of_squid")"

# What is purged here Squid asks for until it has the next digest, and its clients see nothing of it.
head -n 200 "$work/a" >"$work/purged"
tail -n +201 "$work/a" >"$work/kept"
sed 's/.*/url = "&"\noutput = "\/dev\/null"/' "$work/purged" >"$work/curl.conf"
curl -sS --max-time 60 -x "http://$proxy" -X PURGE -K "$work/curl.conf" -w '%{http_code}\n' >"$work/answers"
check "200 objects are purged" 200 "$(grep -c '^20' "$work/answers")"
ask_all "$squid" "$work/purged"
asked_in_vain | sort >"$work/vain"
check "the old digest still names what was purged" 200 "$(sort "$work/purged" | comm -12 - "$work/vain" | wc -l)"
within 20 "the digest is without it" tells_keys 1003

stop_squid
stop_proxy
: >"$work/access.log"
start_proxy "$settings"
digest_of "$proxy" ours || fail "who asks for the digest before the disk is read is sent away"
check "after a restart the digest lists what is on disk" 1000 "$(listed ours "$work/kept" | wc -l)"
check "and nothing else" 1003 "$(told ours 'keys, as its owner says')"
introduce
ask_all "$squid" "$work/a"
within 20 "Squid's log is written" squid_has_logged "$(wc -l <"$work/a")"
at_least "what Squid had from Reprise's disk" 99 "$(sibling_hits)" "$(listed ours "$work/kept" | wc -l)"
as_predicted "purged objects that Squid asked for" "$(asked_in_vain | wc -l)" 200 "$(told ours 'false positives')"

since=$(curl -sS --max-time 10 -o "$work/again" -w '%header{last-modified}' "http://$proxy/squid-internal-periodic/store_digest")
check "who has the digest is told that it is the same" "304 0" \
    "$(curl -sS --max-time 10 -o "$work/again" -w '%{http_code} %{size_download}' -H "If-Modified-Since: $since" \
        "http://$proxy/squid-internal-periodic/store_digest")"
check "the rate of its false hits is said" "$(told ours 'false positives')" \
    "$(curl -sS --max-time 5 "http://$admin/digest" | sed -n 's/^as Squids get it, false positives: //p')"
check "reprise-digest has the same from where it is served" "$(tail -n +2 "$work/ours.told")" \
    "$("$DIGEST" --squid "http://$proxy" | tail -n +2)"
# Squid's first digest of its new life may be made before it has read what is on its disk: the next comes in two seconds.
finds_what_squid_holds() {
    "$DIGEST" --squid "http://$squid" --url "$(head -n 1 "$work/held")" >"$work/theirs.told" 2>>"$work/digests.log"
}
within 30 "reprise-digest finds in Squid's digest what Squid holds" finds_what_squid_holds
stop_squid
stop_proxy
