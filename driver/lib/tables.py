# SPDX-License-Identifier: MIT
"""The tables that driver/port-table writes from the results of its runs."""

import os
import re

import change as c
import port as p
import report as r
import tree as t

DOC = os.path.join(t.DRIVER, "..", "docs", "porting-table.md")
KEPT = "results.tsv"


def _write(path, lines):
    c._write(path + ".new", "\n".join(lines) + "\n")
    os.replace(path + ".new", path)


def step(result, name):
    return next((s for s in result["steps"] if s["step"] == name), None)


def cell(result, name, detail=lambda s: f"{s['seconds']} s"):
    """What a table says of one step."""
    found = step(result, name)
    if found is None or found["status"] == p.NOT_RUN:
        return "not run"
    # Run before an edit of our C files or of the harness: said, not hidden.
    when = "" if found["change_id"] == p.identity_of(name) else f" ({found['change_id']})"
    if found["status"] == p.FAILED:
        return f"**failed**: {found['detail']}{when}"
    return f"yes, {detail(found)}{when}"


def kernel_key(kernel):
    return [int(part) for part in re.findall(r"\d+", kernel)[:3]]


def series(kernel):
    """6.12 of 6.12.118+deb13-amd64."""
    return ".".join(kernel.split(".")[:2])


def kernel_results(results):
    """{kernel: {release: step}} of what was compiled."""
    found = {}
    for version, result in results.items():
        for s in result["steps"]:
            if s["step"].startswith("modules ") and s["status"] != p.NOT_RUN:
                found.setdefault(s["step"].split(" ", 1)[1], {})[version] = s
    return found


def limits(results):
    """{release: (first kernel series it cannot be compiled for, first release that can or -)}.

    Only what was seen: a release is held to fail where a later one of its own
    branch failed, because NVIDIA adds kernels to a branch and never takes one away.
    """
    kernels, found = kernel_results(results), {}
    for version in sorted(t.releases(), key=p.order):
        for kernel in sorted(kernels, key=kernel_key):
            tried = kernels[kernel]
            no = [v for v, s in tried.items() if s["status"] == p.FAILED and t.major_of(v) == t.major_of(version)
                  and p.order(v) >= p.order(version)]
            if no and tried.get(version, {}).get("status") != p.PASSED:
                can = sorted((v for v, s in tried.items() if s["status"] == p.PASSED and p.order(v) > p.order(version)),
                             key=p.order)
                found[version] = (series(kernel), can[0] if can else "-")
                break
    return found


def write_kernels(results):
    lines = ["# Kernels that a release cannot be compiled for, as `driver/port-table --kernels`",
             "# found by compiling all five modules: the first such kernel series, and the first",
             "# of the tried releases that can (`-`: none).  Kernels older than the first column",
             "# are not refused, tried or not.  Tab-separated.",
             "#release\trefused_from\tneeds"]
    lines += [f"{version}\t{kernel}\t{needs}" for version, (kernel, needs) in limits(results).items()]
    _write(os.path.join(t.DRIVER, "kernels.tsv"), lines)


def write_fingerprints(found):
    """Add {release: [[file, function, fingerprint], ...]} to hooks/fingerprints.tsv.

    One row for each form of a function, with the supported releases that have it.
    """
    watched = {(file, function) for file, function, _ in p.watched()}
    known = {key: dict(values) for key, values in p.known_fingerprints().items() if key in watched}
    for release, rows in found.items():
        for file, function, value in rows:
            known.setdefault((file, function), {})[release] = value
    lines = ["# Forms of the functions that the change edits or relies on: a hash of each without",
             "# comments and blanks (`-`: not there), and the releases that have it.  Written by",
             "# driver/port-table; driver/port compares an unknown release with it.  Tab-separated.",
             "#file\tfunction\tfingerprint\treleases"]
    for (file, function), values in sorted(known.items()):
        forms = {}
        for release in sorted(values, key=p.order):
            if release in t.releases():
                forms.setdefault(values[release], []).append(release)
        lines += [f"{file}\t{function}\t{value}\t{','.join(releases)}" for value, releases in forms.items()]
    _write(os.path.join(c.HOOKS, "fingerprints.tsv"), lines)


def read_kept():
    """{release: result} of results.tsv: what earlier runs, on any machine, have found.

    Left out is what was judged by other hooks than those of now.
    """
    if not os.path.exists(os.path.join(t.DRIVER, KEPT)):
        return {}
    found, now, change_id, listed = {}, p.identity(sources=False), p.identity(), t.releases()
    level = t.p2p_level()
    for row in t.read_table(KEPT):
        if row["release"] not in listed:
            continue
        family = listed[row["release"]]["family"]
        result = found.setdefault(row["release"], {
            "schema": r.SCHEMA, "release": row["release"], "change": f"p2p{level}", "change_id": change_id,
            "hooks_id": now, "listed": True, "steps": [], "content": "not compared", "fingerprints": [],
            "family": {"name": family, "nearest": family, "proposed": False, "reason": "listed in releases.tsv"}})
        detail = "" if row["detail"] == "-" else row["detail"]
        result["steps"].append({**p.record(row["step"], row["status"], float(row["seconds"]), detail),
                                "change_id": row["change_id"]})
    fresh = {}
    for release, result in found.items():
        hooks = step(result, "hooks")
        if hooks and hooks["change_id"] == now:
            r.verdict(result, kernels_decide=False)
            fresh[release] = result
    return fresh


