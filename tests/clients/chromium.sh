#!/usr/bin/env bash
# Chromium, headless: a page with pictures through the proxy, three times with a new profile each,
# then through CONNECT. What the screenshots show is read back by the browser itself (look.html).
# shellcheck source=harness.sh
. "$(dirname "$0")/harness.sh"
# shellcheck source=browser.sh
. "$here/browser.sh"
needs chromium openssl

site=$work/site
cp -r "$here/../data/site" "$site"
start_pages_and_secret --root "$site"
start_proxy '' "${secret#*:}"

# browse_anew OPTION... URL: in a profile of its own.
browse_anew() {
    local profile
    profile=$(mktemp -d "$work/profile.XXXXXX")
    browse "$profile" --hide-scrollbars --window-size=600,300 --force-device-scale-factor=1 \
        --ignore-certificate-errors "$@" 2>>"$work/chromium.log"
    rm -rf "$profile"
}
through=("--proxy-server=http://$proxy" '--proxy-bypass-list=<-loopback>')

# look: what the last screenshot shows, by a browser that asks the origin itself.
look() {
    browse_anew --no-proxy-server --virtual-time-budget=5000 --dump-dom "http://$pages/look.html" |
        sed -n 's/.*<p id="colours">\(.*\)<\/p>.*/\1/p'
}
colours="200,0,0 0,160,0 0,0,220 noise"

for number in 1 2 3; do
    browse_anew "${through[@]}" --screenshot="$site/screenshot.png" "http://$pages/index.html"
    for picture in red green blue noise; do
        most=$((number < 2 ? number : 2))
        check "load $number: the origin sent $picture.png $most times" $most "$(asked pages "^GET /$picture\.png 200 ")"
    done
    check "load $number: the pictures are on the screen" "$colours" "$(look)"
done

rm "$site/screenshot.png"
browse_anew "${through[@]}" --screenshot="$site/screenshot.png" "https://$secret/index.html"
check "through CONNECT: the pictures are on the screen" "$colours" "$(look)"
check "through CONNECT: the origin sent them" 1 "$(asked secret '^GET /noise\.png 200 ')"
stop_proxy
