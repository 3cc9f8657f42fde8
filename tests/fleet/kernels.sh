# SPDX-License-Identifier: MIT
# New kernels, signing and notices, on each generation of dkms: the real maintainer scripts and hooks.
# shellcheck shell=bash
# shellcheck disable=SC2154 # from lib.sh and framework.sh

UP=550.54.14
V1=$UP+p2p1 V2=$UP+p2p2 V8=$UP+p2p8

toys() {
    [ ! -e "$DEBS/$(dkms_deb "$V1-1")" ] || return 0
    say "packages of tiny modules from debian/driver"
    userland "$UP"
    toy "$UP" 1
    toy "$UP" 2
    toy "$UP" 8 'echo "#error broken on purpose" >>kernel-open/nvidia-uvm.c'
}

# slow WHAT: a story that the slice leaves out; true if so.
slow() {
    [ -n "$slice" ] || return 1
    skip "compiles $1; run tests/fleet/run without --slice"
}

# with_module SUITE: BASE and INSTALLED are its root without and with version 1 of our modules.
with_module() {
    local c=$P2P_WORK/roots/installed-$1/upper
    base "$1"
    K=$(for k in "$BASE"/lib/modules/*; do basename "$k"; done | sort -V | tail -n 1)
    LABEL=${DKMS_OF[$1]}
    DEBS=$P2P_WORK/debs-$1
    if [ ! -d "$DEBS" ]; then
        mkdir "$DEBS"
        cp "$P2P_WORK"/debs/*.deb "$DEBS/"
        newkernel 99.1-fine fine
        newkernel 99.2-broken broken
        newkernel 99.2-broken fine 2
        newkernel 99.2-broken broken
        newkernel 99.3-rt realtime
        newkernel 100.1-new fine
    fi
    INSTALLED="$c $BASE"
    [ ! -e "$c/.complete" ] || return 0
    root "installed-$1" "$BASE"
    # Where there are only headers: what depmod needs to take it for a kernel.
    mkdir -p "$C/lib/modules/$K/kernel"
    touch "$C/lib/modules/$K/modules.builtin" "$C/lib/modules/$K/modules.order"
    story "$LABEL: install, with the version of dkms as named"
    # shellcheck disable=SC2046
    testsuccess apt install $(userland_debs "$UP")
    testsuccess apt install "$(dkms_deb "$V1-1")" "$(pin_deb "$V1-1")"
    # shellcheck disable=SC2016
    testequal "${LABEL#dkms }" "$(inside dpkg-query -W -f '${Version}' dkms | sed 's/[-+].*//')" "dkms"
    testequal ii "$(package_state nvidia-p2p-dkms)" "state"
    testsuccess whole "$K" "$V1"
    leave
    touch "$c/.complete"
}
# fresh NAME: a root with version 1 installed.
fresh() {
    # shellcheck disable=SC2086
    root "$1" $INSTALLED
    BEFORE=$(modules_of "$K")
}
same_modules() { testequal "$BEFORE" "$(modules_of "$K")" "modules of the old kernel"; }
kernel_is_configured() {
    testequal "ii ii" "$(package_state "linux-image-$1") $(package_state "linux-headers-$1")" "packages of the kernel"
    testequal '' "$(inside dpkg --audit)" "dpkg --audit"
}

kernels_stories() {
    local n rest
    with_module "$1"

    story "$LABEL: a new kernel that builds"
    n=99.1-fine
    fresh kernel
    testsuccess apt install "$(image $n)" "$(headers $n)"
    kernel_is_configured $n
    testmatch "^nvidia-p2p: ${V1//+/\\+}-1 is installed for kernel $n" "$OUTPUT" "what apt shows"
    testsuccess whole $n "$V1"
    testmatch "^$n " "$(inside modinfo -k $n -F vermagic nvidia)" "vermagic"
    testequal '' "$(motd)" "login notice"
    same_modules

    story "$LABEL: a kernel that goes is forgotten"
    testsuccess apt purge "linux-image-$n" "linux-headers-$n"
    testnomatch "$n" "$(inside /usr/lib/nvidia-p2p/modules status)"
    testequal '' "$(motd)" "login notice"
    testequal '' "$(inside dpkg --audit)" "dpkg --audit"
    same_modules

    story "$LABEL: a new kernel that does not compile"
    n=99.2-broken
    fresh kernel
    testsuccess apt install "$(image $n)" "$(headers $n)"
    kernel_is_configured $n
    testmatch "^nvidia-p2p: warning: kernel $n has no NVIDIA modules: .*another interface.*log: /var/log/nvidia-p2p/.*boot another kernel" "$OUTPUT" "what apt shows"
    testequal none "$(version_for $n)" "module of the new kernel"
    testmatch "^\*\*\* nvidia-p2p: kernel $n has no NVIDIA modules: .*another interface" "$(motd)" "login notice"
    testmatch "^$n: .* failed: " "$(inside /usr/lib/nvidia-p2p/modules status)" "status"
    same_modules
    metrics $n

    story "$LABEL: an upgrade of ours does not stumble over that kernel"
    testsuccess apt install "$(dkms_deb "$V2-1")"
    testmatch "^nvidia-p2p: warning: build for kernel $n failed: .*that kernel has no NVIDIA modules" "$OUTPUT" "what apt shows"
    testsuccess whole "$K" "$V2"
    testequal none "$(version_for $n)" "module of the new kernel"
    testmatch "kernel $n has no NVIDIA modules" "$(motd)" "login notice"

    story "$LABEL: corrected headers bring the module, the notice goes"
    if ! slow "once more"; then
        testsuccess apt install "$(headers $n 2)"
        testsuccess whole $n "$V2"
        testequal '' "$(motd)" "login notice"
    fi

    story "$LABEL: a kernel that is excluded"
    n=99.3-rt
    fresh kernel
    testsuccess apt install "$(image $n)" "$(headers $n)"
    kernel_is_configured $n
    testmatch "^nvidia-p2p: warning: kernel $n has no NVIDIA modules: .*real-time kernel" "$OUTPUT" "what apt shows"
    testmatch "kernel $n has no NVIDIA modules: .*real-time" "$(motd)" "login notice"
    same_modules
    metrics $n

    story "$LABEL: a kernel that is known to be too new"
    n=100.1-new
    fresh kernel
    testsuccess apt install "$(image $n)" "$(headers $n)"
    kernel_is_configured $n
    testmatch "^nvidia-p2p: warning: kernel $n has no NVIDIA modules: .*too new" "$OUTPUT" "what apt shows"
    testmatch "kernel $n has no NVIDIA modules: .*too new" "$(motd)" "login notice"
    same_modules

    # From 7.x on Debian's headers bring modules.builtin, which image packages alone had before.
    story "$LABEL: headers alone are no kernel to be warned of"
    fresh kernel
    testsuccess apt install "$(headers $n)"
    touch "$C/lib/modules/$n/modules.builtin" "$C/lib/modules/$n/modules.order"
    testmatch "^$n: .*too new" "$(inside /usr/lib/nvidia-p2p/modules status)" "status"
    testequal '' "$(motd)" "login notice"
    same_modules
    metrics $n no

    story "$LABEL: the image first, its headers later"
    if ! slow "once more"; then
        n=99.1-fine
        fresh kernel
        testsuccess apt install "$(image $n)"
        testmatch "^nvidia-p2p: warning: no headers of kernel $n; run: apt install linux-headers-$n" "$OUTPUT" "what apt shows"
        testmatch "kernel $n has no NVIDIA modules: no headers" "$(motd)" "login notice"
        testsuccess apt install "$(headers $n)"
        testsuccess whole $n "$V1"
        testequal '' "$(motd)" "login notice"
    fi

    story "$LABEL: kernel and module in one run of apt"
    if ! slow "twice"; then
        fresh kernel
        testsuccess apt install "$(image $n)" "$(headers $n)" "$(dkms_deb "$V2-1")"
        kernel_is_configured $n
        testsuccess whole $n "$V2"
        testsuccess whole "$K" "$V2"
    fi

    story "$LABEL: a broken release keeps the old modules, the way back is one command"
    fresh kernel
    testfailure apt install "$(dkms_deb "$V8-1")"
    testmatch "^nvidia-p2p: error: build for kernel ${K//+/\\+} failed: .*broken on purpose" "$OUTPUT" "what apt shows"
    same_modules
    testsuccess apt install "$(dkms_deb "$V1-1")"
    testequal ii "$(package_state nvidia-p2p-dkms)" "state"
    same_modules

    story "$LABEL: roll-back of a good but unwanted release on the host"
    if ! slow "twice"; then
        fresh kernel
        testsuccess apt install "$(dkms_deb "$V2-1")"
        testsuccess whole "$K" "$V2"
        testsuccess apt install "$(dkms_deb "$V1-1")"
        testsuccess whole "$K" "$V1"
        same_modules
    fi
    leave
    resilience_stories "$1"
    sandbox_stories
}

# Nothing that p2p-verify reads may be hidden from the unit that writes the metrics (systemd.exec(5)).
sandbox_stories() {
    local unit=$P2P_TOP/debian/nvidia-p2p-verify.service verify=$P2P_OUT/build/tools/p2p-verify/p2p-verify m=$P2P_WORK/hidden
    story "$LABEL: the timer's unit hides nothing that p2p-verify reads"
    # /lib/modules; kernel log; /dev/nvidia*, /dev/kmsg (ProtectClock implies DeviceAllow=char-rtc); processes; homes.
    testequal '' "$(grep -E '^(ProtectKernelModules|ProtectKernelLogs|ProtectClock|PrivateDevices|DevicePolicy|DeviceAllow|ProtectProc|ProcSubset|PrivatePIDs|PrivateUsers|InaccessiblePaths|TemporaryFileSystem|RootDirectory)=|^ProtectHome=(yes|true|tmpfs)' "$unit")" "directives"
    testmatch '^CapabilityBoundingSet=.*CAP_SYS_PTRACE' "$(cat "$unit")"
    testnomatch '^CapabilityBoundingSet=.*CAP_(SYS_MODULE|SYS_TIME)' "$(cat "$unit")"
    [ -x "$verify" ] || return 0
    # What such a directive would cost: the finding that a reboot waits for.
    rm -rf "$m"
    mkdir "$m"
    tar -C "$m" --strip-components=1 -xzf "$P2P_TOP/tests/fixtures/machines/kernels.tar.gz"
    _run "$verify" --level env --root "$m" --prometheus "$P2P_WORK/seen.prom"
    testmatch 'id="no-module-for-kernel"' "$(cat "$P2P_WORK/seen.prom")" "with /lib/modules"
    rm -rf "$m/lib/modules"
    mkdir "$m/lib/modules"
    _run "$verify" --level env --root "$m" --prometheus "$P2P_WORK/hidden.prom"
    testmatch 'id="module-unknown"' "$(cat "$P2P_WORK/hidden.prom")" "without it"
}

# no_compiler: what compiles for the kernel of the root is not there; a second call brings it back.
no_compiler() {
    local f
    for f in "$C"/usr/bin/*gcc-[0-9]*; do
        case $f in
        *gcc-ar* | *gcc-nm* | *gcc-ranlib*) ;;
        *.off) mv "$f" "${f%.off}" ;;
        *) mv "$f" "$f.off" ;;
        esac
    done
}
kernel_status() { inside /usr/lib/nvidia-p2p/modules status | sed -n "s/^$K: //p"; }
conf() { if [ -e "$C/etc/modprobe.d/nvidia-p2p.conf" ]; then echo there; else echo gone; fi; }
nothing_lost() {
    same_modules
    testequal "$V1-1" "$(cat "$C/var/lib/nvidia-p2p/active" 2>&1)" "the active version"
    testequal ii "$(package_state nvidia-p2p-dkms)" "state"
    testmatch "${V1//+/\\+}-1, ${K//+/\\+}.*installed" "$(inside dkms status 2>&1)" "dkms status"
}

# What goes wrong on a machine that works: nothing of it may be lost.
resilience_stories() {
    local n
    with_module "$1"

    story "$LABEL: a reconfiguration that fails loses nothing, and names the command that repairs"
    n=99.2-broken
    fresh resilience
    rm -rf "$C/var/lib/nvidia-p2p/built" # as docs/fleet.md says for a new key
    no_compiler
    testfailure inside dpkg-reconfigure nvidia-p2p-dkms
    testmatch "^nvidia-p2p: error: .*apt install gcc-[0-9]" "$OUTPUT" "the cause"
    testmatch '^nvidia-p2p: error: .*run: dpkg-reconfigure nvidia-p2p-dkms$' "$OUTPUT" "the remedy"
    testnomatch 'dpkg --configure -a' "$OUTPUT" "the remedy"
    testmatch "kernel ${K//+/\\+} keeps the modules of ${V1//+/\\+}-1" "$OUTPUT"
    nothing_lost
    testnomatch '-1 installed' "$(kernel_status)" "status"
    testmatch "kernel ${K//+/\\+} keeps its old NVIDIA modules" "$(motd)" "login notice"
    no_compiler
    # Now the compiler is there and fails.
    sed -i 's/^MODULE_LICENSE/#error broken here\n&/' "$C/usr/src/nvidia-p2p-$V1-1/kernel-open/nvidia-uvm.c"
    testfailure inside dpkg-reconfigure nvidia-p2p-dkms
    testmatch 'broken here' "$OUTPUT" "the cause"
    nothing_lost
    testequal '' "$(find "$C/var/lib/dkms/nvidia-p2p/$V1-1" -name '.old*')" "left"
    sed -i '/^#error/d' "$C/usr/src/nvidia-p2p-$V1-1/kernel-open/nvidia-uvm.c"
    testsuccess inside dpkg-reconfigure nvidia-p2p-dkms
    testequal "$V1-1 installed" "$(kernel_status)" "status"
    testsuccess whole "$K" "$V1"

    story "$LABEL: a running kernel that does not compile takes nothing from another one"
    fresh resilience
    testsuccess apt install "$(image $n)" "$(headers $n)"
    mv "$C/bin/uname" "$C/bin/uname.real"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\ncase $* in -r) echo %s ;; *) exec /bin/uname.real "$@" ;; esac\n' "$n" >"$C/bin/uname"
    chmod 755 "$C/bin/uname"
    testfailure inside dpkg-reconfigure nvidia-p2p-dkms
    nothing_lost
    testequal "$V1-1 installed" "$(kernel_status)" "status"
    mv "$C/bin/uname.real" "$C/bin/uname"
    testsuccess inside dpkg-reconfigure nvidia-p2p-dkms
    nothing_lost

    story "$LABEL: a release that refuses the kernel takes no working modules away"
    fresh resilience
    refuse_kernel "$V2-1"
    testfailure apt install refusing.deb
    testmatch "^nvidia-p2p: error: kernel ${K//+/\\+} is too new.*it has modules of ${V1//+/\\+}-1" "$OUTPUT" "what apt shows"
    testmatch 'run: dpkg --configure -a$' "$OUTPUT" "the remedy"
    same_modules
    testsuccess apt install "$(dkms_deb "$V1-1")"
    nothing_lost

    story "$LABEL: depmod that fails is an error, and another run repairs it"
    fresh resilience
    mv "$C/sbin/depmod" "$C/sbin/depmod.real"
    printf '#!/bin/sh\necho "depmod: ERROR: No space left on device" >&2\nexit 1\n' >"$C/sbin/depmod"
    chmod 755 "$C/sbin/depmod"
    testfailure apt install "$(dkms_deb "$V2-1")"
    testmatch "^nvidia-p2p: error: depmod ${K//+/\\+} failed .*dpkg --configure -a" "$OUTPUT" "what apt shows"
    testmatch '^iF' "$(package_state nvidia-p2p-dkms)" "state"
    testnomatch '-1 installed' "$(kernel_status)" "status"
    rm "$C/sbin/depmod"
    mv "$C/sbin/depmod.real" "$C/sbin/depmod"
    testsuccess inside dpkg --configure -a
    testsuccess whole "$K" "$V2"
    testequal "$V2-1 installed" "$(kernel_status)" "status"
    # What modprobe does not know is not installed.
    sed -i '/nvidia-uvm/d' "$C/lib/modules/$K/modules.dep"
    testsuccess inside dpkg-reconfigure nvidia-p2p-dkms
    testmatch '^updates/dkms/nvidia-uvm.ko' "$(cat "$C/lib/modules/$K/modules.dep")" "modules.dep"

    story "$LABEL: a deconfiguration that is called off leaves everything in place"
    fresh resilience
    breaking
    testfailure inside dpkg --auto-deconfigure -i /debs/breaking.deb
    nothing_lost
    testequal there "$(conf)" "modprobe's file"
    testequal "$V1-1 installed" "$(kernel_status)" "status"

    story "$LABEL: a removal that is called off brings everything back"
    # What comes after ours in prerm: systemd's part, for example.
    echo 'exit 1' >>"$C/var/lib/dpkg/info/nvidia-p2p-dkms.prerm"
    testfailure inside dpkg -r nvidia-p2p-dkms
    testsuccess whole "$K" "$V1"
    testequal ri "$(package_state nvidia-p2p-dkms)" "state: to be removed, installed"
    testequal there "$(conf)" "modprobe's file"
    leave
    initramfs_stories
    leave
}

# The initramfs takes modules and modprobe's file, so it comes after both.
initramfs_stories() {
    local log=$P2P_WORK/initramfs.log
    story "$LABEL: an initramfs is made after modprobe's file, and again when only that changed"
    fresh initramfs
    mkdir -p "$C/boot"
    : >"$C/boot/initrd.img-$K"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\necho "$* $(ls /etc/modprobe.d/nvidia-p2p.conf 2>/dev/null) $(ls /lib/modules/%s/updates/dkms 2>/dev/null | wc -l)" >>/initramfs.log\n' "$K" >"$C/usr/sbin/update-initramfs"
    printf '#!/bin/sh\necho usr/lib/modules/x/kernel/drivers/gpu/drm/nouveau/nouveau.ko\n' >"$C/usr/bin/lsinitramfs"
    chmod 755 "$C/usr/sbin/update-initramfs" "$C/usr/bin/lsinitramfs"
    log=$C/initramfs.log
    testsuccess inside dpkg -r nvidia-p2p-dkms
    testequal "-u -k $K  0" "$(cat "$log")" "what the one after a removal sees"
    rm "$log"
    testsuccess apt install "$(dkms_deb "$V1-1")"
    testequal "-u -k $K /etc/modprobe.d/nvidia-p2p.conf 5" "$(cat "$log")" "what the one after an installation sees"
    rm "$log"
    testsuccess inside dpkg-reconfigure nvidia-p2p-dkms
    testsuccess test ! -e "$log"
    echo '# mine' >>"$C/etc/modprobe.d/nvidia-p2p.conf"
    testsuccess inside dpkg-reconfigure nvidia-p2p-dkms
    testequal "-u -k $K /etc/modprobe.d/nvidia-p2p.conf 5" "$(cat "$log")" "after the file changed"

    story "$LABEL: modprobe's file that was deleted stays deleted, and that is said once"
    rm "$log" "$C/etc/modprobe.d/nvidia-p2p.conf"
    testsuccess inside dpkg-reconfigure nvidia-p2p-dkms
    testmatch '^nvidia-p2p: /etc/modprobe.d/nvidia-p2p.conf was deleted here and stays so; to have it back: cp ' "$OUTPUT" "what is shown"
    testequal gone "$(conf)" "modprobe's file"
    testequal "-u -k $K  5" "$(cat "$log")" "the initramfs"
    testsuccess apt install --reinstall "$(dkms_deb "$V1-1")"
    testnomatch 'was deleted' "$OUTPUT" "the second time"
    testequal gone "$(conf)" "modprobe's file"
    testsuccess inside cp /usr/share/nvidia-p2p/modprobe.conf /etc/modprobe.d/nvidia-p2p.conf
    testsuccess inside dpkg-reconfigure nvidia-p2p-dkms
    testequal "$(cd "$C/usr/share/nvidia-p2p" && sha256sum <modprobe.conf | cut -d' ' -f1)" "$(cat "$C/var/lib/nvidia-p2p/modprobe.sha256")" "ours again"
    testsuccess inside dpkg -r nvidia-p2p-dkms
    testsuccess inside dpkg -P nvidia-p2p-dkms
    testequal gone "$(conf)" "modprobe's file"
    testequal '' "$(find "$C/var/lib" "$C/etc" -name 'nvidia-p2p*' ! -path '*/dpkg/*' ! -path '*/apt/*' ! -name '*.pref')" "left"
}

# refuse_kernel VERSION: $DEBS/refusing.deb is that release, known not to compile for the root's kernel.
refuse_kernel() {
    local d=$P2P_WORK/refusing
    rm -rf "$d"
    dpkg-deb -R "$DEBS/$(dkms_deb "$1")" "$d"
    sed -i "s/^KERNEL_REFUSED=.*/KERNEL_REFUSED='4.0'/" "$d"/usr/src/*/dkms-build
    dpkg-deb --root-owner-group -Zgzip -z1 -b "$d" "$DEBS/refusing.deb" >/dev/null
}

# /debs/breaking.deb breaks ours, and its own preinst fails.
breaking() {
    local d=$P2P_WORK/breaking
    rm -rf "$d"
    mkdir -p "$d/DEBIAN" "$C/debs"
    printf 'Package: breaking\nVersion: 1\nArchitecture: all\nMaintainer: Tests <tests@example.org>\nBreaks: nvidia-p2p-dkms (<< 999)\nDescription: stand-in\n' >"$d/DEBIAN/control"
    printf '#!/bin/sh\nexit 1\n' >"$d/DEBIAN/preinst"
    chmod 755 "$d/DEBIAN/preinst"
    dpkg-deb --root-owner-group -Zgzip -b "$d" "$C/debs/breaking.deb" >/dev/null
}

# metrics KERNEL [no]: the metrics name it, or do not, on a machine with GPUs to which that kernel of this root is given.
metrics() {
    local verify=$P2P_OUT/build/tools/p2p-verify/p2p-verify m=$P2P_WORK/machine test=testmatch
    local finding="^nvidia_p2p_finding.*id=\"no-module-for-kernel\".*subject=\"$1\""
    if [ -n "${2:-}" ]; then
        test=testnomatch
        story "$LABEL: metrics do not name headers alone"
    else
        story "$LABEL: metrics name kernel $1 before it is booted"
    fi
    if [ ! -x "$verify" ]; then skip "$verify is not built; run ci/test"; return 0; fi
    rm -rf "$m"
    mkdir "$m"
    tar -C "$m" --strip-components=1 -xzf "$P2P_TOP/tests/fixtures/machines/ready.tar.gz"
    mkdir -p "$m/var/lib/nvidia-p2p/kernels" "$m/lib/modules" "$m/boot"
    cp -a "$C/lib/modules/$1" "$m/lib/modules/"
    if [ -z "${2:-}" ]; then cp "$C/boot/vmlinuz-$1" "$m/boot/"; fi
    cp "$C/var/lib/nvidia-p2p/kernels/$1" "$m/var/lib/nvidia-p2p/kernels/"
    testsuccess "$verify" --level env --root "$m" --prometheus "$P2P_WORK/machine.prom"
    testmatch '^nvidia_p2p_' "$(cat "$P2P_WORK/machine.prom")" "the metrics"
    $test "$finding" "$(cat "$P2P_WORK/machine.prom")" "the metrics"
}

# give_key SUITE: a key of the administrator's, where this dkms takes it from.
give_key() {
    mkdir -p "$C/etc/keys"
    openssl req -new -x509 -nodes -days 2 -subj '/CN=Fleet key of tests' -newkey rsa:2048 -outform DER \
        -keyout "$C/etc/keys/mok.key" -out "$C/etc/keys/mok.der" 2>>"$_log"
    case $1 in
    bullseye)
        # 2.8.4 takes no key, but a tool that signs.
        echo 'NVIDIA_P2P_SIGN_TOOL=/etc/nvidia-p2p/sign' >>"$C/etc/nvidia-p2p/dkms.conf"
        # shellcheck disable=SC2016
        printf '#!/bin/sh\n"/lib/modules/$1/build/scripts/sign-file" sha512 /etc/keys/mok.key /etc/keys/mok.der "$2"\n' >"$C/etc/nvidia-p2p/sign"
        chmod 755 "$C/etc/nvidia-p2p/sign"
        ;;
    *)
        mkdir -p "$C/etc/dkms/framework.conf.d"
        printf 'mok_signing_key=/etc/keys/mok.key\nmok_certificate=/etc/keys/mok.der\n' >"$C/etc/dkms/framework.conf.d/mok.conf"
        ;;
    esac
}

