// SPDX-License-Identifier: MIT
// What nvidia.ko says about itself: build-id, and the compression around it.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace p2p::elf {

// The hexadecimal build-id in the bytes of an ELF note section (System V gABI, "Note Section";
// NT_GNU_BUILD_ID); "" if there is none.
std::string buildId(const std::string& notes);

// A section of an ELF64 little-endian file (System V gABI, chapter 4); "" if there is none, or the
// file is no such file.  Reads headers and that section only.
std::string section(int fd, const std::string& name);

// An open file with the content of `path`: itself, or for .xz, .zst and .gz names an anonymous copy
// that is unpacked.  -1 and a reason on failure.  At most 1 GiB is unpacked.
int openModule(const std::string& path, std::string& reason);

// The smallest module file that answers as the original does: .modinfo, the build-id note and the
// signature trailer.  `trailer`: what lies behind the ELF file, or "".
std::string stub(const std::string& modinfo, const std::string& notes, const std::string& trailer);

// An appended signature that names its signer and holds nothing else: what a stub has in place of
// the real one, whose bytes name the key and often the machine.
std::string signature(const std::string& signer);
// The signer that a signature of that kind names (PKEY_ID_X509: as plain text); "" for all others,
// which libkmod reads.
std::string plainSigner(int fd, const std::string& trailer);
constexpr std::size_t kMostSigner = 255;  // bytes

// The appended signature with its marker (kernel: include/linux/module_signature.h), or "".
std::string signatureTrailer(int fd);

// `bytes` compressed as the end of `name` asks for (.xz, .zst, else as they are).
std::string pack(const std::string& bytes, const std::string& name);

}  // namespace p2p::elf
