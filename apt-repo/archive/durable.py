# SPDX-License-Identifier: MIT
"""Writes that are whole or absent, also after kill -9 or loss of power.

A file is written under a temporary name, synced, then renamed.  The directory
entries become durable at the next barrier(), so that what is written after a
barrier never survives a power loss that what came before it does not.
"""
import fcntl
import hashlib
import os
import signal

from .errors import LOCKED, REFUSED, RepoError

TEMP_PREFIX = ".p2p-tmp."
CHUNK = 1 << 20


class _CrashPoint:
    """Kills this process at the n-th step when P2P_REPO_CRASH_AT=n is set, for tests.

    A step is any moment between two system calls at which what is on disk differs.
    """

    def __init__(self):
        self.left = int(os.environ.get("P2P_REPO_CRASH_AT", "0"))

    def step(self):
        if self.left:
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)


class Lock:
    """Exclusive, gone with its process.  Use as a context manager."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.file = open(self.path, "a+", encoding="ascii")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.seek(0)
            holder = self.file.read().strip() or "unknown"
            raise RepoError(f"{self.path} is held by process {holder}; "
                            "wait for it to end, then run this again", LOCKED) from None
        self.file.truncate(0)
        self.file.write(f"{os.getpid()}\n")
        self.file.flush()
        return self

    def __exit__(self, *_):
        self.file.close()


class Writer:
    def __init__(self, root):
        self.root = root
        self._crash = _CrashPoint()
        self._touched = set()

    def path(self, name):
        return os.path.join(self.root, name)

    def put(self, name, data):
        """Make file `name` hold `data` (bytes).  Returns False if it already does."""
        try:
            with open(self.path(name), "rb") as f:
                if f.read() == data:
                    return False
        except FileNotFoundError:
            pass
        half = len(data) // 2
        self._replace(name, (data[:half], data[half:]))
        return True

    def copy(self, source, name, sha256):
        """Copy file `source` to `name`; its content must hash to `sha256`."""
        if os.path.exists(self.path(name)) and file_sha256(self.path(name)) == sha256:
            return
        seen = hashlib.sha256()

        def chunks():
            with open(source, "rb") as f:
                for chunk in iter(lambda: f.read(CHUNK), b""):
                    seen.update(chunk)
                    yield chunk
            if seen.hexdigest() != sha256:
                raise RepoError(f"{source} changed while it was being copied; publish it again "
                                "once it is complete", REFUSED)

        self._replace(name, chunks())

    def remove(self, name):
        self._crash.step()
        os.unlink(self.path(name))
        self._touched.add(os.path.dirname(self.path(name)))

    def barrier(self):
        """All directory entries changed so far are on disk when this returns."""
        for directory in sorted(self._touched):
            _fsync_directory(directory)
        self._touched.clear()
        self._crash.step()

    def remove_leftovers(self):
        """Drop temporary files of a killed predecessor.  Needs the lock."""
        for top in ("pool", "dists", "state"):
            for directory, _, names in os.walk(self.path(top)):
                for name in names:
                    if name.startswith(TEMP_PREFIX):
                        os.unlink(os.path.join(directory, name))

    def _replace(self, name, chunks):
        target = self.path(name)
        directory, base = os.path.split(target)
        self._make_directory(directory)
        # 64: a by-hash name of 128 digits plus our prefix still fits in a name.
        temporary = os.path.join(directory, TEMP_PREFIX + base[:64])
        try:
            with open(temporary, "wb") as f:
                for chunk in chunks:
                    f.write(chunk)
                    f.flush()
                    self._crash.step()
                os.fchmod(f.fileno(), 0o644)
                os.fsync(f.fileno())
            self._crash.step()
            os.rename(temporary, target)
        except BaseException:
            try:
                os.unlink(temporary)
            except OSError:
                pass
            raise
        self._touched.add(directory)
        self._crash.step()

    def _make_directory(self, directory):
        if os.path.isdir(directory):
            return
        parent = os.path.dirname(directory)
        self._make_directory(parent)
        os.mkdir(directory)
        os.chmod(directory, 0o755)
        self._touched.add(parent)


def file_sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for chunk in iter(lambda: f.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def _fsync_directory(path):
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
