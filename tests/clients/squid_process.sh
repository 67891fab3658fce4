# shellcheck shell=bash
# Real Squids, for scripts that have sourced harness.sh. Sourcing this makes $squid_dir, which Squid's user
# may write to, and $squid_hosts, the file of names it knows ("none", until a script names another).
PATH=$PATH:/usr/sbin:/sbin
needs curl squid

squid_dir=$work/squid
squid_hosts=none
mkdir "$squid_dir"
unprivileged=()
if ((EUID == 0)); then # Squid does not run as root
    chmod 711 "$work"
    chown 65534:65534 "$squid_dir"
    unprivileged=(--reuid=65534 --regid=65534 --clear-groups)
fi

# Of every one: files of its own, and nothing of the machine's or of the network.
squid_settings() {
    cat <<END_OF_SETTINGS
visible_hostname $1.invalid
access_log stdio:$squid_dir/$1.log squid
cache_log $squid_dir/$1.cache.log
cache_store_log none
pid_filename $squid_dir/$1.pid
coredump_dir $squid_dir
netdb_filename none
pinger_enable off
icp_port 0
dns_nameservers 127.0.0.1
hosts_file $squid_hosts
max_filedescriptors 1024
shutdown_lifetime 0 seconds
END_OF_SETTINGS
}

# squid_logged_once NAME PATTERN: one line of that Squid's log matches. It writes a line when the request has ended for it,
# which may be after its client has all: to be waited for.
squid_logged_once() {
    [[ $(grep -cE -- "$2" "$squid_dir/$1.log") == 1 ]]
}

# start_squid NAME LINES...: one that LINES, a command, prints settings for when it is told the port. Its
# address in $squid, its process in $squid_pid, its access log in $squid_dir/NAME.log.
start_squid() {
    local spare conf=$squid_dir/$1.conf
    for _ in 1 2 3 4 5; do
        # Squid wants to be told its port. The one that the system gave to a program that has ended
        # is free, as a rule.
        rm -f "$work/spare.port" "$squid_dir/$1.pid"
        start_origin spare
        spare=$port
        kill "$pid"
        wait "$pid" || true
        squid=127.0.0.1:$spare
        { "${@:2}" "$spare" && squid_settings "$1"; } >"$conf"
        if grep -q '^cache_dir' "$conf" && [[ ! -d $squid_dir/cache ]]; then
            setpriv "${unprivileged[@]}" --pdeathsig KILL squid -N -z -f "$conf" >>"$work/squid.log" 2>&1
        fi
        start "$1" setpriv "${unprivileged[@]}" --pdeathsig KILL squid -N -f "$conf"
        squid_pid=$pid
        while kill -0 "$squid_pid" 2>/dev/null; do
            if (exec 3<>"/dev/tcp/127.0.0.1/$spare") 2>/dev/null; then
                return
            fi
            sleep 0.05
        done
        echo "Squid did not start with port $spare"
    done
    fail "Squid does not start as $1"
}
stop_squid() {
    kill -TERM "$squid_pid"
    wait "$squid_pid" || true
}
