# SPDX-License-Identifier: MIT
# The words of a story inside the guest.  Everything goes to the transcript, framed so that the
# host finds each command's output and status again:
#   @@ begin NAME COMMAND...
#   (output)
#   @@ end NAME STATUS
# shellcheck shell=sh

# kmod's own: busybox's shell would take its applets.
insmod() { /sbin/insmod "$@"; }
modprobe() { /sbin/modprobe "$@"; }
rmmod() { /sbin/rmmod "$@"; }
depmod() { /sbin/depmod; }
modinfo() { /sbin/modinfo "$@"; }

# show NAME COMMAND...: run, record output and status under NAME.
show() {
    _name=$1
    shift
    printf '@@ begin %s %s\n' "$_name" "$*"
    "$@"
    printf '\n@@ end %s %s\n' "$_name" "$?"
}

# plug [PARAMETER=VALUE...]: plug the fake GPUs in, as module/fakegpu.c describes.
plug() { show plug insmod /guest/fakegpu.ko "$@"; }

# bars NAME: what users look at first.
bars() { show "$1" lspci -D -vv -d 10de::0300; }

# load NAME: load the driver as udev does, by the GPU's modalias; blacklists count.
load() {
    for _alias in /sys/bus/pci/devices/0010:*.0/modalias; do
        case $(cat "${_alias%modalias}vendor") in 0x10de) break ;; esac
    done
    show "$1" modprobe -v -b "$(cat "$_alias")"
}

# verify NAME [OPTION...]: the tool's answer as JSON.
verify() {
    _v=$1
    shift
    show "$_v" p2p-verify --level env --json "$@"
}

# state NAME: put the files of an installed (or removed) package in place, as dpkg would.
state() {
    rm -rf /etc/modprobe.d /lib/modules/"$(uname -r)"/updates /var/lib/dkms /var/lib/nvidia-p2p
    mkdir -p /etc/modprobe.d
    cp -a "/states/$1/." /
    depmod
}

# snapshot NAME: p2p-verify gather, for the host to replay.
snapshot() {
    p2p-verify gather /run/snapshot.tar.gz && show "$1" base64 /run/snapshot.tar.gz
}
