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
    metrics_name $n

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
    metrics_name $n

    story "$LABEL: a kernel that is known to be too new"
    n=100.1-new
    fresh kernel
    testsuccess apt install "$(image $n)" "$(headers $n)"
    kernel_is_configured $n
    testmatch "^nvidia-p2p: warning: kernel $n has no NVIDIA modules: .*too new" "$OUTPUT" "what apt shows"
    testmatch "kernel $n has no NVIDIA modules: .*too new" "$(motd)" "login notice"
    same_modules

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
    testmatch "^nvidia-p2p: error: build for kernel $K failed: .*broken on purpose" "$OUTPUT" "what apt shows"
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
}

# metrics_name KERNEL: the metrics name it, on a machine with GPUs to which the kernels of this root are given.
metrics_name() {
    local verify=$P2P_OUT/build/tools/p2p-verify/p2p-verify m=$P2P_WORK/machine
    story "$LABEL: metrics name kernel $1 before it is booted"
    if [ ! -x "$verify" ]; then skip "$verify is not built; run ci/test"; return 0; fi
    rm -rf "$m"
    mkdir "$m"
    tar -C "$m" --strip-components=1 -xzf "$P2P_TOP/tests/fixtures/machines/ready.tar.gz"
    mkdir -p "$m/var/lib/nvidia-p2p/kernels" "$m/lib/modules" "$m/boot"
    cp -a "$C/lib/modules/$1" "$m/lib/modules/"
    cp "$C/boot/vmlinuz-$1" "$m/boot/"
    cp "$C/var/lib/nvidia-p2p/kernels/$1" "$m/var/lib/nvidia-p2p/kernels/"
    testsuccess "$verify" --level env --root "$m" --prometheus "$P2P_WORK/machine.prom"
    testmatch "^nvidia_p2p_finding.*id=\"no-module-for-kernel\".*subject=\"$1\"" "$(cat "$P2P_WORK/machine.prom")" "the metrics"
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
    fresh reboot
    testsuccess apt install "$(dkms_deb "$V2-1")"
    testnomatch 'reboot' "$OUTPUT"
    testsuccess test ! -e "$C/run/reboot-required"
    leave
}
