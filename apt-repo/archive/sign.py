# SPDX-License-Identifier: MIT
"""Signatures by one or more OpenPGP keys, each in its own GNUPGHOME or all in one."""
import base64
import os
import re
import subprocess

from .errors import FAILED, REFUSED, RepoError

_ARMOR_LINE = 64


class Key:
    """A secret key, given as 40 hex digits (in $GNUPGHOME) or as a GNUPGHOME that holds one."""

    def __init__(self, given):
        self.home, wanted = (given, None) if os.path.isdir(given) else (None, given.upper())
        if wanted and not re.fullmatch(r"[0-9A-F]{40}", wanted):
            raise RepoError(f"--key {given}: neither a folder nor a fingerprint of 40 hex digits; "
                            "make a test key with make-test-key", REFUSED)
        listing = self._gpg(["--with-colons", "--list-secret-keys"] + ([wanted] if wanted else []),
                            missing=f"--key {given}: no such secret key; import it with gpg --import")
        keys = re.findall(r"^sec:([^:]*):[^\n]*\n(?:(?!sec:)[^\n]*\n)*?fpr:+([0-9A-F]+):",
                          listing.decode(), flags=re.M)
        if len(keys) != 1:
            raise RepoError(f"--key {given}: holds {len(keys)} secret keys, one is wanted; "
                            "set GNUPGHOME and give each by its fingerprint", REFUSED)
        validity, self.fingerprint = keys[0]
        if validity in ("e", "r", "d"):
            raise RepoError(f"--key {given}: key {self.fingerprint} is expired, revoked or "
                            "disabled; extend it or use another", REFUSED)

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
                          "--local-user", self.fingerprint + "!"] + how, text)

    def _gpg(self, arguments, data=b"", missing=None):
        command = ["gpg", "--batch", "--no-tty", "--quiet"]
        if self.home:
            command += ["--homedir", self.home]
        result = subprocess.run(command + arguments, input=data, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, check=False)
        if result.returncode:
            if missing:
                raise RepoError(missing, REFUSED)
            why = result.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
            raise RepoError(f"gpg cannot sign with {self.fingerprint} ({why}); "
                            "check that gpg-agent can use the key", FAILED)
        return result.stdout


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
