#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A fleet's apt in simulation: real solver, real preferences, packages that are only relations.

The relations of our packages are read from debian/driver/control.in and the pin from
debian/driver/preferences.in, so a change there changes what is tested.  NVIDIA's user space is a
stand-in with the relations that Ubuntu's driver packages have among themselves.

  simulate.py lockstep --histories N [--seed S] [--jobs J] [--root DIR] [--drop REGEX | --no-pin | --pin-first]
  simulate.py matrix [--root DIR] [--drop REGEX]
  simulate.py rollback [--root DIR]

--root DIR takes the apt of the system in DIR (needs root) instead of this machine's.

lockstep: N random histories.  In each, ten releases of one branch arrive as three streams (user
space, module, pin) that overtake each other; after each arrival the host upgrades, in one of three
ways.  After every step the module is installed and of the same release as all of user space; at
the end, of the newest.  What apt decides follows from what it reads, so the same question on the
same state is asked once for all histories; some are asked again, and have to be answered alike.
--drop takes relations away that match, --no-pin the pin, --pin-first the archive's order: with
each of these it has to fail.
rollback: the commands that docs/fleet.md and docs/repository.md mark by <!-- rollback --> take a host back whose
release moved user space; those in one line do not.
Exit status: 0 all held, 1 a step broke it (printed), 64 usage.
"""
import argparse
import concurrent.futures
import hashlib
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RELEASES = ["550.54.14", "550.54.15", "550.67", "550.76", "550.78", "550.90.07", "550.100",
            "550.107.02", "550.120", "550.127.05"]
USERLAND = ["libnvidia-compute", "nvidia-utils", "nvidia-kernel-common"]


def ubuntu(branch, up):
    """The packages of one driver release, as Ubuntu relates them."""
    v = f"{up}-0ubuntu1"

    def range_of(name):
        return f"{name} (>= {up}), {name} (<= {up}-1)"

    def virtual(name, *more):
        return {"Provides": ", ".join([name, *more]), "Conflicts": name, "Replaces": name}

    p = {
        f"libnvidia-compute-{branch}": virtual("libnvidia-compute", f"libcuda1 (= {v})", f"libnvidia-ml1 (= {v})"),
        f"nvidia-utils-{branch}": {**virtual("nvidia-utils"), "Depends": f"libnvidia-compute-{branch}"},
        f"nvidia-kernel-common-{branch}": virtual("nvidia-kernel-common"),
        f"nvidia-compute-utils-{branch}": {"Depends": f"libnvidia-compute-{branch}"},
    }
    for flavour in ("", "-open"):
        dkms, source = f"nvidia-dkms-{branch}{flavour}", f"nvidia-kernel-source-{branch}{flavour}"
        p[source] = virtual("nvidia-kernel-source")
        p[dkms] = {**virtual("nvidia-dkms-kernel"),
                   "Depends": f"{range_of(source)}, {range_of(f'nvidia-kernel-common-{branch}')}"}
        p[f"nvidia-driver-{branch}{flavour}"] = {
            "Depends": f"{range_of(dkms)}, {range_of(f'nvidia-kernel-common-{branch}')}, {source} (= {v}), "
                       f"libnvidia-compute-{branch} (= {v}), nvidia-utils-{branch} (= {v}), nvidia-compute-utils-{branch} (= {v})"}
        p[f"nvidia-headless-no-dkms-{branch}{flavour}"] = {
            "Depends": f"{range_of(f'nvidia-kernel-common-{branch}')}, {source} (= {v}), "
                       f"libnvidia-compute-{branch} (= {v}), nvidia-compute-utils-{branch} (= {v})"}
    return {name: {"Package": name, "Version": v, **fields} for name, fields in p.items()}


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as f:
        return f.read()


def ours(branch, up, level=1, drop=None):
    """Our packages of one release, from the templates that the real ones are made of."""
    text = read("debian", "driver", "control.in")
    for word, value in {"UP": up, "BRANCH": branch, "LEVEL": str(level), "VERSION": f"{up}+p2p{level}-1"}.items():
        text = text.replace(f"@{word}@", value)
    packages = {}
    for stanza in text.split("\n\n")[1:]:
        fields, name = {}, None
        for line in stanza.splitlines():
            if line[:1] in " \t":
                fields[name] += " " + line.strip()
            elif ":" in line:
                name, value = line.split(":", 1)
                fields[name] = value.strip()
        out = {"Package": fields["Package"], "Version": f"{up}+p2p{level}-1",
               "Section": fields.get("Section", f"{branch}/kernel")}
        for field in ("Depends", "Recommends", "Provides", "Conflicts", "Replaces", "Breaks"):
            relations = [r.strip() for r in fields.get(field, "").split(",")]
            relations = [r for r in relations if r and "${" not in r and not (drop and re.search(drop, f"{field}: {r}"))]
            if relations:
                out[field] = ", ".join(relations)
        packages[out["Package"]] = out
    return packages


def preferences(pin):
    """What this version of nvidia-p2p-pin tells apt."""
    up = pin["Version"].split("+")[0]
    return read("debian", "driver", "preferences.in").replace("@UP@", up).replace("@BRANCH@", up.split(".")[0])


def stanza_text(p, **more):
    fields = {**p, "Architecture": "amd64", "Maintainer": "Tests <tests@example.org>", "Description": "stand-in", **more}
    return "".join(f"{k}: {v}\n" for k, v in fields.items()) + "\n"


AGAIN = 40  # every so many known answers one is asked for again


class Answers:
    """What apt said to which arguments on which state, for all histories of one system."""

    def __init__(self):
        self.known, self.uses, self.again, self.lock = {}, 0, 0, threading.Lock()

    def ask(self, key, run):
        with self.lock:
            answer = self.known.get(key)
            self.uses += answer is not None
            again = answer is not None and self.uses % AGAIN == 0
        if answer is not None and not again:
            return answer
        fresh = run()
        with self.lock:
            self.again += again
            if self.known.setdefault(key, fresh) != fresh:
                raise RuntimeError(f"apt answered the same question in two ways:\n{self.known[key]}\n{fresh}")
        return fresh


class Host:
    """A root of apt: what is installed, what the archives show, what the pin says."""

    def __init__(self, folder, pin=True, root="", answers=None):
        self.dir, self.pin, self.root, self.answers = folder, pin, root, answers or Answers()
        seen = folder[len(root):]  # as apt sees it
        self.installed, self.manual = {}, set()
        # name -> {version: stanza}; nvidia-p2p-runfile is in a component that only its users see.
        self.archives = {"ubuntu": {}, "p2p": {}, "runfile": {}}
        self.sees = {"ubuntu", "p2p"}
        self.calls = 0
        self.index, self.shown = None, None  # what the archives show (None: to be made), and what of it apt has read
        for d in ("lists/partial", "cache/archives/partial", "etc/preferences.d", "etc/apt.conf.d", "etc/trusted.gpg.d", "etc/sources.list.d"):
            os.makedirs(f"{folder}/{d}")
        for a in self.archives:
            os.makedirs(f"{folder}/{a}")
        with open(f"{folder}/etc/sources.list", "w", encoding="utf-8") as f:
            f.writelines(f"deb [trusted=yes] file:{seen}/{a} ./\n" for a in self.archives)
        with open(f"{folder}/apt.conf", "w", encoding="utf-8") as f:
            f.write(f'''Dir::State "{seen}"; Dir::State::status "{seen}/status"; Dir::Cache "{seen}/cache";
Dir::Etc "{seen}/etc"; Dir::Log "{seen}"; APT::Architecture "amd64"; APT::Architectures "amd64";
APT::Sandbox::User "root"; Acquire::Languages "none"; APT::Install-Recommends "true"; Debug::NoLocking "true";
Dir::Cache::srcpkgcache ""; Dir::Cache::pkgcache "";
''')
        # What every host has, so that nothing else stands in the way.
        for name in ("dkms", "kmod", "linux-headers-amd64", "nvidia-p2p-tools"):
            self.installed[name] = {"Package": name, "Version": "99"}

    def publish(self, archive, packages, keep_old):
        self.index = None
        for name, p in packages.items():
            # The component is the prefix of the section, as for the real archive.
            shelf = self.archives["runfile" if archive == "p2p" and "-runfile/" in p["Section"] else archive]
            versions = shelf.setdefault(name, {})
            # Ubuntu shows the first version of a suite and the newest of -updates.
            if not keep_old and len(versions) > 1:
                versions.pop(list(versions)[-1])
            versions[p["Version"]] = p

    def ask(self, *arguments):
        """apt-get with these arguments on the state as it is now."""
        state = self.state()
        if self.index is None:
            self.index = {archive: self.packages(archive).encode() for archive in self.archives}
        key = hashlib.sha256(repr((arguments, sorted(state.items()), sorted(self.index.items()))).encode()).digest()
        return self.answers.ask(key, lambda: self.ask_afresh(state, arguments))

    def ask_afresh(self, state, arguments):
        for path, text in state.items():
            if text is not None:
                with open(f"{self.dir}/{path}", "w", encoding="utf-8") as f:
                    f.write(text)
            elif os.path.exists(f"{self.dir}/{path}"):
                os.unlink(f"{self.dir}/{path}")
        if self.shown != self.index:
            self.update()
            self.shown = self.index
        return self.apt(*arguments)

    def packages(self, archive):
        return "".join(stanza_text(p, Filename=f"./{name}_{v}.deb", Size="1", SHA256="0" * 64)
                       for name, versions in (self.archives[archive].items() if archive in self.sees else ())
                       for v, p in versions.items())

    def update(self):
        for archive, data in self.index.items():
            with open(f"{self.dir}/{archive}/Packages", "wb") as f:
                f.write(data)
            origin = "nvidia-p2p" if archive == "p2p" else archive
            with open(f"{self.dir}/{archive}/Release", "w", encoding="utf-8") as f:
                f.write(f"Origin: {origin}\nLabel: {origin}\nSuite: jammy\nCodename: jammy\nDate: Tue, 01 Dec 2026 00:00:00 UTC\n"
                        f"SHA256:\n {hashlib.sha256(data).hexdigest()} {len(data)} Packages\n")
        # What apt has linked to, and not copied, it reads as it is now.
        linked = {os.path.realpath(os.path.join(f"{self.dir}/lists", n)) for n in os.listdir(f"{self.dir}/lists")}
        seen = {f"{self.dir[len(self.root):]}/{a}/Packages" for a, data in self.index.items() if data}
        if not seen <= linked:
            self.apt("-qq", "update")

    def state(self):
        """What apt reads of the host, by path: None where there is no such file."""
        pin = self.installed.get("nvidia-p2p-pin")
        return {
            "status": "".join(stanza_text(p, Status="install ok installed") for _, p in sorted(self.installed.items())),
            "extended_states": "".join(f"Package: {n}\nArchitecture: amd64\nAuto-Installed: 1\n\n" for n in sorted(self.installed)
                                       if n not in self.manual and self.installed[n]["Version"] != "99"),
            "etc/preferences.d/nvidia-p2p.pref": preferences(pin) if pin and self.pin else None,
        }

    def apt(self, *arguments):
        self.calls += 1
        command = ["chroot", self.root, "apt-get"] if self.root else ["apt-get"]
        config = f"{self.dir}/apt.conf"[len(self.root):]
        r = subprocess.run([*command, *arguments], env={"PATH": os.environ["PATH"], "APT_CONFIG": config, "LC_ALL": "C"},
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return r.returncode, r.stdout

    def candidates(self, name):
        return {v: p for archive, shelf in self.archives.items() if archive in self.sees for v, p in shelf.get(name, {}).items()}

    def act(self, *arguments, allow_remove=True):
        """Simulate an apt-get command and take its result over.  False: it refused, or was not wanted."""
        rc, out = self.ask("-s", "-y", *arguments)
        self.last = out
        if rc != 0:
            return False
        removed = re.findall(r"^Remv (\S+)", out, re.M)
        if removed and not allow_remove:
            return False
        for name in removed:
            self.installed.pop(name, None)
        for name, version in re.findall(r"^Inst (\S+) (?:\[\S+\] )?\((\S+)", out, re.M):
            self.installed[name] = self.candidates(name)[version]
        self.asked_for(arguments)
        return True

    def asked_for(self, arguments):
        if arguments[0] == "install" and "--only-upgrade" not in arguments:
            self.manual.update(re.split("[=/]", a)[0] for a in arguments[1:] if re.match("[a-z]", a))

    def upgrade(self, how):
        """One run of an upgrade, as a person or as unattended-upgrades does it."""
        if how != "unattended":
            return self.act(how)
        # One package after the other, and nothing that would remove another.
        _, out = self.ask("-s", "-y", "dist-upgrade")
        for name in sorted(set(re.findall(r"^Inst (\S+) \[", out, re.M))):
            self.act("install", "--only-upgrade", name, allow_remove=False)
        return True

    def release(self, name):
        p = self.installed.get(name)
        return re.split(r"[+-]", p["Version"])[0] if p else None

    def broken(self, branch):
        """What is wrong now, or None."""
        module = self.release("nvidia-p2p-dkms")
        if module is None:
            return "nvidia-p2p-dkms is gone"
        for name in self.installed:
            if re.fullmatch(rf"nvidia-dkms-{branch}(-open)?", name):
                return f"{name} is back"
        for part in USERLAND:
            if self.release(f"{part}-{branch}") != module:
                return f"module {module}, {part}-{branch} {self.release(f'{part}-{branch}')}"
        return None

    def lost(self, branch):
        """The same for a host on which nothing may go that was asked for by name, such as a metapackage."""
        gone = sorted(self.manual - set(self.installed))
        return self.broken(branch) or (f"{gone[0]} is gone" if gone else None)


def scratch(root, what):
    """A folder that apt, this machine's or that in root, can see."""
    return tempfile.mkdtemp(prefix=f"p2p-{what}.", dir=f"{root}/tmp" if root else None)


