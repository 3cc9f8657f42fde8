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
        sys.exit(_fail(f"{message}; see {self.prog} --help", USAGE))

    def print_help(self, file=None):
        _write(self.format_help())


def main(body):
    """Run body() and turn its errors into one line and a status."""
    os.umask(0o022)
    status = OK
    try:
        body()
    except SystemExit as e:  # argparse: help, or wrong usage
        status = e.code
    except RepoError as e:
        status = _fail(e, e.status)
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        status = _fail(f"{where}{e.strerror or e}; clients see a whole state, remedy this and run it again")
    except KeyboardInterrupt:
        status = _fail("interrupted; run it again")
    _write("")
    if _unwritten and status == OK:
        status = _fail(f"standard output: {_unwritten}; the archive is in order, only the text is not whole: "
                       "make room, or send it elsewhere")
    sys.exit(status)


def show(text):
    """A line of text on standard output."""
    _write(f"{text}\n")


def say(text):
    show(f"{os.path.basename(sys.argv[0])}: {text}")


_unwritten = ""  # why standard output took no more


def _write(text):
    """A reader that has gone or a disk that is full ends no work on the archive; the first is no error."""
    global _unwritten
    try:
        if sys.stdout:
            sys.stdout.write(text)
            sys.stdout.flush()
    except OSError as e:
        # What is left in the buffer must go somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(e, BrokenPipeError):
            _unwritten = e.strerror


def _fail(text, status=FAILED):
    print(f"{os.path.basename(sys.argv[0])}: error: {text}", file=sys.stderr)
    return status


def _date(value):
    try:
        return release.parse_date(value)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{value!r} is no date") from None


def _days(value):
    if not value.isdigit() or not 1 <= int(value) <= 365:
        raise argparse.ArgumentTypeError(f"{value!r} is not within 1..365")
    return int(value)
