# SPDX-License-Identifier: MIT
"""Numbered states of the suites.

state/packages/SHA256.json     what is known of one .deb; never changes
state/suites/SUITE/NNNNNN.json one state: which packages, at which phase, and its index hashes

The state that clients see is the one that dists/SUITE/InRelease names in
X-Snapshot, so that InRelease is the only commit point.  A state file with a
higher number is what a killed publish left; it was never seen by anybody.
"""
import json
import os
import re

from .errors import FAILED, REFUSED, RepoError

FIRST_COMPONENT = "main"
_SUITE = re.compile(r"[a-z][a-z0-9]*(-canary)?")


def check_suite(suite):
    if not _SUITE.fullmatch(suite):
        raise RepoError(f"suite {suite!r}: must be a distribution's codename, or that and -canary, "
                        "for example jammy-canary", REFUSED)
    return suite


class Snapshot:
    """One state of one suite.

    packages: {sha256 of the .deb: phase in percent, or None for everybody}
    indexes:  {path below dists/SUITE: [size, {hash name: digest}]}
    restores: number of the state that a roll-back brought back, or None
    """

    def __init__(self, number, created, reason, packages, components, restores=None, indexes=None):
        self.number = number
        self.created = created  # seconds since 1970
        self.reason = reason
        self.packages = packages
        self.components = components
        self.restores = restores
        self.indexes = indexes or {}

    def to_bytes(self):
        return (json.dumps(self.__dict__, indent=1, sort_keys=True) + "\n").encode()


class States:
    def __init__(self, root):
        self.root = root
        self._records = {}

    def suites(self):
        """Suites that clients can see."""
        try:
            names = sorted(os.listdir(os.path.join(self.root, "dists")))
        except FileNotFoundError:
            return []
        return [n for n in names if self.current_release(n)]

    def current_release(self, suite):
        """{field: value} of the live InRelease, {} if there is none."""
        path = os.path.join(self.root, "dists", suite, "InRelease")
        try:
            with open(path, encoding="utf-8") as f:
                return dict(re.findall(r"^([A-Za-z][A-Za-z0-9-]*): (.+)$", f.read(), flags=re.M))
        except FileNotFoundError:
            return {}

    def current(self, suite):
        """The Snapshot that clients see, or None for a suite that is not there yet."""
        release = self.current_release(suite)
        if not release:
            return None
        number = release.get("X-Snapshot", "")
        if not number.isdigit():
            raise RepoError(f"dists/{suite}/InRelease has no X-Snapshot, so it was not made by "
                            "this tool; publish into an empty folder")
        return self.load(suite, int(number))

    def required(self, suite):
        current = self.current(suite)
        if current is None:
            known = " ".join(self.suites()) or "none"
            raise RepoError(f"{self.root} has no suite {suite}; it has: {known}", REFUSED)
        return current

    def load(self, suite, number):
        path = os.path.join(self.root, snapshot_name(suite, number))
        return Snapshot(**_read_json(path))

    def published(self, suite):
        """All states that clients have seen, oldest first."""
        current = self.current(suite)
        if current is None:
            return []
        folder = os.path.join(self.root, "state/suites", suite)
        numbers = sorted(int(n[:-5]) for n in os.listdir(folder) if re.fullmatch(r"\d+\.json", n))
        return [self.load(suite, n) for n in numbers if n <= current.number]

    def record(self, sha256):
        if sha256 not in self._records:
            self._records[sha256] = _read_json(os.path.join(self.root, record_name(sha256)))
        return self._records[sha256]

    def add_record(self, record):
        self._records[record["sha256"]] = record

    def published_files(self):
        """{pool file: sha256} of everything that any suite has ever shown."""
        digests = {d for suite in self.suites() for s in self.published(suite) for d in s.packages}
        return {self.record(d)["filename"]: d for d in digests}


def snapshot_name(suite, number):
    return f"state/suites/{suite}/{number:06d}.json"


def record_name(sha256):
    return f"state/packages/{sha256}.json"


def _read_json(path):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        raise RepoError(f"{path} is missing; restore it from a backup or choose another state "
                        "(list --snapshots)", FAILED) from None
    except ValueError as e:
        raise RepoError(f"{path} is damaged ({e}); restore it from a backup", FAILED) from None
