# SPDX-License-Identifier: MIT
# The vocabulary of the fleet stories: throw-away Debian roots that are reset in no time, our driver
# packages with five tiny modules in the place of NVIDIA's, and kernels to install.
# shellcheck shell=bash
# shellcheck disable=SC2034 # for the files that source this

BRANCH=550
# What is under test, by dkms of a suite.
declare -A DKMS_OF=([bullseye]='dkms 2.8.4' [bookworm]='dkms 3.0.10' [trixie]='dkms 3.2.2')
declare -A APT_OF=([bullseye]='apt 2.2' [bookworm]='apt 2.6' [trixie]='apt 3.0')
C='' UPPER='' DEBS=''

cleanup() { unmount_below "$P2P_WORK" || P2P_KEEP=1; }

# base SUITE: a root with dkms, headers and a compiler; shared with tests/package by $P2P_CHROOTS.
base() {
    BASE=${P2P_CHROOTS:-$P2P_WORK}/base-$1
    build_root "$1" "$BASE"
}

# root NAME LOWER...: enter a fresh root C over these folders, the newest first.  What it writes
# goes to $UPPER, which can be one of the folders of a later root.
root() {
    local name=$1 d=$P2P_WORK/roots/$1 lower
    shift
    leave
    rm -rf --one-file-system "$d"
    mkdir -p "$d/upper" "$d/work" "$d/root"
    lower=$(IFS=:; printf '%s' "$*")
    mount -t overlay -o "lowerdir=$lower,upperdir=$d/upper,workdir=$d/work" "p2p-$name" "$d/root" ||
        die 1 "$d: no overlay can be mounted there; set TMPDIR to a folder on ext4, xfs or tmpfs"
    C=$d/root UPPER=$d/upper
    mount -t proc proc "$C/proc"
    # Nothing of a throw-away root has to survive a power cut, except where a story says so.
    printf 'force-unsafe-io\n' >"$C/etc/dpkg/dpkg.cfg.d/tests"
}
leave() {
    [ -n "$C" ] || return 0
    unmount "$C/proc"
    unmount "$C"
    C=''
}
# The last process of a root may need a moment to let go of it.
unmount() {
    local n
    for n in $(seq 100); do
        if umount "$1" 2>/dev/null; then return 0; fi
        sleep 0.2
    done
    die 1 "$1: cannot be unmounted: $(umount "$1" 2>&1; fuser -vm "$1" 2>&1 | tail -n 3 | tr '\n' ' ')"
}

