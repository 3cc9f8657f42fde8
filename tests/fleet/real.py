#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The histories of simulate.py with nothing simulated: packages are unpacked by dpkg in a root, the pin
is the file that its package installs, upgrades are done by apt-get and unattended-upgrade.

  real.py ROOT SEED           one history
  real.py ROOT rollback       a fleet's host goes back one release by the command of docs/fleet.md

ROOT holds Debian with dkms and unattended-upgrades, and is used up.
Exit status: 0 it held, 1 a step broke it (printed), 64 usage.
"""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

import simulate

CHROOT = None
INSIDE = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]


def build(package):
    """The stanza of a real .deb with these relations, in the root's pool."""
    pool = f"{CHROOT}/srv/pool"
    path = f"{pool}/{package['Package']}_{package['Version']}.deb"
    if not os.path.exists(path):
        tree = f"{CHROOT}/srv/tree"
        shutil.rmtree(tree, ignore_errors=True)
        os.makedirs(f"{tree}/DEBIAN")
        os.makedirs(pool, exist_ok=True)
        if package["Package"] == "nvidia-p2p-pin":
            os.makedirs(f"{tree}/etc/apt/preferences.d")
            with open(f"{tree}/etc/apt/preferences.d/nvidia-p2p.pref", "w", encoding="utf-8") as f:
                f.write(simulate.preferences(package))
            with open(f"{tree}/DEBIAN/conffiles", "w", encoding="utf-8") as f:
                f.write("/etc/apt/preferences.d/nvidia-p2p.pref\n")
        with open(f"{tree}/DEBIAN/control", "w", encoding="utf-8") as f:
            f.write(simulate.stanza_text(package).strip() + "\n")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, path], check=True, stdout=subprocess.DEVNULL)
    with open(path, "rb") as f:
        data = f.read()
    return simulate.stanza_text(package, Filename=f"../pool/{os.path.basename(path)}", Size=str(len(data)),
                                SHA256=hashlib.sha256(data).hexdigest())


