# SPDX-License-Identifier: MIT
"""The Release file of a suite and its dates."""
import email.utils
import time

from . import index
from .errors import REFUSED, RepoError

ORIGIN = "nvidia-p2p"
LABEL = "nvidia-p2p"
VALID_DAYS = 14
DAY = 24 * 3600
# A clock this much behind the last Date is wrong, not just jitter between two machines.
CLOCK_SLACK = 5


def text(suite, snapshot, architectures, date, valid_days):
    """Release as bytes.  date: seconds since 1970."""
    lines = [
        f"Origin: {ORIGIN}",
        f"Label: {LABEL}",
        f"Suite: {suite}",
        f"Codename: {suite}",
        f"Date: {format_date(date)}",
        f"Valid-Until: {format_date(date + valid_days * DAY)}",
        "Acquire-By-Hash: yes",
        "No-Support-for-Architecture-all: Packages",
        f"Architectures: {' '.join(architectures)}",
        f"Components: {' '.join(snapshot.components)}",
        f"Description: NVIDIA open kernel modules with PCIe peer-to-peer, {suite}",
        f"X-Snapshot: {snapshot.number}",
    ]
    for name in index.HASHES:
        lines.append(f"{name}:")
        lines += [f" {digests[name]} {size:>9} {path}"
                  for path, (size, digests) in sorted(snapshot.indexes.items())]
    return ("\n".join(lines) + "\n").encode()


def choose_date(given, previous):
    """Seconds since 1970 for Date: the given one or now, never before the live Release's.

    apt keeps what it has when an InRelease is older than the last it saw, so an
    earlier Date would hide the new state without any error.
    """
    date = int(time.time()) if given is None else given
    last = parse_date(previous["Date"]) if previous.get("Date") else date
    if date < last - (CLOCK_SLACK if given is None else 0):
        raise RepoError(f"Date {format_date(date)} is before that of the live Release "
                        f"({previous['Date']}), so clients would ignore it; set the clock", REFUSED)
    return max(date, last)


def format_date(seconds):
    return email.utils.formatdate(seconds, usegmt=True).replace("GMT", "UTC")


def parse_date(value):
    """Seconds since 1970 of an RFC 5322 date or of a plain number.  Raises ValueError."""
    if value.isdigit():
        return int(value)
    try:
        return int(email.utils.parsedate_to_datetime(value.replace("UTC", "+0000")).timestamp())
    except TypeError:
        raise ValueError(value) from None
