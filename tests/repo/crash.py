#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Kill a publish at every step, see what readers get, run it again.

usage: crash.py STRIDE BASE REPO CLIENT -- PUBLISH...
BASE is an archive whose suite jammy holds p 1.0, PUBLISH a command that adds p
2.0 to a copy of it at REPO.  For each step n = 1, 1 + STRIDE, ... the command is
killed by SIGKILL at its n-th step; then audit.py and the shell command CLIENT
(which prints p's candidate; with FRESH set it first forgets what it saw after
BASE) must see 1.0 or 2.0, nothing else; then the same command without a kill
must end 0 and both must see 2.0.  A later kill must not show an older version.
Ends with the first n that the command survives, having walked the last STRIDE
steps one by one.
"""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def output(command, **environment):
    done = subprocess.run(command, env={**os.environ, "FRESH": "", **environment}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        sys.exit(f"crash.py: step {step}: {' '.join(command)}: {done.stdout.strip()[-300:]}")
    return done.stdout.strip().split("\n")[-1]


stride, base, repo, client, _, *publish = sys.argv[1:]
kills, commits, newest = 0, 0, "1.0"
step, stride = 1, int(stride)
while True:
    shutil.rmtree(repo, ignore_errors=True)
    shutil.copytree(base, repo)
    killed = subprocess.run(publish, env={**os.environ, "P2P_REPO_CRASH_AT": str(step)},
                            stdout=subprocess.DEVNULL, check=False).returncode
    if killed == 0:
        if stride == 1:
            break
        # The commit is among the last steps; walk those one by one.
        step, stride = step - stride + 1, 1
        continue
    if killed != -9:
        sys.exit(f"crash.py: step {step}: status {killed}, a kill was expected")
    kills += 1
    seen = output([f"{HERE}/audit.py", repo, "jammy"])
    if seen not in ("1.0", "2.0") or seen < newest:
        sys.exit(f"crash.py: step {step}: InRelease shows {seen}")
    newest = seen
    commits += seen == "2.0"
    got = output(["sh", "-c", client], FRESH="1")
    if got != seen:
        sys.exit(f"crash.py: step {step}: InRelease shows {seen}, apt shows {got}")
    output(publish)
    for again in (output([f"{HERE}/audit.py", "--plain", repo, "jammy"]), output(["sh", "-c", client])):
        if again != "2.0":
            sys.exit(f"crash.py: step {step}: run again, but {again} is seen")
    step += stride
if not commits:
    sys.exit("crash.py: no kill fell after the commit; the steps are not where they should be")
print(f"{kills} kills, {kills - commits} before and {commits} after the commit")
