# SPDX-License-Identifier: MIT
# Stories about our own commands: publish, promote, rollback, the gate, crashes and load.
# shellcheck shell=bash disable=SC2154

# An error is one line that starts with the command's name.
testoneline() {
    testequal 1 "$(printf '%s\n' "$OUTPUT" | wc -l)" "lines of the error"
    testmatch "^[a-z-]+: error: .*$1" "$OUTPUT"
}

audit() { "$P2P_TOP/tests/repo/audit.py" --plain "$WWW/$1" "${SUITE:-jammy}"; }

# report FILE LEVEL VERDICT AGE_SECONDS [LINE]: what p2p-verify --prometheus writes.
report() {
    mkdir -p "$(dirname "$1")"
    cat >"$1" <<M
# HELP nvidia_p2p_verdict Exit status of p2p-verify.
# TYPE nvidia_p2p_verdict gauge
nvidia_p2p_verdict{level="$2"} $3
# HELP nvidia_p2p_info Versions of the tools, the loaded nvidia module and the kernel.
# TYPE nvidia_p2p_info gauge
nvidia_p2p_info{level="$2",version="1.0",module="555.58.02",kernel="5.15.0-105-generic"} 1
# HELP nvidia_p2p_last_run_timestamp_seconds When p2p-verify ran, seconds since 1970.
# TYPE nvidia_p2p_last_run_timestamp_seconds gauge
nvidia_p2p_last_run_timestamp_seconds{level="$2"} $(($(date +%s) - $4))
${5:-}
M
    sed -i '/^$/d' "$1"
}

# Used by run.  aging makes 27 publishes, so it is not in the slice.
# shellcheck disable=SC2034
PUBLISHING_STORIES='components pin_and_module changes_file bad_input same_version two_publishers crash load
    disk_full repair rollbacks promotion gates phased front_page test_key'
# shellcheck disable=SC2034
LONG_STORIES='aging'

components() {
    story "components come from the section, versions stay side by side"
    testsuccess publish many old "$(deb 1.0 p 555/kernel)" "$(deb 2.0 p 555/kernel)" "$(deb 3.0 p 580/kernel)"
    testsuccess publish many old "$(deb 1.0 tools)" "$(deb 1.5 p 555/kernel)"
    testsuccess audit many
    testequal 'Components: 555 580 main' "$(grep ^Components "$WWW/many/dists/jammy/Release")"
    testequal '1.0 1.5 2.0 ' "$(sed -n 's/^Version: //p' "$WWW/many/dists/jammy/555/binary-amd64/Packages" | tr '\n' ' ')"
    testequal 'usr/share/p/payload 555/kernel/p' "$(cat "$WWW/many/dists/jammy/555/Contents-amd64")"
    testsuccess test -e "$WWW/many/pool/580/p/p/p_3.0_amd64.deb"
    testsuccess "$P2P_TOP/apt-repo/list" --repo "$WWW/many"
    testmatch '580 +p +3.0' "$OUTPUT"
    # Equal input, equal bytes: only the signature may differ.
    for r in same1 same2; do
        testsuccess publish $r old --date 1764547200 --valid-days 365 "$(deb 1.0 tools)" "$(deb 1.5 p 555/kernel)"
    done
    testsuccess diff -r -x 'InRelease' -x 'Release.gpg' -x lock "$WWW/same1" "$WWW/same2"
}

pin_and_module() {
    local pin
    story "a pin is never shown without the module of its release"
    pin=$(deb 555.58.02+p2p1-1 nvidia-p2p-pin 555/kernel)
    testexit 2 publish pin old "$pin"
    testoneline 'nvidia-p2p-pin 555.58.02\+p2p1-1 would be without nvidia-p2p-dkms of release 555.58.02'
    testsuccess publish pin old "$pin" "$(deb 555.58.02+p2p1-1 nvidia-p2p-dkms 555/kernel)"
    testsuccess publish pin old "$(deb 555.58.02+p2p2-1 nvidia-p2p-dkms 555/kernel)"
    # The other branch's module does not count.
    testexit 2 publish pin old "$(deb 580.142+p2p1-1 nvidia-p2p-pin 580/kernel)" "$(deb 580.142+p2p1-1 nvidia-p2p-dkms 555/kernel)"
    testsuccess "$P2P_TOP/apt-repo/rollback" --repo "$WWW/pin" --key "$KEYS/old" --suite jammy --drop nvidia-p2p-dkms=555.58.02+p2p2-1
    testexit 2 "$P2P_TOP/apt-repo/rollback" --repo "$WWW/pin" --key "$KEYS/old" --suite jammy --drop nvidia-p2p-dkms=555.58.02+p2p1-1
    testsuccess audit pin
}

