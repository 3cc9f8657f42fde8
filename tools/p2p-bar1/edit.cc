// SPDX-License-Identifier: MIT
#include "p2p-bar1/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

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
        while (raw.size() > 1 && raw[raw.size() - 2] == '\\') raw.erase(raw.size() - 2, 1);
        end();
    }
    return all;
}

std::string nameOf(const std::string& word) {
    return parse::moduleName(parse::argument(word).name);
}

std::string valueOf(const std::string& word) {
    std::string v = parse::argument(word).value;
    v.erase(std::remove(v.begin(), v.end(), '"'), v.end());
    return v;
}

void set(parse::Dwords& dwords, const std::string& key, const std::string& value) {
    bool found = false;
    for (auto& [k, v] : dwords)
        if (parse::sameKey(k, key)) {
            v = value;
            found = true;
        }
    if (!found) dwords.emplace_back(key, value);
}

void drop(parse::Dwords& dwords, const std::string& key) {
    dwords.erase(std::remove_if(dwords.begin(), dwords.end(),
                                [&](const auto& d) { return parse::sameKey(d.first, key); }),
                 dwords.end());
}

// As in the driver, the last of several counts.
std::string get(const parse::Dwords& dwords, const std::string& key) {
    std::string found;
    for (const auto& [k, v] : dwords)
        if (parse::sameKey(k, key)) found = v;
    return found;
}

std::string join(const parse::Dwords& dwords) {
    std::string all;
    for (const auto& [k, v] : dwords) all += k + "=" + v + ";";
    return all;
}

// What is set for one address, as the driver reads it; without an address, for none.
std::string section(const std::string& address, const parse::Dwords& dwords) {
    return (address.empty() ? "" : "pci=" + address + ";") + join(dwords);
}

using PerDevice = std::map<std::string, parse::Dwords>;

struct State {
    std::string grow;
    parse::Dwords all;
    PerDevice per;
    std::vector<parse::DeviceDwords> strange;  // of per: for no address that can be read
};

std::vector<parse::DeviceDwords> strangeIn(const std::string& value) {
    std::vector<parse::DeviceDwords> all = parse::deviceDwords(value);
    all.erase(std::remove_if(all.begin(), all.end(), [](const auto& d) { return !d.bdf.empty(); }),
              all.end());
    return all;
}

State stateOf(const std::vector<Line>& lines) {
    State s;
    for (const Line& l : lines) {
        if (!l.options) continue;
        for (std::size_t i = 2; i < l.words.size(); ++i) {
            // As in the kernel, the last of several counts.
            if (nameOf(l.words[i]) == kGrow) s.grow = valueOf(l.words[i]);
            if (nameOf(l.words[i]) == kAll) s.all = parse::registryDwords(valueOf(l.words[i]));
            if (nameOf(l.words[i]) == kPer) {
                s.per = parse::registryDwordsPerDevice(valueOf(l.words[i]));
                s.strange = strangeIn(valueOf(l.words[i]));
            }
        }
    }
    return s;
}

// The file's text with what `s` says in place of what it said.
std::string render(const std::vector<Line>& lines, const State& s) {
    std::string line = "options nvidia";
    if (!s.grow.empty()) line += fmt::format(" {}={}", kGrow, s.grow);
    if (!s.all.empty()) line += fmt::format(" {}=\"{}\"", kAll, join(s.all));
    std::string per;
    for (const auto& d : s.strange)
        if (d.address.empty()) per += join(d.dwords);
    for (const auto& [bdf, dwords] : s.per)
        if (!dwords.empty()) per += section(bdf, dwords);
    for (const auto& d : s.strange)
        if (!d.address.empty()) per += section(d.address, d.dwords);
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
    return text;
}

// What the driver is given in the end, and which option gives it: modprobe puts all options in a
// row, and the kernel keeps the last of each name.
struct Effect {
    const ModprobeOption *grow = nullptr, *all = nullptr, *per = nullptr;
    parse::Dwords dwords;
    PerDevice devices;

