# SPDX-License-Identifier: MIT
"""Our change to an unpacked release: semantic patches, files of ours, counts.

Everything is done on a staging copy of the touched files.  Only when every
count is as its family wants are the results moved into the tree.
"""

import difflib
import os
import re
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import tree as t

HOOKS = os.path.join(t.DRIVER, "hooks")
SRC = os.path.join(t.DRIVER, "src")
COMPAT = os.path.join(t.DRIVER, "compat")

# Our sources, and where they live in NVIDIA's tree.
OURS = {
    "rm/nvp2p_bar1.c": "src/nvidia/src/kernel/gpu/bus/nvp2p_bar1.c",
    "rm/nvp2p_bar1.h": "src/nvidia/inc/kernel/gpu/bus/nvp2p_bar1.h",
    "rm/nvp2p_policy.h": "src/nvidia/inc/kernel/gpu/bus/nvp2p_policy.h",
    "uvm/nvp2p_uvm.h": "kernel-open/nvidia-uvm/nvp2p_uvm.h",
    "kernel/nvp2p_compat.h": "kernel-open/nvidia/nvp2p_compat.h",
    "kernel/nvp2p_module.c": "kernel-open/nvidia/nvp2p_module.c",
}
# What newer kernels need (compat/make); apart, because no result for the RM core depends on it.
OURS_FOR_KERNELS = {
    "make": "kernel-open/nvp2p/make",
    "nvp2p_kernel.h": "kernel-open/nvp2p/nvp2p_kernel.h",
    "linux/of_gpio.h": "kernel-open/nvp2p/linux/of_gpio.h",
}
CONFIG = "src/nvidia/inc/kernel/gpu/bus/nvp2p_config.h"
VERSION_H = "kernel-open/nvidia/nvp2p_version.h"


def hooks():
    return t.read_table(os.path.join("hooks", "hooks.tsv"))


def touched_files():
    """Files of NVIDIA's that some hook edits, sorted."""
    return sorted({hook["file"] for hook in hooks()})


def our_files(version, level):
    """Path in the tree -> content of each file we add."""
    files = {}
    for folder, names in ((SRC, OURS), (COMPAT, OURS_FOR_KERNELS)):
        for ours, theirs in names.items():
            files[theirs] = _read(os.path.join(folder, ours))
    note = "/* SPDX-License-Identifier: MIT */\n/* Written by driver/apply. */\n"
    files[CONFIG] = (f"{note}#ifndef NVP2P_CONFIG_H\n#define NVP2P_CONFIG_H\n"
                     f"#define NVP2P_DRIVER_MAJOR {t.major_of(version)}\n#endif\n")
    files[VERSION_H] = (f"{note}#ifndef NVP2P_VERSION_H\n#define NVP2P_VERSION_H\n"
                        f"#define NVP2P_VERSION \"{version}+p2p{level}\"\n#endif\n")
    return files


def function_span(text, name):
    """(start, end) of the definition of function `name`, return type included, or None.

    Good for NVIDIA's style: the name at depth 0, its closing brace in column 0.
    """
    for found in re.finditer(rf"^(?:[A-Za-z_][\w \t*]*[ \t*])?{re.escape(name)}[ \t]*\n?\(", text, re.M):
        depth, at = 0, found.end() - 1
        for at in range(found.end() - 1, len(text)):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            if depth == 0:
                break
        if not re.match(r"\s*\{", text[at + 1:]):
            continue  # a prototype or a call
        start = found.start()
        while True:  # the return type may stand on the line before
            before = text.rfind("\n", 0, max(start - 1, 0)) + 1
            if start == 0 or not re.fullmatch(r"[A-Za-z_][\w \t*]*\n", text[before:start]):
                break
            start = before
        end = text.find("\n}\n", at)
        return start, (end + 3 if end >= 0 else len(text))
    return None


def function_body(text, name):
    """Text of the definition of function `name`, or None."""
    span = function_span(text, name)
    return None if span is None else text[span[0]:span[1]]


