# SPDX-License-Identifier: MIT
# Stories 1 to 11.  Each boots a fresh guest; the script between GUEST marks runs inside it.
# shellcheck shell=bash disable=SC2034
G0=0010:01:00.0
G1=0010:02:00.0

story_1() {
    story "1. stock options: BAR1 stays 256M and p2p-verify names the cause"
    boot -s driver <<'GUEST'
plug
bars before
load load
bars after
verify verify
GUEST
    testequal "256M 256M" "$(bar1 before)" "BAR1 before the driver"
    testequal 0 "$(status load)" "modprobe"
    testmatch 'Kernel driver in use: nvidia$' "$(out after)"
    testequal "256M 256M" "$(bar1 after)" "BAR1 after the driver"
    testverdict verify unavailable 20
    testfinding verify 'rebar-off' "$G0"
    testfinding verify 'rebar-off' "$G1"
}

story_2() {
    story "2. package installed: the driver grows BAR1 to 32G and nothing complains of it"
    boot -s installed <<'GUEST'
plug
bars before
load load
bars after
verify verify
snapshot snapshot
GUEST
    testequal "256M 256M" "$(bar1 before)" "BAR1 before the driver"
    testequal 0 "$(status load)" "modprobe"
    testequal "32G 32G" "$(bar1 after)" "BAR1 after the driver"
    testequal "" "$(findings verify block reload inconclusive)" "what stands in the way"
    testverdict verify proven 0
    testequal "34359738368 34359738368" "$(json verify '.gpus[].bar1_bytes')" "bar1_bytes"
    replay snapshot verify
}

story_3() {
    story "3. window too small: driver and p2p-verify agree, with needed and present sizes"
    boot -s installed <<'GUEST'
plug window_mb=40960
load load
bars after
verify verify
snapshot snapshot
GUEST
    testmatch 'no space' "$(out dmesg)" "kernel log"
    # How the kernel shares 40 GiB is its own matter; that it is not twice 32 is ours.
    testnomatch '^32G 32G$' "$(bar1 after)" "BAR1 after the driver"
    testequal "$(bar1 after | tr ' ' '\n' | numfmt --from=iec | paste -sd ' ')" "$(json verify '.gpus[].bar1_bytes')" "bar1_bytes"
    testverdict verify unavailable 20
    testfinding verify mmio-window-too-small
    testmatch '40 GiB.*64 GiB' \
        "$(json verify '[.findings[] | select(.id == "mmio-window-too-small")][0] | .cause')" "needed and present sizes"
    replay snapshot verify
}

story_4() {
    story "4. no Resizable BAR capability: said so, nothing else blamed"
    boot -s installed <<'GUEST'
plug rebar_sizes=0,0
load load
bars after
verify verify
GUEST
    testnomatch 'Resizable BAR' "$(out after)" "lspci"
    testequal "256M 256M" "$(bar1 after)" "BAR1 after the driver"
    testverdict verify unavailable 20
    testfinding verify bar1-smaller-than-vram "$G0"
    testfinding verify bar1-smaller-than-vram "$G1"
    testnofinding verify '(mmio-window-too-small|rebar-off)'
}

story_5() {
    story "5. eight GPUs, one in a small window: seven grow, one is named"
    boot -s installed <<'GUEST'
plug ngpu=8 bridges=8 window_mb=65536,65536,65536,65536,1024,65536,65536,65536
load load
bars after
verify verify
GUEST
    local small
    small=$(out after | awk '/^[0-9a-f]+:/ { print $1 }' | sed -n 5p)
    testequal "32G 32G 32G 32G 512M 32G 32G 32G" "$(bar1 after)" "BAR1 after the driver"
    testverdict verify unavailable 20
    testfinding verify mmio-window-too-small "$small"
    testequal "mmio-window-too-small $small" "$(findings verify block)" "who is blocked"
}

story_6() {
    story "6. VF Resizable BAR: not taken for the physical one"
    boot -s installed <<'GUEST'
plug vf_rebar=1 rebar_sizes=0xffc0,0
load load
bars after
verify verify
GUEST
    testmatch 'Virtual Resizable BAR|VF Resizable BAR' "$(out after)" "lspci"
    testequal "32G 256M" "$(bar1 after)" "BAR1 after the driver"
    testequal "34359738368 null" "$(json verify '.gpus[].bar1_max_bytes')" "bar1_max_bytes"
    testequal "bar1-smaller-than-vram $G1" "$(findings verify block)" "who lacks BAR1"
}

