#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Is a suite whole for a reader that has just read its InRelease?

usage: audit.py [--plain] REPO SUITE
Checks, without any code of apt-repo/, that every index that InRelease lists is
there by each of its hashes, and that every package of it is in the pool as
listed.  --plain: the plain index names, Release and Release.gpg must agree too, and no
temporary file may be left.  Prints the newest version listed of package p.
"""
import hashlib
import os
import re
import sys


def read(*parts):
    with open(os.path.join(*parts), "rb") as f:
        return f.read()


def audit(repo, suite, plain):
    top = os.path.join(repo, "dists", suite)
    text = read(top, "InRelease").decode()
    assert "-----BEGIN PGP SIGNATURE-----" in text, "InRelease is not signed"
    section, seen, versions = None, 0, ["none"]
    for line in text.split("-----BEGIN PGP SIGNATURE-----")[0].splitlines():
        if line in ("SHA256:", "SHA512:"):
            section = line[:-1]
        entry = re.fullmatch(r" ([0-9a-f]+) +(\d+) (\S+)", line)
        if not entry:
            continue
        digest, size, path = entry.groups()
        folder = os.path.dirname(path)
        places = [os.path.join(folder, "by-hash", section, digest)] + ([path] if plain else [])
        for place in places:
            data = read(top, place)
            assert len(data) == int(size), f"{place}: {len(data)} bytes, {size} listed"
            assert hashlib.new(section.lower(), data).hexdigest() == digest, f"{place}: wrong {section}"
        seen += 1
        if path.endswith("/Packages") and section == "SHA256":
            versions += packages(repo, read(top, places[0]).decode())
    assert seen and seen % 2 == 0, f"{seen} entries in InRelease"
    if plain:
        clear = text.split("\n\n", 1)[1].split("-----BEGIN PGP SIGNATURE-----")[0]
        assert read(top, "Release").decode() == clear, "Release is not what InRelease signs"
        left = [n for _, _, names in os.walk(repo) for n in names if n.startswith(".p2p-tmp.")]
        assert not left, f"left over: {left}"
    print(versions[-1])


def packages(repo, text):
    versions = []
    for stanza in filter(None, text.split("\n\n")):
        field = dict(re.findall(r"^([^\s:]+): (.*)$", stanza, flags=re.M))
        data = read(repo, field["Filename"])
        assert hashlib.sha256(data).hexdigest() == field["SHA256"], f"{field['Filename']}: wrong SHA256"
        if field["Package"] == "p":
            versions.append(field["Version"])
    return versions


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if a != "--plain"]
    try:
        audit(*arguments, plain="--plain" in sys.argv)
    except (AssertionError, OSError) as e:
        sys.exit(f"audit.py: {e}")
