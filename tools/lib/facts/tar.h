// SPDX-License-Identifier: MIT
// Just enough of tar (POSIX.1-1988 ustar with GNU long names) for snapshots: files, folders and
// symbolic links.
#pragma once
#include <string>
#include <vector>

namespace p2p::tar {

struct Entry {
    enum Kind { File, Link, Folder } kind = File;
    std::string path;     // relative, without "./" and a slash at the end
    std::string content;  // bytes, or the target of a link
};

// The archive; the same bytes for the same entries in the same order.  `mtime`: seconds since 1970.
std::string write(const std::vector<Entry>& entries, unsigned long long mtime);

// The entries of an archive.  Throws std::runtime_error (one line, without a file name) when it is
// damaged, holds something other than the three kinds, a path or link that leads out of it, or more
// than 64 MiB or 50000 entries.
std::vector<Entry> read(const std::string& archive);

// Makes the entries below `dir`, an empty folder.  Throws std::runtime_error.
void unpack(const std::vector<Entry>& entries, const std::string& dir);

}  // namespace p2p::tar