class RealHost(simulate.Host):
    def __init__(self, folder, *as_simulated):
        super().__init__(folder, *as_simulated)
        self.stanzas = {}
        for d in ("/etc/apt/sources.list.d", "/var/lib/apt/lists"):
            shutil.rmtree(CHROOT + d, ignore_errors=True)
            os.makedirs(CHROOT + d)
        with open(f"{CHROOT}/etc/apt/sources.list", "w", encoding="utf-8") as f:
            f.writelines(f"deb [trusted=yes] file:/srv/{a} ./\n" for a in sorted(self.sees))
        with open(f"{CHROOT}/etc/apt/apt.conf.d/99tests", "w", encoding="utf-8") as f:
            f.write('APT::Sandbox::User "root"; APT::Install-Recommends "true"; Dpkg::Use-Pty "0";\n'
                    'Unattended-Upgrade::Origins-Pattern { "origin=ubuntu"; "origin=p2p"; };\n'
                    # As docs/fleet.md says: a pin that goes back takes the packages along.
                    'Unattended-Upgrade::Allow-downgrade "true";\n')
        self.look()

    def look(self):
        """What dpkg says is installed."""
        out = subprocess.run(["dpkg-query", f"--admindir={CHROOT}/var/lib/dpkg", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\n"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
        lines = [line.split() for line in out.splitlines() if "nvidia" in line or line.startswith("dkms ")]
        self.installed = {n: {"Package": n, "Version": v} for n, v, status in lines if status in ("ii", "hi")}
        self.odd = [" ".join(x) for x in lines if x[2] not in ("ii", "hi", "rc", "un")]

    def prepare(self):
        for archive in self.sees:
            os.makedirs(f"{CHROOT}/srv/{archive}", exist_ok=True)
            with open(f"{CHROOT}/srv/{archive}/Packages", "w", encoding="utf-8") as f:
                for name, versions in self.archives[archive].items():
                    for v, p in versions.items():
                        if (name, v) not in self.stanzas:
                            self.stanzas[name, v] = build(p)
                        f.write(self.stanzas[name, v].replace("Filename: ../pool/", "Filename: pool/"))
            if not os.path.islink(f"{CHROOT}/srv/{archive}/pool"):
                os.symlink("../pool", f"{CHROOT}/srv/{archive}/pool")
            with open(f"{CHROOT}/srv/{archive}/Packages", "rb") as f:
                data = f.read()
            with open(f"{CHROOT}/srv/{archive}/Release", "w", encoding="utf-8") as f:
                f.write(f"Origin: {archive}\nLabel: {archive}\nSuite: stable\nCodename: stable\nDate: Tue, 01 Dec 2026 00:00:00 UTC\n"
                        f"SHA256:\n {hashlib.sha256(data).hexdigest()} {len(data)} Packages\n")
        self.run("apt-get", "-qq", "update")

    def run(self, *command):
        self.calls += 1
        r = subprocess.run(["chroot", CHROOT, *INSIDE, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        print("$", *command, f"[{r.returncode}]\n{r.stdout}", file=sys.stderr)
        self.last = r.stdout
        return r.returncode

    def act(self, *arguments, allow_remove=True):
        self.prepare()
        rc = self.run("apt-get", "-y", "--allow-downgrades", *arguments)
        self.look()
        if rc == 0:
            self.asked_for(arguments)
        return rc == 0

    def upgrade(self, how):
        if how != "unattended":
            return self.act(how)
        self.prepare()
        rc = self.run("unattended-upgrade", "-v")
        self.look()
        return rc == 0

    def automatic(self):
        self.run("apt-mark", "showauto")
        return [name for name in self.last.split() if "nvidia" in name]

    def broken(self, branch):
        return f"not configured: {self.odd}" if self.odd else super().broken(branch)


def rollback(folder):
    """The newest release is bad; the archive still shows it, and the one before."""
    host = RealHost(f"{folder}/rollback")
    old, new = simulate.RELEASES[3:5]
    for up in (old, new):
        host.publish("ubuntu", simulate.ubuntu("550", up), True)
        host.publish("p2p", simulate.ours("550", up), True)
    host.act("install", "nvidia-driver-550-open", "nvidia-p2p-dkms")
    host.act("dist-upgrade")
    host.act("dist-upgrade")
    if host.release("nvidia-p2p-dkms") != new or host.lost("550"):
        return f"before: {host.lost('550')}, {host.release('nvidia-p2p-dkms')}"
    with open(os.path.join(simulate.TOP, "docs", "fleet.md"), encoding="utf-8") as f:
        block = re.search(r"<!-- rollback -->\n```sh\n(.*?)```", f.read(), re.S)
    if not block:
        return "docs/fleet.md: no command marked <!-- rollback -->"
    command = block[1].replace("VERSION", f"{old}+p2p1-1").replace("BRANCH", "550")
    automatic = host.automatic()
    if host.run("sh", "-c", "export APT_LISTCHANGES_FRONTEND=none; " + command.replace("apt-get ", "apt-get -y ")):
        return f"the documented command failed: {host.last}"
    host.look()
    if host.automatic() != automatic:
        return f"the command changed what apt takes for automatically installed: {automatic}, {host.automatic()}"
    for step in ("after the command", "after upgrade", "after unattended-upgrade", "after dist-upgrade"):
        if step != "after the command":
            host.upgrade({"after upgrade": "upgrade", "after unattended-upgrade": "unattended"}.get(step, "dist-upgrade"))
        if host.lost("550") or host.release("nvidia-p2p-dkms") != old or host.release("nvidia-driver-550-open") != old:
            return f"{step}: {host.lost('550')}, module {host.release('nvidia-p2p-dkms')}, driver {host.release('nvidia-driver-550-open')}"
    return None


def main():
    global CHROOT
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 64
    CHROOT = sys.argv[1]
    simulate.Host = RealHost
    folder = tempfile.mkdtemp(prefix="p2p-real.")
    try:
        if sys.argv[2] == "rollback":
            text, steps, calls = rollback(folder), 0, 0
        else:
            text, steps, calls = simulate.history(int(sys.argv[2]), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"BROKEN: {text}" if text else f"real: {sys.argv[2]}: held, {steps} upgrades, {calls} runs of apt")
    return 1 if text else 0


if __name__ == "__main__":
    sys.exit(main())
