# SPDX-License-Identifier: MIT
"""One release examined: the record of it, and the record as Markdown."""

import os
import shutil
import time

import change as c
import port as p
import tree as t

SCHEMA = 1
FITS, UNLISTED, NO_FIT, NO_COMPILE, NO_HARNESS, INCOMPLETE = 0, 9, t.HOOK, 6, 7, 8
VERDICTS = {FITS: "fits", UNLISTED: "proposed", t.PIN: "other content", NO_FIT: "does not fit",
            NO_COMPILE: "does not compile", NO_HARNESS: "fails the harness", INCOMPLETE: "incomplete"}


def examine(tree, work, logs, git=None, trees=None, steps=("objects", "harness"), kernels=(), jobs=1,
            build=None, check_content=True, kernels_decide=True):
    """Everything about the unchanged release in `tree`, as a dict that JSON can hold.

    `work` is scratch; `build` a build folder of the harness to use again;
    `kernels_decide`: is a kernel that cannot be compiled for a failure of the release?
    """
    version = t.version_of(tree)
    if t.major_of(version) < t.OLDEST:
        t.refuse_unsupported(version)
    c.refuse_changed(tree)
    level = t.p2p_level()
    listed = t.releases().get(version)
    read = p.reader_of_tree(tree)
    rows = p.marks(read)
    report = {"schema": SCHEMA, "release": version, "change": f"p2p{level}", "change_id": p.identity(),
              "hooks_id": p.identity(sources=False),
              "listed": listed is not None, "steps": []}

    # ---- content ----
    report["content"] = "not compared"
    if check_content:
        pins = {column: t.tree_id(tree, name) for name, column in zip(t.PINNED, ("src_tree", "kernel_open_tree"))}
        report["pins"] = pins
        if listed:
            report["content"] = "pinned" if all(listed[key] == value for key, value in pins.items()) else "differs"
        else:
            report["content"] = "no pin yet"

    # ---- hooks and family ----
    began = time.monotonic()
    if listed:
        name, proposed = listed["family"], False
        result = c.change(tree, version, level, t.families()[name])
        against = c.mismatches(result, t.families()[name]) + p.mark_mismatches(rows, name)
        reason = "listed in releases.tsv"
        if against:
            # What it would take now: useful when NVIDIA or a distribution changed it.
            other, why, _ = p.propose(tree, version, level, rows)
            reason += f"; as if unlisted: {why}" + (f" ({other})" if other else "")
    else:
        name, reason, tried = p.propose(tree, version, level, rows)
        proposed = name is not None
        best = name or min(tried, key=lambda n: len(tried[n][1]))
        result, against = tried[best]
        if name is None:
            against = against or [reason]
            name = best
    seconds = time.monotonic() - began
    family = t.families()[name]
    report["family"] = {"name": name if listed or proposed else None, "nearest": name, "proposed": proposed, "reason": reason}
    report["hooks"] = []
    for hook in c.hooks():
        text = result.after.get(hook["file"]) or ""
        lines = [number for number, line in enumerate(text.split("\n"), 1) if hook["needle"] in line]
        span = c.function_span(text, hook["function"]) if hook["function"] != "-" else None
        if span:
            first, last = text.count("\n", 0, span[0]) + 1, text.count("\n", 0, span[1])
            lines = [number for number in lines if first <= number <= last]
        entry = {"hook": hook["hook"], "file": hook["file"], "function": hook["function"],
                 "found": result.counts[hook["hook"]], "wanted": int(family[hook["hook"]]), "lines": lines}
        if not entry["found"] and entry["wanted"]:
            entry["reason"] = result.reasons[hook["hook"]]
        report["hooks"].append(entry)
    report["marks"] = [{"mark": row["mark"], "file": row["file"], "name": row["name"], "found": row["found"],
                        "wanted": row[name], "why": row["why"]} for row in rows]
    report["differences"] = against
    report["steps"].append(p.record("hooks", p.FAILED if against else p.PASSED, seconds,
                                    against[0] if against else f"{sum(result.counts.values())} places, spatch and counts "
                                    f"{result.seconds:.1f} s"))

    # ---- neighbours ----
    base = p.nearest(version)
    base_read = None
    if git and base in p.git_releases(git):
        base_read = p.reader_of_git(git, base)
    elif trees and os.path.isdir(os.path.join(trees, base)):
        base_read = p.reader_of_tree(os.path.join(trees, base))
    report["around"] = {"base": base, "source": "source of both" if base_read else "hooks/fingerprints.tsv",
                        "functions": p.around(read, version, base, base_read)}
    report["fingerprints"] = [[*key, value] for key, value in p.fingerprints(read).items()]

    # ---- compile and run ----
    if against:
        for step in steps:
            report["steps"].append(p.record(step, p.NOT_RUN, 0, "the hooks do not fit"))
        for _, kernel in kernels:
            report["steps"].append(p.record(f"modules {kernel}", p.NOT_RUN, 0, "the hooks do not fit"))
    elif steps or kernels:
        def log(step):
            name = os.path.join(logs, step.replace(" ", "-") + ".log")
            open(name, "w", encoding="utf-8").close()
            return name

        if "harness" in steps:
            report["steps"].append(p.harness(tree, name, log("harness"), build or os.path.join(work, "harness")))
        changed = os.path.join(work, "changed")
        if set(steps) - {"harness"} or kernels:
            shutil.copytree(tree, changed, symlinks=True, ignore=shutil.ignore_patterns("_out", ".git"))
            os.chmod(changed, 0o755)
            c.install(changed, result)
        if "objects" in steps:
            report["steps"].append(p.compile_objects(changed, log("objects"), jobs))
        if "rm core" in steps:
            report["steps"].append(p.compile_objects(changed, log("rm core"), jobs, whole=True))
        for root, kernel in kernels:
            report["steps"].append(p.compile_modules(changed, root, kernel, log(f"modules {kernel}"), jobs))
        shutil.rmtree(changed, ignore_errors=True)
    for step in report["steps"]:
        step["change_id"] = p.identity_of(step["step"])
    verdict(report, kernels_decide)
    return report