changes_file() {
    local d
    story "a .changes stands for its .debs and is checked"
    mkdir -p "$P2P_WORK/build"
    d=$(deb 1.0)
    cp "$d" "$P2P_WORK/build/p_1.0_amd64.deb"
    printf 'Format: 1.8\nChecksums-Sha256:\n %s %s p_1.0_amd64.deb\n 00 1 p.buildinfo\nFiles:\n' \
        "$(sha256sum "$d" | cut -d' ' -f1)" "$(stat -c %s "$d")" >"$P2P_WORK/build/p.changes"
    testsuccess publish changes old "$P2P_WORK/build/p.changes"
    testsuccess audit changes
    printf x >>"$P2P_WORK/build/p_1.0_amd64.deb"
    testexit 2 publish changes2 old "$P2P_WORK/build/p.changes"
    testoneline 'p_1.0_amd64.deb: is not the file that .*p.changes lists'
    rm "$P2P_WORK/build/p_1.0_amd64.deb"
    testexit 2 publish changes2 old "$P2P_WORK/build/p.changes"
    testoneline 'p_1.0_amd64.deb: listed in .* but missing'
    testfailure test -e "$WWW/changes2/dists"
}

bad_input() {
    story "bad input: one line, nothing published"
    base bad
    find "$WWW/bad/dists" -type f -exec sha256sum {} + | sort >"$P2P_WORK/before"
    head -c 500 "$(deb 2.0)" >"$P2P_WORK/cut.deb"
    echo text >"$P2P_WORK/text.deb"
    testexit 2 publish bad old "$(deb 2.0)" "$P2P_WORK/cut.deb"
    testoneline 'cut.deb: '
    testexit 2 publish bad old "$P2P_WORK/text.deb"
    testoneline 'text.deb: not a Debian package'
    testexit 2 publish bad old "$P2P_WORK/none.deb"
    testoneline 'none.deb: no such file'
    testexit 2 publish bad old "$P2P_WORK/before"
    testoneline 'neither .deb nor .changes'
    testexit 2 publish bad old "$(deb 2.0 p '../kernel')"
    testoneline "field Section is '../kernel'"
    testexit 2 publish bad none "$(deb 2.0)"
    testoneline 'neither a folder nor a fingerprint'
    testexit 2 "$P2P_TOP/apt-repo/publish" --repo "$WWW/bad" --suite jammy --key "$(printf '%040d' 0)" "$(deb 2.0)"
    testoneline 'no such secret key'
    SUITE=../x testexit 2 publish bad old "$(deb 2.0)"
    testoneline "suite '../x'"
    testexit 64 publish bad old
    testoneline 'arguments are required: FILE'
    testexit 2 tool promote bad old --from jammy-canary --to jammy
    testoneline 'no suite jammy-canary; it has: jammy'
    testexit 2 tool rollback bad old --suite jammy
    testoneline 'no state before'
    testexit 2 tool rollback bad old --suite jammy --to 9
    testoneline 'no state 9'
    testexit 2 publish bad old --date 1000000000 "$(deb 2.0)"
    testoneline 'is before that of the live Release'
    # What file names and index lines are made of.
    for field in 'Package: ../../../x' 'Package: P' 'Source: ../../../../etc/x' 'Source: q ../1' 'Version: 1/../../../x' \
        'Version: v1' 'Architecture: ../amd64' 'Architecture: amd64 x' 'Section: 555/../x'; do
        testexit 2 publish bad old "$(hostile "$field")"
        testoneline "hostile.deb: field ${field%%:*} is '${field#*: }'"
    done
    testequal '' "$(find "$P2P_WORK" -newer "$P2P_WORK/before" \( -name 'x' -o -name 'x_*' \) -print)" "written outside"
    find "$WWW/bad/dists" -type f -exec sha256sum {} + | sort >"$P2P_WORK/after"
    testsuccess cmp "$P2P_WORK/before" "$P2P_WORK/after"
}

