# SPDX-License-Identifier: MIT
# What every pipeline step shares.  Source it; it runs nothing.
# shellcheck shell=bash
set -eu

P2P_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
P2P_OUT=${P2P_OUT:-$P2P_TOP/out}
# shellcheck disable=SC2034 # for those who source this
P2P_DEFAULT_DRIVER=555.58.02
# changelog_time FILE: of its newest entry, seconds since 1970.
changelog_time() { date +%s -d "$(sed -n '/^ -- /{s/^ -- .*>  *//p;q}' "$1")"; }

# Same input, same bytes: times come from the changelog, not from the checkout or the clock.
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(changelog_time "$P2P_TOP/debian/changelog")}"

# content_of PATH...: one word for what the files below are, tracked or new; output folders are not.
content_of() {
    (cd "$P2P_TOP" && { git ls-files -z --cached --others --exclude-standard -- "$@" | sort -zu | xargs -0r sha256sum; } 2>/dev/null |
        sha256sum | cut -c1-24)
}

# die STATUS WHAT: one line on stderr that says what failed, on what, and what to do.
die() {
    _status=$1
    shift
    printf '%s: error: %s\n' "${0##*/}" "$*" >&2
    exit "$_status"
}

say() { printf '%s: %s\n' "${0##*/}" "$*"; }

# with_progress LOG REGEX WHAT COMMAND...: run with its output in LOG; every ten seconds
# a line with the seconds and how many lines of LOG match REGEX so far.
with_progress() {
    local log=$1 regex=$2 what=$3 t0=$SECONDS status=0
    shift 3
    "$@" >"$log" 2>&1 &
    while sleep 0.5 && kill -0 $! 2>/dev/null; do
        if [ $((SECONDS - t0)) -ge "${next:=10}" ]; then
            say "$((SECONDS - t0)) s, $(grep -cE "$regex" "$log" || true) $what"
            next=$((SECONDS - t0 + 10))
        fi
    done
    unset next
    wait $! || status=$?
    return "$status"
}

# build_cmake BUILD [CMAKE OPTION...]: configure and compile, logs beside BUILD; what went wrong is shown.
build_cmake() {
    local build=$1 logs
    logs=$(dirname "$1")
    shift
    cmake -S "$P2P_TOP" -B "$build" "$@" >"$logs/cmake.log" 2>&1 || { tail -n 20 "$logs/cmake.log" >&2; return 1; }
    with_progress "$logs/ninja.log" '^\[' "files compiled and linked" ninja -C "$build" ||
        { grep -E -A12 'FAILED|error:' "$logs/ninja.log" | head -n 40 >&2; return 1; }
}

# release_row VERSION: its line of driver/releases.tsv, or nothing.
release_row() { awk -F '\t' -v v="$1" '!/^#/ && $1 == v' "$P2P_TOP/driver/releases.tsv"; }

# closed_folder DIR: the first folder on the way to DIR, or DIR, that others may not enter; nothing when they can read it.
closed_folder() {
    local at=$1 closed='' bits=5
    while :; do
        [ $((0$(stat -c %a "$at") & bits)) -eq "$bits" ] || closed=$at
        [ "$at" != / ] || break
        at=$(dirname "$at")
        bits=1
    done
    printf '%s\n' "$closed"
}

# URI of the Debian mirror that this machine's apt uses (first enabled deb entry
# whose path is not a security archive).  On Ubuntu: its own archive.
apt_mirror() {
    apt-get indextargets --format '$(SITE) $(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
        awk '$3 !~ /security/ && $2 ~ /\/(debian|ubuntu)\/?$/ { print $2; exit }'
}

# URI of the security archive, or nothing.
apt_security_mirror() {
    apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
        awk '$2 ~ /security/ { print $1; exit }'
}