def verdict(report, kernels_decide=True):
    """Set exit_code, verdict, reason and, for a proposal, the rows to add."""
    steps = [step for step in report["steps"] if kernels_decide or not step["step"].startswith("modules ")]
    failed = [step for step in steps if step["status"] == p.FAILED]
    skipped = [step for step in steps if step["status"] == p.NOT_RUN]
    if failed and failed[0]["step"] == "hooks":
        code, reason = NO_FIT, failed[0]["detail"]
    elif report["content"] == "differs":
        code, reason = t.PIN, ("content of src/ or kernel-open/ is not what releases.tsv pins; the hooks "
                               "fit it all the same")
    elif any(step["step"] != "harness" for step in failed):
        step = next(step for step in failed if step["step"] != "harness")
        code, reason = NO_COMPILE, f"{step['step']}: {step['detail']}"
    elif failed:
        code, reason = NO_HARNESS, failed[0]["detail"]
    elif skipped:
        code, reason = INCOMPLETE, f"{skipped[0]['step']} was not run: {skipped[0]['detail']}"
    elif not report["listed"]:
        code, reason = UNLISTED, f"family {report['family']['name']}: {report['family']['reason']}"
    else:
        code, reason = FITS, f"family {report['family']['name']}, as listed"
    report["exit_code"], report["verdict"], report["reason"] = code, VERDICTS[code], reason
    # Hooks that fit are not yet a driver that compiles and does what it should.
    proven = {step["step"] for step in steps if step["status"] == p.PASSED}
    if code == UNLISTED and "pins" in report and {"objects", "harness"} <= proven:
        report["rows"] = {"driver/releases.tsv": "\t".join([
            report["release"], report["family"]["name"], report["pins"]["src_tree"],
            report["pins"]["kernel_open_tree"], "-", "-"])}
        major = str(t.major_of(report["release"]))
        family = t.families()[report["family"]["name"]]
        if major not in family["branches"].split(","):
            report["rows"]["driver/families.tsv, column branches"] = f"{family['branches']},{major}"


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head),
            *("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows), ""]


def markdown(report):
    family = report["family"]
    out = [f"# {report['release']}: {report['verdict']}", "", report["reason"] + ".", ""]
    out += table(("", ""), [
        ("release", report["release"] + (" (listed)" if report["listed"] else " (not in releases.tsv)")),
        ("change", f"{report['change']}, {report['change_id']}"),
        ("content", report["content"]),
        ("family", (f"{family['name']}" + (" (proposed)" if family["proposed"] else "") if family["name"] else
                    f"none; nearest {family['nearest']}") + f": {family['reason']}")])
    out += ["## Steps", "", *table(("Step", "Status", "Seconds", "Detail"),
                                   [(s["step"], s["status"], s["seconds"], s["detail"]) for s in report["steps"]])]
    if report["differences"]:
        out += ["## Differences", "", *(f"- {line}" for line in report["differences"]), ""]
    out += ["## Hooks", "", *table(("Hook", "Found", "Wanted", "Where", "Lines in the changed file"), [
        (h["hook"], h["found"], h["wanted"], f"`{h['file']}`" + ("" if h["function"] == "-" else f", `{h['function']}()`"),
         ", ".join(map(str, h["lines"])) if h["found"] else h.get("reason", "")) for h in report["hooks"]])]
    out += ["## Marks", "", *table(("Mark", "Found", "Wanted", "Where", "Meaning"), [
        (m["mark"], "-" if m["found"] is None else m["found"], m["wanted"], f"`{os.path.basename(m['file'])}`, `{m['name']}`", m["why"])
        for m in report["marks"]])]
    near = report["around"]
    seen = [row for row in near["functions"] if row["change"] not in ("same", "absent")]
    same = sum(row["change"] == "same" for row in near["functions"])
    out += [f"## Since {near['base']}", "",
            f"{same} functions that the change edits or relies on are the same but for comments and blanks "
            f"(from {near['source']}).", ""]
    if seen:
        out += table(("Function", "Change", "Lines", "New calls", "Calls gone", "Role"), [
            (f"`{row['function']}()` in `{os.path.basename(row['file'])}`", row["change"],
             f"+{row['lines_added']} -{row['lines_removed']}" if "lines_added" in row else "",
             ", ".join(row.get("calls_new", [])), ", ".join(row.get("calls_gone", [])), row["why"]) for row in seen])
    if "rows" in report:
        out += ["## Lines to add after review", ""]
        for where, line in report["rows"].items():
            out += [f"{where}:", "```", line, "```", ""]
    return "\n".join(out)