def count_hook(hook, text):
    """(how often the hook is in place, reason when that is 0)."""
    if text is None:
        return 0, f"{hook['file']} is not in this release"
    if hook["function"] == "-":
        return text.split("\n").count(hook["needle"]), "the line it follows is not there"
    body = function_body(text, hook["function"])
    if body is None:
        return 0, f"{hook['file']} defines no function {hook['function']}()"
    return body.count(hook["needle"]), "its rule matched nothing there"


def _spatch(patch, file, folder):
    command = ["spatch", "--very-quiet", "--no-includes", "--in-place",
               "--sp-file", os.path.join(HOOKS, patch), file]
    try:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=300, check=False)
    except FileNotFoundError:
        raise t.Failure(t.SYSTEM, "spatch: not found; install the package coccinelle") from None
    except subprocess.TimeoutExpired:
        raise t.Failure(t.SYSTEM, f"spatch --sp-file {patch}: no end after 300 s on {file}") from None
    if done.returncode != 0:
        last = (done.stdout.strip().splitlines() or ["no message"])[-1]
        raise t.Failure(t.HOOK, f"spatch --sp-file {patch}: status {done.returncode} on {file}: {last}")


def _read(path):
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def _write(path, text):
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)


class Result:
    """What changing a tree would do: nothing is written to the tree yet."""

    def __init__(self):
        self.before, self.after = {}, {}   # path -> text; a new file is only in `after`
        self.counts, self.reasons = {}, {}  # hook -> count; hook -> why it is 0
        self.seconds = 0.0


def change(tree, version, level, family=None):
    """Run the hooks on copies and count them.  Never touches the tree.

    Hooks that `family` wants 0 times are left out; without a family all are tried.
    """
    began = time.monotonic()
    result = Result()
    wanted = [hook for hook in hooks() if family is None or family[hook["hook"]] != "0"]
    for path in touched_files():
        if os.path.isfile(os.path.join(tree, path)):
            result.before[path] = result.after[path] = _read(os.path.join(tree, path))

    # Coccinelle sees one function at a time: fast, and nothing can land elsewhere.
    patches = {}
    for hook in wanted:
        text = result.before.get(hook["file"])
        if hook["semantic_patch"] != "-" and text and function_span(text, hook["function"]):
            todo = patches.setdefault((hook["file"], hook["function"]), [])
            if hook["semantic_patch"] not in todo:
                todo.append(hook["semantic_patch"])
    with tempfile.TemporaryDirectory(prefix="nvp2p-apply.") as stage:

        def transform(job):
            path, function = job
            name = f"{os.path.basename(path)[:-2]}-{function}.c"
            _write(os.path.join(stage, name), function_body(result.before[path], function))
            for patch in patches[job]:
                _spatch(patch, name, stage)
            return _read(os.path.join(stage, name))

        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            for (path, function), new in zip(patches, pool.map(transform, patches)):
                start, end = function_span(result.after[path], function)
                result.after[path] = result.after[path][:start] + new + result.after[path][end:]
    for hook in wanted:
        text = result.after.get(hook["file"])
        if text is None:
            continue
        if hook["semantic_patch"] == "-":
            text = text.replace(hook["after"] + "\n", f"{hook['after']}\n{hook['needle']}\n", 1)
        elif hook["needle"] in text and f'#include "{hook["header"]}"' not in text:
            anchor = f'#include "{hook["after"]}"\n'
            text = text.replace(anchor, f'{anchor}#include "{hook["header"]}"\n', 1)
        result.after[hook["file"]] = text
    for hook in hooks():
        count, reason = count_hook(hook, result.after.get(hook["file"]))
        result.counts[hook["hook"]] = count
        if count == 0:
            result.reasons[hook["hook"]] = reason
    result.after.update(our_files(version, level))
    result.seconds = time.monotonic() - began
    return result


