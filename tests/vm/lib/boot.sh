# SPDX-License-Identifier: MIT
# Boot a guest, run a story in it, find its results.
# shellcheck shell=bash disable=SC2154

# boot [-a KERNEL-ARGUMENTS] [-q QEMU-OPTION]... [-s STATE]... <GUEST-SCRIPT
# Runs the script (words of guest/lib.sh) in a fresh guest with the STATES on board; the first state
# is in place when it starts.  Afterwards `out NAME` and `status NAME` answer.
boot() {
    local args='' qemu=() states=() name
    while getopts a:q:s: name; do
        case $name in
        a) args=$OPTARG ;;
        q) qemu+=("$OPTARG") ;;
        s) states+=("$OPTARG") ;;
        *) die 64 "boot: bad option" ;;
        esac
    done
    OPTIND=1
    BOOT=$(mktemp -d "$P2P_WORK/boot.XXXXXX")
    mkdir -p "$BOOT/root/guest" "$BOOT/root/states"
    for name in "${states[@]}"; do cp -al "$VM_STATES/$name" "$BOOT/root/states/$name"; done
    { [ "${#states[@]}" -eq 0 ] || printf 'state %s\n' "${states[0]}"; cat; } >"$BOOT/root/guest/story"
    _pack "$BOOT/root" "$BOOT/story.cpio"
    cat "$VM_BASE" "$BOOT/story.cpio" >"$BOOT/initrd"
    rm -rf "$BOOT/root" "$BOOT/story.cpio"
    # What mem= takes away lies behind the fake BAR0s.
    emulate -m 2G -kernel "$VM_KERNEL" -initrd "$BOOT/initrd" \
        -append "console=ttyS0 quiet panic=-1 no_timer_check nokaslr mem=1280M $args" "${qemu[@]}"
    rm -f "$BOOT/initrd"
}

# emulate QEMU-OPTION...: run a guest to its end, keep transcript and console, sort the results.
# TCG, because KVM is not everywhere and the stories need a kernel, not speed.  The guest stands for
# a real machine: its processor does not say "hypervisor".
emulate() {
    local rc=0 t0
    t0=$(date +%s.%N)
    : >"$BOOT/transcript"
    : >"$BOOT/console"
    timeout "${VM_TIMEOUT:-240}" qemu-system-x86_64 -accel tcg -machine q35 -cpu max,-hypervisor,family=25,model=97 -smp 1 \
        -nodefaults -display none -no-reboot -serial "file:$BOOT/console" -serial "file:$BOOT/transcript" \
        "$@" </dev/null >"$BOOT/qemu" 2>&1 || rc=$?
    attach "$BOOT/transcript" "guest, $(awk -v a="$t0" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }') s"
    attach "$BOOT/console" console
    mkdir -p "$BOOT/results"
    tr -d '\r' <"$BOOT/transcript" | awk -v dir="$BOOT/results/" '
        $1 == "@@" && $2 == "begin" { name = $3; printf "" >(dir name); next }
        $1 == "@@" && $2 == "end" { print $4 >(dir name ".status"); close(dir name); name = ""; next }
        name { print >(dir name) }'
    if [ "$rc" -ne 0 ] || ! grep -q '^@@ over' "$BOOT/transcript"; then
        testequal "a guest that ends its story" "QEMU status $rc; $(cat "$BOOT/qemu"; tail -n 1 "$BOOT/console")"
    fi
}

# out NAME: output of the guest's `show NAME`.
out() { cat "$BOOT/results/$1" 2>/dev/null || printf '(the guest never ran %s)\n' "$1"; }
# status NAME: its exit status.
status() { cat "$BOOT/results/$1.status" 2>/dev/null || printf 'none\n'; }


# bar1 NAME: size of each GPU's BAR1 in a recorded `bars NAME`, in the order of the bus.
bar1() {
    out "$1" | awk '/^[0-9a-f]+:/ { if (gpu) print size; gpu = 1; size = "none" }
        /Region 1: Memory/ { size = $0; sub(/.*\[size=/, "", size); sub(/\].*/, "", size)
                             if ($0 ~ /<unassigned>|<ignored>/) size = "unassigned" }
        END { if (gpu) print size }' | paste -sd ' '
}

# json NAME FILTER: jq on a recorded `verify NAME`.
json() {
    out "$1" | jq -r "$2" 2>/dev/null | paste -sd ' ' | grep . || printf 'no JSON but: %s\n' "$(out "$1" | head -n 1)"
}
# findings NAME [SEVERITY...]: "id subject", sorted, one a line.
findings() {
    local name=$1
    shift
    out "$name" | jq -r --arg s " $* " \
        '.findings[] | .severity as $v | select($s == "  " or ($s | contains(" " + $v + " "))) | .id + " " + .subject' 2>&1 | sort
}

# testfinding NAME ID [SUBJECT]: p2p-verify reported it.  testnofinding: it did not.
testfinding() {
    testmatch "^$2 ${3:-}" "$(findings "$1")" "findings of \`$1'"
}
testnofinding() {
    testmatch '^[a-z]+$' "$(json "$1" .verdict)" "verdict of \`$1'"
    testnomatch "^$2 ${3:-}" "$(findings "$1")" "findings of \`$1'"
}
# testverdict NAME VERDICT EXIT: what the JSON says is what the program exits with.
testverdict() {
    testequal "$2" "$(json "$1" .verdict)" "verdict of \`$1'"
    testequal "$3" "$(status "$1")" "exit status of \`$1'"
}

# replay SNAPSHOT VERIFY: --root on what the guest gathered says here what p2p-verify said there.
replay() {
    local got want
    if ! out "$1" | base64 -d >"$BOOT/$1.tar.gz" 2>/dev/null || ! gzip -t "$BOOT/$1.tar.gz" 2>/dev/null; then
        testequal "a snapshot" "$(out "$1" | tail -n 1)" "p2p-verify gather"
        return 0
    fi
    want=$(out "$2" | jq -S 'del(.time)' 2>&1)
    got=$("$tools/p2p-verify/p2p-verify" --level env --json --root "$BOOT/$1.tar.gz" 2>&1 | jq -S 'del(.time)' 2>&1) || :
    testequal "$(printf '%s' "$want" | sha256sum)" "$(printf '%s' "$got" | sha256sum)" \
        "--root on the snapshot, $(diff <(printf '%s\n' "$want") <(printf '%s\n' "$got") | sed -n 2,3p | paste -sd ' ')"
}