def history(seed, folder, drop=None, pin=True, pin_first=False, system="", answers=None):
    """One random history.  Returns (text of the first break or None, steps, apt calls)."""
    rng = random.Random(seed)
    root = f"{folder}/{seed}"
    host = Host(root, pin, system, answers)
    log = []
    try:
        first = RELEASES[0]
        host.publish("ubuntu", ubuntu("550", first), False)
        host.publish("p2p", ours("550", first, drop=drop), True)
        kind = rng.choice(["driver", "headless", "bare"])
        if kind == "driver":
            host.act("install", "nvidia-driver-550-open")
        elif kind == "headless":
            host.act("install", "nvidia-headless-no-dkms-550-open")
        if not host.act("install", "nvidia-p2p-dkms") or not host.release("nvidia-p2p-pin"):
            return f"seed {seed}, {kind}: first installation failed:\n{host.last}", 0, host.calls
        wrong = host.lost("550")
        if wrong:
            return f"seed {seed}, {kind}: after the first installation: {wrong}", 0, host.calls
        streams = {s: RELEASES[1:] for s in ("userland", "module", "pin")}
        steps = 0
        while any(streams.values()):
            # The archive shows no pin without its module (apt-repo/publish refuses); all else is free.
            stream = rng.choice([s for s, rest in streams.items() if rest and (
                s != "pin" or pin_first or len(rest) > len(streams["module"]))])
            up, streams[stream] = streams[stream][0], streams[stream][1:]
            if stream == "userland":
                host.publish("ubuntu", ubuntu("550", up), False)
            else:
                wanted = {"module": ("nvidia-p2p-dkms", "nvidia-p2p-runfile"), "pin": ("nvidia-p2p-pin",)}[stream]
                host.publish("p2p", {n: p for n, p in ours("550", up, drop=drop).items() if n in wanted}, True)
            how = rng.choice(["upgrade", "dist-upgrade", "unattended", None])
            log.append(f"{stream} {up} arrives, {how or 'no upgrade'}")
            if how is None:
                continue
            host.upgrade(how)
            steps += 1
            wrong = host.lost("550")
            if wrong:
                return f"seed {seed}, {kind}: {wrong}\n  " + "\n  ".join(log[-6:]) + f"\n{host.last}", steps, host.calls
        # A pin that is upgraded counts from the next run on.
        for _ in range(3):
            host.upgrade("upgrade")
            steps += 1
            wrong = host.lost("550")
            if wrong:
                return f"seed {seed}, {kind}: {wrong}, at the end", steps, host.calls
        if host.release("nvidia-p2p-dkms") != RELEASES[-1]:
            return f"seed {seed}, {kind}: stuck at {host.release('nvidia-p2p-dkms')}, {RELEASES[-1]} is there\n{host.last}", steps, host.calls
        return None, steps, host.calls
    finally:
        shutil.rmtree(root, ignore_errors=True)


