# SPDX-License-Identifier: MIT
"""The archive's front page: one file, no scripts, nothing fetched from elsewhere."""
import re
from html import escape

from . import index

KEYRING = "nvidia-p2p-archive-keyring.pgp"
# Where the package nvidia-p2p-archive-keyring keeps it up to date through key rotations.
KEYRING_PATH = f"/usr/share/keyrings/{KEYRING}"

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>nvidia-p2p archive</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
pre{background:#f3f3f3;padding:.8rem;overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.25rem .6rem;border-bottom:1px solid #ddd}
code{font-size:.92em}h2{margin-top:2.5rem}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#262626}th,td{border-color:#444}a{color:#8cf}}
</style></head><body>
<h1>nvidia-p2p archive</h1>
<p>NVIDIA's open kernel modules with PCIe peer-to-peer through BAR1, and the tools that prove it on each machine.</p>
"""


def sources(url, suite, components):
    """deb822 source of one suite."""
    return (f"Types: deb\nURIs: {url}\nSuites: {suite}\nComponents: {' '.join(components)}\n"
            f"Architectures: {index.DEFAULT_ARCHITECTURE}\n"
            f"Signed-By: {KEYRING_PATH}\n")


def render(states, url, fingerprints):
    """HTML of all suites that `states` shows."""
    spaced = [" ".join(f[i:i + 4] for i in range(0, len(f), 4)) for f in fingerprints]
    out = [_HEAD, "<h2>Signing keys</h2><ul>",
           *[f"<li><code>{f}</code></li>" for f in spaced],
           f'</ul><p><a href="{KEYRING}">{KEYRING}</a> holds them.</p>\n']
    for suite in states.suites():
        snapshot = states.current(suite)
        release = states.current_release(suite)
        # One driver branch at a time: the newest, for the reader to change.  What else there is
        # beside a branch (555-runfile) is for machines that know that they need it.
        branches = sorted((c for c in snapshot.components if c.isdecimal()), key=int)
        runfiles = [c for c in snapshot.components if re.fullmatch(r"[0-9]+-runfile", c)]
        chosen = branches[-1:] + ["main"]
        out.append(f"<h2>{escape(suite)}</h2>\n<pre>"
                   f"curl -fsSLo {KEYRING_PATH} {escape(url)}/{KEYRING}\n"
                   f"cat &gt;/etc/apt/sources.list.d/nvidia-p2p.sources &lt;&lt;'END'\n"
                   f"{escape(sources(url, suite, chosen))}END\n"
                   f"apt-get update &amp;&amp; apt-get install nvidia-p2p-archive-keyring nvidia-p2p-dkms</pre>\n")
        if len(branches) > 1:
            out.append(f"<p>Driver branches: {escape(' '.join(branches))}. Name the one that the "
                       "machine runs.</p>\n")
        if runfiles:
            out.append(f"<p>{escape(' '.join(runfiles))}: only for machines whose user space came from "
                       "NVIDIA's .run installer; name it beside the branch there.</p>\n")
        out.append(f"<p>State {snapshot.number} of {escape(release['Date'])}, valid until "
                   f"{escape(release['Valid-Until'])}.</p>\n"
                   "<table><tr><th>Component<th>Package<th>Version<th>Arch.<th>Roll-out</tr>\n")
        for r in sorted((states.record(d) for d in snapshot.packages), key=index.sort_key):
            phase = snapshot.packages[r["sha256"]]
            out.append(f"<tr><td>{escape(r['component'])}<td>"
                       f"<a href=\"{escape(r['filename'])}\">{escape(r['name'])}</a>"
                       f"<td>{escape(r['version'])}<td>{escape(r['architecture'])}"
                       f"<td>{'all' if phase is None else f'{phase} %'}</tr>\n")
        out.append("</table>\n")
    return "".join(out) + "</body></html>\n"