    explicit Effect(const std::vector<ModprobeOption>& options) {
        for (const ModprobeOption& o : options) {
            if (o.name == kGrow) grow = &o;
            if (o.name == kAll) all = &o;
            if (o.name == kPer) per = &o;
        }
        if (all) dwords = parse::registryDwords(all->value);
        if (per) devices = parse::registryDwordsPerDevice(per->value);
    }
    // A GPU's own key, or "".
    std::string own(const std::string& gpu) const {
        const auto it = devices.find(gpu);
        return it == devices.end() ? "" : get(it->second, kKey);
    }
    bool allOn() const { return parse::keyEnables(get(dwords, kKey)); }
    bool anyOn() const {
        return allOn() || std::any_of(devices.begin(), devices.end(), [](const auto& d) {
                   return parse::keyEnables(get(d.second, kKey));
               });
    }
    // A value for one GPU beats the one for all.
    bool isOn(const std::string& gpu) const {
        const std::string value = own(gpu);
        return value.empty() ? allOn() : parse::keyEnables(value);
    }
};

std::string stands(const ModprobeOption* o, const std::string& what, const std::string& todo) {
    if (!o) return fmt::format("{}: {}; {}", kFile, what, todo);
    return fmt::format("{}:{}: {}=\"{}\" {}; {}", o->path, o->line, o->name, o->value, what, todo);
}

// Why P2P would not be as asked for; "" if it would.
std::string against(const Effect& e, const Request& r) {
    const std::string hides = fmt::format("is read after {} and hides it", kFile);
    const std::string out = "take NvP2pBar1 out of that value";
    if (!r.enable) {
        if (r.gpu.empty() ? e.allOn() : e.isOn(r.gpu) && e.own(r.gpu).empty())
            return stands(e.all, "keeps P2P on", out);
        for (const auto& [bdf, dwords] : e.devices)
            if ((r.gpu.empty() || bdf == r.gpu) && parse::keyEnables(get(dwords, kKey)))
                return stands(e.per, fmt::format("keeps P2P on for {}", bdf), out);
        return "";
    }
    if (r.gpu.empty() && !e.allOn())
        return stands(e.all, hides,
                      "put \"NvP2pBar1=1;\" into that value, or take the option out there");
    for (const auto& [bdf, dwords] : e.devices)
        if ((r.gpu.empty() || bdf == r.gpu) && !get(dwords, kKey).empty() &&
            !parse::keyEnables(get(dwords, kKey)))
            return stands(e.per, fmt::format("keeps P2P off for {}", bdf), out);
    if (!r.gpu.empty() && !e.isOn(r.gpu))
        return stands(e.per, hides,
                      fmt::format("put \"pci={};NvP2pBar1=1;\" into that value, or take the "
                                  "option out there",
                                  r.gpu));
    if (!e.grow || parse::dword(e.grow->value) != 1U)
        return stands(e.grow, hides, "set it to 1 there, or take it out");
    return "";
}

}  // namespace

bool names(const std::string& text, const std::string& gpu) {
    return stateOf(split(text)).per.count(gpu) != 0;
}