def lockstep(o):
    folder = o.keep or scratch(o.root, "lockstep")
    broken, steps, calls, answers = [], 0, 0, Answers()
    try:
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            work = [pool.submit(history, o.seed + n, folder, o.drop, not o.no_pin, o.pin_first, o.root, answers) for n in range(o.histories)]
            for n, w in enumerate(work, 1):
                text, s, c = w.result()
                steps += s
                calls += c
                if text:
                    broken.append(text)
                if n % 25 == 0:
                    print(f"simulate: {n} of {o.histories} histories, {steps} upgrades", flush=True)
                if broken and o.first:
                    for rest in work:
                        rest.cancel()
                    break
    finally:
        if not o.keep:
            shutil.rmtree(folder, ignore_errors=True)
    for text in broken[:3]:
        print(text)
    print(f"simulate: {o.histories} histories from seed {o.seed}, {steps} upgrades, {calls} runs of apt"
          f" ({answers.uses} answers known, {answers.again} of them asked for again): {len(broken)} broke")
    return 1 if broken else 0


# name, packages installed first (with the branch of each), what is typed, expectation
MATRIX = [
    ("clean host", [], ["nvidia-p2p-dkms"], "ok"),
    ("stock open DKMS", ["nvidia-driver-550-open"], ["nvidia-p2p-dkms"], "ok"),
    ("stock open DKMS without metapackage", ["nvidia-dkms-550-open", "nvidia-utils-550"], ["nvidia-p2p-dkms"], "ok"),
    ("proprietary DKMS", ["nvidia-driver-550"], ["nvidia-p2p-dkms"], "no-metapackage"),
    ("headless set", ["nvidia-headless-no-dkms-550-open"], ["nvidia-p2p-dkms"], "ok"),
    ("user space from the .run installer", [], ["nvidia-p2p-dkms", "nvidia-p2p-runfile"], "runfile"),
    ("branch 535 installed", ["nvidia-driver-535"], ["nvidia-p2p-dkms"], "no-535"),
    ("branch 570 installed, open", ["nvidia-driver-570-open"], ["nvidia-p2p-dkms"], "no-570"),
    ("user space ahead, no pin yet", ["nvidia-driver-550-open"], ["nvidia-p2p-dkms"], "ahead"),
]