# hostile FIELD: a .deb that dpkg-deb itself would not make.
hostile() {
    local tree=$P2P_WORK/hostile name=${1%%:*}
    rm -rf "$tree"
    mkdir -p "$tree"
    {
        printf 'Package: p\nVersion: 3.0\nArchitecture: amd64\nMaintainer: T <t@example.org>\nSection: kernel\n' | grep -v "^$name:" || true
        printf '%s\nDescription: test\n' "$1"
    } >"$tree/control"
    tar -C "$tree" --owner=0 --group=0 -czf "$tree/control.tar.gz" ./control
    tar -C "$tree" -czf "$tree/data.tar.gz" -T /dev/null
    echo 2.0 >"$tree/debian-binary"
    rm -f "$P2P_WORK/hostile.deb"
    (cd "$tree" && ar rc "$P2P_WORK/hostile.deb" debian-binary control.tar.gz data.tar.gz)
    printf '%s\n' "$P2P_WORK/hostile.deb"
}

same_version() {
    story "the same version with other content is refused, also from another suite"
    base other
    testexit 2 publish other old "$(deb 1.0 p main/kernel changed)"
    testoneline 'already published with another sha256'
    SUITE=jammy-canary testexit 2 publish other old "$(deb 1.0 p main/kernel changed)"
    testsuccess tool rollback other old --suite jammy --drop p=1.0
    testexit 2 publish other old "$(deb 1.0 p main/kernel changed)"
    testsuccess publish other old "$(deb 1.0)"
    testsuccess audit other
}

two_publishers() {
    local d
    story "two publishers at once: one waits its turn, nothing is lost"
    base two
    exec 9>>"$WWW/two/state/lock"
    flock 9
    testexit 3 publish two old "$(deb 2.0)"
    testoneline 'state/lock is held by process'
    exec 9>&-
    pids=
    for v in 2.1 2.2 2.3 2.4 2.5; do
        d=$(deb $v)
        (for _ in $(seq 200); do
            rc=0
            publish two old "$d" >/dev/null 2>&1 || rc=$?
            [ $rc -eq 3 ] || exit $rc
            sleep 0.2
        done; exit 3) &
        pids="$pids $!"
    done
    for p in $pids; do
        rc=0
        wait "$p" || rc=$?
        testequal 0 $rc "status of a publisher"
    done
    testsuccess audit two
    testequal '1.0 2.1 2.2 2.3 2.4 2.5 ' "$(sed -n 's/^Version: //p' "$WWW/two/dists/jammy/main/binary-amd64/Packages" | tr '\n' ' ')"
}

crash() {
    story "kill -9 of publish at every step${SLICE:+, one of $STRIDE}"
    base crash
    client crash crash
    testsuccess update
    cp -a "$R/lists" "$R/lists.base"
    testsuccess "$P2P_TOP/tests/repo/crash.py" "$STRIDE" "$P2P_WORK/base" "$WWW/crash" \
        "[ -z \"\$FRESH\" ] || { rm -rf $R/lists; cp -a $R/lists.base $R/lists; }; export APT_CONFIG=$R/apt.conf; apt-get -qq update && apt-cache policy p | awk '/Candidate:/ { print \$2 }'" -- \
        "$P2P_TOP/apt-repo/publish" --repo "$WWW/crash" --suite jammy --key "$KEYS/old" "$(deb 2.0)"
    printf '# %s\n' "$OUTPUT"
}

