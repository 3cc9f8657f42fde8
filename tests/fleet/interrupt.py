#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run a command and stop it at a chosen change of the file system.

  interrupt.py count MARK[|MARK] COMMAND... run it through; print how many changes it made, and for each
                                            MARK the number of the first one that names it (0: none)
  interrupt.py all N COMMAND...             at change N, SIGKILL to every process at once
  interrupt.py one N COMMAND...             at change N, SIGKILL to the process that made it alone
  interrupt.py power N SCRIPT COMMAND...    at change N, stop every process, run SCRIPT, then kill them

A change is a call of rename, link, unlink, mkdir, chmod, fsync and their like, in any of the
processes, in the order of strace: so a point is the same on a fast machine and a slow one, but
for a few calls.  Must be process 1 of a pid namespace (unshare --pid --fork); its end ends all others.

Prints one line: what was hit.  Exit status: 0 it was interrupted (count: it succeeded), 1 it ended before
change N, 64 usage; count: that of the command.
"""
import os
import re
import signal
import subprocess
import sys

CALLS = ("rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,"
         "chmod,fchmod,fchmodat,fsync,fdatasync,sync,syncfs,sync_file_range")


def main():
    mode, rest = sys.argv[1], sys.argv[2:]
    at = int(rest.pop(0)) if mode in ("all", "one", "power") else None
    script = rest.pop(0) if mode == "power" else None
    marks = rest.pop(0).split("|") if mode == "count" else []
    if mode not in ("count", "all", "one", "power") or os.getpid() != 1:
        print(__doc__, file=sys.stderr)
        return 64
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    # The log of the command itself goes where ours goes, on standard error.
    child = subprocess.Popen(["strace", "-f", "-qq", "--seccomp-bpf", "-e", "signal=none", "-e", f"trace={CALLS}",
                              "-o", f"/dev/fd/{writer}", *rest], pass_fds=[writer], stdout=2, stdin=subprocess.DEVNULL)
    os.close(writer)
    seen, hit, first = 0, None, dict.fromkeys(marks, 0)
    with os.fdopen(reader, errors="replace") as lines:
        for line in lines:
            if hit or "resumed>" in line:
                continue
            call = re.match(r"(\d+) +(\w+)\((.*)", line)
            if not call:
                continue
            seen += 1
            for mark in marks:
                if not first[mark] and mark in call[3]:
                    first[mark] = seen
            if seen != at:
                continue
            hit = f"change {seen}: {call[2]}({call[3][:90]}"
            print(hit, flush=True)
            if mode == "all":
                os._exit(0)
            if mode == "one":
                try:
                    os.kill(int(call[1]), signal.SIGKILL)
                except ProcessLookupError:
                    # It has ended meanwhile: the next one then.
                    hit, at = None, at + 1
            if mode == "power":
                # strace would hold a stopped tracee at its next call; stop it with the rest.
                for pid in filter(str.isdigit, os.listdir("/proc")):
                    if int(pid) != 1:
                        try:
                            os.kill(int(pid), signal.SIGSTOP)
                        except ProcessLookupError:
                            pass
                rc = subprocess.run(["sh", "-c", script], stdout=2, check=False).returncode
                os._exit(0 if rc == 0 else 70)
    rc = child.wait()
    if mode == "count":
        print(seen, *first.values())
        return rc
    return 0 if hit else 1


if __name__ == "__main__":
    sys.exit(main())