def matrix(o):
    bad = 0
    for name, first, typed, expect in MATRIX:
        folder = scratch(o.root, "matrix")
        try:
            host = Host(f"{folder}/h", root=o.root)
            up = RELEASES[0]
            for branch, release in (("535", "535.183.01"), ("550", up), ("570", "570.86.15"), ("580", "580.65.06")):
                host.publish("ubuntu", ubuntu(branch, release), False)
            if expect == "ahead":
                # As Ubuntu does, with the version before it gone.
                host.archives["ubuntu"] = {}
                host.publish("ubuntu", ubuntu("550", RELEASES[1]), False)
            if expect == "runfile":
                host.sees.add("runfile")
            host.publish("p2p", ours("550", up, drop=o.drop), True)
            ready = not first or host.act("install", *first)
            before = set(host.installed)
            done = ready and host.act("install", *typed)
            wrong = None
            if not ready:
                wrong = "the stand-in itself cannot be installed"
            elif expect == "ahead":
                # Newer user space and no module for it: refused, and nothing changes.
                wrong = "was not refused" if done else None
                if not wrong and "nvidia-p2p-dkms" not in host.last:
                    wrong = "the refusal does not name nvidia-p2p-dkms"
            elif not done:
                wrong = "refused: " + host.last.strip().splitlines()[-1]
            elif expect == "runfile":
                others = [n for n in host.installed if n.startswith(("libnvidia-", "nvidia-utils", "nvidia-kernel-common"))]
                wrong = f"pulls {others} over the installer's files" if others else None
            else:
                wrong = host.broken("550")
                gone = before - set(host.installed)
                if not wrong and expect == "ok":
                    keep = [n for n in gone if "dkms" not in n]
                    wrong = f"removes {keep}" if keep else None
                if not wrong and expect.startswith("no-5"):
                    left = [n for n in host.installed if n.endswith(expect[2:]) or expect[2:] + "-open" in n]
                    wrong = f"leaves {left}" if [n for n in left if n.startswith(("libnvidia-compute", "nvidia-dkms"))] else None
            print(f"{'ok' if not wrong else 'NOT OK'}\t{name}\t{wrong or 'as expected'}")
            bad += bool(wrong)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0


