# SPDX-License-Identifier: MIT
"""Does the change fit a release?  Hooks, family, neighbours, compile, harness.

Every step gives a record {step, status, seconds, detail}; status is `passed`,
`failed` or `not run`, and `not run` always has its reason in detail.  No text of
NVIDIA's goes into a report: names of files and functions, counts and hashes only.
"""

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time

import change as c
import tree as t

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
HARNESS = os.path.join(t.DRIVER, "..", "tests", "driver")
# What a build needs of a release; the rest is documentation and nouveau's firmware scripts.
PARTS = ("src", "kernel-open", "version.mk", "utils.mk", "Makefile", "nv-compiler.sh")
MODULES = ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm", "nvidia-peermem")
FAMILY_COLUMNS = ("550", "565", "570", "580", "590")


def order(version):
    """Sort key of a release: 550.54.15 before 550.163.01."""
    return tuple(int(part) for part in version.split("."))


# In tests/driver, but no part of what is run for a release.
NOT_OF_HARNESS = {"run", "mutate", "policy_test.cc", "rm_test.cc", "uvm_test.cc"}


@functools.lru_cache(maxsize=None)
def identity(sources=True, programs=False, compat=False):
    """A word for what a release was judged by: hooks and families, with `sources` our C files too,
    with `programs` also those of the harness, with `compat` what we give newer kernels."""
    digest = hashlib.sha256()
    for folder in [c.HOOKS] + [c.SRC] * sources + [HARNESS] * programs + [c.COMPAT] * compat:
        for at, folders, files in sorted(os.walk(folder)):
            folders.sort()
            for name in sorted(files):
                # The fingerprints are written from results, so they cannot be part of them.
                if name != "fingerprints.tsv" and not (folder == HARNESS and name in NOT_OF_HARNESS):
                    with open(os.path.join(at, name), "rb") as file:
                        digest.update(name.encode() + b"\0" + file.read() + b"\0")
    for family in t.families().values():
        digest.update("\t".join(family[hook["hook"]] for hook in c.hooks()).encode())
    return digest.hexdigest()[:12]


def identity_of(step):
    """What a step judges by."""
    return identity(sources=step != "hooks", programs=step == "harness",
                    compat=step.startswith("modules "))


def record(step, status, seconds=0.0, detail=""):
    return {"step": step, "status": status, "seconds": round(seconds, 1), "detail": detail}


# ---- trees ---------------------------------------------------------------------