disk_full() {
    story "disk full: one line, readers keep the old state, a rerun finishes"
    if [ "$(id -u)" -ne 0 ]; then skip "needs root to mount a small file system"; else
        base full-copy
        FULL_DISK=$WWW/full
        mkdir -p "$FULL_DISK"
        mount -t tmpfs -o size=512k none "$FULL_DISK"
        cp -a "$P2P_WORK/base/." "$FULL_DISK/"
        client full full
        head -c 200000 /dev/urandom >"$P2P_WORK/noise"
        full=0
        # Less and less room, so that it is another write that fails each time.
        for room in 0 8 16 24 32 48 64; do
            rm -f "$FULL_DISK/ballast"
            dd if=/dev/zero of="$FULL_DISK/ballast" bs=1k 2>/dev/null || true
            truncate -s "$(($(stat -c %s "$FULL_DISK/ballast") - room * 1024))" "$FULL_DISK/ballast"
            if [ "$room" -lt 16 ]; then testexit 1 publish full old "$(deb 2.0)"; else _run publish full old "$(deb 2.0)"; fi
            if [ "$_rc" -ne 0 ]; then
                testoneline 'No space left on device'
                full=$((full + 1))
                testequal 1.0 "$("$P2P_TOP/tests/repo/audit.py" "$FULL_DISK" jammy)" "with ${room}K free"
            fi
            testsuccess update
        done
        testmatch '^[2-9]' "$full" "times that the disk was full"
        rm "$FULL_DISK/ballast"
        testsuccess publish full old "$(deb 2.0)"
        testequal 2.0 "$(audit full)"
        testsuccess update
        umount "$FULL_DISK"
        FULL_DISK=
    fi
}

repair() {
    story "resign repairs a damaged index and by-hash file"
    base repair
    tamper repair Packages
    testfailure audit repair
    testsuccess tool resign repair old
    testequal 1.0 "$(audit repair)"
}

aging() {
    story "by-hash files stay for ten states and a week, then go"
    now=$(date +%s)
    for i in $(seq 1 14); do
        publish aging old --date $((now - (30 - i) * 86400)) "$(deb "1.$i")" >/dev/null
    done
    kept() { find "$WWW/aging/dists/jammy/main/binary-amd64/by-hash/SHA256" -type f | wc -l; }
    testequal 30 "$(kept)" "files of ten states"
    testsuccess audit aging
    for i in $(seq 15 27); do
        publish aging old --date $((now - 3600 + i)) "$(deb "1.$i")" >/dev/null
    done
    testequal 42 "$(kept)" "files of the states shown in the last week"
    testsuccess audit aging
}

rollbacks() {
    story "rollback goes back, further back, to a number, and forward"
    base back
    publish back old "$(deb 2.0)" >/dev/null
    publish back old "$(deb 3.0)" >/dev/null
    testsuccess tool rollback back old --suite jammy
    testmatch 'removed p=3.0' "$OUTPUT"
    testequal 2.0 "$(audit back)"
    testsuccess tool rollback back old --suite jammy
    testequal 1.0 "$(audit back)"
    testexit 2 tool rollback back old --suite jammy
    testsuccess tool rollback back old --suite jammy --to 3
    testequal 3.0 "$(audit back)"
    testsuccess tool rollback back old --suite jammy --drop p=2.0
    testequal '1.0 3.0 ' "$(sed -n 's/^Version: //p' "$WWW/back/dists/jammy/main/binary-amd64/Packages" | tr '\n' ' ')"
    # The state before has what was dropped: going there would bring the bad release back.
    testexit 0 tool rollback back old --suite jammy
    testmatch 'removed p=3.0' "$OUTPUT"
    testsuccess tool rollback back old --suite jammy --to 7
    testequal '1.0 3.0 ' "$(sed -n 's/^Version: //p' "$WWW/back/dists/jammy/main/binary-amd64/Packages" | tr '\n' ' ')"
    testsuccess "$P2P_TOP/apt-repo/list" --repo "$WWW/back" --snapshots
    testequal 10 "$(printf '%s\n' "$OUTPUT" | wc -l)" "lines: suite and nine states"
    # A reader that goes away is no error; a full disk is one of the output, and not of the archive.
    for args in "list --repo $WWW/back" 'list --help' "resign --repo $WWW/back --key $KEYS/old"; do
        testequal 0 "$(bash -c '"$@" 2>"$0" | true; echo "${PIPESTATUS[0]}"' "$P2P_WORK/err" "$P2P_TOP/apt-repo/"$args)" "status of $args | true"
        testequal '' "$(cat "$P2P_WORK/err")" "stderr of $args | true"
        testexit 1 sh -c '"$@" >/dev/full' x "$P2P_TOP/apt-repo/"$args
        testoneline 'standard output: No space left on device; '
        testnomatch 'clients see' "$OUTPUT"
    done
    # In two steps, as tests/fleet/simulate.py rollback shows.
    testmatch 'install --allow-downgrades nvidia-p2p-pin/SUITE && apt-get install --allow-downgrades --only-upgrade nvidia-p2p-dkms/SUITE .\?installed\?name' \
        "$("$P2P_TOP/apt-repo/rollback" --help | tr -s ' \n' ' ')" "what hosts do"
}