# inside COMMAND...: run in the current root with a plain environment.
inside() {
    chroot "$C" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
# apt ARGUMENT...: apt-get; what names a file in $DEBS is brought along.
apt() {
    local a arguments=()
    for a in "$@"; do
        if [ -e "$DEBS/$a" ]; then
            mkdir -p "$C/debs"
            cp "$DEBS/$a" "$C/debs/"
            a=/debs/$a
        fi
        arguments+=("$a")
    done
    inside apt-get -y -o Dpkg::Use-Pty=0 --no-install-recommends --allow-downgrades "${arguments[@]}"
}

# deb NAME VERSION [FIELD...]: a package that holds nothing, or what $TREE names.
deb() {
    local name=$1 version=$2 tree=${TREE:-$P2P_WORK/tree}
    shift 2
    [ -n "${TREE:-}" ] || rm -rf "$tree"
    mkdir -p "$tree/DEBIAN"
    {
        printf 'Package: %s\nVersion: %s\nArchitecture: amd64\nMaintainer: Tests <tests@example.org>\n' "$name" "$version"
        [ $# -eq 0 ] || printf '%s\n' "$@"
        printf 'Description: stand-in\n'
    } >"$tree/DEBIAN/control"
    dpkg-deb --root-owner-group -Zgzip -z1 -b "$tree" "$DEBS/${name}_${version}_amd64.deb" >/dev/null
}

# userland UP: NVIDIA's user space of one release, as far as our packages name it.
USERLAND="libnvidia-compute-$BRANCH nvidia-utils-$BRANCH nvidia-kernel-common-$BRANCH"
userland() { for n in $USERLAND; do deb "$n" "$1-0ubuntu1" "Provides: ${n%-"$BRANCH"}"; done; }
userland_debs() { for n in $USERLAND; do printf '%s_%s-0ubuntu1_amd64.deb\n' "$n" "$1"; done; }

# toy UP LEVEL [EDIT]: our real driver packages, with all their scripts, made from debian/driver by its
# own rules; but of a source whose five modules compile in seconds.  EDIT is a shell line that is
# run in the source to break it.
toy() {
    local up=$1 level=$2 version=$1+p2p$2-1 d=$P2P_WORK/toy f m
    rm -rf "$d"
    mkdir -p "$d/kernel-open/nvidia" "$d/kernel-open/nvidia-modeset" "$d/kernel-open/nvp2p" "$d/src/nvidia" "$d/src/nvidia-modeset" "$d/debian/patches"
    for m in nvidia nvidia-modeset nvidia-drm nvidia-uvm nvidia-peermem; do
        cat >"$d/kernel-open/$m.c" <<C
#include <linux/module.h>
MODULE_LICENSE("GPL");
MODULE_VERSION("$up");
MODULE_INFO(nvidia_p2p, "$up+p2p$level");
C
        printf 'obj-m += %s.o\n' "$m" >>"$d/kernel-open/Kbuild"
    done
    printf 'modules:\n\t$(MAKE) -C $(SYSOUT) M=$(CURDIR) CC=$(CC) modules\n' >"$d/kernel-open/Makefile"
    : >"$d/kernel-open/conftest.sh"
    cp -r "$P2P_TOP"/driver/compat/* "$d/kernel-open/nvp2p/"
    for m in nvidia nvidia-modeset; do
        printf 'all:\n\tmkdir -p _out/Linux_x86_64\n\techo object >_out/Linux_x86_64/%s.o\n' \
            "$(test $m = nvidia && echo nv-kernel || echo nv-modeset-kernel)" >"$d/src/$m/Makefile"
    done
    for f in version.mk utils.mk nv-compiler.sh Makefile COPYING; do : >"$d/$f"; done
    (cd "$d" && eval "${3:-:}")
    for f in "$P2P_TOP"/debian/driver/*; do
        case $f in
        *.in)
            sed -e "s|@UP@|$up|g; s|@BRANCH@|$BRANCH|g; s|@LEVEL@|$level|g; s|@VERSION@|$version|g" \
                -e "s|@EPOCH@|$SOURCE_DATE_EPOCH|g; s|@NEED_MIB@|20|g; s|@KERNEL_REFUSED@|100.0|g; s|@KERNEL_NEEDS@|-|g" \
                -e 's|^@OPTIONS@$|options nvidia NVreg_RegistryDwords="NvP2pBar1=1"|' "$f" >"$d/debian/$(basename "$f" .in)"
            ;;
        *) cp -r "$f" "$d/debian/" ;;
        esac
    done
    if grep -rn '@[A-Z_]*@' "$d/debian"; then die 1 "debian/driver: a word that tests/fleet/lib.sh gives no value (line above)"; fi
    echo 'no patch' >"$d/debian/patches/nvidia-p2p.patch"
    : >"$d/debian/patches/series"
    printf 'UP = %s\nBRANCH = %s\n' "$up" "$BRANCH" >"$d/debian/settings.mk"
    chmod +x "$d/debian/rules"
    (cd "$d" && dpkg-buildpackage -b -uc -us -d >"$P2P_WORK/toy.log" 2>&1) ||
        { tail -n 20 "$P2P_WORK/toy.log" >&2; die 1 "the package of tiny modules cannot be built; see above"; }
    mv "$P2P_WORK"/nvidia-p2p-{dkms,pin,runfile}_"$version"_*.deb "$DEBS/"
}
dkms_deb() { printf 'nvidia-p2p-dkms_%s_amd64.deb\n' "$1"; }
pin_deb() { printf 'nvidia-p2p-pin_%s_all.deb\n' "$1"; }

# newkernel NAME KIND: packages linux-image-NAME and linux-headers-NAME of a kernel that differs from
# the one of the root by its name and, by KIND, in this: fine, broken (what includes its headers does not
# compile), realtime (PREEMPT_RT, which NVIDIA's modules exclude).
newkernel() {
    local n=$1 k=$K tree=$P2P_WORK/kernel h
    rm -rf "$tree"
    h=$tree/usr/src/linux-headers-$n
    mkdir -p "$h" "$tree/lib/modules/$n" "$tree/DEBIAN"
    cp -a "$BASE/usr/src/linux-headers-$k/." "$h/"
    for f in .config .kernelvariables include/generated/utsrelease.h include/config/auto.conf; do
        [ ! -e "$h/$f" ] || sed -i "s/$k/$n/g" "$h/$f"
    done
    case $2 in
    fine) ;;
    broken) echo '#error kernel with another interface' >>"$h/include/generated/autoconf.h" ;;
    realtime) echo 'CONFIG_PREEMPT_RT=y' >>"$h/.config" ;;
    esac
    ln -s "/usr/src/linux-headers-$n" "$tree/lib/modules/$n/build"
    # Debian keeps the common part apart; a relative link of the copy still leads there.
    if [ -L "$BASE/lib/modules/$k/source" ]; then cp -a "$BASE/lib/modules/$k/source" "$tree/lib/modules/$n/source"; fi
    # Debian's own script: it is what would leave the package half-configured.
    sed "s/$k/$n/g" "$BASE/var/lib/dpkg/info/linux-headers-$k.postinst" >"$tree/DEBIAN/postinst"
    chmod 755 "$tree/DEBIAN/postinst"
    TREE=$tree deb "linux-headers-$n" "${3:-1}"

    rm -rf "$tree"
    mkdir -p "$tree/boot" "$tree/lib/modules/$n/kernel" "$tree/DEBIAN"
    echo kernel >"$tree/boot/vmlinuz-$n"
    : >"$tree/lib/modules/$n/modules.builtin"
    : >"$tree/lib/modules/$n/modules.order"
    # Like Debian's: all hooks, and a failure of one is a failure of the package.
    cat >"$tree/DEBIAN/postinst" <<S
#!/bin/sh
set -e
depmod $n
[ "\$1" = configure ] || exit 0
DEB_MAINT_PARAMS="\$*" run-parts --report --exit-on-error --arg=$n --arg=/boot/vmlinuz-$n /etc/kernel/postinst.d
S
    cat >"$tree/DEBIAN/postrm" <<S
#!/bin/sh
set -e
rm -f /lib/modules/$n/modules.*
[ ! -d /etc/kernel/postrm.d ] || DEB_MAINT_PARAMS="\$*" run-parts --report --exit-on-error --arg=$n --arg=/boot/vmlinuz-$n /etc/kernel/postrm.d
S
    chmod 755 "$tree/DEBIAN/postinst" "$tree/DEBIAN/postrm"
    TREE=$tree deb "linux-image-$n" 1
    rm -rf "$tree"
}
image() { printf 'linux-image-%s_1_amd64.deb\n' "$1"; }
headers() { printf 'linux-headers-%s_%s_amd64.deb\n' "$1" "${2:-1}"; }

# What stories look at.
# shellcheck disable=SC2016
package_state() { inside dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null | tr -d ' '; }
modules_of() { (cd "$C" && sha256sum "lib/modules/$1/updates/dkms/"*.ko* 2>/dev/null); }
version_for() { inside modinfo -k "$1" -F nvidia_p2p nvidia 2>/dev/null || echo none; }
motd() { inside /etc/update-motd.d/95-nvidia-p2p; }
# whole KERNEL LEVEL...: its five modules are there, readable, and of one of these levels, all of the same.
whole() {
    local k=$1 m v all=''
    shift
    for m in nvidia nvidia-modeset nvidia-drm nvidia-uvm nvidia-peermem; do
        v=$(inside modinfo -k "$k" -F nvidia_p2p "$m" 2>&1) || { echo "$m: $v"; return 1; }
        all="$all$v "
    done
    # shellcheck disable=SC2086
    set -- "$*" $all
    case " $1 " in *" $2 "*) ;; *) echo "level $2"; return 1 ;; esac
    [ "$2 $2 $2 $2 $2 " = "$all" ] || { echo "mixed: $all"; return 1; }
}
