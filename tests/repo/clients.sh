# SPDX-License-Identifier: MIT
# Stories that are about apt as much as about us: run them with each apt.
# shellcheck shell=bash disable=SC2154

client_stories() {
    local label=$1

    story "$label: a good archive updates, downloads and installs"
    base good
    client good good
    testsuccess update
    testequal 1.0 "$(candidate)" candidate
    testsuccess apt_in "$R" apt-get -y install p
    testequal 1.0 "$(installed)" installed
    testmatch '^usr/share/p/payload' "$(cat "$R"/lists/*Contents*)" "Contents came along"
    testnomatch '404|Ign' "$(apt_in "$R" apt-get update)" "second update"
    # Only by-hash serves them: a client that needed a plain name would fail here.
    find "$WWW/good/dists/jammy/main" -name 'Packages*' -delete -o -name 'Contents*' -delete
    client good2 good
    testsuccess update

    story "$label: a wrong key is refused"
    client wrong good new
    testfailure update
    testmatch 'NO_PUBKEY|not signed|Missing key' "$OUTPUT"
    testequal '' "$(candidate)" "candidate"

    story "$label: an archive signed again by somebody else is refused, the old lists stay"
    base rogue
    client rogue rogue
    testsuccess update
    publish rogue rogue "$(deb 6.6)" >/dev/null
    testfailure update
    testequal 1.0 "$(candidate)" candidate

    story "$label: stripped signatures are refused"
    base strip
    client strip strip
    testsuccess update
    rm "$WWW/strip/dists/jammy/InRelease" "$WWW/strip/dists/jammy/Release.gpg"
    testfailure update
    testequal 1.0 "$(candidate)" candidate
    cp "$WWW/strip/dists/jammy/Release" "$WWW/strip/dists/jammy/InRelease"
    testfailure update

    story "$label: a Release changed after signing is refused"
    base edited
    sed -i 's/^Acquire-By-Hash: yes/Acquire-By-Hash: no/' "$WWW/edited/dists/jammy/"{InRelease,Release}
    client edited edited
    testfailure update

    for index in Packages Contents; do
        story "$label: a tampered $index is refused"
        base tampered
        client tampered tampered
        tamper tampered "$index"
        testfailure update
        testmatch 'Hash Sum mismatch' "$OUTPUT"
    done

    story "$label: a tampered or missing .deb is refused"
    base pool
    client pool pool
    testsuccess update
    d=$(find "$WWW/pool/pool" -name '*.deb')
    cp "$d" "$P2P_WORK/whole.deb"
    printf X | dd of="$d" bs=1 seek=200 conv=notrunc status=none
    testfailure apt_in "$R" apt-get -y install p
    testmatch 'Hash Sum mismatch' "$OUTPUT"
    rm "$d"
    testfailure apt_in "$R" apt-get -y install p
    testmatch '404' "$OUTPUT"
    cp "$P2P_WORK/whole.deb" "$d"
    testsuccess apt_in "$R" apt-get -y install p

    story "$label: an expired Release is refused, resign cures it"
    rm -rf "$WWW/expired"
    publish expired old --date "$(date -d '-15 days' +%s)" "$(deb 1.0)" >/dev/null
    client expired expired
    testfailure update
    testmatch 'expired' "$OUTPUT"
    testsuccess tool resign expired old
    testsuccess update

    story "$label: a Release from the future is refused"
    rm -rf "$WWW/future"
    publish future old --date "$(date -d '+2 days' +%s)" "$(deb 1.0)" >/dev/null
    client future future
    testfailure update
    testmatch 'not valid yet' "$OUTPUT"

    for field in Origin Label Codename; do
        story "$label: a changed $field is refused"
        base changed
        client changed changed
        testsuccess update
        sleep 1.1 # If-Modified-Since has whole seconds
        sed -i "s/^$field: .*/$field: other/" "$WWW/changed/dists/jammy/Release"
        sign_release changed old
        testfailure update
        testmatch "changed its '$field' value" "$OUTPUT"
    done

    story "$label: another suite's InRelease in this suite's place is refused"
    base mixed
    client mixed mixed
    testsuccess update
    sleep 1.1 # If-Modified-Since has whole seconds
    SUITE=jammy-canary publish mixed old "$(deb 6.6)" >/dev/null
    cp -a "$WWW/mixed/dists/jammy-canary/." "$WWW/mixed/dists/jammy/"
    testfailure update
    testequal 1.0 "$(candidate)" candidate

    story "$label: a replayed older InRelease never takes the newer index away"
    base replay
    cp -a "$WWW/replay/dists" "$P2P_WORK/replayed"
    sleep 1.1 # Date has whole seconds
    publish replay old "$(deb 2.0)" >/dev/null
    client replay replay
    testsuccess update
    testequal 2.0 "$(candidate)" candidate
    rm -rf "$WWW/replay/dists"
    mv "$P2P_WORK/replayed" "$WWW/replay/dists"
    update >/dev/null 2>&1 || true # whether it is also an error depends on apt
    testequal 2.0 "$(candidate)" "candidate after the replay"

    story "$label: half a mirror, new InRelease over old plain indexes"
    base half
    cp -a "$WWW/half/dists/jammy" "$P2P_WORK/half-old"
    publish half old "$(deb 2.0)" >/dev/null
    cp -a "$WWW/half/dists/jammy" "$P2P_WORK/half-new"
    client half half
    rm -rf "$WWW/half/dists/jammy/main/binary-amd64/"Packages*
    cp "$P2P_WORK/half-old/main/binary-amd64/"Packages* "$WWW/half/dists/jammy/main/binary-amd64/"
    testsuccess update
    testequal 2.0 "$(candidate)" candidate

    story "$label: half a mirror, old InRelease over new plain indexes"
    client half half
    cp "$P2P_WORK/half-old/"{InRelease,Release,Release.gpg} "$WWW/half/dists/jammy/"
    cp "$P2P_WORK/half-new/main/binary-amd64/"Packages* "$WWW/half/dists/jammy/main/binary-amd64/"
    testsuccess update
    testequal 1.0 "$(candidate)" candidate

    story "$label: half a mirror without by-hash files fails and keeps the old lists"
    client half half
    testsuccess update
    sleep 1.1 # If-Modified-Since has whole seconds
    cp "$P2P_WORK/half-new/"{InRelease,Release,Release.gpg} "$WWW/half/dists/jammy/"
    cp "$P2P_WORK/half-old/main/binary-amd64/"Packages* "$WWW/half/dists/jammy/main/binary-amd64/"
    rm -rf "$WWW/half/dists/jammy/main/binary-amd64/by-hash"
    testfailure update
    testequal 1.0 "$(candidate)" candidate
    rm -rf "$P2P_WORK/half-old" "$P2P_WORK/half-new"

    story "$label: key rotation, each stage with each client"
    base rotate
    client has-old rotate old
    client has-new rotate new
    client has-both rotate old new
    rotation=
    for stage in old 'old new' new; do
        set -- --repo "$WWW/rotate"
        for key in $stage; do set -- "$@" --key "$KEYS/$key"; done
        sleep 1.1 # Date has whole seconds, and so has If-Modified-Since
        testsuccess "$P2P_TOP/apt-repo/resign" "$@"
        for who in has-old has-new has-both; do
            R=$P2P_WORK/client/$who
            if update >>"$_log" 2>&1; then rotation+=" ok"; else rotation+=" no"; fi
        done
    done
    testequal ' ok no ok ok ok ok no ok ok' "$rotation" 'stages old, both, new x clients old, new, both'

    story "$label: apt upgrades but never downgrades by itself, the documented command goes back"
    base back
    client back back
    publish back old "$(deb 2.0)" >/dev/null
    testsuccess update
    testsuccess apt_in "$R" apt-get -y install p=1.0
    testsuccess apt_in "$R" apt-get -y upgrade
    testequal 2.0 "$(installed)" "after upgrade"
    sleep 1.1
    testsuccess tool rollback back old --suite jammy
    testsuccess update
    testsuccess apt_in "$R" apt-get -y dist-upgrade
    testequal 2.0 "$(installed)" "apt alone never goes back"
    testsuccess apt_in "$R" apt-get -y --allow-downgrades install p/jammy
    testequal 1.0 "$(installed)" "after the documented command"

    story "$label: a host that pins the archive follows a rollback by itself"
    testsuccess apt_in "$R" apt-get -y --allow-downgrades install "$(cp "$(deb 2.0)" "$R/p.deb"; echo ./p.deb)"
    testequal 2.0 "$(installed)" installed
    printf 'Package: *\nPin: release o=nvidia-p2p\nPin-Priority: 1001\n' >"$R/etc/preferences.d/follow"
    testsuccess apt_in "$R" apt-get -y --allow-downgrades dist-upgrade
    testequal 1.0 "$(installed)" "after dist-upgrade"
}
