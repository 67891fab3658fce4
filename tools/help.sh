# shellcheck shell=bash
# Sourced first by the scripts of this folder: for -h and --help they say their first comment, which is their page, and do nothing.
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit
fi