# package_of A|B: the one that apt knows here; the first when it knows none.
package_of() {
    local n
    for n in ${1//|/ }; do
        if apt-cache show "$n" >/dev/null 2>&1; then printf '%s\n' "$n"; return 0; fi
    done
    printf '%s\n' "${1%%|*}"
}

# ensure_packages PKG...: install what is missing, say what, never upgrade or remove.
# A|B is one package under the names it has on different systems.
ensure_packages() {
    _missing=''
    for _p in "$@"; do
        # shellcheck disable=SC2086
        dpkg-query -W -f '${db:Status-Status}\n' ${_p//|/ } 2>/dev/null | grep -qx installed || _missing="$_missing $_p"
    done
    [ -n "$_missing" ] || return 0
    # apt's lists may be empty or old on a fresh machine.
    [ "$(id -u)" -ne 0 ] || apt-get -qq update >/dev/null || die 1 "apt-get update failed; check the network and /etc/apt/sources.list*"
    _names=''
    for _p in $_missing; do _names="$_names $(package_of "$_p")"; done
    [ "$(id -u)" -eq 0 ] || die 1 "missing packages:$_names; run as root: apt-get install$_names"
    say "installing:$_names"
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install -y --no-install-recommends --no-upgrade --no-remove \
        $_names >"${TMPDIR:-/tmp}/p2p-apt.$$" 2>&1 ||
        { tail -n 5 "${TMPDIR:-/tmp}/p2p-apt.$$" >&2; die 1 "apt-get install failed for:$_names"; }
    rm -f "${TMPDIR:-/tmp}/p2p-apt.$$"
}

# debian_sources SUITE: apt sources of one suite from this machine's own mirror; X-backports is X and its backports.
debian_sources() {
    _m=$(apt_mirror) _s=$(apt_security_mirror)
    [ -n "$_m" ] || die 1 "no Debian mirror found in /etc/apt; add one and run apt-get update"
    case $_m in *ubuntu*)
        printf 'deb %s %s main universe\n' "$_m" "$1" "$_m" "$1-updates"
        return 0
        ;;
    esac
    printf 'deb %s %s main\n' "$_m" "${1%-backports}"
    case $1 in
    sid | experimental) return 0 ;;
    *-backports) printf 'deb %s %s main\n' "$_m" "$1" ;;
    esac
    [ -z "$_s" ] || printf 'deb %s %s-security main\n' "$_s" "${1%-backports}"
}

# make_chroot SUITE DIR [PKG,PKG...]: a minimal Debian root with extra packages; services never start in it.
# Needs root and mmdebstrap.
make_chroot() {
    debian_sources "$1" | mmdebstrap --quiet --variant=minbase --include="${3:-ca-certificates}" \
        --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
        --skip=cleanup/apt/lists \
        --customize-hook='printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d"; chmod 755 "$1/usr/sbin/policy-rc.d"' \
        "${1%-backports}" "$2" - || die 1 "mmdebstrap of $1 into $2 failed; see the lines above"
}

# build_root SUITE DIR: such a root with dkms, headers and a compiler, made once and then kept; who
# asks for it meanwhile waits.
build_root() {
    mkdir -p "$(dirname "$2")"
    (
        flock 9
        [ ! -e "$2/.complete" ] || exit 0
        rm -rf --one-file-system "$2"
        say "chroot of $1"
        make_chroot "$1" "$2" dkms,linux-headers-amd64,gcc,make,ca-certificates 9>&-
        touch "$2/.complete"
    ) 9>"$2.lock" || exit
}

# folder_for_roots: where a chroot of many small files is made fastest: in memory, if there is plenty.
folder_for_roots() {
    if [ -z "${TMPDIR:-}" ] && [ "$(df -m --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 6000 ] &&
        [ "$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)" -gt 10000 ]; then
        echo /dev/shm
    else
        echo "${TMPDIR:-/tmp}"
    fi
}

# unmount_below DIR: innermost first.  Status 1 if something stays, through which rm -rf would reach the host.
unmount_below() {
    awk -v r="$1/" 'index($2, r) == 1 { print $2 }' /proc/mounts | sort -r | while read -r _m; do
        umount "$_m" || umount -l "$_m"
    done
    if grep -q " $1/" /proc/mounts; then
        printf '%s: %s still has mounts; kept\n' "${0##*/}" "$1" >&2
        return 1
    fi
}
