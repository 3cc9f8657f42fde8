# SPDX-License-Identifier: MIT
# States of the guest's system: which files an installed, old or removed package has left.
# shellcheck shell=bash disable=SC2034,SC2154

# prepare_kernel RELEASE: everything that boots it.
prepare_kernel() {
    VM_RELEASE=$1
    [ -n "$VM_RELEASE" ] || die 1 "apt knows no linux-image-amd64; run: apt-get update"
    VM_ROOT=$VM_DIR/$VM_RELEASE
    VM_BASE=$P2P_WORK/base-$VM_RELEASE.cpio
    kernel_get "$VM_RELEASE" "$VM_ROOT"
    VM_KERNEL=$(kernel_file "$VM_RELEASE" "$VM_ROOT" vmlinuz)
    kernel_modules "$VM_RELEASE" "$VM_ROOT" "$VM_ROOT/fake"
    image_base "$VM_RELEASE" "$VM_ROOT" "$VM_ROOT/fake" "$VM_BASE" "$tools/p2p-verify/p2p-verify"
}

# keep_state ROOT DIR: copy out of ROOT what the driver package puts there beyond its own files.
keep_state() {
    local part
    rm -rf "$2"
    mkdir -p "$2"
    for part in lib/modules usr/lib/modules etc/modprobe.d etc/nvidia-p2p var/lib/dkms var/lib/nvidia-p2p; do
        if [ ! -d "$1/$part" ] || [ -L "$1/${part%/modules}" ]; then continue; fi
        (cd "$1" && find "$part" \( -name build -o -name source -o -name kernel -o -name '*.log' \) -prune -o \
            \( -type f -o -type l \) ! -name 'modules.*' -print0 | cpio --quiet -0 -pdm "$2")
    done
}

# keep_built ROOT DIR: what DKMS made there, with the package's own record of it.
keep_built() {
    mkdir -p "$2"
    (cd "$1" && find var/lib/dkms/nvidia-p2p var/lib/nvidia-p2p/built -print0 | cpio --quiet -0 -pdm "$2")
}

# packages_sum: what the states of $debs depend on; tests/package leaves states under the same sum.
packages_sum() { cat "$debs"/nvidia-p2p-dkms_*.deb "$debs"/nvidia-p2p-runfile_*.deb | sha256sum | cut -d' ' -f1; }

# install_packages ROOT LOG: the driver's packages into a root with apt, as an administrator does.
# Status as apt-get's.
install_packages() {
    local root=$1 log=$2 up rc=0
    up=$(dpkg-deb -f "$(newest nvidia-p2p-dkms)" Version | sed 's/+p2p.*//')
    # NVIDIA's own user space is not Debian's to give: the names that nvidia-p2p-runfile looks for.
    for _l in libcuda.so libnvidia-ml.so; do : >"$root/usr/lib/x86_64-linux-gnu/$_l.$up"; done
    cp "$(newest nvidia-p2p-dkms)" "$(newest nvidia-p2p-runfile)" "$root/tmp/"
    in_root "$root" 'apt-get install -y --no-install-recommends /tmp/*.deb' >"$log" 2>&1 || rc=$?
    rm -f "$root"/tmp/*.deb
    return "$rc"
}

# in_root ROOT COMMAND: a shell command in a root, with /proc.
in_root() {
    local rc=0
    mount -t proc proc "$1/proc"
    chroot "$1" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 sh -c "$2" || rc=$?
    umount "$1/proc"
    return "$rc"
}

# package_states DIR: install the packages of $debs in a root of their own, with the headers of
# $VM_RELEASE; keep the state as DIR/installed, purge, keep DIR/removed.  DIR/built holds what DKMS
# made.  Done again only when the packages or the kernel change.
package_states() {
    local dir=$1 root sum suite
    sum=$(packages_sum)
    [ "$(cat "$dir/sum" 2>/dev/null)" != "$sum" ] || return 0
    [ "$(id -u)" -eq 0 ] || die 1 "installing packages in a root of its own needs root; give --modules DIR instead"
    root=$P2P_WORK/root
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    say "installing $(basename "$(newest nvidia-p2p-dkms)") for $VM_RELEASE in a $suite root"
    make_chroot "$suite" "$root" "dkms,kmod,make,linux-headers-$VM_RELEASE"
    rm -rf "$dir"
    mkdir -p "$dir"
    install_packages "$root" "$dir/log" ||
        die 1 "apt-get install of the packages failed; see $dir/log: $(grep -m 1 -E 'error|^E:' "$dir/log")"
    keep_state "$root" "$dir/installed"
    keep_built "$root" "$dir/built"
    in_root "$root" 'apt-get purge -y nvidia-p2p-dkms' >>"$dir/log" 2>&1 ||
        die 1 "apt-get purge of nvidia-p2p-dkms failed; see $dir/log"
    keep_state "$root" "$dir/removed"
    printf '%s\n' "$sum" >"$dir/sum"
    rm -rf "$root"
}

# newest PACKAGE: its newest .deb in $debs.
newest() { printf '%s\n' "$debs/$1"_*.deb | sort -V | tail -n 1; }

# edited IN OUT FROM TO: a copy of a module with one text of its .modinfo replaced by one as long.
edited() {
    [ "${#3}" -eq "${#4}" ] || die 70 "edited: '$3' and '$4' differ in length"
    grep -qaF "$3" "$1" || die 1 "$1 does not hold '$3'"
    LC_ALL=C sed "s/$(printf '%s' "$3" | sed 's/[.+]/\\&/g')/$4/g" "$1" >"$2"
}

# Makes the states in $VM_STATES, each a folder laid out like /:
#   driver     the module, none of the package's configuration: a driver with its stock options
#   installed  the package
#   old        the package with another build of the module: what an upgrade replaces
#   other      the package, its module only for a kernel that is not running
#   removed    what a purge left, and the distribution's driver: a module without our mark
# Only the nvidia module goes in, without debug information: no story loads the others.
prepare_states() { # STATE..., or nothing for all
    local files=$modules ko at=lib/modules/$VM_RELEASE/updates/dkms state states=${*:-installed old removed driver other}
    VM_STATES=$P2P_WORK/states
    if [ -z "$files" ]; then
        files=$VM_DIR/package-$VM_RELEASE
        package_states "$files"
    fi
    ko=$(find "$files"/installed/{,usr/}"lib/modules/$VM_RELEASE" -name 'nvidia.ko*' 2>/dev/null | head -n 1)
    [ -n "$ko" ] || die 1 "$files/installed has no nvidia.ko in lib/modules/$VM_RELEASE"
    mkdir -p "$VM_STATES"
    case $ko in
    *.xz) xz -dc "$ko" ;;
    *.zst) zstd -qdc "$ko" ;;
    *) cat "$ko" ;;
    esac >"$P2P_WORK/nvidia.ko"
    # Takes a signature away, too: the state is "unsigned" until story 9 signs it.
    strip -g "$P2P_WORK/nvidia.ko"
    VM_MARK=$(modinfo -F nvidia_p2p "$P2P_WORK/nvidia.ko")
    [ -n "$VM_MARK" ] || die 1 "$ko carries no nvidia_p2p mark: not a module of this project"

    for state in $states; do
        mkdir -p "$VM_STATES/$state/lib/modules"
        [ $state = other ] || mkdir -p "$VM_STATES/$state/$at"
        case $state in
        driver) ;;
        removed) [ ! -d "$files/removed" ] || cp -a "$files/removed/." "$VM_STATES/removed" ;;
        # The records in var/lib speak of the running kernel.
        other) cp -a "$files/installed/etc" "$VM_STATES/other" ;;
        *) (cd "$files/installed" && find . -path '*/lib/modules' -prune -o -name '*.ko*' -prune -o \
            \( -type f -o -type l \) -print0 | cpio --quiet -0 -pdm "$VM_STATES/$state") ;;
        esac
    done
    for state in $states; do
        case $state in
        driver | installed) cp "$P2P_WORK/nvidia.ko" "$VM_STATES/$state/$at/" ;;
        old) another_build "$P2P_WORK/nvidia.ko" "$VM_STATES/old/$at/nvidia.ko" ;;
        removed) edited "$P2P_WORK/nvidia.ko" "$VM_STATES/removed/$at/nvidia.ko" nvidia_p2p= nvidia_xxx= ;;
        other)
            VM_OTHER=$(printf '%s' "${VM_RELEASE%-*}" | tr 0123456789 1234567890)-${VM_RELEASE##*-}
            mkdir -p "$VM_STATES/other/lib/modules/$VM_OTHER/updates/dkms"
            edited "$P2P_WORK/nvidia.ko" "$P2P_WORK/other.ko" "vermagic=$VM_RELEASE" "vermagic=$VM_OTHER"
            another_interface "$P2P_WORK/other.ko" "$VM_STATES/other/lib/modules/$VM_OTHER/updates/dkms/nvidia.ko"
            ;;
        esac
    done
}

