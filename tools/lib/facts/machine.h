// SPDX-License-Identifier: MIT
// The file system that facts are read from: this machine's or a snapshot's.  Remembers, when asked,
// everything that was read; that is what gather() writes.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "lib/facts/facts.h"

namespace p2p {

class Machine {
  public:
    // `root` "" is the live system.  Throws std::runtime_error when it is no folder.
    explicit Machine(std::string root);

    bool live() const { return root_.empty(); }
    // Where `path` lies for a library that opens it itself.
    std::string host(const std::string& path) const { return root_ + path; }

    // `text` without what names this machine (see redact()).
    std::string prose(std::string text) const;
    // Is it a file that a library may open without being held up?  What is absent is one.
    bool regular(const std::string& path) const;

    // The text of a file, redacted (see redact()), at most `limit` bytes.
    Sourced<std::string> text(const std::string& path, std::size_t limit = 1 << 20);
    // Its first line without the white space around it.
    Sourced<std::string> line(const std::string& path);
    Sourced<int> number(const std::string& path);
    // The bytes as they are, at most `limit`.
    Sourced<std::string> bytes(const std::string& path, std::size_t limit = 1 << 20);
    // Records of /dev/kmsg up to now; in a snapshot it is an ordinary file.
    Sourced<std::string> kernelLog();
    // The target of a symbolic link as it is written there.
    Sourced<std::string> link(const std::string& path);
    // Its last component.
    Sourced<std::string> linkName(const std::string& path);
    // Names in a folder, sorted, without "." and "..".
    Sourced<std::vector<std::string>> list(const std::string& path);
    bool exists(const std::string& path);
    bool isFolder(const std::string& path) const;

    struct Entry {
        enum Kind { File, Link, Folder, Unread } kind = File;
        std::string content;  // bytes, target or reason
    };
    void record() { recording_ = true; }
    void note(const std::string& path, Entry entry);  // no effect unless recording
    bool recording() const { return recording_; }
    const std::map<std::string, Entry>& entries() const { return entries_; }
    // Why `path` could not be read where the snapshot was made; "" if it could or was not tried.
    std::string unreadReason(const std::string& path) const;

  private:
    void readHostnames();
    std::string redacted(const std::string& path, const std::string& text) const;
    int open(const std::string& path, int flags) const;  // -1: errno
    std::string why(const std::string& path, int error) const;

    std::string root_;
    std::vector<std::string> hostnames_;
    bool recording_ = false;
    std::map<std::string, Entry> entries_;
    std::map<std::string, std::string> unread_;
};

// Name of the list of what could not be read, in the top folder of a snapshot.
inline constexpr const char* kManifest = "/nvidia-p2p-snapshot";

}  // namespace p2p
