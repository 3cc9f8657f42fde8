# SPDX-License-Identifier: MIT
# What QEMU boots: one base archive for all stories, and a small one for each.
# shellcheck shell=bash

# _with_libraries ROOT PROGRAM...: copy programs and the shared libraries they load.
_with_libraries() {
    local root=$1 program library
    shift
    for program in "$@"; do
        install -D "$program" "$root/usr/bin/${program##*/}"
        ldd "$program" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
            [ -e "$root$library" ] || install -D "$library" "$root$library"
        done
    done
}

_pack() { (cd "$1" && find . -print0 | LC_ALL=C sort -z | cpio --quiet -0 -o -H newc -R 0:0) >"$2"; }

# image_base RELEASE KERNEL-DIR MODULES-DIR OUT PROGRAM...: busybox, kmod, pciutils, the programs,
# and the kernel's own modules that the stories load (nouveau, pci-stub, and what these need).
image_base() {
    local release=$1 kernel=$2 modules=$3 out=$4 root name file applet
    shift 4
    root=$(mktemp -d "$P2P_WORK/base.XXXXXX")
    mkdir -p "$root"/{bin,sbin,usr/sbin,proc,sys,dev,run,tmp,etc/modprobe.d,var/lib,guest}
    mkdir -p "$root/lib/modules/$release"
    install /bin/busybox "$root/bin/busybox"
    for applet in $(/bin/busybox --list); do
        case $applet in busybox | insmod | modprobe | lsmod | rmmod | depmod | modinfo | lspci) continue ;; esac
        ln -s busybox "$root/bin/$applet"
    done
    _with_libraries "$root" "$(command -v kmod)" "$(command -v lspci)" "$(command -v setpci)" "$@"
    for name in insmod modprobe lsmod rmmod depmod modinfo; do ln -s ../usr/bin/kmod "$root/sbin/$name"; done
    install -D -m 644 /usr/share/misc/pci.ids "$root/usr/share/misc/pci.ids"
    # depmod wants the lists; the copy of the kernel's modules is the few that stories name.
    cp "$kernel/lib/modules/$release"/modules.{builtin,order} "$root/lib/modules/$release/"
    cp "$kernel/lib/modules/$release/modules.builtin.modinfo" "$root/lib/modules/$release/" 2>/dev/null || :
    [ -e "$kernel/lib/modules/$release/modules.dep" ] || depmod -b "$kernel" "$release"
    for name in nouveau pci-stub; do
        modprobe -d "$kernel" -S "$release" --show-depends "$name" 2>/dev/null
    done | awk '$1 == "insmod" { print $2 }' | sort -u | while read -r file; do
        install -D -m 644 "$file" "$root${file#"$kernel"}"
    done
    install -m 755 "$P2P_TOP/tests/vm/guest/init" "$root/init"
    install -m 644 "$P2P_TOP/tests/vm/guest/lib.sh" "$modules"/*.ko "$root/guest/"
    depmod -b "$root" "$release"
    _pack "$root" "$out"
    rm -rf "$root"
}