promotion() {
    story "promote copies the tested state, not what came after"
    export SUITE=jammy-canary
    publish stage old "$(deb 1.0)" >/dev/null
    publish stage old "$(deb 2.0)" >/dev/null
    publish stage old "$(deb 3.0)" >/dev/null
    unset SUITE
    testsuccess tool promote stage old --from jammy-canary --to jammy --snapshot 2
    testequal 2.0 "$(audit stage)"
    testsuccess tool promote stage old --from jammy-canary --to jammy
    testequal 3.0 "$(audit stage)"
    testmatch '^Codename: jammy$' "$(cat "$WWW/stage/dists/jammy/InRelease")"
}

front_page() {
    story "the front page names the newest branch by number, and what is for other machines apart"
    testsuccess publish branches old "$(deb 1.0 p 555/kernel)" "$(deb 2.0 p 1000/kernel)" "$(deb 1.0 r 555-runfile/kernel)"
    testsuccess tool site branches old --url "$URL/branches"
    page=$(cat "$WWW/branches/index.html")
    testmatch '^Components: 1000 main$' "$page" "the lines to type"
    testmatch 'Driver branches: 555 1000\.' "$page"
    testmatch '<p>555-runfile: only for machines whose user space came from' "$page"

    story "the front page shows packages, fingerprint and a source that works"
    base site
    testsuccess tool site site old --url "$URL/site"
    page=$(cat "$WWW/site/index.html")
    testmatch "$(sed 's/..../& /g; s/ $//' "$KEYS/old.fpr")" "$page"
    testmatch '>p</a><td>1.0' "$page"
    client site site
    sed -n '/^Types:/,/^Signed-By:/p' "$WWW/site/index.html" | sed "s,^Signed-By: .*,Signed-By: $WWW/site/nvidia-p2p-archive-keyring.pgp," \
        >"$R/etc/sources.list.d/p2p.sources"
    testsuccess update
    testequal 1.0 "$(candidate)" candidate
    if command -v tidy >/dev/null; then testsuccess tidy -qe "$WWW/site/index.html"; fi
}

