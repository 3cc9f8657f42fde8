// SPDX-License-Identifier: MIT
#include "p2p-verify/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "lib/util/system_fault.h"

namespace p2p::verify {

namespace {

std::string failed(const std::string& file, int error) {
    return fmt::format("cannot write {}: {}", file, whyNotWritten(error));
}

// errno, or 0.
int writeAll(int fd, const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
        const ssize_t n = write(fd, text.data() + done, text.size() - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return errno;
        done += static_cast<std::size_t>(n);
    }
    return 0;
}

}  // namespace

std::string writeOutput(const std::string& file, const std::string& text) {
    if (file == "-") {
        // Errors of stdout show when it is flushed at the end.
        std::fwrite(text.data(), 1, text.size(), stdout);
        return "";
    }
    struct stat st {};
    if (stat(file.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
        const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
        if (fd < 0) return failed(file, errno);
        const int error = writeAll(fd, text);
        close(fd);
        return error == 0 ? "" : failed(file, error);
    }
    // The collector reads *.prom only: the temporary name must not end like the real one.
    std::string temporary = file + ".XXXXXX";
    const int fd = mkostemp(temporary.data(), O_CLOEXEC);
    if (fd < 0) return failed(file, errno);
    const mode_t mask = umask(0);
    umask(mask);
    int error = fchmod(fd, 0644 & ~mask) == 0 ? 0 : errno;
    if (error == 0) error = writeAll(fd, text);
    if (error == 0 && fsync(fd) != 0) error = errno;
    if (close(fd) != 0 && error == 0) error = errno;
    if (error == 0 && std::rename(temporary.c_str(), file.c_str()) != 0) error = errno;
    if (error == 0) return "";
    unlink(temporary.c_str());
    return failed(file, error);
}

}  // namespace p2p::verify
