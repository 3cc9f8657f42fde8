# SPDX-License-Identifier: MIT
# What each step installs when it is missing; the names are the same on Debian 11
# to 13 and Ubuntu 22.04 and 24.04.  Source ci/lib.sh first.
# shellcheck shell=bash
# shellcheck disable=SC2034

# Fetch, change, build, package, lint, publish.
PACKAGES_BUILD='apt-utils ca-certificates clang-format cmake coccinelle curl debhelper devscripts dpkg-dev fakeroot g++ git gnupg
 libboost-test-dev libcli11-dev libfmt-dev libkmod-dev liblzma-dev libpci-dev libzstd-dev lintian make ninja-build
 nlohmann-json3-dev patch pkg-config pylint python3 shellcheck systemd xz-utils'
# The package clang is what debian/control names; where version 14 has a name of its own, the PTX is made afresh.
PACKAGES_BUILD="$PACKAGES_BUILD clang"

# The suites on top of that.
PACKAGES_TEST='bc binutils busybox-static cpio e2fsprogs file gcc jq kmod libumockdev-dev man-db mmdebstrap openssl ovmf pahole|dwarves
 pciutils procps python3-apt python3-jsonschema qemu-system-x86 strace umockdev util-linux zstd'