Edit edit(const std::string& old, const Request& request,
          const std::vector<ModprobeOption>& options) {
    Edit e;
    e.text = old;
    const std::vector<Line> lines = split(old);
    State s = stateOf(lines);

    // Which of our three options does another place set, before or after our file?
    std::vector<ModprobeOption> before, after;
    const std::string ours = std::string(kFile).substr(std::string(kFile).rfind('/') + 1);
    for (const ModprobeOption& o : options) {
        if (o.module != "nvidia" || !managed(o.name) || o.path == kFile) continue;
        const std::string name = o.path.substr(o.path.rfind('/') + 1);
        const bool later = o.path == "/proc/cmdline" || name > ours;
        (later ? after : before).push_back(o);
    }
    // All that modprobe would read with this text in our file.
    const auto with = [&](const std::string& text) {
        std::vector<ModprobeOption> all = before, own;
        std::vector<ModprobeRule> rules;
        parse::modprobe(text, kFile, own, rules);
        std::copy_if(own.begin(), own.end(), std::back_inserter(all),
                     [](const auto& o) { return o.module == "nvidia"; });
        all.insert(all.end(), after.begin(), after.end());
        return all;
    };
    // As it stands, and with stray quotes of ours taken out, as they would be.
    const auto raw = with(old), present = with(render(lines, s));
    const Effect now(present), earlier(before);
    bool taken = false;

    // What an earlier file asked for would be hidden by ours: take it over.
    const auto takeAll = [&] {
        for (const auto& [k, v] : earlier.dwords) {
            if (parse::sameKey(k, kKey) || !get(s.all, k).empty()) continue;
            set(s.all, k, v);
            taken = true;
            e.notes.push_back(
                fmt::format("{}={} of {}:{} is taken over, because the driver keeps only one "
                            "NVreg_RegistryDwords",
                            k, v, earlier.all->path, earlier.all->line));
        }
    };
    const auto takePer = [&] {
        const bool hidden = !s.per.empty() || !s.strange.empty();  // by our file, up to now
        for (const auto& [bdf, dwords] : earlier.devices)
            for (const auto& [k, v] : dwords) {
                if (parse::sameKey(k, kKey) && (hidden || bdf == request.gpu)) continue;
                if (!get(s.per[bdf], k).empty()) continue;
                set(s.per[bdf], k, v);
                taken = true;
                e.notes.push_back(fmt::format("{}={} for {} of {}:{} is taken over", k, v, bdf,
                                              earlier.per->path, earlier.per->line));
            }
        if (!earlier.per || hidden) return;
        for (const auto& d : strangeIn(earlier.per->value))
            e.notes.push_back(fmt::format(
                "\"{}\" of {}:{} names no address that the driver takes and is not taken over",
                section(d.address, d.dwords), earlier.per->path, earlier.per->line));
    };
    const auto switchOn = [&](parse::Dwords& dwords) {
        const std::string value = get(dwords, kKey);
        if (parse::keyEnables(value)) return;
        if (!value.empty() && value != "0")
            e.notes.push_back(fmt::format(
                "NvP2pBar1={} is no value that the driver knows, so P2P was off; it is 1 now",
                value));
        set(dwords, kKey, "1");
    };

    const bool holds = against(Effect(raw), request).empty() && against(now, request).empty();
    if (request.enable) {
        s.grow = "1";
        if (request.gpu.empty()) {
            if (holds && s.all.empty()) return e;  // another file does it
            takeAll();
            switchOn(s.all);
            for (auto& [bdf, dwords] : s.per)
                if (!get(dwords, kKey).empty() && !parse::keyEnables(get(dwords, kKey))) {
                    e.notes.push_back(fmt::format("{}: its own NvP2pBar1={} is taken out", bdf,
                                                  get(dwords, kKey)));
                    drop(dwords, kKey);
                }
        } else if (holds && now.own(request.gpu).empty()) {
            e.notes.push_back("it is on for all GPUs already");
            return e;
        } else if (holds && s.per.empty()) {
            return e;
        } else {
            takePer();
            // Where it is on for all, only what keeps this one off is in the way.
            if (now.allOn())
                drop(s.per[request.gpu], kKey);
            else
                switchOn(s.per[request.gpu]);
        }
        if (holds && !taken) return e;
    } else {
        if (request.gpu.empty()) {
            drop(s.all, kKey);
            for (auto& p : s.per) drop(p.second, kKey);
        } else if (now.allOn()) {
            takePer();
            set(s.per[request.gpu], kKey, "0");
        } else {
            drop(s.per[request.gpu], kKey);
        }
        const auto then = with(render(lines, s));
        if (!Effect(then).anyOn()) s.grow.clear();
    }

    const std::string text = render(lines, s);
    const auto then = with(text);
    e.refused = against(Effect(then), request);
    if (!e.refused.empty()) {
        e.notes.clear();
        return e;
    }
    e.text = text;
    if (!request.enable)
        for (const auto* places : {&before, &after})
            for (const ModprobeOption& o : *places)
                if (o.name != kGrow && o.value.find(kKey) != std::string::npos)
                    e.notes.push_back(
                        fmt::format("{}:{} names NvP2pBar1 too and is not touched: {}", o.path,
                                    o.line, o.value));
    for (const auto& d : s.strange)
        if (!d.address.empty())
            e.notes.push_back(fmt::format(
                "pci={} is no address that the driver takes; what is set for it stays as it is",
                d.address));
    return e;
}

}  // namespace p2p::bar1
