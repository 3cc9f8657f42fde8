# SPDX-License-Identifier: MIT
# The vocabulary of the repository stories: tiny packages, archives under one
# loopback server, and throw-away apt roots that read them.
# shellcheck shell=bash

repo_setup() {
    WWW=$P2P_WORK/www DEBS=$P2P_WORK/debs KEYS=$P2P_WORK/k
    mkdir -p "$WWW" "$DEBS" "$KEYS"
    unset http_proxy https_proxy GNUPGHOME SOURCE_DATE_EPOCH
    python3 "$P2P_TOP/tests/repo/server.py" "$WWW" "$P2P_WORK/port" &
    SERVER=$!
    for name in old new rogue; do "$P2P_TOP/apt-repo/make-test-key" "$KEYS/$name" >"$KEYS/$name.fpr"; done
    for _ in $(seq 100); do
        [ ! -s "$P2P_WORK/port" ] || break
        sleep 0.1
    done
    URL=http://127.0.0.1:$(cat "$P2P_WORK/port")
}

repo_cleanup() {
    [ -z "${SERVER:-}" ] || kill "$SERVER" 2>/dev/null
    for name in old new rogue sub; do
        [ ! -d "$KEYS/$name" ] || gpgconf --homedir "$KEYS/$name" --kill all
    done
}

# deb VERSION [NAME [SECTION [PAYLOAD]]]: path of a package, made once.
deb() {
    local version=$1 name=${2:-p} section=${3:-main/kernel} payload=${4:-$1} file
    [ "$section" != main/kernel ] || section=kernel
    file=$DEBS/${name}_${version}_${section//\//-}_$payload.deb
    if [ ! -e "$file" ]; then
        local tree=$DEBS/tree
        rm -rf "$tree"
        mkdir -p "$tree/DEBIAN" "$tree/usr/share/$name"
        printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: T <t@example.org>\nSection: %s\nDescription: test\n' \
            "$name" "$version" "$section" >"$tree/DEBIAN/control"
        printf '%s\n' "$payload" >"$tree/usr/share/$name/payload"
        dpkg-deb --root-owner-group -Zgzip -b "$tree" "$file" >/dev/null
    fi
    printf '%s\n' "$file"
}

# publish REPO KEY FILE...: into suite jammy, unless $SUITE says otherwise.
publish() {
    local repo=$1 key=$2
    shift 2
    "$P2P_TOP/apt-repo/publish" --repo "$WWW/$repo" --suite "${SUITE:-jammy}" --key "$KEYS/$key" "$@"
}

# tool COMMAND REPO KEY [OPTION...]: any other command of apt-repo/.
tool() {
    local command=$1 repo=$2 key=$3
    shift 3
    "$P2P_TOP/apt-repo/$command" --repo "$WWW/$repo" --key "$KEYS/$key" "$@"
}

# A fresh archive $1 whose suite jammy holds p 1.0, copied from one made once.
base() {
    [ -d "$P2P_WORK/base" ] || {
        publish base-made old "$(deb 1.0)" >/dev/null
        mv "$WWW/base-made" "$P2P_WORK/base"
    }
    rm -rf "${WWW:?}/$1"
    cp -a "$P2P_WORK/base" "$WWW/$1"
}

# client NAME REPO [KEY...]: a new apt root that trusts the keys (default: old) and Contents too.
client() {
    local name=$1 repo=$2
    shift 2
    R=$P2P_WORK/client/$name
    rm -rf "$R"
    mkdir -p "$R"/{lists/partial,cache/archives/partial,etc/sources.list.d,etc/preferences.d,etc/apt.conf.d,root/var/lib/dpkg/{info,updates}}
    : >"$R/root/var/lib/dpkg/status"
    : >"$R/root/var/lib/dpkg/available"
    for key in "${@:-old}"; do cat "$KEYS/$key/public.asc"; done >"$R/etc/keyring.asc"
    printf '%s\n' 'Types: deb' "URIs: $URL/$repo" "Suites: ${SUITE:-jammy}" 'Components: main' \
        'Architectures: amd64' "Signed-By: $R/etc/keyring.asc" >"$R/etc/sources.list.d/p2p.sources"
    cat >"$R/apt.conf" <<A
Dir::State "$R"; Dir::State::lists "$R/lists"; Dir::State::status "$R/root/var/lib/dpkg/status";
Dir::Cache "$R/cache"; Dir::Etc "$R/etc"; Dir::Log "$R";
DPkg::Options { "--root=$R/root"; "--log=$R/dpkg.log"; "--force-not-root"; };
APT::Sandbox::User "root"; APT::Architecture "amd64"; APT::Architectures { "amd64"; };
Acquire::Languages "none"; Acquire::http::Proxy "DIRECT"; Acquire::Retries "0";
APT::Update::Error-Mode "any";
Acquire::IndexTargets::deb::Contents-deb {
  MetaKey "\$(COMPONENT)/Contents-\$(ARCHITECTURE)"; ShortDescription "Contents-\$(ARCHITECTURE)";
  Description "\$(RELEASE)/\$(COMPONENT) \$(ARCHITECTURE) Contents (deb)"; };
A
}

# apt R COMMAND...: apt-get, apt-cache ... with the root R; in $APT_CHROOT when that is set.
apt_in() {
    local root=$1
    shift
    if [ -n "${APT_CHROOT:-}" ]; then
        # shellcheck disable=SC2016
        chroot "$APT_CHROOT" env LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "APT_CONFIG=$root/apt.conf" \
            sh -c 'cd "$0" && exec "$@"' "$root" "$@"
    else
        (cd "$root" && LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive APT_CONFIG=$root/apt.conf "$@")
    fi
}

update() { apt_in "$R" apt-get update; }
candidate() { apt_in "$R" apt-cache policy p | awk '/Candidate:/ { print $2 }'; }
installed() { dpkg-query --admindir="$R/root/var/lib/dpkg" -W -f '${Version}' p; }

# A machine that has p $1 without having installed it, for apt-get --simulate.
has() {
    printf 'Package: p\nStatus: install ok installed\nVersion: %s\nArchitecture: amd64\nMaintainer: T <t@example.org>\nSection: kernel\nDescription: test\n' "$1" >"$R/root/var/lib/dpkg/status"
}

# tamper REPO NAME: change one byte in every file of the index NAME (Packages or Contents),
# under all its names.
tamper() {
    python3 - "$WWW/$1/dists/jammy" "$2" <<'P'
import os, re, sys
top, name = sys.argv[1:]
text = open(os.path.join(top, "InRelease")).read()
digests = {d for d, p in re.findall(r"^ ([0-9a-f]+) +\d+ (\S+)$", text, flags=re.M) if "/" + name in p}
changed = 0
for folder, _, names in os.walk(top):
    for n in names:
        path = os.path.join(folder, n)
        if n in digests or n.startswith(name):
            data = bytearray(open(path, "rb").read())
            data[len(data) // 2] ^= 1
            open(path, "wb").write(data)
            changed += 1
assert changed >= 9, changed
P
}

# sign_release REPO KEY: sign what is in Release, as somebody with that key would.
sign_release() {
    local d=$WWW/$1/dists/jammy
    gpg --homedir "$KEYS/$2" --batch --yes --quiet --digest-algo SHA512 --clearsign -o "$d/InRelease" "$d/Release"
    gpg --homedir "$KEYS/$2" --batch --yes --quiet --digest-algo SHA512 --armor --detach-sign -o "$d/Release.gpg" "$d/Release"
}
