# SPDX-License-Identifier: MIT
# What apt's solver decides, without a package being unpacked: tests/fleet/simulate.py.
# shellcheck shell=bash
# shellcheck disable=SC2154

# What holds an upgrade together, each taken away: option of simulate.py.
MUTANTS=(--no-pin --pin-first)
# The same for a first installation, when the pin is not there yet.
MATRIX_MUTANTS=(
    'Depends: (libnvidia-compute|nvidia-utils|nvidia-kernel-common).*<<'
    'Depends: (libnvidia-compute|nvidia-utils|nvidia-kernel-common)'
    'Provides: nvidia-dkms-[0-9]*-open'
    'nvidia-dkms-kernel'
)

# solvers FUNCTION: call it with this machine's apt, and with that of each suite that has another.
# $APT is its name, SYSTEM what simulate.py is told of where it is.
solvers() {
    local s own
    own=$(apt-get --version | awk '{ print $2; exit }')
    APT="apt ${own%.${own#*.*.}}" SYSTEM=()
    "$1"
    for s in $suites; do
        [ "${APT_OF[$s]}" != "$APT" ] || continue
        base "$s"
        root "solver-$s" "$BASE"
        APT=${APT_OF[$s]} SYSTEM=(--root "$C")
        "$1"
        leave
    done
}

lockstep_stories() { solvers lockstep_with; }
lockstep_with() {
    local n=500 option
    # The other solvers decide the same relations.
    [ "${#SYSTEM[@]}" -eq 0 ] || n=60
    [ -z "$slice" ] || n=12
    story "$APT: module and user space in lockstep, simulated histories of ten releases"
    testsuccess python3 "$here/simulate.py" lockstep "${SYSTEM[@]}" --histories "$n" --seed 1
    printf '%s\n' "$OUTPUT" | tail -n 1
    for option in "${MUTANTS[@]}"; do
        story "$APT: the property breaks with ${option}"
        testexit 1 python3 "$here/simulate.py" lockstep "${SYSTEM[@]}" --histories 40 --seed 1 --first "$option"
        # An error of the program is no broken property.
        testmatch 'histories from seed .* [1-9][0-9]* broke$' "$OUTPUT"
    done
    for option in "${MATRIX_MUTANTS[@]}"; do
        story "$APT: an installation goes wrong without ${option}"
        testexit 1 python3 "$here/simulate.py" matrix "${SYSTEM[@]}" --drop "$option"
        testmatch '^NOT OK' "$OUTPUT"
    done
}

matrix_stories() { solvers matrix_with; }
matrix_with() {
    rows matrix 'install on'
    rows rollback 'roll-back of a host by'
}
# rows COMMAND WHAT: a story for each line of its table.
rows() {
    local table result name what
    _run python3 "$here/simulate.py" "$1" "${SYSTEM[@]}"
    table=$OUTPUT
    while IFS=$'\t' read -r result name what; do
        story "$APT: $2: $name"
        testequal ok "$(printf '%s' "$result" | tr -d '\n')" "$what"
    done <<<"$table"
}

# The same with real packages and the real unattended-upgrades, in a root of each suite.
real_stories() {
    local n=10 seed roots
    [ -z "$slice" ] || n=1
    base "$1"
    story "${APT_OF[$1]}: install unattended-upgrades"
    root "unattended-$1" "$BASE"
    testsuccess inside apt-get -qq update
    testsuccess inside apt-get -y -q --no-install-recommends install unattended-upgrades
    roots="$UPPER $BASE"
    leave
    for seed in $(seq "$n"); do
        story "${APT_OF[$1]}: history $seed really run, with unattended-upgrades"
        # shellcheck disable=SC2086
        root real $roots
        testsuccess python3 "$here/real.py" "$C" "$seed"
    done
    story "${APT_OF[$1]}: a host goes back one release by the documented command, and stays there"
    # shellcheck disable=SC2086
    root real $roots
    testsuccess python3 "$here/real.py" "$C" rollback
    leave
}