test_key() {
    story "every set-up that is told brings the package with the next key"
    testmatch '^ nvidia-p2p-archive-keyring,$' "$(sed -n '/^Recommends:/,/^[A-Z]/p' "$P2P_TOP/debian/driver/control.in")" Recommends
    for f in README.md docs/fleet.md ci/pipeline; do
        lines=$(grep -E '^[^#]*apt(-get)? install .*nvidia-p2p-dkms .*nvidia-p2p-tools' "$P2P_TOP/$f")
        testmatch nvidia-p2p-archive-keyring "$lines" "$f"
        testequal '' "$(printf '%s\n' "$lines" | grep -v nvidia-p2p-archive-keyring)" "$f: lines without it"
    done

    story "make-test-key keeps secret keys out of a work tree and sockets short"
    git init -q "$P2P_WORK/tree"
    testexit 2 "$P2P_TOP/apt-repo/make-test-key" "$P2P_WORK/tree/key"
    testoneline 'git work tree'
    testexit 2 "$P2P_TOP/apt-repo/make-test-key" "$P2P_WORK/tree/a/b"
    testoneline 'git work tree'
    testequal .git "$(ls -A "$P2P_WORK/tree")" "what the refusals leave"
    testexit 2 "$P2P_TOP/apt-repo/make-test-key" "$P2P_WORK/$(printf '%080d' 0)"
    testoneline 'allow 80'
    testfailure test -e "$P2P_WORK/$(printf '%080d' 0)"
    # Ignored folders are where ci/pipeline puts it.
    echo /out/ >"$P2P_WORK/tree/.gitignore"
    testsuccess "$P2P_TOP/apt-repo/make-test-key" "$P2P_WORK/tree/out/key"
    testsuccess gpgconf --homedir "$P2P_WORK/tree/out/key" --kill all
    testexit 64 "$P2P_TOP/apt-repo/make-test-key"
    testequal "$(cat "$KEYS/old.fpr")" "$("$P2P_TOP/apt-repo/make-test-key" "$KEYS/old")" "second run"

    local home=$KEYS/sub primary signing other
    story "a key whose primary only certifies signs by its subkey; what stops gpg is named"
    mkdir -m 700 "$home"
    # shellcheck disable=SC2317
    key() { gpg --homedir "$home" --batch --quiet --pinentry-mode loopback --passphrase "$@"; }
    testsuccess key '' --quick-generate-key 'certifies only <t@example.org>' ed25519 cert never
    primary=$(fingerprints "$home")
    testexit 2 tool publish subkey sub --suite jammy "$(deb 1.0)"
    testoneline "$primary is not made to sign; .* none is usable"
    testsuccess key '' --quick-add-key "$primary" ed25519 sign never
    signing=$(fingerprints "$home" | tail -n 1)
    testsuccess key '' --quick-add-key "$primary" cv25519 encr never
    other=$(fingerprints "$home" | tail -n 1)
    key '' --armor --export "$primary" >"$home/public.asc" 2>>"$_log"
    for name in "$signing" "$primary"; do
        testsuccess env "GNUPGHOME=$home" "$P2P_TOP/apt-repo/publish" --repo "$WWW/subkey" --suite jammy --key "$name" "$(deb 1.0)"
        client subkey subkey sub
        testsuccess update
    done
    testmatch "$(printf %s "$primary" | sed 's/..../& /g; s/ $//')" \
        "$(tool site subkey sub --url "$URL/subkey" >/dev/null && cat "$WWW/subkey/index.html")" "the fingerprint on the page"
    testexit 2 env "GNUPGHOME=$home" "$P2P_TOP/apt-repo/resign" --repo "$WWW/subkey" --key "$other"
    testoneline "$other is not made to sign"
    testsuccess key '' --quick-add-key "$primary" ed25519 sign never
    testexit 2 tool resign subkey sub
    testoneline "give the fingerprint of a signing subkey: $signing [0-9A-F]{40}"
    gpgconf --homedir "$home" --kill all
    rm "$home/private-keys-v1.d/$(grip "$home" "$signing").key"
    testexit 2 env "GNUPGHOME=$home" "$P2P_TOP/apt-repo/resign" --repo "$WWW/subkey" --key "$signing"
    testoneline "secret part of $signing is not here"
    gpgconf --homedir "$home" --kill all
    rm -rf "$home"
    mkdir -m 700 "$home"
    testsuccess key secret --quick-generate-key 'with a passphrase <t@example.org>' ed25519 sign never
    gpgconf --homedir "$home" --kill all
    testexit 1 tool publish locked sub --suite jammy "$(deb 1.0)"
    testoneline 'it needs a passphrase and nobody can be asked'
    gpgconf --homedir "$home" --kill all
}
fingerprints() { gpg --homedir "$1" --with-colons --list-secret-keys 2>>"$_log" | awk -F: '$1 == "fpr" { print $10 }'; }
# grip HOME FINGERPRINT: the name of the file that holds the secret part.
grip() {
    gpg --homedir "$1" --with-colons --with-keygrip --list-secret-keys 2>>"$_log" |
        awk -F: -v f="$2" '$1 == "fpr" { on = $10 == f } on && $1 == "grp" { print $10 }'
}

