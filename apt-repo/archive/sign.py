# SPDX-License-Identifier: MIT
"""Signatures by one or more OpenPGP keys, each in its own GNUPGHOME or all in one."""
import base64
import os
import re
import subprocess

from .errors import FAILED, REFUSED, RepoError

_ARMOR_LINE = 64


class Key:
    """A secret key, given as 40 hex digits (in $GNUPGHOME) or as a GNUPGHOME that holds one.

    The digits name a primary key or a signing subkey of it.  fingerprint is the primary's, which is
    what clients see; signer is the one that signs: the one that was named, or the only signing
    subkey of a primary that cannot sign.
    """

    def __init__(self, given):
        self.home, wanted = (given, None) if os.path.isdir(given) else (None, given.upper())
        if wanted and not re.fullmatch(r"[0-9A-F]{40}", wanted):
            raise RepoError(f"--key {given}: neither a folder nor a fingerprint of 40 hex digits; "
                            "make a test key with make-test-key", REFUSED)
        listing = self._gpg(["--with-colons", "--list-secret-keys"] + ([wanted] if wanted else []),
                            missing=f"--key {given}: no such secret key; import it with gpg --import")
        keys = _secret_keys(listing.decode("utf-8", "replace"))
        primaries = [k for k in keys if k.primary]
        if len(primaries) != 1:
            raise RepoError(f"--key {given}: holds {len(primaries)} secret keys, one is wanted; "
                            "set GNUPGHOME and give each by its fingerprint", REFUSED)
        self.fingerprint = primaries[0].fingerprint
        self.signer = self._signer(given, wanted or self.fingerprint, keys)

    @staticmethod
    def _signer(given, wanted, keys):
        named = next(k for k in keys if k.fingerprint == wanted)
        if named.dead:
            raise RepoError(f"--key {given}: key {wanted} is expired, revoked or disabled; extend it "
                            "or use another", REFUSED)
        able = [k for k in ([named] if named.signs else keys if named.primary else [])
                if k.signs and not k.dead and not k.absent]
        if len(able) == 1:
            return able[0].fingerprint
        if named.signs:
            raise RepoError(f"--key {given}: the secret part of {wanted} is not here; import it with "
                            "gpg --import", REFUSED)
        others = " ".join(k.fingerprint for k in able)
        raise RepoError(f"--key {given}: key {wanted} is not made to sign; give the fingerprint of a "
                        f"signing subkey{f': {others}' if others else ', of which none is usable here'}",
                        REFUSED)

    def public(self):
        """The public key as a keyring that apt reads."""
        return self._gpg(["--export-options", "export-minimal", "--export",
                          self.fingerprint])

    def clearsign(self, text):
        return self._sign(["--clearsign"], text).decode()

    def detach(self, text):
        return self._sign(["--armor", "--detach-sign"], text).decode()

    def _sign(self, how, text):
        # `!` holds gpg to the key that was named, not to a newer subkey of it.
        return self._gpg(["--pinentry-mode", "loopback", "--digest-algo", "SHA512", "--no-emit-version",
                          "--status-fd", "2", "--local-user", self.signer + "!"] + how, text)

    def _gpg(self, arguments, data=b"", missing=None):
        command = ["gpg", "--batch", "--no-tty", "--quiet"]
        if self.home:
            command += ["--homedir", self.home]
        result = subprocess.run(command + arguments, input=data, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, check=False,
                                env={**os.environ, "LC_ALL": "C"})
        if result.returncode:
            if missing:
                raise RepoError(missing, REFUSED)
            raise RepoError(f"gpg cannot use {self.fingerprint}: "
                            f"{_cause(result.stderr.decode('utf-8', 'replace'))}", FAILED)
        return result.stdout


class _SecretKey:
    """One record of gpg --with-colons (doc/DETAILS of GnuPG)."""

    def __init__(self, record, fingerprint):
        self.primary = record[0] == "sec"
        self.dead = record[1] in ("e", "r", "d", "i") or "D" in record[11]
        self.signs = "s" in record[11]  # an upper-case S speaks of the subkeys
        self.absent = record[14] == "#"  # only a stub of it
        self.fingerprint = fingerprint


def _secret_keys(listing):
    keys, record = [], None
    for line in listing.splitlines():
        field = line.split(":") + [""] * 15
        if field[0] in ("sec", "ssb"):
            record = field
        elif field[0] == "fpr" and record:
            keys.append(_SecretKey(record, field[9]))
            record = None
    return keys


def _cause(stderr):
    """What stops gpg, with a remedy; its last line names only what it was doing."""
    if re.search(r"^\[GNUPG:\] (NEED|BAD|MISSING)_PASSPHRASE", stderr, flags=re.M):
        return ("it needs a passphrase and nobody can be asked; put it into gpg-agent with "
                "gpg-preset-passphrase, or use a key without one")
    if "No secret key" in stderr:
        return "its secret part is not here; import it with gpg --import"
    lines = [l for l in stderr.strip().split("\n") if l and not l.startswith("[GNUPG:]")]
    return f"{lines[-1] if lines else 'no message'}; check that gpg-agent can use the key"


def in_release(keys, text):
    """Clear-signed text with one signature per key."""
    signed = [key.clearsign(text) for key in keys]
    body = signed[0].split("-----BEGIN PGP SIGNATURE-----")[0]
    return (body + merge_armor(signed)).encode()


def release_gpg(keys, text):
    """One detached armored block with one signature per key."""
    return merge_armor([key.detach(text) for key in keys]).encode()


def merge_armor(blocks):
    """One armored signature block (RFC 4880, 6.2) that holds the signatures of all blocks.

    gpg can put several signatures in one block only when all keys share a GNUPGHOME.
    """
    packets = b""
    for block in blocks:
        armor = block.split("-----BEGIN PGP SIGNATURE-----")[1].split("-----END")[0]
        lines = armor.partition("\n\n")[2].split()
        packets += base64.b64decode("".join(line for line in lines if not line.startswith("=")))
    text = base64.b64encode(packets).decode()
    lines = [text[i:i + _ARMOR_LINE] for i in range(0, len(text), _ARMOR_LINE)]
    check = base64.b64encode(_crc24(packets).to_bytes(3, "big")).decode()
    return "\n".join(["-----BEGIN PGP SIGNATURE-----", "", *lines, "=" + check,
                      "-----END PGP SIGNATURE-----", ""])


def _crc24(data):
    """RFC 4880, 6.1."""
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1864CFB
    return crc & 0xFFFFFF