story_7() {
    story "7. another driver has the GPUs: nouveau, pci-stub; the package keeps nouveau away"
    boot -s driver -s installed <<'GUEST'
plug
show offered modprobe -n -v -b "$(cat /sys/bus/pci/devices/0010:01:00.0/modalias)"
state installed
show offered-installed modprobe -n -v -b "$(cat /sys/bus/pci/devices/0010:01:00.0/modalias)"
show standin insmod /guest/nouveau.ko
verify nouveau
rmmod nouveau
show vfio-load modprobe pci-stub ids=10de:2684
verify vfio
snapshot snapshot
GUEST
    testmatch 'nouveau\.ko' "$(out offered)" "what udev loads without the package"
    testnomatch 'nouveau\.ko' "$(out offered-installed)" "what udev loads with it"
    testmatch 'nvidia\.ko' "$(out offered-installed)" "what udev loads with it"
    testverdict nouveau unavailable 20
    testfinding nouveau nouveau-bound "$G0"
    testfinding nouveau nouveau-bound "$G1"
    # vfio-pci itself binds only with an IOMMU group, which a fake bus has not.
    testequal 0 "$(status vfio-load)" "modprobe pci-stub"
    testverdict vfio inconclusive 40
    testfinding vfio vfio-bound "$G0"
    testequal "" "$(findings vfio block reload)" "what stands in the way of GPUs that are given away"
}

story_8() {
    story "8. module built for another kernel: refused by the kernel, named by p2p-verify"
    boot -s other <<'GUEST'
plug
load load
verify verify
mkdir -p /lib/modules/$(uname -r)/updates/dkms
cp /lib/modules/*/updates/dkms/nvidia.ko /lib/modules/$(uname -r)/updates/dkms/
depmod
load forced
GUEST
    testverdict verify unavailable 20
    testfinding verify no-module-for-kernel "$VM_RELEASE"
    testequal 1 "$(status forced)" "modprobe of a module for $VM_OTHER"
    testmatch 'nvidia: disagrees about version of symbol module_layout' "$(out dmesg)" "kernel log"
}

story_9() {
    story "9. signatures enforced: the unsigned module is refused and p2p-verify says why, a signed one loads"
    local firmware=/usr/share/OVMF
    if [ ! -e $firmware/OVMF_CODE_4M.fd ]; then
        skip "no UEFI firmware for the guest; run: apt-get install ovmf"
        return 0
    fi
    signed_state
    boot -s signed -s installed -a module.sig_enforce=1 \
        -q -drive -q "if=pflash,unit=0,format=raw,readonly=on,file=$firmware/OVMF_CODE_4M.fd" \
        -q -drive -q "if=pflash,unit=1,format=raw,file=$VM_FIRMWARE" <<'GUEST'
plug
state installed
load unsigned
verify unsigned-verify
state signed
load signed
bars after
verify signed-verify
GUEST
    testequal 0 "$(status plug)" "insmod of the signed fake GPUs"
    testequal 1 "$(status unsigned)" "modprobe of an unsigned module"
    testmatch 'Key was rejected|Required key not available' "$(out unsigned)" "modprobe"
    testmatch '^(unavailable|reload)$' "$(json unsigned-verify .verdict)" "verdict on the unsigned module"
    testfinding unsigned-verify secure-boot-unsigned
    testequal 0 "$(status signed)" "modprobe of a signed module"
    testequal "32G 32G" "$(bar1 after)" "BAR1 with the signed module"
    testnofinding signed-verify 'secure-boot-.*'
}

story_10() {
    story "10. upgrade while the old module is loaded: reload; after a reboot it is over"
    boot -s old -s installed <<'GUEST'
plug
load load
verify before
state installed
verify upgraded
snapshot snapshot
GUEST
    testequal 0 "$(status load)" "modprobe"
    testnofinding before module-not-loaded-yet
    testverdict upgraded reload 21
    testfinding upgraded module-not-loaded-yet
    replay snapshot upgraded
    boot -s installed <<'GUEST'
plug
load load
bars after
verify rebooted
GUEST
    testequal "32G 32G" "$(bar1 after)" "BAR1 after the reboot"
    testnofinding rebooted module-not-loaded-yet
    testequal "" "$(findings rebooted block reload inconclusive)" "what stands in the way after the reboot"
    testverdict rebooted proven 0
}

story_11() {
    story "11. uninstalled: the distribution's driver and BAR1 as before"
    boot -s removed <<'GUEST'
plug
show offered modprobe -n -v -b "$(cat /sys/bus/pci/devices/0010:01:00.0/modalias)"
show stock modprobe -v nvidia
bars after
verify verify
GUEST
    testmatch 'nouveau\.ko' "$(out offered)" "what udev loads"
    testequal 0 "$(status stock)" "modprobe"
    testequal "256M 256M" "$(bar1 after)" "BAR1 after the driver"
    testverdict verify unavailable 20
    testfinding verify module-not-ours
}
