# SPDX-License-Identifier: MIT
# Debian's own tests of packages: autopkgtest of both source packages, piuparts.
# shellcheck shell=bash
# shellcheck disable=SC2154

autopkgtest_stories() {
    local tools
    base "$1"
    ensure_packages autopkgtest
    story "$1: autopkgtest of the driver package, with tiny modules"
    root autopkgtest "$BASE"
    toys_source
    testsuccess autopkgtest -q "$DEBS/$(dkms_deb "$V1-1")" "$DEBS/$(pin_deb "$V1-1")" "$P2P_WORK/toy/" -- chroot "$C"
    leave

    story "$1: autopkgtest of the tools package"
    tools=$(find "${P2P_DEBS:-$P2P_OUT/debs}" -maxdepth 1 -name 'nvidia-p2p-tools_*_amd64.deb' 2>/dev/null | sort -V | tail -n 1)
    if [ -z "$tools" ]; then skip "no nvidia-p2p-tools_*.deb in ${P2P_DEBS:-$P2P_OUT/debs}; run ci/pipeline"; return 0; fi
    root autopkgtest "$BASE"
    mkdir -p "$P2P_WORK/tools/debian"
    cp -r "$P2P_TOP"/debian/{control,changelog,tests} "$P2P_WORK/tools/debian/"
    testsuccess autopkgtest -q "$tools" "$P2P_WORK/tools/" -- chroot "$C"
    leave
}

# The source that the packages of version 1 are made of.
toys_source() {
    DEBS=$P2P_WORK/debs
    toy "$UP" 1
}

piuparts_stories() {
    local debs=() f
    base "$1"
    ensure_packages piuparts
    # piuparts copies a root and calls apt in it; ours is plain Debian of this machine's mirror.
    for f in "${P2P_DEBS:-$P2P_OUT/debs}"/nvidia-p2p-{tools,archive-keyring}_*.deb; do
        case $f in *'*'*) continue ;; esac
        debs+=("$f")
    done
    story "$1: piuparts of the driver package and its pin, with tiny modules"
    DEBS=$P2P_WORK/debs
    # dkms 3 makes the key that it signs with at the first build of any module, and keeps it.
    # shellcheck disable=SC2046
    testsuccess piuparts --existing-chroot="$BASE" --distribution="$1" --no-upgrade-test --warn-on-debsums-errors --skip-logrotatefiles-test \
        --ignore=/var/lib/dkms/mok.key --ignore=/var/lib/dkms/mok.pub \
        $(userland_debs "$UP" | sed "s|^|$DEBS/|") "$DEBS/$(dkms_deb "$V1-1")" "$DEBS/$(pin_deb "$V1-1")"
    story "$1: piuparts of tools and keyring"
    if [ ${#debs[@]} -eq 0 ]; then skip "no tools in ${P2P_DEBS:-$P2P_OUT/debs}; run ci/pipeline"; return 0; fi
    testsuccess piuparts --existing-chroot="$BASE" --distribution="$1" --no-upgrade-test --skip-logrotatefiles-test "${debs[@]}"
}
