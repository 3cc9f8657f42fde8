// SPDX-License-Identifier: MIT
#include "lib/cli/clidoc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "lib/util/verdict.h"

namespace p2p {

namespace {

// roff text: backslashes and hyphens as characters, no line that reads as a request.
std::string roff(const std::string& text) {
    std::string out;
    for (char c : text) {
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
    return out;
}

// "LEVEL:{env,data,full}" as CLI11 writes it.
struct Value {
    std::string name;
    std::vector<std::string> choices;
    bool optional = false;
};

Value valueOf(const CLI::Option& o) {
    Value v;
    if (o.get_items_expected_max() == 0) return v;
    v.optional = o.get_items_expected_min() == 0 && !o.get_positional();
    const std::string type = o.get_type_name();
    v.name = type.substr(0, type.find(':'));
    const auto open = type.find('{');
    const auto close = type.find('}');
    if (open != std::string::npos && close != std::string::npos) {
        std::stringstream list(type.substr(open + 1, close - open - 1));
        for (std::string one; std::getline(list, one, ',');) v.choices.push_back(one);
    }
    return v;
}

bool shown(const CLI::Option* o) {
    return !o->get_group().empty();
}

std::vector<const CLI::Option*> optionsOf(const CLI::App& app, bool positional) {
    std::vector<const CLI::Option*> list;
    for (const CLI::Option* o : app.get_options())
        if (shown(o) && o->get_positional() == positional) list.push_back(o);
    return list;
}

std::vector<const CLI::App*> commandsOf(const CLI::App& app) {
    std::vector<const CLI::App*> list;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
        if (!sub->get_name().empty() && !sub->get_group().empty()) list.push_back(sub);
    return list;
}

std::string valueMark(const Value& v) {
    if (v.name.empty()) return "";
    return v.optional ? fmt::format(" [\\fI{}\\fR]", roff(v.name))
                      : fmt::format(" \\fI{}\\fR", roff(v.name));
}

std::string optionNames(const CLI::Option& o) {
    std::vector<std::string> names;
    for (const std::string& s : o.get_snames()) names.push_back("-" + s);
    for (const std::string& l : o.get_lnames()) names.push_back("--" + l);
    std::string out;
    for (const std::string& n : names)
        out += fmt::format("{}\\fB{}\\fR", out.empty() ? "" : ", ", roff(n));
    return out;
}

std::string positionalName(const CLI::Option& o) {
    const std::string name = o.get_name(true, false);
    std::string upper;
    for (char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return upper;
}

std::string positionals(const CLI::App& app) {
    std::string out;
    for (const CLI::Option* o : optionsOf(app, true)) {
        std::string one = fmt::format("\\fI{}\\fR", roff(positionalName(*o)));
        if (o->get_items_expected_max() > 1) one += "...";
        out += o->get_required() ? " " + one : " [" + one + "]";
    }
    return out;
}

void entry(std::string& out, const std::string& head, const std::string& text) {
    out += ".TP\n" + head + "\n";
    std::stringstream lines(text);
    for (std::string line; std::getline(lines, line);) out += roff(line) + "\n";
}

void options(std::string& out, const CLI::App& app) {
    for (const CLI::Option* o : optionsOf(app, true)) {
        if (o->get_description().empty()) continue;
        entry(out, fmt::format("\\fI{}\\fR", roff(positionalName(*o))), o->get_description());
    }
    for (const CLI::Option* o : optionsOf(app, false)) {
        const Value v = valueOf(*o);
        std::string text = o->get_description();
        if (!v.choices.empty()) text += fmt::format("\nOne of {}.", fmt::join(v.choices, ", "));
        if (!o->get_default_str().empty() && !v.name.empty())
            text += fmt::format("\nDefault: {}.", o->get_default_str());
        entry(out, optionNames(*o) + valueMark(v), text);
    }
}

// See ManPage::sections for the marks.
void prose(std::string& out, const std::string& text) {
    std::stringstream lines(text);
    bool literal = false;
    bool para = false;
    for (std::string line; std::getline(lines, line);) {
        const bool code = line.rfind("    ", 0) == 0;
        if (literal && !code) {
            out += ".EE\n.RE\n";
            literal = false;
            para = true;
        }
        if (code) {
            if (!literal) out += ".PP\n.RS 4\n.EX\n";
            literal = true;
            out += "\\fB" + roff(line.substr(4)) + "\\fR\n";
            continue;
        }
        if (line.empty()) {
            para = true;
            continue;
        }
        const auto tab = line.find('\t');
        if (tab != std::string::npos) {
            entry(out, "\\fB" + roff(line.substr(0, tab)) + "\\fR", line.substr(tab + 1));
            para = true;
            continue;
        }
        if (para) out += ".PP\n";
        para = false;
        out += roff(line) + "\n";
    }
    if (literal) out += ".EE\n.RE\n";
}

std::string upper(std::string s) {
    for (char& c : s) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return s;
}

// ---- bash

std::string words(const CLI::App& app) {
    std::vector<std::string> all;
    for (const CLI::Option* o : optionsOf(app, false))
        for (const std::string& l : o->get_lnames()) all.push_back("--" + l);
    for (const CLI::App* c : commandsOf(app)) all.push_back(c->get_name());
    return fmt::format("{}", fmt::join(all, " "));
}

// Bash that completes one value of this kind.
std::string completeValue(const Value& v) {
    if (!v.choices.empty())
        return fmt::format("mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")",
                           fmt::join(v.choices, " "));
    if (v.name.find("FILE") != std::string::npos)
        return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")";
    if (v.name.find("DIR") != std::string::npos)
        return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")";
    if (v.name.find("BDF") != std::string::npos)
        return "mapfile -t COMPREPLY < <(compgen -W \"$(_p2p_gpus)\" -- \"$cur\"); "
               "__ltrim_colon_completions "
               "\"$cur\" 2>/dev/null";
    if (v.name == "ID")
        return "mapfile -t COMPREPLY < <(compgen -W \"$(\"$1\" explain 2>/dev/null | cut -d' ' "
               "-f1)\" -- "
               "\"$cur\")";
    return ":";
}

void valueCases(std::string& out, const CLI::App& app, const std::string& indent) {
    out += indent + "case $prev in\n";
    for (const CLI::Option* o : optionsOf(app, false)) {
        const Value v = valueOf(*o);
        if (v.name.empty()) continue;
        std::vector<std::string> names;
        for (const std::string& s : o->get_snames()) names.push_back("-" + s);
        for (const std::string& l : o->get_lnames()) names.push_back("--" + l);
        // A value that may be left out must not hide the options.
        const std::string end = v.optional ? "[[ $cur == -* ]] || return ;;" : "return ;;";
        out += fmt::format("{}    {}) {}; {}\n", indent, fmt::join(names, " | "), completeValue(v),
                           end);
    }
    out += indent + "esac\n";
    const auto pos = optionsOf(app, true);
    if (!pos.empty())
        out += fmt::format("{}[[ $cur == -* ]] || {{ {}; return; }}\n", indent,
                           completeValue(valueOf(*pos[0])));
    out += fmt::format("{}mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$cur\")\n", indent,
                       words(app));
}

}  // namespace

std::string exitStatusText(bool verdicts) {
    std::string t = verdicts ? "" : "0\tDone.\n";
    if (verdicts) {
        const std::vector<std::pair<Verdict, const char*>> table = {
            {Verdict::Proven,
             "at the level asked for, peer-to-peer works; env: nothing was found that stands in "
             "its way."},
            {Verdict::Slow, "proven, but well under the limit of the link."},
            {Verdict::Unavailable, "a named cause refuses peer-to-peer."},
            {Verdict::Reload,
             "what is loaded is not what is installed: reload the module or reboot."},
            {Verdict::WrongData, "data did not arrive intact."},
            {Verdict::Hang, "a deadline passed."},
            {Verdict::Inconclusive,
             "cannot tell, with the reason: one GPU, no rights, a busy GPU, a guest without a view "
             "of the bus."},
        };
        for (const auto& [v, text] : table)
            t += fmt::format("{} {}\t{}\n", static_cast<int>(v), verdictName(v), text);
    }
    t += fmt::format("{}\tThe command line is wrong; one line on standard error says how.\n",
                     kExitUsage);
    t += fmt::format("{}\tInternal error, or an output could not be written.\n", kExitInternal);
    if (verdicts)
        t += "\nWhen several verdicts hold, the first of 30, 31, 21, 20, 40, 10, 0 is given.\n";
    return t;
}

std::string manText(const CLI::App& app, const ManPage& page, const std::string& version) {
    const std::string& name = app.get_name();
    std::string out = ".\\\" Made from the option table of the program; do not edit.\n";
    out +=
        fmt::format(".TH {} {} \"\" \"nvidia\\-p2p {}\" \"{}\"\n", roff(upper(name)), page.section,
                    roff(version), page.section == 8 ? "System Administration" : "User Commands");
    // Left-aligned without hyphenation: options and paths must stay whole.
    out += ".nh\n.ad l\n.ss 12 0\n";
    out += fmt::format(".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n", roff(name), roff(page.summary));
    out += fmt::format("\\fB{}\\fR [\\fIOPTION\\fR]...{}\n", roff(name), positionals(app));
    const auto commands = commandsOf(app);
    for (const CLI::App* c : commands)
        out += fmt::format(".br\n\\fB{} {}\\fR{}{}\n", roff(name), roff(c->get_name()),
                           optionsOf(*c, false).size() > 1 ? " [\\fIOPTION\\fR]..." : "",
                           positionals(*c));
    for (const auto& [heading, text] : page.sections)
        if (heading == "DESCRIPTION") {
            out += ".SH DESCRIPTION\n";
            prose(out, text);
        }
    if (!commands.empty()) {
        out += ".SH COMMANDS\n";
        for (const CLI::App* c : commands) {
            entry(out, fmt::format("\\fB{}\\fR{}", roff(c->get_name()), positionals(*c)),
                  c->get_description());
            std::string inner;
            for (const CLI::Option* o : optionsOf(*c, false)) {
                if (std::find(o->get_lnames().begin(), o->get_lnames().end(), "help") !=
                    o->get_lnames().end())
                    continue;
                entry(inner, optionNames(*o) + valueMark(valueOf(*o)), o->get_description());
            }
            if (!inner.empty()) out += ".RS\n" + inner + ".RE\n";
        }
    }
    out += ".SH OPTIONS\n";
    options(out, app);
    for (const auto& [heading, text] : page.sections)
        if (heading != "DESCRIPTION") {
            out += ".SH " + roff(heading) + "\n";
            prose(out, text);
        }
    return out;
}

std::string bashCompletion(const CLI::App& app) {
    const std::string& name = app.get_name();
    std::string fn = "_" + name;
    std::replace(fn.begin(), fn.end(), '-', '_');
    std::string out = fmt::format("# bash completion for {}; made from its option table.\n", name);
    out += R"(# Addresses of this machine's NVIDIA GPUs: vendor 10de, PCI base class 03.
_p2p_gpus() {
    local d
    for d in /sys/bus/pci/devices/*; do
        [[ $(<"$d/vendor") == 0x10de && $(<"$d/class") == 0x03* ]] && echo "${d##*/}"
    done 2>/dev/null
}
)";
    out += fn + "() {\n    local cur prev\n";
    out += R"(    # ":" is part of a PCI address, not a place to break a word.
    if declare -F _get_comp_words_by_ref >/dev/null; then
        _get_comp_words_by_ref -n : cur prev
    else
        cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    fi
    COMPREPLY=()
)";
    const auto commands = commandsOf(app);
    if (!commands.empty()) {
        out +=
            "    local w\n    for w in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n        case $w "
            "in\n";
        for (const CLI::App* c : commands) {
            out += fmt::format("        {})\n", c->get_name());
            valueCases(out, *c, "            ");
            out += "            return\n            ;;\n";
        }
        out += "        esac\n    done\n";
    }
    valueCases(out, app, "    ");
    out += fmt::format("}}\ncomplete -F {} {}\n", fn, name);
    return out;
}

}  // namespace p2p
