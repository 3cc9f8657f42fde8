# SPDX-License-Identifier: MIT
"""Makes a state of a suite the one that clients see.

Order: pool, package records, by-hash, state file, plain indexes, Release and
Release.gpg, InRelease.  Everything before InRelease only adds files that the
old InRelease does not name (or that it names by hash), so a reader, and a
publish that was killed, see the old state whole until the last rename.
"""
import json
import os

from . import index, release, sign
from .durable import Lock, Writer
from .errors import REFUSED, RepoError
from .state import Snapshot, States, check_suite, record_name, snapshot_name

# A client that read the previous InRelease may fetch what it names for this long.
KEEP_GENERATIONS = 10
KEEP_DAYS = 7


class Publisher:
    """Holds the archive's lock while it is used as a context manager."""

    def __init__(self, root, keys, date=None, valid_days=release.VALID_DAYS):
        self.root = root
        self.keys = [sign.Key(k) for k in keys]
        self.date = date
        self.valid_days = valid_days
        self.writer = Writer(root)
        self.states = States(root)

    def __enter__(self):
        self._lock = Lock(os.path.join(self.root, "state/lock"))
        self._lock.__enter__()
        self.writer.remove_leftovers()
        return self

    def __exit__(self, *error):
        return self._lock.__exit__(*error)

    def add(self, suite, debs):
        """Add Deb objects to the suite and publish it.  Returns the Snapshot."""
        check_suite(suite)
        before = self.states.current(suite)
        self._refuse_other_content(debs)
        for deb in debs:
            self.writer.copy(deb.path, deb.filename, deb.sha256)
        self.writer.barrier()
        for deb in debs:
            record = deb.record()
            self.writer.put(record_name(deb.sha256), _json(record))
            self.states.add_record(record)
        packages = dict(before.packages) if before else {}
        for deb in debs:
            packages.setdefault(deb.sha256, None)
        return self.publish(suite, packages, "publish")

    def publish(self, suite, packages, reason, restores=None):
        """Make {sha256: phase} the state of the suite.  Returns the Snapshot."""
        before = self.states.current(suite)
        previous = self.states.current_release(suite)
        date = release.choose_date(self.date, previous)
        records = [self.states.record(d) for d in packages]
        _refuse_pin_without_module(suite, records)
        components = index.components(records, before.components if before else ())
        files = index.build(records, packages, components)
        number = before.number + 1 if before else 1
        snapshot = Snapshot(number, date, reason, packages, components, restores, _describe(files))
        if before and (before.packages, before.indexes) == (packages, snapshot.indexes):
            snapshot = before  # only the dates are new
        self._write(suite, snapshot, files,
                    release.text(suite, snapshot, index.architectures(records), date,
                                 self.valid_days))
        self._prune(suite, date)
        return snapshot

    def _write(self, suite, snapshot, files, text):
        dists = f"dists/{suite}"
        for path, data in sorted(index.by_hash(files).items()):
            self.writer.put(f"{dists}/{path}", data)
        self.writer.put(snapshot_name(suite, snapshot.number), snapshot.to_bytes())
        self.writer.barrier()
        for path, data in sorted(files.items()):
            self.writer.put(f"{dists}/{path}", data)
        self.writer.barrier()
        in_release, detached = sign.in_release(self.keys, text), sign.release_gpg(self.keys, text)
        self.writer.put(f"{dists}/Release.gpg", detached)
        self.writer.put(f"{dists}/Release", text)
        self.writer.barrier()
        self.writer.put(f"{dists}/InRelease", in_release)
        self.writer.barrier()

    def _refuse_other_content(self, debs):
        known = self.states.published_files()
        for deb in debs:
            other = known.setdefault(deb.filename, deb.sha256)
            if other != deb.sha256:
                raise RepoError(
                    f"{deb.path}: {deb.name} {deb.version} {deb.architecture} is already published "
                    f"with another sha256 ({other[:16]}..., this one {deb.sha256[:16]}...); "
                    "give the new build a new version", REFUSED)

    def _prune(self, suite, now):
        """Drop by-hash files that no recent state names."""
        states = self.states.published(suite)
        keep = set()
        for i, snapshot in enumerate(states):
            replaced = states[i + 1].created if i + 1 < len(states) else now
            if i >= len(states) - KEEP_GENERATIONS or replaced > now - KEEP_DAYS * release.DAY:
                for path, (_, digests) in snapshot.indexes.items():
                    keep |= {f"{index.by_hash_folder(path)}/{n}/{d}" for n, d in digests.items()}
        top = os.path.join(self.root, "dists", suite)
        for folder, _, names in os.walk(top):
            if os.path.basename(os.path.dirname(folder)) != "by-hash":
                continue
            for name in names:
                path = os.path.join(os.path.relpath(folder, top), name)
                if path not in keep:
                    self.writer.remove(f"dists/{suite}/{path}")
        self.writer.barrier()


def _refuse_pin_without_module(suite, records):
    """nvidia-p2p-pin lets one release of NVIDIA's user space in; without the module of that release
    a dist-upgrade would take the user space and remove the module that does not fit it."""
    def releases(name):
        return {(r["component"], r["version"].partition("+")[0]): r["version"]
                for r in records if r["name"] == name}

    modules = releases("nvidia-p2p-dkms")
    for key, version in sorted(releases("nvidia-p2p-pin").items()):
        if key not in modules:
            raise RepoError(
                f"suite {suite}: nvidia-p2p-pin {version} would be without nvidia-p2p-dkms of "
                f"release {key[1]}, and hosts would lose their module to it; publish that in the "
                "same command or before, or drop the pin in the same command", REFUSED)


def previous_number(states, suite):
    """Number of the state that a roll-back of the suite goes to by default."""
    current = states.required(suite)
    here = current.restores or current.number
    # A state that has all of the present packages, at other phases or with more, takes nothing back.
    older = [s for s in states.published(suite)
             if s.number < here and set(current.packages) - set(s.packages)]
    if not older:
        raise RepoError(f"suite {suite}: no state before number {here} lacks any of its packages, so "
                        "there is nothing to remove; see list --snapshots, or name what to --drop",
                        REFUSED)
    return older[-1].restores or older[-1].number


def _describe(files):
    return {path: [len(data), {n: index.digest(n, data) for n in index.HASHES}]
            for path, data in files.items()}


def _json(value):
    return (json.dumps(value, indent=1, sort_keys=True) + "\n").encode()
