# SPDX-License-Identifier: MIT
# An upgrade that is cut off: by SIGKILL at many points, by a power cut that loses what was not synced.
# Afterwards the kernel has a whole set of modules, and apt, run again, finishes.
# shellcheck shell=bash
# shellcheck disable=SC2154

total=0 switch=0 swap=0

# namespace ARGUMENT...: interrupt.py as process 1 of its own processes, with its own /proc.
namespace() { unshare --mount --pid --fork --kill-child --mount-proc python3 "$here/interrupt.py" "$@"; }
upgrade_command() {
    printf '%s\n' chroot "$C" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        apt-get -y -o Dpkg::Use-Pty=0 install nvidia-p2p-dkms
}
# upgrade MODE ARGUMENT...: that of the root $C, under interrupt.py.
upgrade() {
    local command
    mapfile -t command < <(upgrade_command)
    testsuccess namespace "$@" "${command[@]}"
}
# interrupted MODE N [SCRIPT]: cut off at change N; $hit names it.
interrupted() {
    upgrade "$@"
    hit=$(printf '%s\n' "$OUTPUT" | grep -m 1 '^change ' || true)
    testmatch '^change ' "$hit" "point $2"
}
# A root with version 1 installed, and version 2 in an archive that its apt has read.
to_upgrade() {
    # shellcheck disable=SC2086
    root "$1" $READY
    # overlayfs exchanges folders that are of the upper layer alone, as any folder of a disk.
    cp -a "$C/lib/modules/$K/updates/dkms" "$C/lib/modules/$K/updates/copy"
    rm -r "$C/lib/modules/$K/updates/dkms"
    mv "$C/lib/modules/$K/updates/copy" "$C/lib/modules/$K/updates/dkms"
}
make_ready() {
    fresh ready
    mkdir -p "$C/debs"
    cp "$DEBS/$(dkms_deb "$V2-1")" "$DEBS/$(dkms_deb "$V1-1")" "$DEBS/$(pin_deb "$V1-1")" "$C/debs/"
    (cd "$C/debs" && dpkg-scanpackages --multiversion . >Packages 2>/dev/null)
    rm -rf "$C"/etc/apt/sources.list.d/* "$C"/var/lib/apt/lists/*
    echo 'deb [trusted=yes] file:/debs ./' >"$C/etc/apt/sources.list"
    testsuccess inside apt-get -q -o APT::Sandbox::User=root update
    READY="$UPPER $INSTALLED"
    leave
}

# What docs/fleet.md tells the administrator to type.  dpkg refuses a package that was cut off while it was
# unpacked (iUR), and apt refuses everything before dpkg's journal is read: so both, in this order.
repair() {
    inside dpkg --configure -a || true
    inside apt-get -y -o Dpkg::Use-Pty=0 -f install --reinstall nvidia-p2p-dkms
}
# What may be left in the end: the new version and nothing else.
leftovers() {
    (cd "$C" && find usr/src var/lib/dkms/nvidia-p2p var/lib/nvidia-p2p/built -mindepth 1 -maxdepth 1 \( -name 'nvidia-p2p*' -o -path '*p2p*/*' \) \
        ! -name "*$V2-1" ! -name "kernel-$K-x86_64" ! -name '*99.*'
        find lib/modules var/lib/nvidia-p2p \( -name '.*nvidia-p2p*' -o -name '*.new' \))
}
after_cut() { # WHERE
    testsuccess whole "$K" "$V1" "$V2"
    _found=$OUTPUT
    testsuccess repair
    testequal ii "$(package_state nvidia-p2p-dkms)" "state after $1"
    testequal '' "$(inside dpkg --audit)" "dpkg --audit after $1"
    testsuccess whole "$K" "$V2"
    testequal '' "$(leftovers)" "left after $1"
    testmatch "${V2//+/\\+}-1.*installed" "$(inside dkms status 2>&1)" "dkms status after $1"
}

