# SPDX-License-Identifier: MIT
"""An unpacked NVIDIA release: which one it is, and whether it is the real one.

The pin of a release is the pair of git tree ids of its src/ and kernel-open/.
They are computed here from file contents alone, so neither git nor a clone is
needed, and a tarball's umask, lost exec bits or an empty folder do not matter.
"""

import argparse
import hashlib
import os
import re
import stat
import sys
from concurrent.futures import ThreadPoolExecutor

DRIVER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST = 550
PINNED = ("src", "kernel-open")
# The only file that carries an exec bit, in every release since 535.43.02.
EXECUTABLE = {"kernel-open/conftest.sh"}


class Failure(Exception):
    """One line for the user, and the exit status that goes with it."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


USAGE, UNSUPPORTED, PIN, HOOK, CHANGED, SYSTEM = 64, 2, 3, 4, 5, 1


class Parser(argparse.ArgumentParser):
    """argparse with this project's exit status and its one line for usage errors."""

    def __init__(self, **kwargs):
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)

    def error(self, message):
        raise Failure(USAGE, f"{message}; see --help")


def read_table(name):
    """Rows of a tab-separated table of driver/ as dicts; the last # line names the columns."""
    path = os.path.join(DRIVER, name)
    columns, rows = [], []
    with open(path, encoding="utf-8") as table:
        for number, line in enumerate(table, 1):
            line = line.rstrip("\n")
            if line.startswith("#"):
                columns = line[1:].split("\t")
            elif line:
                fields = line.split("\t")
                if len(fields) != len(columns):
                    raise Failure(SYSTEM, f"{path}:{number}: {len(fields)} columns, expected "
                                          f"{len(columns)}; the table is damaged, restore it")
                rows.append(dict(zip(columns, fields)))
    return rows


def releases():
    return {row["version"]: row for row in read_table("releases.tsv")}


def families():
    return {row["family"]: row for row in read_table("families.tsv")}


def p2p_level():
    with open(os.path.join(DRIVER, "P2P_LEVEL"), encoding="ascii") as level:
        return level.read().strip()


def version_of(tree):
    """The release that version.mk names."""
    path = os.path.join(tree, "version.mk")
    try:
        with open(path, encoding="utf-8", errors="replace") as text:
            found = re.search(r"^NVIDIA_VERSION\s*=\s*(\d+(?:\.\d+)+)\s*$", text.read(), re.M)
    except OSError as error:
        raise Failure(USAGE, f"{path}: {error.strerror}; give the folder of an unpacked "
                             "open-gpu-kernel-modules release") from None
    if not found:
        raise Failure(USAGE, f"{path}: no line 'NVIDIA_VERSION = ...'; this is not an "
                             "open-gpu-kernel-modules release")
    return found.group(1)


def major_of(version):
    return int(version.split(".")[0])


def refuse_unsupported(version):
    """The row of releases.tsv, or a Failure that says what can be done."""
    row = releases().get(version)
    if row:
        return row
    if major_of(version) < OLDEST:
        raise Failure(UNSUPPORTED, f"{version} is not supported: branches before {OLDEST} run GeForce "
                      f"boards only with NVreg_OpenRmEnableUnsupportedGpus=1 and lack the BAR1 code "
                      f"that the change builds on; use a release from {OLDEST} on (driver/releases.tsv)")
    raise Failure(UNSUPPORTED, f"{version} is not in driver/releases.tsv; run `driver/port TREE` to "
                  "see whether the change fits it and which lines to add")


def _blob(path):
    with open(path, "rb") as file:
        data = file.read()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).digest()


def tree_id(tree, name):
    """git's id of the folder `name` of `tree`, with the modes the releases use."""
    root = os.path.join(tree, name)
    if not os.path.isdir(root):
        raise Failure(PIN, f"{root}: no such folder; the tree is incomplete, unpack it again")
    folders, files = {}, []

    def scan(folder):
        entries = folders[folder] = []
        for entry in os.scandir(folder):
            if entry.is_symlink():
                entries.append((entry.name, b"120000", os.readlink(entry.path)))
            elif entry.is_dir(follow_symlinks=False):
                scan(entry.path)
                entries.append((entry.name, b"40000", entry.path))
            elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                mode = b"100755" if os.path.relpath(entry.path, tree) in EXECUTABLE else b"100644"
                entries.append((entry.name, mode, entry.path))
                files.append(entry.path)
            else:
                raise Failure(PIN, f"{entry.path}: neither file nor folder; unpack the release again")

    scan(root)
    # hashlib and read() release the interpreter lock: threads do help here.
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        blobs = dict(zip(files, pool.map(_blob, files, chunksize=64)))

    def digest(folder):
        items = []
        for name_, mode, what in folders[folder]:
            key = os.fsencode(name_)
            if mode == b"40000":
                value = digest(what)
                if value is None:  # git knows no empty folder
                    continue
                items.append((key + b"/", key, mode, value))
            elif mode == b"120000":
                link = os.fsencode(what)
                items.append((key, key, mode, hashlib.sha1(b"blob %d\0" % len(link) + link).digest()))
            else:
                items.append((key, key, mode, blobs[what]))
        if not items:
            return None
        body = b"".join(b"%s %s\0%s" % (mode, key, value) for _, key, mode, value in sorted(items))
        return hashlib.sha1(b"tree %d\0" % len(body) + body).digest()

    value = digest(root)
    if value is None:
        raise Failure(PIN, f"{root}: empty; the tree is incomplete, unpack it again")
    return value.hex()


def check_pin(version, tree):
    """Raise a Failure that names the folder whose content is not the release's."""
    row = refuse_unsupported(version)
    found = version_of(tree)
    if found != version:
        raise Failure(PIN, f"{tree}/version.mk: says {found}, expected {version}; give the tree of {version}")
    for name, column in zip(PINNED, ("src_tree", "kernel_open_tree")):
        got = tree_id(tree, name)
        if got != row[column]:
            raise Failure(PIN, f"{os.path.join(tree, name)}: content is {got}, release {version} has "
                          f"{row[column]}; files were changed, added or lost, unpack the release again")
    return row


def run(main):
    """Call main(); print a Failure as the one line it is."""
    program = os.path.basename(sys.argv[0])
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"{program}: error: {failure}", file=sys.stderr)
        sys.exit(failure.status)
    except BrokenPipeError:
        sys.exit(SYSTEM)
    except OSError as error:
        print(f"{program}: error: {error.filename or ''}: {error.strerror}", file=sys.stderr)
        sys.exit(SYSTEM)