def mismatches(result, family):
    """What keeps `result` from being the change of `family`, one line each."""
    found = []
    for hook in hooks():
        want, got = int(family[hook["hook"]]), result.counts[hook["hook"]]
        if want == got:
            continue
        where = hook["file"] + ("" if hook["function"] == "-" else f", function {hook['function']}()")
        why = f" ({result.reasons[hook['hook']]})" if got == 0 else ""
        found.append(f"hook {hook['hook']} in {where}: found {got} times, family "
                     f"{family['family']} wants {want}{why}")
    # A hook without its declaration would be an implicit declaration, at best a warning.
    for path in result.before:
        if not path.endswith(".c") or result.after[path] == result.before[path]:
            continue
        includes = len(re.findall(r'^#include "(?:gpu/bus/)?nvp2p_\w+\.h"$', result.after[path], re.M))
        if includes != 1:
            found.append(f"{path}: our header is included {includes} times, wanted once")
    return found


def expect_counts(result, family):
    """A Failure that names hook, file and function when a count is not the family's."""
    for line in mismatches(result, family):
        raise t.Failure(t.HOOK, f"{line}; the tree is unchanged")


def refuse_changed(tree):
    """A Failure when our change, or a part of it, is already there."""
    marker = os.path.join(tree, VERSION_H)
    if os.path.exists(marker):
        found = re.search(r'NVP2P_VERSION "([^"]+)"', _read(marker))
        what = found.group(1) if found else "an unknown version"
        raise t.Failure(t.CHANGED, f"{tree}: already changed to {what}; start from a freshly unpacked release")
    for path in [*OURS.values(), *OURS_FOR_KERNELS.values(), CONFIG]:
        if os.path.exists(os.path.join(tree, path)):
            raise t.Failure(t.CHANGED, f"{os.path.join(tree, path)}: is ours and already there; start from a "
                            "freshly unpacked release")
    for path in touched_files():
        name = os.path.join(tree, path)
        if os.path.isfile(name) and "nvp2p" in _read(name):
            raise t.Failure(t.CHANGED, f"{name}: already holds a hook of ours; start from a freshly unpacked release")


def unified_diff(result):
    """The change as one patch for `patch -p1`: sorted, no times, the same bytes each time."""
    parts = []
    for path in sorted(result.after):
        old, new = result.before.get(path), result.after[path]
        if old == new:
            continue
        lines = difflib.unified_diff([] if old is None else old.splitlines(keepends=True),
                                     new.splitlines(keepends=True),
                                     "/dev/null" if old is None else f"a/{path}", f"b/{path}", n=3)
        for line in lines:
            parts.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(parts)


def install(tree, result):
    """Move the results into the tree, all or nothing."""
    pending, done, folders = [], [], []
    try:
        # Write everything beside its target first, so that a full disk changes nothing.
        for path, text in result.after.items():
            if text == result.before.get(path):
                continue
            target = os.path.join(tree, path)
            made = os.path.dirname(target)
            while not os.path.isdir(made):
                folders.append(made)
                made = os.path.dirname(made)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            new, old = target + ".nvp2p-new", target + ".nvp2p-old"
            pending.append((target, new, old, path in result.before))
            _write(new, text)
            if path in result.before:
                shutil.copymode(target, new)
                shutil.copy2(target, old)
            else:
                os.chmod(new, 0o644)
        for target, new, old, existed in pending:
            done.append((target, old, existed))
            os.replace(new, target)
    except BaseException as error:
        for target, old, existed in reversed(done):
            if existed:
                os.replace(old, target)
            elif os.path.exists(target):
                os.unlink(target)
        if isinstance(error, OSError):
            raise t.Failure(t.SYSTEM, f"{error.filename or tree}: {error.strerror}; the tree is unchanged") from None
        raise
    finally:
        for _, new, old, _ in pending:
            for leftover in (new, old):
                if os.path.exists(leftover):
                    os.unlink(leftover)
        for folder in sorted(folders, key=len, reverse=True):
            if os.path.isdir(folder) and not os.listdir(folder):
                os.rmdir(folder)


def counts_table(result, family):
    """Lines of a short table for the user."""
    rows = [("hook", "found", "wanted", "file, function")]
    for hook in hooks():
        where = os.path.basename(hook["file"])
        if hook["function"] != "-":
            where += f", {hook['function']}()"
        rows.append((hook["hook"], str(result.counts[hook["hook"]]), family[hook["hook"]], where))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths)) + "  " + row[3] for row in rows]
