// SPDX-License-Identifier: MIT
#include "p2p-bar1/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/facts/parse.h"

namespace p2p::bar1 {
namespace {

constexpr const char* kKey = "NvP2pBar1";
constexpr const char* kGrow = "NVreg_EnableResizableBar";
constexpr const char* kAll = "NVreg_RegistryDwords";
constexpr const char* kPer = "NVreg_RegistryDwordsPerDevice";

bool managed(const std::string& name) {
    return name == kGrow || name == kAll || name == kPer;
}

// A file's text as logical lines: text without line ends and whether it is an options line of ours.
struct Line {
    std::string text;                // as it stands, with its own line ends
    bool options = false;            // "options nvidia ..."
    std::vector<std::string> words;  // of an options line
};

std::vector<Line> split(const std::string& text) {
    std::vector<Line> all;
    std::string raw, joined;
    const auto end = [&] {
        Line line;
        line.text = raw;
        const std::string clean = parse::trim(joined);
        if (!clean.empty() && clean[0] != '#') {
            line.words = parse::cmdline(clean);
            line.options =
                line.words.size() >= 2 && line.words[0] == "options" && line.words[1] == "nvidia";
        }
        all.push_back(std::move(line));
        raw.clear();
        joined.clear();
    };
    for (const std::string& l : parse::lines(text)) {
        raw += l + "\n";
        if (!l.empty() && l.back() == '\\') {
            joined += l.substr(0, l.size() - 1) + " ";
            continue;
        }
        joined += l;
        end();
    }
    if (!raw.empty()) {
        // A backslash before the end of the file would swallow what is put after it.
        raw.replace(raw.size() - 2, 1, "");
        end();
    }
    return all;
}

std::string nameOf(const std::string& word) {
    std::string name = word.substr(0, word.find('='));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

std::string valueOf(const std::string& word) {
    const std::size_t eq = word.find('=');
    std::string v = eq == std::string::npos ? "" : word.substr(eq + 1);
    v.erase(std::remove(v.begin(), v.end(), '"'), v.end());
    return v;
}

void set(parse::Dwords& dwords, const std::string& key, const std::string& value) {
    for (auto& [k, v] : dwords)
        if (parse::sameKey(k, key)) {
            v = value;
            return;
        }
    dwords.emplace_back(key, value);
}

void drop(parse::Dwords& dwords, const std::string& key) {
    dwords.erase(std::remove_if(dwords.begin(), dwords.end(),
                                [&](const auto& d) { return parse::sameKey(d.first, key); }),
                 dwords.end());
}

std::string get(const parse::Dwords& dwords, const std::string& key) {
    for (const auto& [k, v] : dwords)
        if (parse::sameKey(k, key)) return v;
    return "";
}

// 1, and 3 with the host vouched for, both mean on; a change must not take the vouching away.
bool on(const std::string& value) {
    return (parse::dword(value).value_or(0) & 1) != 0;
}

std::string join(const parse::Dwords& dwords) {
    std::string all;
    for (const auto& [k, v] : dwords) all += k + "=" + v + ";";
    return all;
}

struct State {
    std::string grow;
    parse::Dwords all;
    std::map<std::string, parse::Dwords> per;
};

bool anyOn(const State& s) {
    if (on(get(s.all, kKey))) return true;
    return std::any_of(s.per.begin(), s.per.end(),
                       [](const auto& p) { return on(get(p.second, kKey)); });
}

}  // namespace

Edit edit(const std::string& old, const Request& request,
          const std::vector<ModprobeOption>& options) {
    Edit e;
    e.text = old;
    State s;
    const std::vector<Line> lines = split(old);
    for (const Line& l : lines) {
        if (!l.options) continue;
        for (std::size_t i = 2; i < l.words.size(); ++i) {
            // As in the kernel, the last of several counts.
            if (nameOf(l.words[i]) == kGrow) s.grow = valueOf(l.words[i]);
            if (nameOf(l.words[i]) == kAll) s.all = parse::registryDwords(valueOf(l.words[i]));
            if (nameOf(l.words[i]) == kPer)
                s.per = parse::registryDwordsPerDevice(valueOf(l.words[i]));
        }
    }

    // Which of our three options does another place set, before or after our file?
    std::map<std::string, const ModprobeOption*> before, after;
    const std::string ours = std::string(kFile).substr(std::string(kFile).rfind('/') + 1);
    for (const ModprobeOption& o : options) {
        if (o.module != "nvidia" || !managed(o.name) || o.path == kFile) continue;
        const std::string name = o.path.substr(o.path.rfind('/') + 1);
        const bool later = o.path == "/proc/cmdline" || name > ours;
        (later ? after : before)[o.name] = &o;
    }

    const char* needed = request.gpu.empty() ? kAll : kPer;
    if (request.enable) {
        for (const char* name : {needed, kGrow}) {
            const auto it = after.find(name);
            if (it == after.end()) continue;
            const ModprobeOption& o = *it->second;
            const bool fits = name == std::string(kGrow) ? o.value == "1"
                              : name == std::string(kAll)
                                  ? on(get(parse::registryDwords(o.value), kKey))
                                  : false;
            if (fits) continue;
            e.refused = fmt::format(
                "{}:{}: {}=\"{}\" is read after {} and hides it; {}", o.path, o.line, o.name,
                o.value, kFile,
                name == std::string(kGrow) ? std::string("set it to 1 there, or take it out")
                : request.gpu.empty()
                    ? std::string(
                          "put \"NvP2pBar1=1;\" into that value, or take the option out there")
                    : fmt::format("put \"pci={};NvP2pBar1=1;\" into that value, or take the option "
                                  "out there",
                                  request.gpu));
            return e;
        }
        // What an earlier file asked for would be hidden by ours: take it over.
        if (const auto it = before.find(kAll); it != before.end() && request.gpu.empty()) {
            for (const auto& [k, v] : parse::registryDwords(it->second->value)) {
                if (parse::sameKey(k, kKey) || !get(s.all, k).empty()) continue;
                set(s.all, k, v);
                e.notes.push_back(
                    fmt::format("{}={} of {}:{} is taken over, because the driver keeps only one "
                                "NVreg_RegistryDwords",
                                k, v, it->second->path, it->second->line));
            }
        }
        if (const auto it = before.find(kPer); it != before.end() && !request.gpu.empty()) {
            for (const auto& [bdf, dwords] : parse::registryDwordsPerDevice(it->second->value))
                for (const auto& [k, v] : dwords) {
                    if (parse::sameKey(k, kKey) || !get(s.per[bdf], k).empty()) continue;
                    set(s.per[bdf], k, v);
                    e.notes.push_back(fmt::format("{}={} for {} of {}:{} is taken over", k, v, bdf,
                                                  it->second->path, it->second->line));
                }
        }
        s.grow = "1";
        if (request.gpu.empty()) {
            if (!on(get(s.all, kKey))) set(s.all, kKey, "1");
            for (auto& [bdf, dwords] : s.per)
                if (!get(dwords, kKey).empty() && !on(get(dwords, kKey))) {
                    drop(dwords, kKey);
                    e.notes.push_back(bdf + ": its own NvP2pBar1=0 is taken out");
                }
        } else if (on(get(s.all, kKey)) && get(s.per[request.gpu], kKey).empty()) {
            e.notes.push_back("it is on for all GPUs already");
        } else if (!on(get(s.per[request.gpu], kKey))) {
            set(s.per[request.gpu], kKey, "1");
        }
    } else {
        if (request.gpu.empty()) {
            drop(s.all, kKey);
            for (auto& p : s.per) drop(p.second, kKey);
        } else if (on(get(s.all, kKey))) {
            // A value for one GPU beats the one for all.
            set(s.per[request.gpu], kKey, "0");
        } else {
            drop(s.per[request.gpu], kKey);
        }
        if (!anyOn(s)) s.grow.clear();
        for (const auto* places : {&before, &after})
            for (const auto& [name, o] : *places)
                if (name != kGrow && o->value.find(kKey) != std::string::npos)
                    e.notes.push_back(
                        fmt::format("{}:{} names NvP2pBar1 too and is not touched: {}", o->path,
                                    o->line, o->value));
    }

    std::string line = "options nvidia";
    if (!s.grow.empty()) line += fmt::format(" {}={}", kGrow, s.grow);
    if (!s.all.empty()) line += fmt::format(" {}=\"{}\"", kAll, join(s.all));
    std::string per;
    for (const auto& [bdf, dwords] : s.per)
        if (!dwords.empty()) per += "pci=" + bdf + ";" + join(dwords);
    if (!per.empty()) line += fmt::format(" {}=\"{}\"", kPer, per);
    const bool anything = line != "options nvidia";

    // Every other line stays as it is; the options go where they first stood, else to the end.
    std::string text;
    bool placed = false;
    for (const Line& l : lines) {
        const bool mine =
            l.options && std::any_of(l.words.begin() + 2, l.words.end(),
                                     [](const auto& w) { return managed(nameOf(w)); });
        if (!mine) {
            text += l.text;
            continue;
        }
        std::string rest;
        for (std::size_t i = 2; i < l.words.size(); ++i)
            if (!managed(nameOf(l.words[i]))) rest += " " + l.words[i];
        // A stray backslash at the end would swallow the line that follows.
        while (!rest.empty() && (rest.back() == '\\' || rest.back() == ' ')) rest.pop_back();
        if (!rest.empty()) text += "options nvidia" + rest + "\n";
        if (anything && !placed) text += line + "\n";
        placed = true;
    }
    if (!placed && anything) text += line + "\n";
    e.text = text;
    return e;
}

}  // namespace p2p::bar1