# $CLIENTS clients update until the publishes are over; each update must succeed and show a version
# that is not older than the one before.
load() {
    local number=$PUBLISHES i
    story "$number publishes while $CLIENTS clients update in a loop"
    base load
    rm -f "$P2P_WORK"/load.*
    LOAD_PIDS='' # for cleanup
    for i in $(seq "$CLIENTS"); do
        client "load$i" load
        (
            last=1.0
            while :; do
                ended=$([ ! -e "$P2P_WORK/load.end" ] || echo yes)
                update >"$R/update.log" 2>&1 || { cat "$R/update.log"; echo "client $i: update failed"; exit 1; }
                now=$(candidate)
                dpkg --compare-versions "$now" ge "$last" || { echo "client $i: $last, then $now"; exit 1; }
                last=$now
                echo "$now" >>"$P2P_WORK/load.seen.$i"
                [ -z "$ended" ] || break
                sleep 2 # spread over time; the count of updates is printed
            done
            echo "$last" >"$P2P_WORK/load.last.$i"
        ) >"$P2P_WORK/load.log.$i" 2>&1 &
        LOAD_PIDS="$LOAD_PIDS $!"
    done
    for i in $(seq "$number"); do testsuccess publish load old "$(deb "2.$i")"; done
    sleep 1.1 # If-Modified-Since has whole seconds
    touch -d '+2 seconds' "$WWW/load/dists/jammy/InRelease"
    touch "$P2P_WORK/load.end"
    for i in $LOAD_PIDS; do wait "$i" || true; done
    LOAD_PIDS=''
    testequal '' "$(cat "$P2P_WORK"/load.log.*)" "failed updates"
    testequal "$CLIENTS" "$(cat "$P2P_WORK"/load.last.* | grep -cx "2.$number")" "clients at the last version"
    local updates versions
    updates=$(cat "$P2P_WORK"/load.seen.* | wc -l)
    versions=$(cat "$P2P_WORK"/load.seen.* | sort -u | wc -l)
    # Fewer would mean that hardly any update met a publish.
    testsuccess test "$versions" -ge 3
    printf '# %s updates by %s clients during %s publishes, %s different states seen, %s failed\n' \
        "$updates" "$CLIENTS" "$number" "$versions" "$(cat "$P2P_WORK"/load.log.* | grep -c 'update failed' || true)"
}

gates() {
    local g=$P2P_WORK/gate
    story "the gate reads the canary hosts' reports"
    SUITE=jammy-canary publish gated old --date "$(date -d '-1 hour' +%s)" "$(deb 1.0)" >/dev/null
    gate() {
        local status=$1 pattern=$2
        shift 2
        testexit "$status" tool promote gated old --from jammy-canary --to jammy --gate "$g" "$@"
        if [ "$status" -ne 0 ]; then testoneline "$pattern"; else testmatch "$pattern" "$OUTPUT"; fi
    }
    gate 5 'does not exist'
    mkdir -p "$g"
    gate 5 'holds no .prom file'
    report "$g/a.prom" env 0 60
    gate 5 '0 of 1 reports prove P2P at level data'
    report "$g/a.prom" data 40 60
    gate 5 '0 of 1 reports'
    for verdict in 20 21 30 31 64 70 99; do
        report "$g/a.prom" data 0 60
        report "$g/b/b.prom" data $verdict 60
        gate 5 "b.prom: verdict $verdict"
    done
    report "$g/b/b.prom" env 31 60
    gate 5 'b.prom: verdict 31 .hang. at level env'
    report "$g/b/b.prom" full 0 60 'nvidia_p2p_pair_outcome{level="full",src="0000:01:00.0",dst="0000:02:00.0",outcome="wrong"} 1'
    gate 5 '0000:01:00.0 to 0000:02:00.0: wrong'
    report "$g/b/b.prom" data 0 90000
    gate 5 'report is 25.0 hours old, 24 allowed'
    report "$g/b/b.prom" data 0 7200
    gate 5 'older than the state to promote'
    report "$g/b/b.prom" data 0 -7200
    gate 5 'lies in the future'
    echo 'up 1' >"$g/b/b.prom"
    gate 5 'b.prom: no nvidia_p2p_verdict'
    echo 'nvidia_p2p_verdict{level="data" 0' >"$g/b/b.prom"
    gate 5 'b.prom:1: not a Prometheus sample'
    head -c 300 /dev/urandom >"$g/b/b.prom"
    gate 5 'b.prom: '
    report "$g/b/b.prom" data 10 60 'nvidia_p2p_finding{level="data",id="x",severity="slow",subject="a \"b\", {c}\\"} 1'
    gate 5 '2 of 2 reports .*, 3 wanted' --gate-min-hosts 3
    gate 5 "module '555.58.02' is loaded, not 999" --gate-module 999
    # An empty variable, or options of a gate that is not there, must not open it.
    for options in '--gate=' '--gate-min-hosts 3' '--gate-module 555.58.02' "--gate $g --gate-module="; do
        # shellcheck disable=SC2086
        testexit 64 tool promote gated old --from jammy-canary --to jammy $options
        testoneline 'is empty|needs --gate'
    done
    cp "$g/a.prom" "$g/c.prom"
    gate 5 "c.prom: is .*a.prom once more, byte for byte" --gate-min-hosts 2
    rm "$g/c.prom"
    gate 5 'does not say which change level is loaded' --gate-module 555.58.02+p2p2-1
    sed -i.bak 's/module="555.58.02"/&,marker="555.58.02+p2p1"/' "$g/a.prom" "$g/b/b.prom"
    gate 5 "module '555.58.02\+p2p1' is loaded, not 555.58.02\+p2p2" --gate-module 555.58.02+p2p2-1
    sed -i 's/+p2p1"/+p2p2"/' "$g/b/b.prom"
    gate 5 "b.prom: module '555.58.02\+p2p2' is loaded, not 555.58.02\+p2p1" --gate-module 555.58.02+p2p1
    mv "$g/a.prom.bak" "$g/a.prom"
    mv "$g/b/b.prom.bak" "$g/b/b.prom"
    testfailure test -e "$WWW/gated/dists/jammy"
    if command -v promtool >/dev/null; then
        for f in "$g/a.prom" "$g/b/b.prom"; do
            # status 3: promtool's style advice about help texts
            rc=0
            promtool check metrics <"$f" >>"$_log" 2>&1 || rc=$?
            testmatch '^[03]$' "$rc" "promtool on $f"
        done
    else printf '# promtool is not installed: the reports were not checked with it\n'; fi
    gate 0 'gate passed: 2 canary hosts' --gate-min-hosts 2 --gate-module 555.58.02
    testequal 1.0 "$(audit gated)"
}

