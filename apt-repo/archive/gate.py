# SPDX-License-Identifier: MIT
"""May a canary state be promoted?  Read from the canary hosts' p2p-verify metrics.

Each report is the file that `p2p-verify --prometheus FILE` wrote on one host, or
any Prometheus text that holds its metrics (a scrape of node_exporter will do).
Verdicts are p2p-verify's exit statuses (tools/lib/util/verdict.h).
"""
import hashlib
import math
import os
import re

from .errors import GATE, RepoError

PROVEN = (0, 10)  # proven; proven but slow
SILENT = (40,)  # inconclusive: says nothing, neither for nor against
WRONG_OUTCOMES = ("wrong", "hang")
# What a verdict says about data; env only reads the machine's configuration.
LEVELS = ("env", "data", "full")
CLOCK_SLACK = 300  # seconds by which a canary host's clock may be ahead

_SAMPLE = re.compile(r'(nvidia_p2p_[a-z0-9_]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?\s+(\S+)(?:\s+-?\d+)?')
_LABEL = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_VERDICT = {0: "proven", 10: "slow", 20: "unavailable", 21: "reload", 30: "wrong-data", 31: "hang",
            40: "inconclusive", 64: "usage error", 70: "internal error"}


class Gate:
    """not_before: seconds since 1970; older reports did not see the state.  0: not checked."""

    def __init__(self, now, max_age_hours, min_hosts, level, not_before=0, module=None):
        self.now = now
        self.max_age = max_age_hours * 3600
        self.min_hosts = min_hosts
        self.level = level
        self.not_before = not_before
        self.module = module

    def check(self, path):
        """Number of hosts that prove the state.  Raises RepoError (GATE) with all reasons."""
        reports = _find(path)
        reasons, proofs, seen = [], 0, {}
        for report in reports:
            # A report has the second of its run in it: the same bytes are one host's, counted twice.
            with open(report, "rb") as f:
                first = seen.setdefault(hashlib.sha256(f.read()).digest(), report)
            if first != report:
                reasons.append(f"{report}: is {first} once more, byte for byte, and one host counts once")
                continue
            samples = _parse(report)
            against = self._against(samples)
            reasons += [f"{report}: {r}" for r in against]
            proofs += not against and self._proves(samples)
        if reasons:
            raise RepoError(f"gate: {'; '.join(reasons)}; do not promote, look at these hosts", GATE)
        if proofs < self.min_hosts:
            raise RepoError(
                f"gate: {path}: {proofs} of {len(reports)} reports prove P2P at level {self.level} "
                f"or above, {self.min_hosts} wanted; run p2p-verify --level {self.level} "
                "--prometheus on more canary hosts", GATE)
        return proofs

    def _against(self, samples):
        verdicts = [(s, labels) for n, labels, s in samples if n == "nvidia_p2p_verdict"]
        if not verdicts:
            return ["no nvidia_p2p_verdict in it"]
        reasons = []
        for value, labels in verdicts:
            if value not in PROVEN + SILENT:
                name = _VERDICT.get(value, "unknown")
                reasons.append(f"verdict {value:g} ({name}) at level {labels.get('level', '?')}")
        for name, labels, value in samples:
            if name == "nvidia_p2p_pair_outcome" and value == 1 and labels.get("outcome") in WRONG_OUTCOMES:
                reasons.append(f"{labels.get('src')} to {labels.get('dst')}: {labels['outcome']}")
        times = [v for n, _, v in samples if n == "nvidia_p2p_last_run_timestamp_seconds"]
        if not times:
            reasons.append("no nvidia_p2p_last_run_timestamp_seconds in it")
        # A host that hung also stops to report, so an old report speaks against the state.
        for when in times:
            if not when <= self.now + CLOCK_SLACK:
                reasons.append("report lies in the future, set its clock")
            elif self.now - when > self.max_age:
                reasons.append(f"report is {(self.now - when) / 3600:.1f} hours old, "
                               f"{self.max_age / 3600:g} allowed")
            elif when < self.not_before:
                reasons.append("report is older than the state to promote")
        if self.module:
            for name, labels, _ in samples:
                if name == "nvidia_p2p_info":
                    reasons += self._other_module(labels)
            if not any(n == "nvidia_p2p_info" for n, _, _ in samples):
                reasons.append("no nvidia_p2p_info in it")
        return reasons

    def _other_module(self, labels):
        """NVIDIA's release is in label module, ours (UP+p2pN) in label marker, where it is exported."""
        release, _, level = self.module.partition("+")
        if labels.get("module") != release:
            return [f"module {labels.get('module')!r} is loaded, not {release}"]
        if not level:
            return []
        if "marker" not in labels:
            return [f"does not say which change level is loaded; give --gate-module {release}, "
                    "or update nvidia-p2p-tools on that host"]
        # A package's version has a revision too, the marker has none.
        if labels["marker"] != self.module.rpartition("-")[0] and labels["marker"] != self.module:
            return [f"module {labels['marker']!r} is loaded, not {self.module}"]
        return []

    def _proves(self, samples):
        enough = LEVELS[LEVELS.index(self.level):]
        return any(n == "nvidia_p2p_verdict" and v in PROVEN and labels.get("level") in enough
                   for n, labels, v in samples)


def _find(path):
    if os.path.isdir(path):
        found = sorted(os.path.join(folder, name) for folder, _, names in os.walk(path)
                       for name in names if name.endswith(".prom"))
        if not found:
            raise RepoError(f"gate: {path} holds no .prom file; collect the canary hosts' "
                            "p2p-verify reports there", GATE)
        return found
    if not os.path.isfile(path):
        raise RepoError(f"gate: {path} does not exist; collect the canary hosts' p2p-verify "
                        "reports there", GATE)
    return [path]


def _parse(path):
    """[(metric, {label: value}, value)] of our metrics; other lines are not looked at."""
    samples = []
    try:
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                if line.startswith("nvidia_p2p_"):
                    samples.append(_sample(line.strip(), f"{path}:{number}"))
    except UnicodeDecodeError:
        raise RepoError(f"gate: {path}: is no text; write it with p2p-verify --prometheus",
                        GATE) from None
    return samples


def _sample(line, where):
    match = _SAMPLE.fullmatch(line)
    labels, rest = {}, match.group(2) or "" if match else ""
    while match and rest.strip():
        label = _LABEL.match(rest)
        if not label:
            match = None
            break
        labels[label.group(1)] = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m.group(1), m.group(1)),
                                        label.group(2))
        rest = rest[label.end():]
    try:
        value = float(match.group(3)) if match else math.nan
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise RepoError(f"gate: {where}: not a Prometheus sample ({line[:60]}); write it with "
                        "p2p-verify --prometheus", GATE)
    return match.group(1), labels, value
