// SPDX-License-Identifier: MIT
// Snapshots: the part of a machine that collect() reads, redacted, as FILE.tar.gz.
#pragma once
#include <map>
#include <string>

#include "lib/facts/redact.h"

namespace p2p {

// Writes what collect() would read of the machine at `root` ("" = this one) to `file`, a gzip'ed
// tar that is the same for the same machine.  UUIDs, serial numbers, the host name and root= are
// replaced.  `extra` adds files: name without slashes -> content (see Snapshot::extra).
// Throws SystemFault (lib/util/system_fault.h) with one line that names the file and the reason.
void gather(const std::string& file, const std::string& root = "",
            const std::map<std::string, std::string>& extra = {});

// What --root was given: a folder is used as it is, a .tar.gz is unpacked to a private folder that
// goes with this object.  Throws std::runtime_error with one line naming the file and the reason;
// that is a SystemFault where the file is not to blame.
class Snapshot {
  public:
    explicit Snapshot(const std::string& dir_or_file);
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;
    const std::string& root() const { return root_; }
    // The extra file of that name, or "" when the snapshot has none.
    std::string extra(const std::string& name) const;

  private:
    std::string root_;
    std::string top_;  // what to remove
    bool temporary_ = false;
};

}  // namespace p2p