phased() {
    local percent id taken before=-1
    story "a phased roll-out reaches more and more machines, then all"
    base phased
    export SUITE=jammy-canary
    publish phased old "$(deb 1.0)" "$(deb 2.0)" >/dev/null
    unset SUITE
    client phased phased
    has 1.0
    for percent in 0 50 100; do
        sleep 1.1 # If-Modified-Since has whole seconds
        testsuccess tool promote phased old --from jammy-canary --to jammy --phase $percent
        testsuccess audit phased
        testsuccess update
        taken=0
        for id in $(seq 16); do
            if apt_in "$R" apt-get -s -o "APT::Machine-ID=$(printf 'machine %s' "$id" | md5sum | cut -c1-32)" upgrade | grep -q '^Inst p '; then
                taken=$((taken + 1))
            fi
        done
        printf '# %s %%: %s of 16 machines upgrade\n' $percent $taken
        testsuccess test $taken -ge $before
        before=$taken
        case $percent in
        # apt draws 0..100 for each machine and keeps back what lies above the percentage, so
        # that 0 % still reaches one machine in 101.
        0) testsuccess test $taken -le 2 ;;
        100) testequal 16 $taken ;;
        *) testsuccess test $taken -gt 0 -a $taken -lt 16 ;;
        esac
    done
    testnomatch '^Phased' "$(cat "$WWW/phased/dists/jammy/main/binary-amd64/Packages")"

    story "a roll-back passes over the phases of a roll-out, to the state before it"
    export SUITE=jammy-canary
    publish phases old "$(deb 1.0)" >/dev/null
    testsuccess tool promote phases old --from jammy-canary --to jammy
    publish phases old "$(deb 2.0)" >/dev/null
    unset SUITE
    for percent in 10 50; do testsuccess tool promote phases old --from jammy-canary --to jammy --phase $percent; done
    testsuccess tool rollback phases old --suite jammy
    testmatch 'removed p=2.0' "$OUTPUT"
    testequal 1.0 "$(audit phases)"
    testexit 2 tool rollback phases old --suite jammy
    testoneline 'nothing to remove'
}
