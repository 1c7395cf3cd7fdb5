#!/bin/sh
# Brings the real tools that the tests run: Prometheus, Alertmanager, Chromium, PostgreSQL and systemd's verifier of units,
# and axe-core for the page.
# As root on Debian or Ubuntu they come through apt, and no service of theirs is started; elsewhere the missing ones
# are named and the tests that need them skip. With CI=true a missing tool is an error: nothing may skip there.
set -eu

missing() {
    command -v prometheus >/dev/null && command -v promtool >/dev/null || echo prometheus
    { command -v prometheus-alertmanager || command -v alertmanager; } >/dev/null && command -v amtool >/dev/null ||
        echo prometheus-alertmanager
    command -v chromium >/dev/null || echo chromium
    command -v npm >/dev/null || echo npm
    command -v systemd-analyze >/dev/null || echo systemd
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || echo postgresql
}

# axe-core comes once, in the version of the lock file.
axe() (
    cd "$(dirname "$0")/collector/pages/axe"
    cmp -s node_modules/axe-core/.lock package-lock.json && return
    if command -v npm >/dev/null && npm ci --silent; then
        cp package-lock.json node_modules/axe-core/.lock
    else
        echo "axe-core is not installed, and its tests skip: npm ci in $PWD" >&2
        [ "${CI:-}" != true ]
    fi
)

want=$(missing)
if [ -z "$want" ]; then
    axe
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing for the tests, through apt:" $want
    # 101 is policy-rc.d's word for "do not start it"; a policy that is already there stands.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT INT TERM
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    # PostgreSQL's package would also make and keep a cluster; the tests make their own.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    if ! { apt-get update && apt-get install -y --no-install-recommends $want; } >"$log" 2>&1; then
        tail -n 20 "$log" >&2
    fi
    rm -f "$log"
    want=$(missing)
fi
if [ -n "$want" ]; then
    echo "not installed, and their tests skip:" $want "(on Debian: apt-get install" $want")" >&2
    [ "${CI:-}" != true ] || exit 1
fi
axe
