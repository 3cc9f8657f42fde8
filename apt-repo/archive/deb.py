# SPDX-License-Identifier: MIT
"""What the archive must know of a .deb, read once, when it is added."""
import hashlib
import os
import re
import subprocess
import tarfile

from .errors import REFUSED, RepoError

# Debian policy 5.6.1, 5.6.5, 5.6.7, 5.6.12; a Section may have our component in front.  Paths and
# index lines are made of these, so nothing else may be in them (one letter is enough for a name).
_NAME = r"[a-z0-9][a-z0-9+.-]*"
_VERSION = r"(?:[0-9]+:)?[0-9][A-Za-z0-9.+~-]*"
_FIELDS = {
    "Package": (re.compile(_NAME), "lower-case letters, digits, + - ."),
    "Source": (re.compile(rf"{_NAME}(?: \({_VERSION}\))?"), "a package name, or that and (VERSION)"),
    "Version": (re.compile(_VERSION), "[EPOCH:]UPSTREAM[-REVISION], UPSTREAM begins with a digit"),
    "Architecture": (re.compile(r"[a-z0-9][a-z0-9-]*"), "for example amd64 or all"),
    "Section": (re.compile(r"[a-z0-9][a-z0-9+.-]*(?:/[a-z0-9][a-z0-9+.-]*)?"),
                "no valid component; use COMPONENT/SECTION, for example 555/kernel"),
}


class Deb:
    """A .deb file on disk.  Raises RepoError (REFUSED) unless it can be read to its end."""

    def __init__(self, path):
        self.path = path
        if not os.path.isfile(path):
            raise RepoError(f"{path}: no such file; give an existing .deb or .changes", REFUSED)
        self.stanza = _packages_stanza(path)
        self.contents = _contents(path)
        field = fields(self.stanza)
        for wanted in ("Package", "Version", "Architecture", "SHA256", "SHA512"):
            if wanted not in field:
                raise RepoError(f"{path}: control file has no {wanted}; rebuild it", REFUSED)
        for name, (grammar, hint) in _FIELDS.items():
            if name in field and not grammar.fullmatch(field[name]):
                raise RepoError(f"{path}: field {name} is {field[name]!r}, not what Debian policy allows "
                                f"({hint}); rebuild it", REFUSED)
        self.name = field["Package"]
        self.version = field["Version"]
        self.architecture = field["Architecture"]
        self.sha256 = field["SHA256"]
        self.section = field.get("Section", "misc")
        self.component = self.section.split("/")[0] if "/" in self.section else "main"
        source = field.get("Source", self.name).split(" ")[0]
        letter = source[:4] if source.startswith("lib") else source[:1]
        version = self.version.split(":", 1)[-1]  # file names carry no epoch
        self.filename = (f"pool/{self.component}/{letter}/{source}/"
                         f"{self.name}_{version}_{self.architecture}.deb")
        self.stanza = re.sub(r"^Filename: .*$", f"Filename: {self.filename}", self.stanza,
                             flags=re.M)

    def record(self):
        """Plain data that is all the archive needs to list this package again."""
        return {
            "name": self.name, "version": self.version, "architecture": self.architecture,
            "component": self.component, "section": self.section, "filename": self.filename,
            "sha256": self.sha256, "stanza": self.stanza, "contents": self.contents,
        }


def expand(paths):
    """The .deb files named by `paths`, where a .changes stands for those that it lists.

    A .deb listed in a .changes must have the size and SHA256 written there.
    """
    debs = []
    for path in paths:
        if path.endswith(".changes"):
            debs += _changes_debs(path)
        elif path.endswith(".deb"):
            debs.append(path)
        else:
            raise RepoError(f"{path}: neither .deb nor .changes; give one of these", REFUSED)
    return list(dict.fromkeys(debs))


def fields(stanza):
    """First lines of the fields of one deb822 stanza (continuation lines are left out)."""
    return dict(re.findall(r"^([^\s:]+):[ \t]*(.*)$", stanza, flags=re.M))


def _changes_debs(path):
    try:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    except (OSError, UnicodeDecodeError) as e:
        raise RepoError(f"{path}: cannot be read ({e}); give a .changes of dpkg-buildpackage",
                        REFUSED) from None
    block = re.search(r"^Checksums-Sha256:[ \t]*\n((?:[ \t]+\S.*\n?)+)", text, flags=re.M)
    if not block:
        raise RepoError(f"{path}: has no Checksums-Sha256; build it with dpkg-buildpackage", REFUSED)
    debs = []
    for line in block.group(1).splitlines():
        digest, size, name = line.split()
        if not name.endswith(".deb"):
            continue
        if "/" in name:
            raise RepoError(f"{path}: lists {name} outside its own folder; rebuild it", REFUSED)
        deb = os.path.join(os.path.dirname(path), name)
        if not os.path.isfile(deb):
            raise RepoError(f"{deb}: listed in {path} but missing; copy it beside it", REFUSED)
        with open(deb, "rb") as f:
            data = f.read()
        if len(data) != int(size) or hashlib.sha256(data).hexdigest() != digest:
            raise RepoError(f"{deb}: is not the file that {path} lists (sha256 {digest}); "
                            "build both again", REFUSED)
        debs.append(deb)
    if not debs:
        raise RepoError(f"{path}: lists no .deb; build binary packages first", REFUSED)
    return debs


def _packages_stanza(path):
    # An absolute path is never taken for an option.
    result = subprocess.run(
        ["apt-ftparchive", "--no-md5", "--no-sha1", "packages", os.path.abspath(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    text = result.stdout.decode("utf-8", "replace").strip()
    if result.returncode or not text:
        why = result.stderr.decode("utf-8", "replace").strip().split("\n")[0]
        raise RepoError(f"{path}: not a Debian package ({why or 'no control file'}); rebuild it",
                        REFUSED)
    return text


def _contents(path):
    """Files of the package without the leading `./`, sorted.  Reads the archive to its end."""
    process = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    names, why = [], ""
    try:
        with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
            names = [m.name for m in tar if not m.isdir()]
    except tarfile.TarError as e:
        why = str(e)
    process.stdout.read()
    errors = process.stderr.read().decode("utf-8", "replace").strip()
    process.stdout.close()
    process.stderr.close()
    if process.wait() or why:
        reason = (errors or why).split("\n")[0]
        raise RepoError(f"{path}: data is damaged ({reason}); rebuild it", REFUSED)
    return sorted(n[2:] if n.startswith("./") else n for n in names)
