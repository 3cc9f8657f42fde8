# SPDX-License-Identifier: MIT
# What takes longer: a whole system, and other kernels.
# shellcheck shell=bash disable=SC2034,SC2154
# system_image OUT ARCHIVE: a disk with the running release, systemd, kernel and headers; the fake
# GPUs are plugged in by systemd-modules-load, so udev finds them as at any boot.  Its apt knows
# ARCHIVE's key and address.  DKMS' work is done beforehand, natively: an emulated compiler would
# need hours, and the package takes modules that are built already.
system_image() {
    local image=$1 archive=$2 root=$P2P_WORK/system suite
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    say "making a $suite system"
    make_chroot "$suite" "$root" "systemd-sysv,udev,iproute2,pciutils,kmod,dkms,make,initramfs-tools,$(
    )linux-headers-$VM_RELEASE,prometheus-node-exporter,libfmt9,libpci3,libkmod2,liblzma5,libzstd1,libstdc++6"
    # Only what the guest's disk needs.
    printf 'MODULES=list\n' >"$root/etc/initramfs-tools/conf.d/guest"
    printf 'virtio_pci\nvirtio_blk\next4\n' >>"$root/etc/initramfs-tools/modules"
    in_root "$root" "apt-get install -y --no-install-recommends linux-image-$VM_RELEASE" >"$P2P_WORK/image.log" 2>&1 ||
        die 1 "apt-get install linux-image-$VM_RELEASE failed: $(tail -n 1 "$P2P_WORK/image.log")"
    rm -f "$root/usr/sbin/policy-rc.d"
    for _l in libcuda.so libnvidia-ml.so; do : >"$root/usr/lib/x86_64-linux-gnu/$_l.$UP"; done
    cp -a "$VM_DIR/package-$VM_RELEASE/built/." "$root/"
    install -D -m 644 "$VM_ROOT/fake/fakegpu.ko" "$root/lib/modules/$VM_RELEASE/extra/fakegpu.ko"
    in_root "$root" "depmod $VM_RELEASE"
    printf 'fakegpu\n' >"$root/etc/modules-load.d/fakegpu.conf"
    install -D -m 644 "$archive/public.asc" "$root/etc/apt/keyrings/nvidia-p2p.asc"
    printf 'Types: deb\nURIs: http://10.0.2.100/\nSuites: %s\nComponents: main %s %s-runfile\nSigned-By: /etc/apt/keyrings/nvidia-p2p.asc\n' \
        "$suite" "${UP%%.*}" "${UP%%.*}" >"$root/etc/apt/sources.list.d/nvidia-p2p.sources"
    : >"$root/etc/apt/sources.list"
    printf 'guest\n' >"$root/etc/hostname"
    printf '/dev/vda / ext4 defaults 0 1\n' >"$root/etc/fstab"
    mkdir -p "$root/guest"
    install -m 644 "$here/guest/lib.sh" "$root/guest/"
    cat >"$root/guest/run" <<'EOF'
#!/bin/sh
stty -F /dev/ttyS1 raw -echo
exec >/dev/ttyS1 2>&1 </dev/null
. /guest/lib.sh
case $(cat /proc/cmdline) in
*story=install*)
    ip link set dev "$(ls /sys/class/net | grep -v lo | head -n 1)" up
    ip addr add 10.0.2.15/24 dev "$(ls /sys/class/net | grep -v lo | head -n 1)"
    bars before
    show update apt-get update
    show install env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        nvidia-p2p-runfile nvidia-p2p-dkms nvidia-p2p-pin nvidia-p2p-tools
    show modules /usr/lib/nvidia-p2p/modules status
    show reboot-required cat /run/reboot-required.pkgs
    ;;
*)
    bars after
    show driver modinfo -F nvidia_p2p nvidia
    verify verify
    show service systemctl start nvidia-p2p-verify.service
    show enabled systemctl is-active nvidia-p2p-verify.timer nvidia-p2p-verify.path
    show failed systemctl --failed --no-legend --plain
    show metrics cat /var/lib/prometheus/node-exporter/nvidia_p2p.prom
    show dmesg dmesg
    ;;
