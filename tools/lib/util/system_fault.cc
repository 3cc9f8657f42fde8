// SPDX-License-Identifier: MIT
#include "lib/util/system_fault.h"

#include <cerrno>
#include <cstring>

namespace p2p {

namespace {

const char* remedy(int error) {
    switch (error) {
        case ENOENT:
            return "make its folder first";
        case EISDIR:
            return "name a file in it";
        case EACCES:
        case EPERM:
        case EROFS:
            return "choose another place, or run it as root";
        case ENOSPC:
        case EDQUOT:
            return "make room, or choose another place";
        default:
            return "choose another file";
    }
}

}  // namespace

std::string whyNotWritten(int error) {
    return std::string(std::strerror(error)) + "; " + remedy(error);
}

}  // namespace p2p