def write_kept(results):
    lines = ["# What `driver/port-table` has found, a row for each release and step that was run: the source of",
             "# docs/porting-table.md, so that another machine goes on where this one stopped.  change_id names",
             "# the state of hooks and families (step hooks), of these and our C files, or (harness) of these and its own.",
             "# Tab-separated.",
             "#release\tstep\tstatus\tseconds\tchange_id\tdetail"]
    for release in sorted(results, key=p.order):
        result = results[release]
        # Other content than the pinned is nothing to go on from.
        if not result["listed"] or result["content"] == "differs":
            continue
        lines += ["\t".join((release, s["step"], s["status"], str(s["seconds"]), s["change_id"],
                             re.sub(r"\s+", " ", s["detail"]) or "-"))
                  for s in sorted(result["steps"], key=lambda s: s["step"]) if s["status"] != p.NOT_RUN]
    _write(os.path.join(t.DRIVER, KEPT), lines)


def write(results):
    """docs/porting-table.md and the tables of driver/."""
    write_kept(results)
    write_fingerprints({version: result["fingerprints"] for version, result in results.items()})
    write_kernels(results)
    versions = sorted(results, key=p.order)
    kernels = kernel_results(results)

    def count(name):
        done = [step(results[v], name) for v in versions]
        return (f"{sum(s is not None and s['status'] == p.PASSED for s in done)} passed, "
                f"{sum(s is not None and s['status'] == p.FAILED for s in done)} failed, "
                f"{sum(s is None or s['status'] == p.NOT_RUN for s in done)} not run")

    slowest = max((float(re.search(r"([\d.]+) s$", s["detail"]).group(1)) for s in (step(results[v], "hooks") for v in versions)
                   if s and s["status"] == p.PASSED), default=0)
    out = ["# Releases and kernels on which the change was tried", "",
           "Written by `driver/port-table`; do not edit. One command brings it up to date, given a clone of",
           "NVIDIA/open-gpu-kernel-modules (or unpacked releases with `--trees`) and, for the kernels, roots",
           "from `ci/kernel-roots`:", "", "```sh", "driver/port-table --git CLONE --kernels ROOTS", "```", "",
           "`not run` means just that. A result with an id behind it was run on an earlier state of our C",
           "files (`driver/src`) or with an earlier harness (`tests/driver`), all others as they are now.",
           "Times are wall-clock seconds on two busy processors; they compare steps, not releases.", "",
           f"Change {', '.join(sorted({results[v]['change'] + ' (' + results[v]['change_id'] + ')' for v in versions}))}. "
           f"Hooks: {count('hooks')}; the slowest release took {slowest} s for all semantic patches and counts. "
           f"Objects: {count('objects')}. Harness: {count('harness')}. Whole RM core: {count('rm core')}.", "",
           "## Releases", "",
           "| Column | Meaning |", "|---|---|",
           "| Hooks | every hook found exactly as often as its family wants, and every mark of the family; places changed, seconds of spatch and counts |",
           "| Objects | the RM core's objects that hold a hook or are ours compile |",
           "| Harness | NVIDIA's own functions of that release in user space, stock beside changed: capability decision, page table format, UVM's writers of entries and copies, from 565 on the decision about the window. With 8 cases or fewer: the first two only |",
           "| RM core | nv-kernel.o and nv-modeset-kernel.o link |", ""]
    out += r.table(("Release", "Family", "Hooks", "Objects", "Harness", "RM core"), [
        (v, results[v]["family"]["name"] or "none",
         cell(results[v], "hooks", lambda s: re.sub(r" places, spatch and counts ", " places, ", s["detail"])),
         cell(results[v], "objects"), cell(results[v], "harness", lambda s: f"{s['detail']}, {s['seconds']} s"),
         cell(results[v], "rm core")) for v in versions])
    out += ["## Kernels", "",
            "All five modules, changed, compiled and linked (modpost included) against a kernel's headers with the",
            "compiler that built it. The RM core, which sees no kernel header, is a stub with the exports that the",
            "release's own link command names, so that a symbol that a kernel does not export still shows.", ""]
    if kernels:
        names = sorted(kernels, key=kernel_key)
        tried = [v for v in versions if any(v in kernels[k] for k in names)]
        out += r.table(("Release", *names), [
            (v, *(cell(results[v], f"modules {k}") for k in names)) for v in tried])
        refused = limits(results)
        out += ["From that (`driver/kernels.tsv`) the package refuses a kernel before anything is compiled:", ""]
        if refused:
            grouped = {}
            for v, limit in refused.items():
                grouped.setdefault(limit, []).append(v)
            out += r.table(("Releases", "Refused from kernel", "First release that can"), [
                (", ".join(vs), *limit) for limit, vs in grouped.items()])
        else:
            out += ["nothing is refused: no release failed on a kernel that was tried.", ""]
    else:
        out += ["Not run yet.", ""]
    _write(DOC, out[:-1] if out[-1] == "" else out)
