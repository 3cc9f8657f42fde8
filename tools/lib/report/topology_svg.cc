// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "lib/report/escape.h"
#include "lib/report/formats.h"

namespace p2p {

namespace {

// A box of the drawing: host bridge, bridge or GPU.
struct Box {
    std::string title, detail, link, css;
    std::vector<std::size_t> children;
    int depth = 0;
    double y = 0;  // top edge
    bool child = false;
    std::size_t parent = 0;  // when child
};

constexpr double kWidth = 190;
constexpr double kHeight = 46;
constexpr double kGapX = 92;  // the link's speed is written here
constexpr double kGapY = 14;
constexpr double kMargin = 8;

std::string cut(const std::string& s, std::size_t most) {
    // Whole code points; the full text is in the title element.
    std::size_t n = 0;
    for (std::size_t i = 0; i < s.size(); i++) {
        if ((static_cast<unsigned char>(s[i]) & 0xC0U) == 0x80) continue;
        if (++n > most) return s.substr(0, i) + "\xE2\x80\xA6";
    }
    return s;
}

std::string brief(const ReportLink& l) {
    if (l.gts && l.width) return fmt::format("{:g} GT/s x{}", *l.gts, *l.width);
    if (l.width) return fmt::format("x{}", *l.width);
    return "";
}

class Drawing {
  public:
    explicit Drawing(const Report& r) {
        for (const ReportBridge& b : r.bridges) {
            const bool redirect = b.acs_redirect.value_or(false);
            std::string detail = utf8(b.label);
            if (redirect) detail = "ACS redirect on";
            add(b.id,
                {b.id, detail, brief(b.link), redirect ? "box bad" : "box", {}, 0, 0, false, 0});
        }
        for (const ReportGpu& g : r.gpus) {
            std::string name = utf8(g.name.empty() ? g.device_id : g.name);
            if (name.rfind("NVIDIA ", 0) == 0) name.erase(0, 7);
            add("gpu " + g.bdf, {g.bdf, name, brief(g.link), "box gpu", {}, 0, 0, false, 0});
        }
        for (const ReportBridge& b : r.bridges) link(b.parent, b.id);
        for (std::size_t i = 0; i < r.gpus.size(); i++)
            link(i < r.gpu_parents.size() ? r.gpu_parents[i] : "", "gpu " + r.gpus[i].bdf);
        for (std::size_t i = 0; i < boxes_.size(); i++)
            if (!boxes_[i].child) place(i, 0);
    }

    std::string svg() const {
        if (placed_.empty()) return "";
        double right = 0;
        for (std::size_t i : placed_) right = std::max(right, x(boxes_[i]) + kWidth);
        const double w = right + kMargin;
        const double h = next_y_ + kMargin - kGapY;
        std::string out = fmt::format(
            "<svg class=\"topology\" role=\"img\" aria-label=\"PCI topology: {} GPUs\" viewBox=\"0 "
            "0 {:.0f} {:.0f}\" "
            "width=\"{:.0f}\" height=\"{:.0f}\">\n",
            gpus_, w, h, w, h);
        for (std::size_t i : placed_)
            for (std::size_t c : boxes_[i].children) edge(out, boxes_[i], boxes_[c]);
        for (std::size_t i : placed_) box(out, boxes_[i]);
        return out + "</svg>\n";
    }

  private:
    static double x(const Box& b) { return kMargin + b.depth * (kWidth + kGapX); }

    void add(const std::string& id, Box b) {
        if (!index_.emplace(id, boxes_.size()).second) return;
        gpus_ += b.css == "box gpu" ? 1 : 0;
        boxes_.push_back(std::move(b));
    }

    void link(const std::string& parent, const std::string& child) {
        const auto p = index_.find(parent);
        const auto c = index_.find(child);
        if (p == index_.end() || c == index_.end() || boxes_[c->second].child ||
            p->second == c->second)
            return;
        // A broken snapshot may lead in a circle; the edge that closes it is left out.
        std::size_t top = p->second;
        while (boxes_[top].child && top != c->second) top = boxes_[top].parent;
        if (top == c->second) return;
        boxes_[p->second].children.push_back(c->second);
        boxes_[c->second].child = true;
        boxes_[c->second].parent = p->second;
    }

    // Leaves are stacked; a parent stands in the middle of its children.  Depth is bounded by the
    // PCI hierarchy, and a box has one parent, so the walk ends.
    void place(std::size_t i, int depth) {
        Box& b = boxes_[i];
        b.depth = depth;
        placed_.push_back(i);
        if (b.children.empty()) {
            b.y = next_y_;
            next_y_ += kHeight + kGapY;
            return;
        }
        for (std::size_t c : b.children) place(c, depth + 1);
        boxes_[i].y = (boxes_[b.children.front()].y + boxes_[b.children.back()].y) / 2;
    }

    static void edge(std::string& out, const Box& a, const Box& b) {
        const double x1 = x(a) + kWidth;
        const double y1 = a.y + kHeight / 2;
        const double x2 = x(b);
        const double y2 = b.y + kHeight / 2;
        const double mid = x1 + 12;
        out += fmt::format("<path class=\"edge\" d=\"M{:.1f} {:.1f}H{:.1f}V{:.1f}H{:.1f}\"/>\n", x1,
                           y1, mid, y2, x2);
        if (!b.link.empty())
            out += fmt::format("<text class=\"speed\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                               mid + 4, y2 - 4, html(b.link));
    }

    static void box(std::string& out, const Box& b) {
        out += fmt::format(
            "<g class=\"{}\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" "
            "height=\"{:.0f}\" "
            "rx=\"6\"/>",
            b.css, html(b.detail.empty() ? b.title : b.title + ": " + b.detail), x(b), b.y, kWidth,
            kHeight);
        const double middle = b.detail.empty() ? b.y + kHeight / 2 + 5 : b.y + 19;
        out += fmt::format("<text class=\"id\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x(b) + 10,
                           middle, html(cut(b.title, 22)));
        if (!b.detail.empty())
            out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x(b) + 10, b.y + 36,
                               html(cut(b.detail, 25)));
        out += "</g>\n";
    }

    std::vector<Box> boxes_;
    std::map<std::string, std::size_t> index_;
    std::vector<std::size_t> placed_;
    double next_y_ = kMargin;
    int gpus_ = 0;
};

}  // namespace

std::string topologySvg(const Report& report) {
    return report.gpus.empty() ? "" : Drawing(report).svg();
}

}  // namespace p2p