# What brings a host back to the release before.
FOLLOW = "docs/repository.md: a host that follows"
ONE_LINE = ("apt-get install --allow-downgrades nvidia-p2p-dkms=VERSION",
            "apt-get install --allow-downgrades nvidia-p2p-pin/jammy nvidia-p2p-dkms/jammy")


def moved_host(folder, root, keep_old):
    """A host that took a release which moved user space.  Where the archive takes it back, it shows the old one alone."""
    host = Host(folder, root=root)
    old, new = RELEASES[3:5]
    for up in (old, new):
        host.publish("ubuntu", ubuntu("550", up), True)
        host.publish("p2p", ours("550", up), True)
        host.act(*(["install", "nvidia-driver-550-open", "nvidia-p2p-dkms"] if up == old else ["dist-upgrade"]))
    host.act("dist-upgrade")
    before = host.lost("550") or (host.release("nvidia-p2p-dkms") != new and "the new release did not arrive")
    if not keep_old:
        host.archives["p2p"] = {}
        host.publish("p2p", ours("550", old), True)
    return host, old, before


def rollback(o):
    bad = 0
    tried = [(what, text) for what in ("docs/fleet.md", "docs/repository.md")
             for text in re.findall(r"<!-- rollback -->\n```sh\n(.*?)```", read(*what.split("/")), re.S) or [""]]
    for what, text in tried + [(FOLLOW, "apt-get --allow-downgrades dist-upgrade\n" * 2)] + [(line, line) for line in ONE_LINE]:
        folder = scratch(o.root, "rollback")
        try:
            host, old, wrong = moved_host(f"{folder}/h", o.root, what == "docs/fleet.md")
            if what == FOLLOW:
                with open(f"{folder}/h/etc/preferences.d/nvidia-p2p-follow", "w", encoding="utf-8") as f:
                    f.write(re.search(r"nvidia-p2p-follow`.*?```\n(.*?)```", read("docs", "repository.md"), re.S)[1])
            commands = re.findall(r"apt-get +((?:--[a-z-]+ +)*(?:install|dist-upgrade)\b[^&\n]*)", text)
            if not wrong and not commands:
                wrong = "marks no command"
            for c in commands:
                words = shlex.split(c.replace("VERSION", f"{old}+p2p1-1").replace("BRANCH", "550"))
                words.sort(key=lambda w: w not in ("install", "dist-upgrade"))
                if not wrong and not host.act(*words):
                    wrong = f"{c.strip()}: refused"
            wrong = wrong or host.lost("550") or (
                host.release("nvidia-p2p-dkms") != old and f"ends at {host.release('nvidia-p2p-dkms')}, not {old}")
            # These are what the documents have to avoid.
            if what in ONE_LINE:
                wrong = None if wrong and "refused" in wrong else f"was not refused: {wrong}"
            print(f"{'ok' if not wrong else 'NOT OK'}\t{what}\t{wrong or 'as expected'}")
            bad += bool(wrong)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    c = commands.add_parser("lockstep")
    c.add_argument("--histories", type=int, required=True)
    c.add_argument("--seed", type=int, default=1)
    c.add_argument("--jobs", type=int, default=os.cpu_count())
    c.add_argument("--drop", metavar="REGEX", help="leave out relations like 'Depends: name (<< 1)' that match")
    c.add_argument("--no-pin", action="store_true", help="the pin package has no effect")
    c.add_argument("--pin-first", action="store_true", help="an archive that shows a pin without its module")
    c.add_argument("--first", action="store_true", help="stop at the first history that breaks")
    c.add_argument("--keep", metavar="DIR")
    c.set_defaults(run=lockstep)
    c = commands.add_parser("matrix")
    c.add_argument("--drop", metavar="REGEX")
    c.set_defaults(run=matrix)
    c = commands.add_parser("rollback")
    c.set_defaults(run=rollback)
    for c in commands.choices.values():
        c.add_argument("--root", metavar="DIR", default="", help="take the apt of the system in DIR")
    o = parser.parse_args()
    o.root = os.path.realpath(o.root) if o.root else ""
    return o.run(o)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SystemExit as e:
        sys.exit(64 if e.code == 2 else e.code)
