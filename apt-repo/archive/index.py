# SPDX-License-Identifier: MIT
"""Index files of a suite as a function of its state: same state, same bytes."""
import functools
import gzip
import hashlib
import lzma
import subprocess

from .state import FIRST_COMPONENT

# apt asks by-hash for the strongest hash that Release lists, so each of them has its folder.
HASHES = ("SHA256", "SHA512")
DEFAULT_ARCHITECTURE = "amd64"


def build(records, phases, components):
    """{path below dists/SUITE: bytes} of all indexes.

    records: package records (deb.Deb.record), phases: {sha256: percent or None}.
    """
    files = {}
    for architecture in architectures(records):
        for component in components:
            mine = [r for r in records if r["component"] == component
                    and r["architecture"] in (architecture, "all")]
            packages = _packages(mine, phases)
            _add(files, f"{component}/binary-{architecture}/Packages", packages)
            _add(files, f"{component}/Contents-{architecture}", _contents(mine))
    return files


def architectures(records):
    found = {r["architecture"] for r in records} - {"all"}
    return sorted(found | {DEFAULT_ARCHITECTURE})


def components(records, before=()):
    """Components once shown stay, empty if need be: a client that asks for one must not fail."""
    return sorted({r["component"] for r in records} | set(before) | {FIRST_COMPONENT})


def by_hash(files):
    """{by-hash path: bytes} for every hash of every index."""
    result = {}
    for path, data in files.items():
        for name in HASHES:
            result[f"{by_hash_folder(path)}/{name}/{digest(name, data)}"] = data
    return result


def by_hash_folder(path):
    folder = path.rpartition("/")[0]
    return f"{folder}/by-hash" if folder else "by-hash"


def digest(name, data):
    return hashlib.new(name.lower(), data).hexdigest()


def sort_key(record):
    return (record["name"], _version_key(record["version"]), record["architecture"])


def newer(a, b):
    """True if Debian version a is newer than b."""
    return subprocess.run(["dpkg", "--compare-versions", a, "gt", b], check=False).returncode == 0


@functools.lru_cache(maxsize=None)
def _compare(a, b):
    return 0 if a == b else 1 if newer(a, b) else -1


_version_key = functools.cmp_to_key(_compare)


def _packages(records, phases):
    stanzas = []
    for record in sorted(records, key=sort_key):
        stanza = record["stanza"]
        phase = phases.get(record["sha256"])
        if phase is not None:
            stanza += f"\nPhased-Update-Percentage: {phase}"
        stanzas.append(stanza + "\n")
    return "\n".join(stanzas).encode()


def _contents(records):
    owners = {}
    for record in records:
        for name in record["contents"]:
            owners.setdefault(name, set()).add(f"{record['section']}/{record['name']}")
    lines = [f"{name} {','.join(sorted(who))}\n" for name, who in sorted(owners.items())]
    return "".join(lines).encode("utf-8", "surrogateescape")


def _add(files, path, data):
    files[path] = data
    files[path + ".gz"] = gzip.compress(data, 9, mtime=0)
    files[path + ".xz"] = lzma.compress(data, preset=6)