def git(repository, *command, **options):
    done = subprocess.run(["git", "-C", repository, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False, **options)
    if done.returncode != 0:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise t.Failure(t.SYSTEM, f"git -C {repository} {command[0]}: {last}")
    return done.stdout


def git_releases(repository):
    """Releases that have a tag, oldest first."""
    tags = git(repository, "tag", "--list").decode().split()
    return sorted((tag for tag in tags if re.fullmatch(r"\d+(\.\d+)+", tag)), key=order)


def needed_files():
    """What the hooks, the marks and the comparison read of a release."""
    return sorted({"version.mk", *c.touched_files(), *(file for file, _, _ in watched()),
                   *(row["file"] for row in t.read_table(os.path.join("hooks", "marks.tsv")))})


def unpack(repository, version, folder, parts=PARTS):
    """The tree of a tag, with the times of now: make must see that it is new."""
    os.makedirs(folder)
    there = git(repository, "ls-tree", "--name-only", version, *parts).decode().split()
    archive = subprocess.Popen(["git", "-C", repository, "archive", version, *there], stdout=subprocess.PIPE)
    done = subprocess.run(["tar", "-xmf", "-", "-C", folder], stdin=archive.stdout, check=False)
    archive.stdout.close()
    if archive.wait() != 0 or done.returncode != 0:
        raise t.Failure(t.SYSTEM, f"git archive {version} of {repository} failed; is the tag there?")


def reader_of_tree(tree):
    def read(path):
        try:
            return c._read(os.path.join(tree, path))
        except FileNotFoundError:
            return None
    return read


def reader_of_git(repository, version):
    def read(path):
        done = subprocess.run(["git", "-C", repository, "show", f"{version}:{path}"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None
    return read


# ---- which family --------------------------------------------------------------

def parameters(text, name):
    """How many parameters the definition of `name` has, or None."""
    body = c.function_body(text or "", name)
    if body is None:
        return None
    start = body.index("(", body.index(name))
    depth, parts, used = 0, 1, False
    for letter in re.sub(r"/\*.*?\*/|//[^\n]*", "", body[start:], flags=re.S):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            break
        parts += letter == "," and depth == 1
        used = used or not (letter.isspace() or letter == "(")
    return parts if used else 0


def marks(read):
    """Each mark of hooks/marks.tsv with the value that this release has."""
    rows = t.read_table(os.path.join("hooks", "marks.tsv"))
    for row in rows:
        text = read(row["file"])
        if row["kind"] == "params":
            row["found"] = parameters(text, row["name"])
        elif row["kind"] == "defined":
            row["found"] = int(c.function_span(text or "", row["name"]) is not None)
        else:
            row["found"] = int(re.search(rf"\b{row['name']}\b", text or "") is not None)
    return rows


def mark_mismatches(rows, family):
    return [f"mark {row['mark']} in {row['file']}, {row['name']}: {row['kind']} is "
            f"{'missing' if row['found'] is None else row['found']}, family {family} has {row[family]}"
            for row in rows if row[family] not in ("*", str(row["found"]))]


def propose(tree, version, level, rows):
    """(family or None, reason, {family: (result, mismatches)}) for a release that is not listed."""
    tried, fits = {}, []
    for name, family in t.families().items():
        result = c.change(tree, version, level, family)
        against = c.mismatches(result, family) + mark_mismatches(rows, name)
        tried[name] = (result, against)
        if not against:
            fits.append(name)
    if len(fits) == 1:
        return fits[0], (f"all hooks are found as often as family {fits[0]} wants and all {len(rows)} marks are "
                         f"its own; no other family fits"), tried
    if fits:
        return None, f"families {', '.join(fits)} fit alike; a mark that tells them apart is missing in hooks/marks.tsv", tried
    nearest = min(tried, key=lambda name: len(tried[name][1]))
    return None, (f"no family fits; nearest is {nearest} with {len(tried[nearest][1])} differences, "
                  f"first: {tried[nearest][1][0]}"), tried


# ---- what is new around the hooks ------------------------------------------------

def watched():
    """(file, function, why) of all functions that the change edits or relies on."""
    seen = {}
    for hook in c.hooks():
        if hook["function"] != "-":
            seen.setdefault((hook["file"], hook["function"]), "hooked: " + hook["why"])
    for row in t.read_table(os.path.join("hooks", "watched.tsv")):
        seen.setdefault((row["file"], row["function"]), row["why"])
    return [(file, function, why) for (file, function), why in seen.items()]


def _plain(body):
    body = re.sub(r"/\*.*?\*/|//[^\n]*", " ", body, flags=re.S)
    return " ".join(body.split())


def fingerprint(body):
    """A function's hash without its comments and blanks; `-` when it is not there."""
    return "-" if body is None else hashlib.sha256(_plain(body).encode(errors="surrogateescape")).hexdigest()[:12]


def fingerprints(read):
    """{(file, function): fingerprint} of one release."""
    texts, found = {}, {}
    for file, function, _ in watched():
        if file not in texts:
            texts[file] = read(file)
        found[file, function] = fingerprint(c.function_body(texts[file] or "", function))
    return found


def known_fingerprints():
    """{(file, function): {release: fingerprint}} of hooks/fingerprints.tsv."""
    known = {}
    if os.path.exists(os.path.join(c.HOOKS, "fingerprints.tsv")):
        for row in t.read_table(os.path.join("hooks", "fingerprints.tsv")):
            of = known.setdefault((row["file"], row["function"]), {})
            for release in row["releases"].split(","):
                of[release] = row["fingerprint"]
    return known


def nearest(version):
    """The supported release whose code is most likely next to this one's."""
    listed = sorted((v for v in t.releases() if v != version), key=order)
    same = [v for v in listed if t.major_of(v) == t.major_of(version)]
    below = [v for v in same or listed if order(v) < order(version)]
    return below[-1] if below else (same or listed)[0]


def calls(body):
    return set(re.findall(r"\b([A-Za-z_]\w*)\s*\(", _plain(body))) - {"if", "for", "while", "switch", "return", "sizeof"}


def around(read, version, base_version, base_read=None):
    """How each watched function differs from the base's: names and counts, no source."""
    import difflib
    known, texts, base_texts, rows = known_fingerprints(), {}, {}, []
    for file, function, why in watched():
        if file not in texts:
            texts[file] = read(file)
        new = c.function_body(texts[file] or "", function)
        row = {"file": file, "function": function, "why": why}
        if base_read:
            if file not in base_texts:
                base_texts[file] = base_read(file)
            old = c.function_body(base_texts[file] or "", function)
            was = fingerprint(old)
        else:
            old, was = None, known.get((file, function), {}).get(base_version)
        now = fingerprint(new)
        if was is None:
            row["change"] = "unknown"
        elif was == now:
            row["change"] = "absent" if now == "-" else "same"
        else:
            row["change"] = "new" if was == "-" else "gone" if now == "-" else "changed"
        if row["change"] == "changed" and old is not None:
            lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm=""))[2:]
            row["lines_added"] = sum(line.startswith("+") for line in lines)
            row["lines_removed"] = sum(line.startswith("-") for line in lines)
            row["calls_new"] = sorted(calls(new) - calls(old))
            row["calls_gone"] = sorted(calls(old) - calls(new))
        rows.append(row)
    return rows


# ---- compile ---------------------------------------------------------------------

def _run(command, folder, log, timeout, env=None):
    """Status of a command whose output goes to `log`; None when it had to be stopped."""
    with open(log, "a", encoding="utf-8") as out:
        out.write(f"$ {' '.join(map(str, command))}\n")
        out.flush()
        try:
            return subprocess.run(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT, env=env,
                                  stdin=subprocess.DEVNULL, timeout=timeout, check=False).returncode
        except subprocess.TimeoutExpired:
            return None


def first_error(log):
    """The line of a build log that says what went wrong, without its folder."""
    with open(log, encoding="utf-8", errors="replace") as text:
        lines = text.read().splitlines()
    for pattern in (r"(fatal )?error:", r"undefined!|No space left|Killed", r"\*\*\* "):
        for line in lines:
            if re.search(pattern, line):
                line = re.sub(r"^(ERROR: modpost: )?\S*/(?=(nvidia|nvidia-\w+|src|common)/)", "", line.strip())
                return line[:200]
    return (lines or ["no message"])[-1][:200]


def clean_environment():
    return {name: value for name, value in os.environ.items()
            if name not in ("CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "MAKEFLAGS", "MFLAGS", "KERNELRELEASE")}


def touched_objects():
    """Objects of the RM core that hold a hook or are ours."""
    files = [*c.touched_files(), *c.OURS.values()]
    return sorted(os.path.basename(path)[:-2] + ".o" for path in files
                  if path.startswith("src/nvidia/") and path.endswith(".c"))


def warnings(log):
    with open(log, encoding="utf-8", errors="replace") as text:
        return len(re.findall(r"\bwarning:", text.read()))


def compile_objects(tree, log, jobs=1, whole=False):
    """Compile the touched objects of a changed tree, or the whole RM core."""
    step = "rm core" if whole else "objects"
    for tool in ("make", "cc", "g++"):
        if shutil.which(tool) is None:
            return record(step, NOT_RUN, 0, f"{tool} is not installed")
    began = time.monotonic()
    if whole:
        goals = [("nvidia", []), ("nvidia-modeset", [])]
        what = "nv-kernel.o and nv-modeset-kernel.o"
    else:
        goals = [("nvidia", ["_out/Linux_x86_64/" + name for name in touched_objects()])]
        what = f"{len(goals[0][1])} objects"
    for part, objects in goals:
        rc = _run(["make", "-C", f"src/{part}", f"-j{jobs}", *objects], tree, log, 3600, clean_environment())
        if rc != 0:
            return record(step, FAILED, time.monotonic() - began,
                          "no end after 3600 s" if rc is None else first_error(log))
    return record(step, PASSED, time.monotonic() - began, f"{what}, {warnings(log)} warnings")


def stub_core(tree):
    """C source in place of the RM core: it defines, weakly, what the interface calls.

    The exports are those of the release's own link command and headers, so that
    modpost still reports every symbol that the kernel is expected to give.
    """
    names = {"nvidia": set(), "nvidia-modeset": set()}
    exports = os.path.join(tree, "src/nvidia/exports_link_command.txt")
    names["nvidia"].update(re.findall(r"--undefined=(\w+)", c._read(exports)))
    folder = os.path.join(tree, "kernel-open")
    for part, pattern in (("nvidia", r"\b(rm_\w+)\s*\("), ("nvidia-modeset", r"\b(nvKms\w+)\s*\(")):
        for at in (part, "common/inc"):
            for name in sorted(os.listdir(os.path.join(folder, at))):
                if name.endswith((".c", ".h")):
                    names[part].update(re.findall(pattern, c._read(os.path.join(folder, at, name))))
    return {part: "".join(f"void {name}(void);\nvoid __attribute__((weak)) {name}(void) {{}}\n"
                          for name in sorted(found)) for part, found in names.items()}


def kernels_of(root):
    """Kernels of a root that have headers, newest last."""
    folder = os.path.join(root, "lib/modules")
    if not os.path.isdir(folder):
        return []
    return sorted((name for name in os.listdir(folder)
                   if os.path.isdir(os.path.join(root, "usr/src", f"linux-headers-{name}"))),
                  key=lambda name: [int(part) for part in re.findall(r"\d+", name)[:4]])


def compile_modules(tree, root, kernel, log, jobs=1):
    """Compile and link the five modules of a changed tree for a kernel, RM core stubbed.

    `root` is / or a root folder with that kernel's headers and compiler.
    """
    step = f"modules {kernel}"
    if root != "/" and os.geteuid() != 0:
        return record(step, NOT_RUN, 0, f"entering {root} needs root")
    began = time.monotonic()
    headers = os.path.join(root, f"usr/src/linux-headers-{kernel}")
    config = "\n".join(c._read(path) for path in (f"{headers}/.config", f"{headers}/include/config/auto.conf")
                       if os.path.isfile(path))
    found = re.search(r'^CONFIG_CC_VERSION_TEXT="?([^\s"]+)', config, re.M)
    cc = (found.group(1) if found else "gcc").replace("-for-host", "")
    # objtool of newer kernels reads /proc, which ends with the command here.
    inside = [] if root == "/" else ["unshare", "--mount", "sh", "-c",
                                     'mount -t proc proc "$1/proc" && exec chroot "$@"', "sh", root]
    if subprocess.run([*inside, "sh", "-c", f"command -v {shlex.quote(cc)}"], stdout=subprocess.DEVNULL,
                      check=False).returncode != 0:
        return record(step, NOT_RUN, 0, f"{cc}, the compiler of kernel {kernel}, is not installed in {root}")
    with tempfile.TemporaryDirectory(prefix="nvp2p-modules.", dir=os.path.join(root, "tmp")) as work:
        shutil.copytree(os.path.join(tree, "kernel-open"), f"{work}/kernel-open", symlinks=True)
        for name in ("version.mk", "utils.mk", "nv-compiler.sh"):
            if os.path.exists(os.path.join(tree, name)):
                shutil.copy(os.path.join(tree, name), work)
        for part, text in stub_core(tree).items():
            c._write(f"{work}/{part}.c", text)
        at = work if root == "/" else "/" + os.path.relpath(work, root)
        flags = "-O2 -mcmodel=kernel -mno-red-zone -fno-pic -fno-pie -fcf-protection=branch -mno-sse -w"
        script = f"""set -e
            cc -c {flags} nvidia.c -o kernel-open/nvidia/nv-kernel.o_binary
            cc -c {flags} nvidia-modeset.c -o kernel-open/nvidia-modeset/nv-modeset-kernel.o_binary
            source=/lib/modules/{kernel}/source
            [ -d "$source" ] || source=/usr/src/linux-headers-{kernel}
            exec sh kernel-open/nvp2p/make "$source" -C kernel-open -j{jobs} modules CC={cc} \\
                SYSSRC="$source" SYSOUT=/usr/src/linux-headers-{kernel} KERNEL_UNAME={kernel}"""
        script = script.replace("cc -c", f"{cc} -c")
        env = {name: value for name, value in clean_environment().items() if name != "TMPDIR"}
        env = {**env, "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
        rc = _run([*inside, "sh", "-c", f"cd {at}\n{script}"], None, log, 3600, env)
        missing = [name for name in MODULES if not os.path.exists(f"{work}/kernel-open/{name}.ko")]
    seconds = time.monotonic() - began
    if rc != 0:
        return record(step, FAILED, seconds, "no end after 3600 s" if rc is None else first_error(log))
    if missing:
        return record(step, FAILED, seconds, f"no {', '.join(missing)}.ko although make succeeded")
    return record(step, PASSED, seconds, f"{len(MODULES)} modules, {cc}, {warnings(log)} warnings")


# ---- harness ---------------------------------------------------------------------

def forget_other_checkout(build):
    """CMake refuses a build folder that another checkout of ours has configured."""
    try:
        with open(f"{build}/CMakeCache.txt", encoding="utf-8") as cache:
            home = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache.read(), re.M)
    except FileNotFoundError:
        return
    if not home or os.path.realpath(home.group(1)) != os.path.realpath(HARNESS):
        shutil.rmtree(build)


def harness(tree, family, log, build):
    """NVIDIA's own functions of this release in user space (tests/driver), stock beside changed."""
    for tool in ("cmake", "cc", "g++"):
        if shutil.which(tool) is None:
            return record("harness", NOT_RUN, 0, f"{tool} is not installed")
    began = time.monotonic()
    programs = ["driver_caps_tree", "driver_gmmu_tree", "driver_uvm_tree"]
    # Up to 560 the decision about the window is a function of ours, which no tree is needed for.
    if int(family) >= 565:
        programs.append("driver_window_tree")
    forget_other_checkout(build)
    for command in (["cmake", "-S", HARNESS, "-B", build, f"-DP2P_DRIVER_TREE={tree}", f"-DP2P_DRIVER_FAMILY={family}"],
                    ["cmake", "--build", build, "--target", *programs]):
        rc = _run(command, None, log, 1200, clean_environment())
        if rc != 0:
            with open(log, encoding="utf-8", errors="replace") as text:
                if "Could NOT find Boost" in text.read():
                    return record("harness", NOT_RUN, 0, "Boost's unit_test_framework is not installed")
            return record("harness", FAILED, time.monotonic() - began, first_error(log))
    cases = 0
    for program in programs:
        done = subprocess.run([os.path.join(build, program), "--color_output=no"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=300, check=False)
        with open(log, "a", encoding="utf-8") as out:
            out.write(done.stdout)
        counted = re.search(r"Running (\d+) test case", done.stdout)
        if done.returncode != 0 or not counted:
            where = re.search(r': in "([^"]+)"', done.stdout)
            return record("harness", FAILED, time.monotonic() - began,
                          f"{program}: {where.group(1) if where else 'status ' + str(done.returncode)}")
        cases += int(counted.group(1))
    return record("harness", PASSED, time.monotonic() - began, f"{cases} test cases")
