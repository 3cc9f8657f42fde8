# SPDX-License-Identifier: MIT
"""Exit statuses and the one error type that a command turns into one line."""

OK = 0
FAILED = 1  # a file, gpg or apt-ftparchive failed; the published state is the old one
REFUSED = 2  # the input may not be published
LOCKED = 3  # another command is changing this archive
GATE = 5  # canary reports do not allow the promotion
USAGE = 64  # sysexits.h EX_USAGE

EPILOG = """exit status:
  0   done; also when there was nothing left to do
  1   a file, gpg or apt-ftparchive failed: clients still see the old state, run it again
  2   refused: the input may not be published
  3   another command is changing this archive
  5   promote only: the canary reports do not allow it
  64  wrong usage
"""


class RepoError(Exception):
    """What failed, on which file and value, and the remedy, in one line."""

    def __init__(self, message, status=FAILED):
        super().__init__(" ".join(str(message).split()))
        self.status = status
