# SPDX-License-Identifier: MIT
# A small vocabulary for test stories.  Source it from a suite's `run`:
#
#   . "$(dirname "$0")/../framework.sh"
#   suite repo
#   story "a tampered index is refused"
#   testsuccess apt-get update
#   testfailure apt-get install foo
#   testequal "expected" "$(command)"
#   skip "why this story cannot run here"
#   finish
#
# A story passes when none of its expectations failed and at least one was
# checked.  Each story's transcript is kept in $P2P_ARTIFACTS/<suite>/.
# The last line is "N passed, N failed, N skipped"; the exit status is 1 if
# anything failed or no story passed.
# shellcheck shell=bash
set -eu

P2P_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
P2P_ARTIFACTS=${P2P_ARTIFACTS:-$P2P_TOP/out/test-artifacts}
_passed=0 _failed=0 _skipped=0 _story='' _checks=0 _broken='' _log=/dev/null _results=/dev/null _t0=0

# What --help of a suite prints: the comment at its top.
head_of_script() { sed -n '3,${/^# shellcheck/d;/^#/!q;s/^# \{0,1\}//p}' "$0"; }

# only_build [WORD...]: for suites whose only argument is the folder of a build.
only_build() {
    case ${1:-} in
    -h | --help) head_of_script; exit 0 ;;
    -*) printf '%s: error: %s: unknown option; see %s --help\n' "${0##*/}" "$1" "$0" >&2; exit 64 ;;
    esac
    [ $# -le 1 ] || { printf '%s: error: %s: one folder only; see %s --help\n' "${0##*/}" "$2" "$0" >&2; exit 64; }
}

suite() {
    _suite=$1
    mkdir -p "$P2P_ARTIFACTS/$_suite"
    # result, story, number of checks, seconds: for suites that print a table.
    _results=$P2P_ARTIFACTS/$_suite/results.tsv
    : >"$_results"
    P2P_WORK=$(mktemp -d "${TMPDIR:-/tmp}/p2p-$_suite.XXXXXX")
    trap '_on_exit' EXIT
}

# A suite that needs to undo mounts or stop servers defines cleanup().
_on_exit() {
    _rc=$?
    if declare -F cleanup >/dev/null; then cleanup || true; fi
    [ -n "${P2P_KEEP:-}" ] || rm -rf "$P2P_WORK"
    exit "$_rc"
}

story() {
    _close
    _story=$1 _checks=0 _broken='' _t0=$(date +%s.%N)
    _log=$P2P_ARTIFACTS/$_suite/$(printf '%s' "$1" | tr -cs 'A-Za-z0-9' '-' | cut -c1-80).log
    : >"$_log"
}

_close() {
    [ -n "$_story" ] || return 0
    _dt=$(awk -v a="$_t0" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
    if [ -n "$_broken" ]; then
        _failed=$((_failed + 1))
        printf 'not ok - %s: %s (%ss, log: %s)\n' "$_story" "$_broken" "$_dt" "$_log"
        printf 'FAILED\t%s\t%s\t%s\n' "$_story" "$_checks" "$_dt" >>"$_results"
    elif [ "$_checks" -eq 0 ]; then
        _failed=$((_failed + 1))
        printf 'not ok - %s: checked nothing\n' "$_story"
        printf 'FAILED\t%s\t0\t%s\n' "$_story" "$_dt" >>"$_results"
    else
        _passed=$((_passed + 1))
        printf 'ok - %s (%s checks, %ss)\n' "$_story" "$_checks" "$_dt"
        printf 'ok\t%s\t%s\t%s\n' "$_story" "$_checks" "$_dt" >>"$_results"
    fi
    _story=''
}

# The first broken expectation names the story's failure; later ones go to the log.
_expect() {
    _checks=$((_checks + 1))
    [ -z "$1" ] || { printf '** %s\n' "$1" >>"$_log"; [ -n "$_broken" ] || _broken=$1; }
}

_run() {
    printf '$ %s\n' "$*" >>"$_log"
    _rc=0
    OUTPUT=$("$@" 2>&1) || _rc=$?
    printf '%s\n[rc %s]\n' "$OUTPUT" "$_rc" >>"$_log"
}

# Run a command, expect status 0.  Its output is left in $OUTPUT.
testsuccess() {
    _run "$@"
    if [ "$_rc" -eq 0 ]; then _expect ''; else
        _expect "expected success of \`$*', got $_rc: $(printf '%s' "$OUTPUT" | tail -n 1)"
    fi
}

# Run a command, expect a status other than 0.
testfailure() {
    _run "$@"
    if [ "$_rc" -ne 0 ]; then _expect ''; else _expect "expected failure of \`$*'"; fi
}

# testexit N command...: expect exactly this status.
testexit() {
    _want=$1
    shift
    _run "$@"
    if [ "$_rc" -eq "$_want" ]; then _expect ''; else
        _expect "expected status $_want of \`$*', got $_rc: $(printf '%s' "$OUTPUT" | tail -n 1)"
    fi
}

# testequal EXPECTED ACTUAL [WHAT]
testequal() {
    printf '= expected [%s] got [%s] %s\n' "$1" "$2" "${3:-}" >>"$_log"
    if [ "$1" = "$2" ]; then _expect ''; else _expect "${3:+$3: }expected \`$1', got \`$2'"; fi
}

# testmatch REGEX TEXT [WHAT]: extended regular expression, any line.
testmatch() {
    printf '~ expected /%s/ in [%s] %s\n' "$1" "$2" "${3:-}" >>"$_log"
    if printf '%s\n' "$2" | grep -Eq -- "$1"; then _expect ''; else
        _expect "${3:+$3: }expected a line like /$1/, got \`$(printf '%s' "$2" | tail -n 1)'"
    fi
}

# testnomatch REGEX TEXT [WHAT]
testnomatch() {
    if printf '%s\n' "$2" | grep -Eq -- "$1"; then
        _expect "${3:+$3: }unexpected line like /$1/: \`$(printf '%s\n' "$2" | grep -Em1 -- "$1")'"
    else _expect ''; fi
}

# attach FILE TITLE: keep a file in the story's transcript.
attach() {
    printf -- '--- %s\n' "$2" >>"$_log"
    cat "$1" >>"$_log"
    printf -- '---\n' >>"$_log"
}

# End the current story as skipped; the reason is printed and counted.
skip() {
    _skipped=$((_skipped + 1))
    printf 'skip - %s: %s\n' "$_story" "$1"
    printf 'skipped\t%s\t0\t0\n' "$_story" >>"$_results"
    _story=''
}

finish() {
    _close
    printf '%s: %d passed, %d failed, %d skipped\n' "$_suite" "$_passed" "$_failed" "$_skipped"
    [ "$_failed" -eq 0 ] && [ "$_passed" -gt 0 ]
}