# another_interface IN OUT: a copy that was built against another kernel's symbol versions.
another_interface() {
    python3 - "$1" "$2" <<'EOF'
import sys
source, target = sys.argv[1], sys.argv[2]
data = bytearray(open(source, "rb").read())
# struct modversion_info { unsigned long crc; char name[56]; }
name = b"module_layout".ljust(56, b"\0")
if data.count(name) != 1:
    sys.exit(f"{source}: no single version of module_layout; is CONFIG_MODVERSIONS off?")
data[data.index(name) - 8] ^= 0xff
open(target, "wb").write(data)
EOF
}

# another_build IN OUT: a copy with another build id, as any second build has.
another_build() {
    python3 - "$1" "$2" "$(readelf -n "$1" | sed -n 's/.*Build ID: //p' | head -n 1)" <<'EOF'
import sys
source, target, build_id = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3])
data = open(source, "rb").read()
if len(build_id) != 20 or data.count(build_id) != 1:
    sys.exit(f"{source}: no single build id of 20 bytes")
open(target, "wb").write(data.replace(build_id, bytes(b ^ 0x55 for b in build_id)))
EOF
}

# signed_state: state `signed`, as installed with the modules signed by a key of the moment, and
# $VM_FIRMWARE, a firmware store that trusts this key.
signed_state() {
    local dir=$VM_STATES/signed key=$P2P_WORK/key ko sign
    cp -a "$VM_STATES/installed" "$dir"
    mkdir -p "$dir/guest"
    cp "$VM_ROOT/fake/fakegpu.ko" "$dir/guest/"
    openssl req -new -x509 -newkey rsa:2048 -nodes -days 30 -subj "/CN=nvidia-p2p test key" \
        -keyout "$key.pem" -outform DER -out "$key.der" 2>/dev/null
    sign=$(echo "$VM_ROOT"/usr/lib/linux-kbuild-*/scripts/sign-file)
    for ko in "$dir/guest/fakegpu.ko" "$dir/lib/modules/$VM_RELEASE/updates/dkms/nvidia.ko"; do
        "$sign" sha256 "$key.pem" "$key.der" "$ko" ||
            die 1 "sign-file of ${ko##*/} failed; is libcrypto of the kernel's release installed?"
    done
    VM_FIRMWARE=$P2P_WORK/firmware
    python3 "$P2P_TOP/tests/vm/lib/enrol.py" /usr/share/OVMF/OVMF_VARS_4M.fd "$key.der" "$VM_FIRMWARE"
}