signing_stories() {
    with_module "$1"
    story "$LABEL: modules are signed with the key that the administrator gives"
    fresh signing
    give_key "$1"
    testsuccess apt install "$(dkms_deb "$V2-1")"
    testsuccess whole "$K" "$V2"
    for m in nvidia nvidia-modeset nvidia-drm nvidia-uvm nvidia-peermem; do
        testequal 'Fleet key of tests' "$(inside modinfo -k "$K" -F signer "$m" 2>&1)" "signer of $m"
    done
    leave
}

# Secure Boot as far as the scripts can see it: the firmware's variable, and a mokutil that answers
# as the real one does.
secureboot_stories() {
    with_module "$1"
    local vars
    fresh secureboot
    vars=$C/sys/firmware/efi/efivars
    mkdir -p "$vars"
    printf '\006\000\000\000\001' >"$vars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\n[ "$1" = --test-key ] && [ -r "$2" ] || exit 1\necho "$2 $(cat /root/answer)"\n' >"$C/usr/bin/mokutil"
    chmod 755 "$C/usr/bin/mokutil"

    story "$LABEL: Secure Boot, the key is not enrolled: what to type"
    echo 'is not enrolled' >"$C/root/answer"
    testsuccess apt install "$(dkms_deb "$V2-1")"
    if [ -n "$(inside modinfo -k "$K" -F signer nvidia)" ]; then
        testmatch '^nvidia-p2p: warning: Secure Boot is on and the key ".*" is not enrolled.*mokutil --import /[^ ]+, then reboot' "$OUTPUT" "what apt shows"
    else
        testmatch '^nvidia-p2p: warning: Secure Boot is on and the modules .* are not signed.*dpkg-reconfigure' "$OUTPUT" "what apt shows"
    fi

    story "$LABEL: Secure Boot, a key that comes later signs what is there"
    if ! slow "once more"; then
        give_key "$1"
        # Where a key was there already, its modules have to be made anew by hand.
        rm -f "$C"/var/lib/nvidia-p2p/built/*/*
        testsuccess inside dpkg-reconfigure nvidia-p2p-dkms
        testequal 'Fleet key of tests' "$(inside modinfo -k "$K" -F signer nvidia-uvm 2>&1)" "signer"
        if [ "$1" = bullseye ]; then
            testmatch 'key "Fleet key of tests"; check that it is enrolled: mokutil --test-key' "$OUTPUT" "what is shown"
        else
            testmatch 'key "Fleet key of tests" is not enrolled' "$OUTPUT" "what is shown"
        fi
        echo 'is already in the enrollment request' >"$C/root/answer"
        testsuccess inside dpkg-reconfigure nvidia-p2p-dkms
        [ "$1" = bullseye ] || testmatch 'waits to be enrolled; reboot and choose Enroll MOK' "$OUTPUT" "what is shown"
    fi

    [ "$1" != bullseye ] || { leave; return 0; }
    story "$LABEL: Secure Boot, the key is enrolled: not a word"
    echo 'is already enrolled' >"$C/root/answer"
    testsuccess inside dpkg-reconfigure nvidia-p2p-dkms
    testnomatch 'Secure Boot' "$OUTPUT"
    testnomatch 'building' "$OUTPUT"
    leave
}

# The module that runs is older than the one on disk.
reboot_stories() {
    with_module "$1"
    story "$LABEL: a reboot is asked for when the loaded module was replaced"
    fresh reboot
    # A machine that runs this kernel with the module in it, as far as the scripts can see.
    mkdir -p "$C/sys/module/nvidia"
    mv "$C/bin/uname" "$C/bin/uname.real"
    # shellcheck disable=SC2016
    printf '#!/bin/sh\ncase $* in -r) echo %s ;; *) exec /bin/uname.real "$@" ;; esac\n' "$K" >"$C/bin/uname"
    chmod 755 "$C/bin/uname"
    testsuccess apt install "$(dkms_deb "$V2-1")"
    testmatch "^nvidia-p2p: reboot to load ${V2//+/\\+}-1" "$OUTPUT" "what apt shows"
    testsuccess test -s "$C/run/reboot-required"
    testequal nvidia-p2p-dkms "$(cat "$C/run/reboot-required.pkgs" 2>&1)" "who asks"
    testsuccess apt install --reinstall "$(dkms_deb "$V2-1")"
    testequal 1 "$(grep -c nvidia-p2p-dkms "$C/run/reboot-required.pkgs" 2>&1)" "it is named once"

    story "$LABEL: no reboot is asked for where nothing of it is loaded"
    if slow 'once more'; then return 0; fi
    fresh reboot
    testsuccess apt install "$(dkms_deb "$V2-1")"
    testnomatch 'reboot' "$OUTPUT"
    testsuccess test ! -e "$C/run/reboot-required"
    leave
}
