// SPDX-License-Identifier: MIT
// Kernels, their nvidia.ko files, DKMS and what is loaded.
#include <libkmod.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lib/facts/collect.h"
#include "lib/facts/elf.h"
#include "lib/facts/parse.h"

namespace p2p {
namespace {

using parse::startsWith;

// "nvidia.ko", "nvidia.ko.xz", ...; Ubuntu's own is the same name, nvidia-current renames it.
bool isNvidiaKo(const std::string& name) {
    return name == "nvidia.ko" || startsWith(name, "nvidia.ko.") || name == "nvidia-current.ko" ||
           startsWith(name, "nvidia-current.ko.");
}

using Context = std::unique_ptr<kmod_ctx, decltype(&kmod_unref)>;

// libkmod is asked about files only; options are read by collectSettings, with the places they come
// from.
Context context() {
    static const char* const none[] = {nullptr};
    Context c(kmod_new(nullptr, none), kmod_unref);
    if (c)
        kmod_set_log_fn(
            c.get(), [](void*, int, const char*, int, const char*, const char*, va_list) {},
            nullptr);
    return c;
}

// Module files below a kernel's folder.  Only where modules of graphics drivers are ever put: a
// full walk of kernel/ is thousands of folders.
void findKo(Machine& m, const std::string& dir, int depth, std::vector<std::string>& found) {
    if (depth > 6) return;
    const auto names = m.list(dir);
    for (const std::string& n : names.valueOr({})) {
        const std::string path = dir + "/" + n;
        if (isNvidiaKo(n))
            found.push_back(path);
        else if (n.find('.') == std::string::npos && n != "build" && n != "source" &&
                 m.isFolder(path) && !m.link(path))
            findKo(m, path, depth + 1, found);
    }
}

std::vector<std::string> nvidiaFiles(Machine& m, const std::string& dir) {
    std::vector<std::string> found;
    const auto names = m.list(dir);
    for (const std::string& n : names.valueOr({})) {
        if (n == "build" || n == "source" || n == "vdso" || !m.isFolder(dir + "/" + n)) continue;
        if (n != "kernel") {
            findKo(m, dir + "/" + n, 1, found);
            continue;
        }
        const auto parts = m.list(dir + "/kernel");
        for (const std::string& p : parts.valueOr({}))
            if (startsWith(p, "nvidia")) findKo(m, dir + "/kernel/" + p, 1, found);
        // The .run installer's place, and Ubuntu's older one.
        for (const char* p : {"/kernel/drivers/video", "/kernel/drivers/char/drm"})
            if (m.isFolder(dir + p)) findKo(m, dir + p, 3, found);
    }
    std::sort(found.begin(), found.end());
    return found;
}

// Which file modprobe takes for module nvidia: its path below the kernel's folder, or "".  From
// modules.dep, which depmod(8) writes beside the binary index that modprobe itself reads; the text
// can be cut down for a snapshot.
std::string chosenFile(Machine& m, const std::string& dir) {
    const std::string path = dir + "/modules.dep";
    const auto all = m.bytes(path, std::size_t{16} << 20);
    std::string kept, chosen;
    for (const std::string& l : parse::lines(all.valueOr(""))) {
        const std::string file = l.substr(0, l.find(':'));
        if (!isNvidiaKo(file.substr(file.rfind('/') + 1))) continue;
        kept += file + ":\n";
        if (chosen.empty()) chosen = file;
    }
    if (all) m.note(path, {Machine::Entry::File, kept});
    return chosen;
}

ModuleFile readKo(Machine& m, const std::string& path, const std::string& kernel) {
    using Text = Sourced<std::string>;
    ModuleFile f;
    f.path = path;
    f.kernel = kernel;
    Text* const fields[] = {&f.version, &f.vermagic, &f.marker, &f.license, &f.signer};
    static const char* const names[] = {"version", "vermagic", "nvidia_p2p", "license", "signer"};

    std::string reason = m.unreadReason(path);
    const int fd = reason.empty() ? elf::openModule(m.host(path), reason) : -1;
    if (fd < 0) {
        if (reason == "Permission denied") reason = kNeedsRoot;
        m.note(path, {Machine::Entry::Unread, reason});
        for (Text* t : fields) *t = Text::missing(path, reason);
        f.build_id = Text::missing(path, reason);
        return f;
    }
    const std::string notes = elf::section(fd, ".note.gnu.build-id");
    const std::string id = elf::buildId(notes);
    f.build_id = id.empty() ? Text::missing(path, kAbsent) : Text(path, id);
    const std::string trailer = elf::signatureTrailer(fd);
    // Through the open file: what was unpacked is not unpacked again.
    const Context c = context();
    kmod_module* raw = nullptr;
    kmod_list* info = nullptr;
    const std::string self = "/proc/self/fd/" + std::to_string(fd);
    int rc = c ? kmod_module_new_from_path(c.get(), self.c_str(), &raw) : -1;
    if (rc >= 0) rc = kmod_module_get_info(raw, &info);
    for (Text* t : fields) *t = Text::missing(path, rc < 0 ? "not a module file" : kAbsent);
    kmod_list* e = nullptr;
    if (rc >= 0) {
        kmod_list_foreach(e, info) {
            const std::string key = kmod_module_info_get_key(e);
            for (std::size_t i = 0; i < std::size(names); ++i)
                if (key == names[i])
                    *fields[i] = Text(path, parse::trim(kmod_module_info_get_value(e)));
        }
    }
    if (!trailer.empty()) {
        std::string signer = elf::plainSigner(fd, trailer);
        if (signer.empty()) signer = f.signer.valueOr("");
        signer = parse::trim(parse::trim(m.prose(signer)).substr(0, elf::kMostSigner));
        // libkmod built without libcrypto cannot name the signer.
        f.signer = Text(path, signer.empty() ? "unknown" : signer);
    }
    if (m.recording()) {
        const std::string stub = elf::stub(elf::section(fd, ".modinfo"), notes,
                                           trailer.empty() ? "" : elf::signature(*f.signer));
        m.note(path, {Machine::Entry::File, elf::pack(stub, path)});
    }
    if (info) kmod_module_info_free_list(info);
    if (raw) kmod_module_unref(raw);
    ::close(fd);
    return f;
}

void readKernels(Machine& m, Facts& facts) {
    const std::string top = "/lib/modules";
    const auto releases = m.list(top);
    for (const std::string& release : releases.valueOr({})) {
        const std::string dir = top + "/" + release;
        if (!m.isFolder(dir)) continue;
        Kernel k;
        k.release = release;
        k.running = facts.kernel && *facts.kernel == release;
        k.headers = m.exists(dir + "/build/Makefile");
        const auto files = nvidiaFiles(m, dir);
        // Headers alone leave a folder behind that no kernel will ever use; from 7.x on Debian's
        // bring modules.builtin too.
        const bool image = m.exists("/boot/vmlinuz-" + release) || m.exists(dir + "/vmlinuz") ||
                           m.isFolder(dir + "/kernel");
        if (!image && files.empty() && !k.running) continue;
        if (!image) m.note(dir, {Machine::Entry::Folder, ""});
        const std::string chosen = chosenFile(m, dir);
        for (const std::string& file : files) {
            k.nvidia.push_back(readKo(m, file, release));
            k.nvidia.back().chosen = file == dir + "/" + chosen;
        }
        // Without modules.dep nothing is found by name; a single file is no question all the same.
        if (k.nvidia.size() == 1) k.nvidia.front().chosen = true;
        facts.kernels.push_back(std::move(k));
    }
}

void readLoaded(Machine& m, Facts& facts) {
    const std::string dir = "/sys/module/nvidia";
    const auto version = m.line(dir + "/version");
    if (version) {
        LoadedModule l;
        l.name = "nvidia";
        l.version = *version;
        const std::string notes = dir + "/notes/.note.gnu.build-id";
        const auto raw = m.bytes(notes);
        const std::string id = elf::buildId(raw.valueOr(""));
        l.build_id = id.empty()
                         ? Sourced<std::string>::missing(notes, raw ? "no build-id" : raw.unread)
                         : Sourced<std::string>(notes, id);
        l.taint = m.line(dir + "/taint");
        facts.loaded = {dir + "/version", std::move(l)};
    } else {
        facts.loaded = Sourced<LoadedModule>::missing(dir + "/version", version.unread);
    }
    const auto nvrm = m.text("/proc/driver/nvidia/version");
    facts.nvrm_version =
        nvrm ? Sourced<std::string>(nvrm.path, nvrm->substr(0, nvrm->find('\n'))) : nvrm;
    for (const char* name : {"nvidia", "nouveau", "nova_core", "vfio_pci"})
        if (m.exists(std::string("/sys/module/") + name)) facts.gpu_modules.emplace_back(name);
}

// The first line of a DKMS log that names the failure.
std::string firstError(const std::string& log) {
    for (const std::string& l : parse::lines(log)) {
        if (l.find("error:") == std::string::npos && l.find("Error ") == std::string::npos &&
            l.find("ERROR") == std::string::npos)
            continue;
        return parse::trim(l).substr(0, 300);
    }
    return "";
}

void readDkms(Machine& m, Facts& facts) {
    // /var/lib/dkms/MODULE/VERSION/KERNEL/ARCH/{log,module}; MODULE/kernel-KERNEL-ARCH is the link
    // of the installed version; MODULE/VERSION/build/make.log is what a failed build leaves (dkms
    // 2, 3).
    const std::string top = "/var/lib/dkms";
    const auto modules = m.list(top);
    for (const std::string& module : modules.valueOr({})) {
        if (module.find("nvidia") == std::string::npos || !m.isFolder(top + "/" + module)) continue;
        const std::string dir = top + "/" + module;
        const auto versions = m.list(dir);
        for (const std::string& version : versions.valueOr({})) {
            if (startsWith(version, "kernel-") || version == "original_module" ||
                !m.isFolder(dir + "/" + version))
                continue;
            const std::string vdir = dir + "/" + version;
            bool any = false;
            const auto kernels = m.list(vdir);
            for (const std::string& kernel : kernels.valueOr({})) {
                if (kernel == "source" || kernel == "build" || !m.isFolder(vdir + "/" + kernel))
                    continue;
                const auto arches = m.list(vdir + "/" + kernel);
                for (const std::string& arch : arches.valueOr({})) {
                    const std::string adir = vdir + "/" + kernel + "/" + arch;
                    if (!m.isFolder(adir)) continue;
                    DkmsState s{module, version, kernel, arch, "built", adir, ""};
                    const auto link = m.link(dir + "/kernel-" + kernel + "-" + arch);
                    if (link && startsWith(*link, version + "/")) s.state = "installed";
                    any = true;
                    facts.dkms.push_back(std::move(s));
                }
            }
            const auto log = m.text(vdir + "/build/make.log", std::size_t{4} << 20);
            const std::string error = log ? firstError(*log) : "";
            if (log) {
                // Which kernel it was for is in its first line; the rest would swell a snapshot.
                const std::string head = log->substr(0, log->find('\n'));
                m.note(log.path, {Machine::Entry::File, head + "\n" + error + "\n"});
            }
            if (!any || !error.empty())
                facts.dkms.push_back({module, version, "", "", "added", vdir, error});
        }
    }
}

}  // namespace

void collectModules(Machine& m, Facts& facts) {
    readKernels(m, facts);
    readLoaded(m, facts);
    readDkms(m, facts);
}

}  // namespace p2p
