# SPDX-License-Identifier: MIT
# Kernels to boot: packages of the running distribution, unpacked, never installed.
# shellcheck shell=bash

# kernel_release META: the release that a meta package such as linux-image-amd64 leads to.
kernel_release() {
    apt-cache depends "$1" 2>/dev/null | sed -n 's/^ *Depends: linux-image-//p' | head -n 1
}

# image_packages RELEASE [APT-CACHE OPTION...]: the packages of a kernel's image, three beside it from 7.x on.
image_packages() {
    local release=$1
    shift
    printf 'linux-image-%s\n' "$release"
    apt-cache "$@" depends "linux-image-$release" 2>/dev/null | sed -n "s/^ *Depends: \(linux-[a-z]*-$release\)\$/\1/p"
}

# kernel_get RELEASE DIR [APT-GET OPTION...]: image and headers of one release, unpacked in DIR; does
# nothing when DIR holds them.  $DIR/usr/src/linux-headers-RELEASE is ready for module builds.
kernel_get() {
    local release=$1 dir=$2 flavour kbuild abi
    shift 2
    [ ! -e "$dir/complete" ] || return 0
    abi=${release%-amd64} flavour=${release##*-}
    [ "$flavour" = amd64 ] || abi=${release%-*-amd64}
    kbuild=$(apt-cache "$@" depends "linux-headers-$release" | sed -n 's/^ *Depends: \(linux-kbuild-.*\)/\1/p')
    [ -n "$kbuild" ] || die 1 "no package linux-headers-$release; run: apt-get update"
    say "fetching kernel $release"
    rm -rf "$dir"
    mkdir -p "$dir/debs"
    # shellcheck disable=SC2046
    (cd "$dir/debs" && apt-get "$@" -qq -o APT::Sandbox::User=root download $(image_packages "$release" "$@") \
        "linux-headers-$release" "linux-headers-$abi-common" "$kbuild") ||
        die 1 "download of kernel $release failed; check the network and run: apt-get update"
    for deb in "$dir"/debs/*.deb; do dpkg -x "$deb" "$dir"; done
    rm -rf "$dir/debs"
    # The one absolute path in Debian's header packages.
    sed -i "s#^include /usr/src/#include $dir/usr/src/#" "$dir/usr/src/linux-headers-$release/Makefile"
    ln -sfn "$dir/usr/src/linux-headers-$release" "$dir/lib/modules/$release/build"
    ln -sfn "$dir/usr/src/linux-headers-$abi-common" "$dir/lib/modules/$release/source"
    touch "$dir/complete"
}

# kernel_file RELEASE DIR NAME: where vmlinuz or config is: in boot/, beside the modules from 7.x on.
kernel_file() {
    local file
    for file in "$2/boot/$3-$1" "$2/lib/modules/$1/$3"; do
        [ ! -e "$file" ] || { printf '%s\n' "$file"; return; }
    done
    die 1 "$2 holds no $3 of kernel $1, neither in boot/ nor beside its modules"
}

# kernel_cc RELEASE DIR: the compiler that built the kernel, by its own record.
kernel_cc() {
    sed -n 's/^CONFIG_CC_VERSION_TEXT="\{0,1\}\([^ "]*\).*/\1/p' "$(kernel_file "$1" "$2" config)"
}

# kernel_modules RELEASE DIR OUT: build module/ for that kernel into OUT.
kernel_modules() {
    local release=$1 dir=$2 out=$3 cc src=$P2P_TOP/tests/vm/module
    cc=$(kernel_cc "$release" "$dir")
    if [ -e "$out/fakegpu.ko" ] && [ "$out/fakegpu.ko" -nt "$src/fakegpu.c" ] &&
        [ "$out/fakegpu.ko" -nt "$src/nouveau.c" ]; then return 0; fi
    command -v "$cc" >/dev/null ||
        die 1 "kernel $release was built by $cc, which is missing; install it: apt-get install $cc"
    rm -rf "$out"
    mkdir -p "$out"
    cp "$src"/*.c "$src/Kbuild" "$out/"
    make -s -C "$dir/usr/src/linux-headers-$release" M="$out" CC="$cc" modules >"$out/make.log" 2>&1 ||
        { tail -n 5 "$out/make.log" >&2; die 1 "build of the fake GPUs for $release failed; see $out/make.log"; }
}
