# SPDX-License-Identifier: MIT
"""What the commands have in common: options, errors in one line, exit statuses."""
import argparse
import os
import sys
import textwrap

from . import release
from .errors import EPILOG, FAILED, OK, USAGE, RepoError


class Parser(argparse.ArgumentParser):
    def __init__(self, description):
        super().__init__(description=textwrap.fill(description, 79, break_on_hyphens=False), epilog=EPILOG,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        self.add_argument("--repo", required=True, metavar="DIR",
                          help="archive's folder, the one that the web server shows")

    def add_signing(self):
        self.add_argument("--key", required=True, action="append", metavar="FPR_OR_HOME",
                          help="fingerprint (40 hex digits) of a key in $GNUPGHOME, or a GNUPGHOME "
                               "with one secret key; give it twice during a key rotation")
        self.add_argument("--date", type=_date, metavar="DATE",
                          help="Date of Release, RFC 5322 or seconds since 1970 (default: now; "
                               "SOURCE_DATE_EPOCH is not used, since Valid-Until would lie in the past)")
        self.add_argument("--valid-days", type=_days, default=release.VALID_DAYS, metavar="N",
                          help="days from Date to Valid-Until (default: %(default)s)")

    def error(self, message):
        print(f"{self.prog}: error: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(USAGE)


def main(body):
    """Run body() and turn its errors into one line and a status."""
    name = os.path.basename(sys.argv[0])
    os.umask(0o022)
    try:
        body()
    except RepoError as e:
        print(f"{name}: error: {e}", file=sys.stderr)
        sys.exit(e.status)
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        print(f"{name}: error: {where}{e.strerror or e}; clients see a whole state, "
              "remedy this and run it again", file=sys.stderr)
        sys.exit(FAILED)
    except KeyboardInterrupt:
        print(f"{name}: error: interrupted; run it again", file=sys.stderr)
        sys.exit(FAILED)
    sys.exit(OK)


def say(text):
    print(f"{os.path.basename(sys.argv[0])}: {text}")


def _date(value):
    try:
        return release.parse_date(value)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{value!r} is no date") from None


def _days(value):
    if not value.isdigit() or not 1 <= int(value) <= 365:
        raise argparse.ArgumentTypeError(f"{value!r} is not within 1..365")
    return int(value)
