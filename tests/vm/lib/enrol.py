#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""enrol.py VARS CERTIFICATE OUT: a copy of OVMF's empty variable store VARS with CERTIFICATE (DER) in
`db`, the list of keys that the firmware's owner trusts and that Linux takes over.

UEFI 2.10, 32.4.1 (EFI_SIGNATURE_LIST) and 32.3 (db); the layout of the store is EDK2's
MdeModulePkg/Include/Guid/VariableFormat.h (AUTHENTICATED_VARIABLE_HEADER).
"""
import struct
import sys
import uuid

STORE = uuid.UUID("aaf32c78-947b-439a-a180-2e144ec37792").bytes_le
X509 = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072").bytes_le
DATABASE = uuid.UUID("d719b2cb-3d3a-4596-a3bc-dad00e67656f").bytes_le
OWNER = uuid.UUID("4d7e6d1a-6c5c-4c2e-9a53-0d8a3c1b7f55").bytes_le  # ours, any will do
# Non-volatile, boot and run time, time-based authenticated.
ATTRIBUTES = 0x27


def main(vars_file, certificate, out):
    data = bytearray(open(vars_file, "rb").read())
    cert = open(certificate, "rb").read()
    start = struct.unpack_from("<H", data, 48)[0]
    if data[start:start + 16] != STORE:
        sys.exit(f"{vars_file}: no variable store with authenticated variables; use OVMF_VARS_4M.fd")
    at = start + 28
    if data[at] != 0xff:
        sys.exit(f"{vars_file}: the store is not empty")
    signature_list = X509 + struct.pack("<III", 28 + 16 + len(cert), 0, 16 + len(cert)) + OWNER + cert
    name = "db\0".encode("utf-16-le")
    variable = struct.pack("<HBBIQ16sIII", 0x55aa, 0x3f, 0, ATTRIBUTES, 0,
                           struct.pack("<HBBBBBBIhBB", 2024, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0), 0,
                           len(name), len(signature_list)) + DATABASE + name + signature_list
    data[at:at + len(variable)] = variable
    open(out, "wb").write(data)


if len(sys.argv) != 4:
    sys.exit("usage: enrol.py VARS CERTIFICATE OUT")
main(sys.argv[1], sys.argv[2], sys.argv[3])
