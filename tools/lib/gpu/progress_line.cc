// SPDX-License-Identifier: MIT
#include "lib/gpu/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <memory>

namespace p2p {

namespace {

class Line {
  public:
    explicit Line(std::string program) : program_(std::move(program)) {}
    ~Line() {
        if (drawn_ && terminal_) std::fputs("\r\033[K", stderr);
    }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    void show(const GpuProgress& p) {
        if (p.elapsed_s < 2 || p.elapsed_s < next_) return;
        next_ = p.elapsed_s + (terminal_ ? 0.2 : 10);
        const std::string text = program_ + ": " + progressText(p);
        // A line that wraps could not be rewritten; 79 columns fit everywhere.
        if (terminal_)
            std::fprintf(stderr, "\r%.79s\033[K", text.c_str());
        else
            std::fprintf(stderr, "%s\n", text.c_str());
        drawn_ = true;
    }

  private:
    const std::string program_;
    const bool terminal_ = isatty(STDERR_FILENO) == 1;
    bool drawn_ = false;
    double next_ = 0;
};

}  // namespace

std::string progressText(const GpuProgress& p) {
    std::string text;
    if (p.total) text = fmt::format("{}/{} ", p.done, p.total);
    text += p.label;
    if (p.left_s)
        text += fmt::format(", about {:.0f} s left", std::ceil(*p.left_s));
    else
        text += fmt::format(", {:.0f} s so far", p.elapsed_s);
    return text;
}

std::function<void(const GpuProgress&)> progressLine(const std::string& program) {
    const auto line = std::make_shared<Line>(program);
    return [line](const GpuProgress& p) { line->show(p); };
}

}  // namespace p2p