esac
printf '@@ over\n'
systemctl poweroff
EOF
    chmod 755 "$root/guest/run"
    cat >"$root/etc/systemd/system/guest.service" <<'EOF'
[Unit]
Description=The story's script
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/guest/run
[Install]
WantedBy=default.target
EOF
    in_root "$root" 'systemctl enable guest.service' >/dev/null 2>&1
    cp "$root/boot/vmlinuz-$VM_RELEASE" "$P2P_WORK/system-kernel"
    cp "$root/boot/initrd.img-$VM_RELEASE" "$P2P_WORK/system-initrd"
    rm -rf "$image" "$root"/var/cache/apt/archives/*.deb
    mke2fs -q -t ext4 -d "$root" "$image" 6G
    rm -rf "$root"
}

# boot_system IMAGE STORY ARCHIVE: boot it; its only network is the archive at 10.0.2.100, a server
# process for each connection.
boot_system() {
    BOOT=$(mktemp -d "$P2P_WORK/boot.XXXXXX")
    VM_TIMEOUT=1500 emulate -m 2G -kernel "$P2P_WORK/system-kernel" -initrd "$P2P_WORK/system-initrd" \
        -append "console=ttyS0 quiet panic=-1 no_timer_check mem=1280M root=/dev/vda rw story=$2" \
        -drive "file=$1,format=raw,if=virtio,cache=unsafe" \
        -netdev "user,id=net,restrict=on,guestfwd=tcp:10.0.2.100:80-cmd:/bin/busybox httpd -i -h $3" -device virtio-net-pci,netdev=net
}

story_12() {
    story "12. a whole system: apt install from the archive, reboot, units green, metrics written"
    if [ -z "$debs" ]; then
        skip "needs the packages; give --debs DIR"
        return 0
    fi
    local image=$P2P_WORK/system.img archive=$P2P_WORK/archive suite
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    UP=$(dpkg-deb -f "$(newest nvidia-p2p-dkms)" Version | sed 's/+p2p.*//')
    testsuccess "$P2P_TOP/apt-repo/make-test-key" "$P2P_WORK/gnupg"
    testsuccess "$P2P_TOP/apt-repo/publish" --repo "$archive" --key "$P2P_WORK/gnupg" --suite "$suite" "$debs"/*.deb
    cp "$P2P_WORK/gnupg/public.asc" "$archive/"
    system_image "$image" "$archive"
    boot_system "$image" install "$archive"
    testequal "256M 256M" "$(bar1 before)" "BAR1 before the package"
    testequal 0 "$(status update)" "apt-get update"
    testequal 0 "$(status install)" "apt-get install"
    testmatch "^$VM_RELEASE: $UP\+p2p[0-9]+.* installed" "$(out modules)" "modules status"
    boot_system "$image" verify "$archive"
    testequal "32G 32G" "$(bar1 after)" "BAR1 after install and reboot"
    testmatch "^$UP\+p2p" "$(out driver)" "mark of the module"
    testverdict verify proven 0
    testequal 0 "$(status service)" "systemctl start nvidia-p2p-verify.service"
    testequal "active active" "$(out enabled | grep . | paste -sd ' ')" "timer and path"
    testequal "" "$(out failed | grep . || :)" "failed units"
    testmatch '^nvidia_p2p_[a-z_]+.*[0-9]$' "$(out metrics)" "textfile metrics"
    if command -v promtool >/dev/null; then
        testsuccess sh -c 'promtool check metrics <"$1"' sh "$BOOT/results/metrics"
    fi
    rm -f "$image"
}

# other_kernel SUITE HEADERS: the headers package's kernel in a root of its suite, with the compiler
# that this suite has: build the module there, boot it here.
other_kernel() {
    local suite=$1 headers=$2 root=$P2P_WORK/root-$1-${2%%/*} log=$P2P_WORK/root-$1-${2%%/*}.log release deb
    story "kernel of $suite (${headers%%/*}): what becomes of BAR1"
    if ! (make_chroot "$suite" "$root" "dkms,kmod,make,$headers") >"$log" 2>&1; then
        attach "$log" mmdebstrap
        skip "no $suite root with $headers: $(tail -n 1 "$log")"
        return 0
    fi
    release=$(find "$root/lib/modules" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -V | tail -n 1)
    if ! install_packages "$root" "$log"; then
        attach "$log" "apt-get install"
        # A release that does not fit a kernel must say so, in one line, and leave it alone.
        testmatch 'nvidia-p2p: (error|warning): ' "$(cat "$log")" "apt's output"
        [ -n "$_broken" ] || skip "$release: $(grep -m 1 -E 'nvidia-p2p: (error|warning):' "$log")"
        rm -rf "$root"
        return 0
    fi
    attach "$log" "apt-get install"
    if [ ! -e "$root/lib/modules/$release/updates/dkms/nvidia.ko" ] && ! ls "$root/lib/modules/$release/updates/dkms"/nvidia.ko.* >/dev/null 2>&1; then
        testmatch 'nvidia-p2p: warning: ' "$(cat "$log")" "apt's output"
        [ -n "$_broken" ] || skip "$release: $(grep -m 1 'nvidia-p2p: warning:' "$log")"
        rm -rf "$root"
        return 0
    fi
    VM_RELEASE=$release VM_ROOT=$P2P_WORK/kernel-$release VM_BASE=$P2P_WORK/base-$release.cpio
    VM_STATES=$P2P_WORK/states-$release modules=$P2P_WORK/modules-$release
    # shellcheck disable=SC2016  # this root's apt knows them
    testsuccess in_root "$root" "$(declare -f image_packages)
        cd /tmp && apt-get -o APT::Sandbox::User=root download \$(image_packages $release)"
    mkdir -p "$VM_ROOT" "$root/tmp/fake"
    for deb in "$root"/tmp/linux-*-"$release"_*.deb; do dpkg -x "$deb" "$VM_ROOT"; done
    # usr/lib where the suite has merged its folders.
    if [ ! -d "$VM_ROOT/lib/modules" ]; then ln -s usr/lib "$VM_ROOT/lib"; fi
    VM_KERNEL=$(kernel_file "$release" "$VM_ROOT" vmlinuz)
    cp "$here"/module/*.c "$here/module/Kbuild" "$root/tmp/fake/"
    testsuccess in_root "$root" "make -s -C /lib/modules/$release/build M=/tmp/fake CC=$(kernel_cc "$release" "$VM_ROOT") modules"
    mkdir -p "$VM_ROOT/fake"
    cp "$root"/tmp/fake/*.ko "$VM_ROOT/fake/"
    keep_state "$root" "$modules/installed"
    rm -rf "$root"
    image_base "$release" "$VM_ROOT" "$VM_ROOT/fake" "$VM_BASE" "$tools/p2p-verify/p2p-verify"
    prepare_states installed
    boot -s installed <<'GUEST'
show release uname -r
plug
bars before
load load
bars after
verify verify
GUEST
    testequal "$release" "$(out release | head -n 1)" "kernel"
    testequal "256M 256M" "$(bar1 before)" "BAR1 before the driver"
    testequal 0 "$(status load)" "modprobe"
    # Linux lets a driver ask for the sizes of a Resizable BAR from 5.12 on.
    if dpkg --compare-versions "$release" ge 5.12; then
        testequal "32G 32G" "$(bar1 after)" "BAR1 after the driver"
        testverdict verify proven 0
    else
        testequal "256M 256M" "$(bar1 after)" "BAR1 after the driver"
        testverdict verify unavailable 20
        testmatch 'Linux before 5\.12 does not let the driver grow it' "$(out verify)" "remedy"
    fi
    rm -rf "$VM_ROOT" "$VM_STATES" "$VM_BASE" "$modules"
}

story_kernels() { # SUITES, or nothing for all
    if [ -z "$debs" ]; then
        story "other kernels"
        skip "needs the packages; give --debs DIR"
        return 0
    fi
    local suite
    for suite in ${1:-bullseye bookworm trixie trixie-backports}; do
        case $suite in
        bookworm) other_kernel bookworm linux-headers-6.12-amd64 ;;
        # The newest kernel that the archive has; apt prefers the plain suite unless told.
        *-backports) other_kernel "$suite" "linux-headers-amd64/$suite" ;;
        *) other_kernel "$suite" linux-headers-amd64 ;;
        esac
    done
}
