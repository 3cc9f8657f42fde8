# SPDX-License-Identifier: MIT
# States of the guest's system: which files an installed, old or removed package has left.
# shellcheck shell=bash

# prepare_kernel RELEASE: everything that boots it.
prepare_kernel() {
    VM_RELEASE=$1
    [ -n "$VM_RELEASE" ] || die 1 "apt knows no linux-image-amd64; run: apt-get update"
    VM_ROOT=$VM_DIR/$VM_RELEASE
    VM_KERNEL=$VM_ROOT/boot/vmlinuz-$VM_RELEASE
    VM_BASE=$P2P_WORK/base-$VM_RELEASE.cpio
    kernel_get "$VM_RELEASE" "$VM_ROOT"
    kernel_modules "$VM_RELEASE" "$VM_ROOT" "$VM_ROOT/fake"
    image_base "$VM_RELEASE" "$VM_ROOT" "$VM_ROOT/fake" "$VM_BASE" \
        "$tools/p2p-verify/p2p-verify" "$tools/p2p-bar1/p2p-bar1"
}

# dkms_build DEB OUT: unpack the package and build its module for $VM_RELEASE with DKMS, in trees of
# its own: nothing of this system changes.  Kept in $VM_DIR until the package changes.
dkms_build() {
    local deb=$1 out=$2 src name version sum
    sum=$(sha256sum "$deb" | cut -d' ' -f1)-$VM_RELEASE
    [ "$(cat "$out.sum" 2>/dev/null)" != "$sum" ] || return 0
    command -v dkms >/dev/null || die 1 "dkms is missing; run: apt-get install dkms"
    rm -rf "$out"
    mkdir -p "$out/var/lib/dkms" "$out/lib/modules/$VM_RELEASE"
    dpkg -x "$deb" "$out"
    src=$(echo "$out"/usr/src/*/dkms.conf)
    name=$(sed -n 's/^PACKAGE_NAME="\{0,1\}\([^"]*\).*/\1/p' "$src")
    version=$(sed -n 's/^PACKAGE_VERSION="\{0,1\}\([^"]*\).*/\1/p' "$src")
    say "building $name/$version for $VM_RELEASE with dkms"
    ln -sfn "$VM_ROOT/usr/src/linux-headers-$VM_RELEASE" "$out/lib/modules/$VM_RELEASE/build"
    dkms install --no-depmod --no-initrd --force --dkmstree "$out/var/lib/dkms" --sourcetree "$out/usr/src" \
        --installtree "$out/lib/modules" --kernelsourcedir "$VM_ROOT/usr/src/linux-headers-$VM_RELEASE" \
        -m "$name" -v "$version" -k "$VM_RELEASE" -a x86_64 >"$out/dkms.log" 2>&1 ||
        die 1 "dkms build of ${deb##*/} for $VM_RELEASE failed; see $out/dkms.log: $(tail -n 1 "$out/dkms.log")"
    rm -f "$out/lib/modules/$VM_RELEASE/build"
    printf '%s\n' "$sum" >"$out.sum"
}

# edited IN OUT FROM TO: a copy of a module with one text of its .modinfo replaced by one as long.
edited() {
    [ "${#3}" -eq "${#4}" ] || die 70 "edited: '$3' and '$4' differ in length"
    grep -qaF "$3" "$1" || die 1 "$1 does not hold '$3'"
    LC_ALL=C sed "s/$(printf '%s' "$3" | sed 's/[.+]/\\&/g')/$4/g" "$1" >"$2"
}

# Makes the states in $VM_STATES, each a folder laid out like /:
#   driver     the module, none of the package's configuration: a driver with its stock options
#   installed  the package
#   old        the package, with another build of the module: what an upgrade replaces
#   other      the package, its module only for a kernel that is not running
#   stock      no package; the distribution's driver (a module without our mark)
#   bare       nothing
# Only the nvidia module goes in, without debug information: no story loads the others.
prepare_states() {
    local files ko at=lib/modules/$VM_RELEASE/updates/dkms other conf id
    VM_STATES=$P2P_WORK/states
    if [ -n "$modules" ]; then files=$modules; else
        files=$VM_DIR/installed
        dkms_build "$(printf '%s\n' "$debs"/nvidia-p2p-dkms_*.deb | sort -V | tail -n 1)" "$files"
    fi
    ko=$(find "$files/lib/modules/$VM_RELEASE/" -name 'nvidia.ko*' | head -n 1)
    [ -n "$ko" ] || die 1 "$files/lib/modules/$VM_RELEASE holds no nvidia.ko"
    conf=$(find "$files/etc/modprobe.d" "$files/lib/modprobe.d" "$files/usr/lib/modprobe.d" -name '*.conf' 2>/dev/null)
    [ -n "$conf" ] || die 1 "$files holds no modprobe.d/*.conf"
    mkdir -p "$VM_STATES"/{bare,driver,installed,old,other,stock}
    case $ko in
    *.xz) xz -dc "$ko" ;;
    *.zst) zstd -qdc "$ko" ;;
    *) cat "$ko" ;;
    esac >"$P2P_WORK/nvidia.ko"
    VM_SIGNED=$P2P_WORK/nvidia-full.ko
    strip -g "$P2P_WORK/nvidia.ko"
    VM_MARK=$(modinfo -F nvidia_p2p "$P2P_WORK/nvidia.ko")
    [ -n "$VM_MARK" ] || die 1 "$ko carries no nvidia_p2p mark: not a module of this project"
    for _s in driver installed old stock; do
        mkdir -p "$VM_STATES/$_s/$at"
        cp "$P2P_WORK/nvidia.ko" "$VM_STATES/$_s/$at/"
    done
    for _s in installed old other; do
        for _f in $conf; do install -D -m 644 "$_f" "$VM_STATES/$_s${_f#"$files"}"; done
    done
    edited "$P2P_WORK/nvidia.ko" "$VM_STATES/stock/$at/nvidia.ko" nvidia_p2p= nvidia_xxx=
    # Another build: another build id.
    id=$(readelf -n "$P2P_WORK/nvidia.ko" | sed -n 's/.*Build ID: //p' | head -n 1)
    [ "${#id}" -eq 40 ] || die 1 "$ko carries no build id"
    python3 - "$VM_STATES/old/$at/nvidia.ko" "$id" <<'EOF'
import sys
path, build_id = sys.argv[1], bytes.fromhex(sys.argv[2])
data = open(path, "rb").read()
assert data.count(build_id) == 1
open(path, "wb").write(data.replace(build_id, bytes(b ^ 0x55 for b in build_id)))
EOF
    other=$(printf '%s' "$VM_RELEASE" | tr 0123456789 1234567890)
    VM_OTHER=$other
    mkdir -p "$VM_STATES/other/lib/modules/$other/updates/dkms"
    edited "$P2P_WORK/nvidia.ko" "$VM_STATES/other/lib/modules/$other/updates/dkms/nvidia.ko" \
        "vermagic=$VM_RELEASE" "vermagic=$other"
}