# point I OF: the first half of the points lies before the modules are switched, where nearly all of the
# time goes; the other half is after it begins, where the dangerous moments are.
# The last three of many, and the last of few, are where the folders change places.
point() {
    local half=$(($2 / 2))
    if [ "$1" -gt $(($2 > 9 ? $2 - 3 : $2 - 1)) ]; then echo $((swap + $1 - ($2 > 9 ? $2 - 1 : $2)));
    elif [ "$1" -le "$half" ]; then echo $((switch * $1 / (half + 1))); else
        echo $((switch + (total - switch) * ($1 - half - 1) / ($2 - half) + 2))
    fi
}

interruption_stories() {
    local points mode n i hit
    with_module "$1"
    story "$LABEL: an upgrade under the eye of strace"
    make_ready
    to_upgrade cut
    upgrade count "/updates/dkms|RENAME_EXCHANGE"
    read -r total switch swap <<<"$(printf '%s\n' "$OUTPUT" | tail -n 1)"
    testsuccess whole "$K" "$V2"
    testsuccess test "$switch" -gt 100 -a "$switch" -lt "$swap" -a "$swap" -lt "$total"
    printf 'fleet: an upgrade makes %s changes of the file system, the new modules are laid out from %s on and in place at %s\n' \
        "$total" "$switch" "$swap"

    points=20
    [ -z "$slice" ] || points=1
    story "$LABEL: SIGKILL at $points points of an upgrade"
    for i in $(seq "$points"); do
        n=$(point "$i" "$points")
        # Everything at once, as the kernel does when memory is out, and one process alone.
        mode=$(test $((i % 2)) -eq 1 && echo all || echo one)
        to_upgrade cut
        interrupted "$mode" "$n"
        after_cut "point $n, $mode, $hit"
        printf '  %2d %s %s\n' "$i" "$mode" "$hit"
    done
    leave

    [ -n "$slice" ] || fallback_story
    power_stories
}

fallback_story() {
    local n hit _
    story "$LABEL: SIGKILL where the file system cannot exchange folders"
    # shellcheck disable=SC2086
    root cut $READY
    upgrade count '.ko.nvidia-p2p", "/'
    read -r _ n <<<"$(printf '%s\n' "$OUTPUT" | tail -n 1)"
    testsuccess test "$n" -gt 100
    # shellcheck disable=SC2086
    root cut $READY
    # The third of five renames: the process that was killed there is run again at once.
    interrupted one $((n + 2))
    testmatch '^change .*rename.*\.ko\.nvidia-p2p' "$hit" "point $n"
    testsuccess whole "$K" "$V2"
    after_cut "$hit"
    leave
}

power_stories() {
    local points=5 i n pristine=$P2P_WORK/pristine.img run=$P2P_WORK/run.img crash=$P2P_WORK/crash.img at=$P2P_WORK/disk hit
    story "$LABEL: power loss at $points points of an upgrade, unsynced data is lost"
    if slow 'once for each point'; then return 0; fi
    if ! [ -e /dev/loop-control ]; then skip "needs loop devices, which this kernel has not"; return 0; fi
    to_upgrade disk
    rm "$C/etc/dpkg/dpkg.cfg.d/tests"
    rm -f "$pristine"
    truncate -s 3G "$pristine"
    mkdir -p "$at"
    # Metadata goes to the disk when somebody syncs, and a rename does not carry the data with it: what a
    # file system may do at worst.
    local options=loop,commit=600,noauto_da_alloc,noatime
    unmount "$C/proc"
    mkfs.ext4 -q -m 0 -E lazy_itable_init=1,lazy_journal_init=1 -d "$C" "$pristine" >>"$_log" 2>&1 || die 1 "$pristine: mkfs.ext4 failed; see $_log"
    mount -t proc proc "$C/proc"
    leave
    for i in $(seq "$points"); do
        n=$(point "$i" "$points")
        cp --sparse=always "$pristine" "$run"
        mount -o "$options" "$run" "$at"
        mount -t proc proc "$at/proc"
        C=$at
        interrupted power "$n" "cp --sparse=always '$run' '$crash'"
        unmount "$at/proc"
        unmount "$at"
        # The machine boots: the journal is replayed.
        mount -o "$options" "$crash" "$at"
        mount -t proc proc "$at/proc"
        after_cut "power loss at $hit"
        printf '  %2d power %s\n' "$i" "$hit"
        unmount "$at/proc"
        unmount "$at"
    done
    C=''
    rm -f "$pristine" "$run" "$crash"
}
