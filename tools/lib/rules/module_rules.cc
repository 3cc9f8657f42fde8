// SPDX-License-Identifier: MIT
// The driver: which nvidia.ko is there, which runs, does it fit its libraries, may it load, and
// what was it told.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "lib/facts/parse.h"
#include "lib/rules/parts.h"

namespace p2p::rules_detail {
namespace {

std::string markerText(const ModuleFile& m) {
    return "nvidia_p2p: " + (m.marker ? *m.marker : m.marker.unread);
}

std::string runningRelease(const Facts& f) {
    return f.kernel.valueOr("this kernel");
}

Findings moduleNotOurs(const Facts& f, const GpuRun*) {
    // Without modules.dep modprobe takes none, and what is loaded counts.
    const ModuleFile* chosen = f.chosenModule() ? f.chosenModule() : f.loadedFile();
    if (f.gpus.empty() || !chosen || chosen->marker) return {};
    Finding x = host("module-not-ours", Severity::Block);
    x.evidence.push_back({chosen->path, markerText(*chosen)});
    const ModuleFile* other = nullptr;
    for (const ModuleFile& m : f.runningKernel()->nvidia)
        if (m.marker) other = &m;
    if (chosen->marker.unread != kAbsent) {
        x.severity = Severity::Inconclusive;
        x.cause = "Whether the installed nvidia.ko is the changed one could not be read: " +
                  chosen->marker.unread + ".";
        x.remedy = "Run it again as root, or look yourself: modinfo -F nvidia_p2p nvidia";
    } else if (other) {
        x.cause = "modprobe takes an nvidia.ko without our marker before the changed one.";
        x.remedy = fmt::format(
            "Remove the package or installer that put {} there (nvidia-uninstall for a .run file), "
            "then "
            "depmod -a {} && update-initramfs -u",
            chosen->path, runningRelease(f));
        x.evidence.push_back({other->path, markerText(*other)});
    } else {
        x.cause = fmt::format(
            "The nvidia.ko of {} is NVIDIA's own or the distribution's: it has no marker of this "
            "driver.",
            runningRelease(f));
        x.remedy = "apt install nvidia-p2p-dkms, then reboot.";
    }
    return {x};
}

bool refusedBySignature(const Facts& f);

Findings moduleNotLoadedYet(const Facts& f, const GpuRun*) {
    const ModuleFile* chosen = f.chosenModule();
    if (f.gpus.empty() || !chosen || !chosen->marker) return {};
    if (!f.loaded) {
        // A GPU that another driver holds is that rule's matter.
        if (usableGpus(f).empty()) return {};
        // Nor does trying again help where the kernel refuses the module.
        if (refusedBySignature(f)) return {};
        Finding x = host("module-not-loaded-yet", Severity::Reload);
        x.cause = "The changed driver is installed but no nvidia module is loaded.";
        x.remedy = "modprobe nvidia; if that fails, dmesg | grep -i nvidia says why.";
        x.evidence.push_back({chosen->path, markerText(*chosen)});
        x.evidence.push_back(unreadEvidence(f.loaded));
        return {x};
    }
    const auto& loaded = f.loaded->build_id;
    // Where there is no build-id, the version tells what it can.
    const bool known = loaded && chosen->build_id;
    if (known ? *loaded == *chosen->build_id
              : !chosen->version || f.loaded->version.empty() ||
                    *chosen->version == f.loaded->version)
        return {};
    Finding x = host("module-not-loaded-yet", Severity::Reload);
    x.cause = fmt::format("The loaded nvidia module ({}) is not the one that is installed ({}).",
                          f.loaded->version, *chosen->marker);
    x.remedy =
        "Reboot; or stop everything that uses a GPU, then rmmod nvidia_uvm nvidia_drm "
        "nvidia_modeset nvidia && modprobe nvidia.  "
        "If it comes back after a reboot, the initramfs holds the old one: update-initramfs -u";
    x.evidence.push_back(known ? Evidence{loaded.path, *loaded}
                               : Evidence{f.loaded.path, f.loaded->version});
    x.evidence.push_back({chosen->path, known ? *chosen->build_id : *chosen->version});
    if (f.holders)
        for (const Holder& h : *f.holders)
            x.evidence.push_back(
                {f.holders.path, fmt::format("in use by {} ({})", h.command, h.pid)});
    return {x};
}

Findings twoModules(const Facts& f, const GpuRun*) {
    const Kernel* k = f.runningKernel();
    if (!k || k->nvidia.size() < 2) return {};
    Finding x = host("two-modules", Severity::Warning);
    x.subject = k->release;
    x.cause = fmt::format(
        "{} nvidia.ko files lie below /lib/modules/{}; which one is loaded hangs on their folders.",
        k->nvidia.size(), k->release);
    x.remedy = fmt::format(
        "Keep the one of nvidia-p2p-dkms (updates/dkms), remove the others and run depmod -a {}",
        k->release);
    for (const ModuleFile& m : k->nvidia)
        x.evidence.push_back({m.path, markerText(m) + (m.chosen ? ", modprobe takes this" : "")});
    return {x};
}

Findings noModule(const Facts& f, const GpuRun*) {
    Findings all;
    if (f.gpus.empty()) return all;
    const bool ours = oursAnywhere(f) || !f.package_state.empty();
    for (const Kernel& k : f.kernels) {
        const bool marked = std::any_of(k.nvidia.begin(), k.nvidia.end(),
                                        [](const ModuleFile& m) { return bool(m.marker); });
        // Without our package only the running kernel counts, and only if it has no driver at all.
        if (marked || (!ours && (!k.running || !k.nvidia.empty()))) continue;
        if (k.running && !k.nvidia.empty()) continue;  // module-not-ours
        Finding x = host("no-module-for-kernel", k.running ? Severity::Block : Severity::Warning);
        x.subject = k.release;
        x.cause = k.running ? fmt::format("Kernel {} runs and has no nvidia.ko.", k.release)
                            : fmt::format(
                                  "Kernel {} is installed and has no nvidia.ko of this driver: "
                                  "peer-to-peer ends when it is "
                                  "booted.",
                                  k.release);
        const auto state = f.package_state.find(k.release);
        if (state != f.package_state.end()) {
            const auto& s = state->second;
            const auto get = [&](const char* key) {
                auto it = s.find(key);
                return it == s.end() ? std::string() : it->second;
            };
            x.evidence.push_back(
                {"/var/lib/nvidia-p2p/kernels/" + k.release, get("status") + ": " + get("reason")});
            if (!get("log").empty()) x.evidence.push_back({get("log"), "log of the build"});
        }
        x.evidence.push_back({"/lib/modules/" + k.release,
                              k.nvidia.empty() ? "no nvidia.ko" : markerText(k.nvidia.front())});
        x.remedy = k.headers ? std::string("dpkg-reconfigure nvidia-p2p-dkms")
                             : fmt::format("apt install linux-headers-{}", k.release);
        if (!ours) x.remedy = "apt install nvidia-p2p-dkms, then reboot.";
        all.push_back(x);
    }
    // A kernel that runs without a folder of its own: removed while in use, or another machine's.
    if (f.kernel && !f.runningKernel() && !f.loaded) {
        Finding x = host("no-module-for-kernel", Severity::Block);
        x.subject = *f.kernel;
        x.cause =
            "The running kernel has no folder with modules: it was removed, or this is a "
            "container.";
        x.remedy = "Boot an installed kernel, or run this on the host.";
        x.evidence.push_back({"/lib/modules/" + *f.kernel, kAbsent});
        all.push_back(x);
    }
    return all;
}

Findings buildFailed(const Facts& f, const GpuRun*) {
    Findings all;
    for (const DkmsState& s : f.dkms) {
        if (s.log_error.empty()) continue;
        Finding x = host("dkms-build-failed", Severity::Warning);
        x.subject = s.module + "/" + s.version;
        x.cause = "The last DKMS build of this module failed.";
        const bool compiler =
            s.log_error.find("-ftrivial-auto-var-init") != std::string::npos ||
            s.log_error.find("unrecognized command-line option") != std::string::npos;
        x.remedy = compiler ? "The compiler is older than the one that built the kernel: install "
                              "that one (see compiler-mismatch) and "
                              "run dpkg-reconfigure nvidia-p2p-dkms."
                            : "Read the log, then dpkg-reconfigure nvidia-p2p-dkms.";
        x.evidence.push_back({s.path + "/build/make.log", s.log_error});
        all.push_back(x);
    }
    return all;
}

// "gcc-12" of "... (x86_64-linux-gnu-gcc-12 (Ubuntu 12.3.0-1ubuntu1~22.04) 12.3.0, GNU ld ...": 12
int kernelGcc(const std::string& version) {
    const std::size_t at = version.find("gcc");
    if (at == std::string::npos) return 0;
    if (version.compare(at, 4, "gcc-") == 0) return majorOf(version.substr(at + 4));
    const std::size_t close = version.find(") ", at);
    return close == std::string::npos ? 0 : majorOf(version.substr(close + 2));
}

Findings compilerMismatch(const Facts& f, const GpuRun*) {
    if (!f.kernel_version || !f.compiler) return {};
    const int kernel = kernelGcc(*f.kernel_version);
    const int cc = f.compiler->compare(0, 4, "gcc-") == 0 ? majorOf(f.compiler->substr(4)) : 0;
    // A newer compiler is what distributions have after an upgrade, and works; an older one lacks
    // options that the kernel's makefiles pass.
    if (kernel == 0 || cc == 0 || cc >= kernel) return {};
    Finding x = host("compiler-mismatch", Severity::Info);
    x.cause = fmt::format(
        "The running kernel was built with gcc {}, and cc here is gcc {}: module builds that use "
        "cc can fail.",
        kernel, cc);
    x.remedy = fmt::format("apt install gcc-{}; nvidia-p2p-dkms then takes it by itself.", kernel);
    x.evidence.push_back({f.kernel_version.path, *f.kernel_version});
    x.evidence.push_back({f.compiler.path, *f.compiler});
    return {x};
}

Findings libraryMismatch(const Facts& f, const GpuRun* run) {
    const bool nvml = run && run->nvml_init == 18;  // NVML_ERROR_LIB_RM_VERSION_MISMATCH
    const bool cuda =
        run && run->cuda_asked && run->cuda_init == 803;  // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
    Finding x = host("driver-library-mismatch", Severity::Block);
    bool differ = false, fits = false;
    std::set<std::string> versions;
    if (f.loaded) {
        for (const LibraryVersion& l : f.libraries) {
            (l.version == f.loaded->version ? fits : differ) = true;
            versions.insert(l.version);
        }
        x.evidence.push_back({f.loaded.path, f.loaded->version});
    }
    // An older copy beside the right one (a CUDA compatibility folder) is no fault by itself.
    if (!nvml && !cuda && (!differ || fits)) return {};
    for (const LibraryVersion& l : f.libraries)
        if (!f.loaded || l.version != f.loaded->version) x.evidence.push_back({l.path, l.version});
    if (nvml) x.evidence.push_back({"nvmlInit_v2", "18: driver/library version mismatch"});
    if (cuda) x.evidence.push_back({"cuInit", "803: driver/library version mismatch"});
    const ModuleFile* chosen = f.chosenModule();
    const std::string loaded = f.loaded ? f.loaded->version : "unknown";
    x.cause = fmt::format(
        "The loaded module is {} and the driver's libraries are {}: they work only when both are "
        "the same.",
        loaded,
        versions.empty() ? "of another version" : fmt::format("{}", fmt::join(versions, ", ")));
    if (!differ && !versions.empty()) {
        x.cause = fmt::format(
            "The driver says that its libraries are of another version than the module, though the "
            "files found here are of {}, as the module is.",
            fmt::join(versions, ", "));
        x.remedy =
            "Look for another copy: echo $LD_LIBRARY_PATH, ldconfig -p | grep -e libcuda -e "
            "libnvidia-ml; restart a container that was started before the driver was changed.";
    } else if (chosen && chosen->version && versions.count(*chosen->version) &&
               *chosen->version != loaded) {
        x.severity = Severity::Reload;
        x.remedy = "The installed module fits the libraries already: reboot.";
    } else {
        x.remedy = fmt::format(
            "Install the libraries of {} and hold them: apt install nvidia-p2p-pin, then apt "
            "full-upgrade.",
            loaded);
    }
    return {x};
}

Findings noLibrary(const Facts& f, const GpuRun*) {
    if (f.gpus.empty() || !f.libraries.empty() || !f.loaded) return {};
    Finding x = host("no-driver-library", Severity::Info);
    x.cause =
        "libcuda and libnvidia-ml were not found in the folders of the dynamic linker: programs "
        "cannot use a GPU here.";
    x.remedy =
        "Install the driver's libraries of the same version, or look at the container's NVIDIA "
        "settings.";
    x.evidence.push_back(
        {"/etc/ld.so.conf.d", "no libcuda.so.VERSION, no libnvidia-ml.so.VERSION"});
    return {x};
}

Findings driverTooOld(const Facts& f, const GpuRun*) {
    const int major = driverMajor(f);
    if (major == 0 || major >= 550) return {};
    Finding x = host("driver-too-old", Severity::Block);
    x.cause = fmt::format(
        "Driver branch {} is older than 550, the first that is supported; some of them grant peer "
        "access that then "
        "hangs or moves wrong data.",
        major);
    x.remedy = "Upgrade to a supported branch: apt install nvidia-p2p-dkms.";
    x.evidence.push_back(f.loaded ? Evidence{f.loaded.path, f.loaded->version}
                                  : Evidence{f.chosenModule()->path, *f.chosenModule()->version});
    return {x};
}

Findings signature(const Facts& f) {
    const ModuleFile* m = f.chosenModule();
    if (!m) return {};
    const bool boot = f.secure_boot.valueOr(false);
    const bool enforce = f.sig_enforce.valueOr(false);
    const bool locked = f.lockdown && *f.lockdown != "none" && !f.lockdown->empty();
    if (!enforce && !locked && !boot) return {};
    Finding x = host("secure-boot-unsigned", Severity::Block);
    x.evidence.push_back({m->path, "signer: " + (m->signer ? *m->signer : m->signer.unread)});
    if (boot) x.evidence.push_back({f.secure_boot.path, "1"});
    if (locked) x.evidence.push_back({f.lockdown.path, *f.lockdown});
    if (enforce) x.evidence.push_back({f.sig_enforce.path, "Y"});
    const std::string mok =
        "mokutil --import /var/lib/shim-signed/mok/MOK.der (Ubuntu) or /var/lib/dkms/mok.pub, then "
        "reboot and confirm on "
        "the blue screen";
    if (!m->signer) {
        if (m->signer.unread != kAbsent) return {};
        // Loaded all the same: some kernels do not enforce what the firmware says.
        if (f.loaded && f.loadedFile() == m) {
            x.severity = Severity::Info;
            x.cause =
                "Secure Boot is on and nvidia.ko is unsigned; this kernel loaded it all the same.";
        } else {
            x.cause = "Secure Boot is on and nvidia.ko has no signature, so the kernel refuses it.";
        }
        x.remedy =
            "Make and enrol a key, then rebuild: dpkg-reconfigure nvidia-p2p-dkms; " + mok + ".";
        return {x};
    }
    const std::string* refused = logLine(f, {"Key was rejected"});
    if (!refused) refused = logLine(f, {"Loading of module with unavailable key is rejected"});
    if (f.loaded || !refused) return {};
    x.id = "secure-boot-key-not-enrolled";
    x.cause = "nvidia.ko is signed with a key that this machine does not trust.";
    x.remedy = mok + ".";
    x.evidence.push_back({f.log.path, *refused});
    return {x};
}

// --- options
// ---------------------------------------------------------------------------------------

Findings only(Findings all, const char* id) {
    if (!all.empty() && all.front().id != id) all.clear();
    return all;
}
bool refusedBySignature(const Facts& f) {
    const Findings all = signature(f);
    return !all.empty() && all.front().severity == Severity::Block;
}
Findings unsignedModule(const Facts& f, const GpuRun*) {
    return only(signature(f), "secure-boot-unsigned");
}
Findings keyNotEnrolled(const Facts& f, const GpuRun*) {
    return only(signature(f), "secure-boot-key-not-enrolled");
}

std::string dwordsPath(const ModprobeOption& o) {
    return fmt::format("{}:{}", o.path, o.line);
}

// Does a NVreg_RegistryDwords value switch P2P on for all GPUs?
bool enables(const std::string& dwords) {
    return parse::keyEnables(keyOf(dwords, "", ""));
}

Findings notEnabled(const Facts& f, const GpuRun*) {
    const auto usable = usableGpus(f);
    if (usable.empty() || (!oursInstalled(f) && !oursLoaded(f))) return {};
    std::vector<const Gpu*> off;
    for (const Gpu* g : usable) {
        // Nothing to switch on for boards that NVIDIA's own driver serves, or none.
        const Generation gen = generationOf(g->device);
        if (gen != Generation::Ada && gen != Generation::Ampere) continue;
        // Loaded by hand with the option: on.  On in the files only: options-not-applied's.
        if (parse::keyEnables(keyOfFiles(f, g->bdf))) continue;
        if (oursLoaded(f) && parse::keyEnables(keyTaken(f, g->bdf))) continue;
        off.push_back(g);
    }
    if (off.empty()) return {};
    // A line that would enable it but loses is registry-conflict's.
    for (const ModprobeOption& o : f.options)
        if (o.module == "nvidia" && o.name == "NVreg_RegistryDwords" && enables(o.value) &&
            &o != f.option("NVreg_RegistryDwords"))
            return {};
    const ModprobeOption* all = f.option("NVreg_RegistryDwords");
    const ModprobeOption* each = f.option("NVreg_RegistryDwordsPerDevice");
    const auto describe = [&](Finding& x, const std::string& key) {
        if (!key.empty() && key != "0" && !parse::keyEnables(key))
            x.cause += fmt::format(
                "  NvP2pBar1={} is no value that the driver knows (1 = on, +2 = the host bridge is "
                "vouched for, +4 = Ampere boards too).",
                key);
        if (!all && !each)
            x.evidence.push_back(
                {"/etc/modprobe.d", "no option nvidia NVreg_RegistryDwords with NvP2pBar1=1"});
        if (all) x.evidence.push_back({dwordsPath(*all), "NVreg_RegistryDwords=" + all->value});
        if (each)
            x.evidence.push_back(
                {dwordsPath(*each), "NVreg_RegistryDwordsPerDevice=" + each->value});
    };
    if (off.size() == usable.size()) {
        Finding x = host("p2p-not-enabled", Severity::Block);
        x.cause =
            "The changed driver is here, and nothing switches it on: it behaves like NVIDIA's.";
        x.remedy = "p2p-bar1 enable, then reboot.";
        describe(x, keyOfFiles(f, off.front()->bdf));
        return {x};
    }
    Findings found;
    for (const Gpu* g : off) {
        Finding x = host("p2p-not-enabled", Severity::Block);
        x.subject = g->bdf;
        x.cause =
            "P2P is switched off for this GPU alone: the others reach each other, and not this "
            "one.";
        x.remedy = fmt::format(
            "p2p-bar1 enable --gpu {}, then reboot; or, if it is meant, name the others with "
            "--gpus.",
            g->bdf);
        describe(x, keyOfFiles(f, g->bdf));
        found.push_back(x);
    }
    return found;
}

Findings registryConflict(const Facts& f, const GpuRun*) {
    const ModprobeOption* wins = f.option("NVreg_RegistryDwords");
    if (!wins || enables(wins->value)) return {};
    for (const ModprobeOption& o : f.options) {
        if (&o == wins || o.module != "nvidia" || o.name != "NVreg_RegistryDwords" ||
            !enables(o.value))
            continue;
        Finding x = host("registry-conflict", Severity::Block);
        x.cause = fmt::format(
            "Two files set NVreg_RegistryDwords, and the driver takes only the last: {} hides "
            "NvP2pBar1=1.",
            wins->path);
        x.remedy = fmt::format(
            "Write both into one line: options nvidia NVreg_RegistryDwords=\"{};{}\" in {}, and "
            "take it out of {}.",
            o.value, wins->value, o.path, wins->path);
        x.evidence.push_back({dwordsPath(o), o.value});
        x.evidence.push_back({dwordsPath(*wins), wins->value});
        return {x};
    }
    return {};
}

Findings notApplied(const Facts& f, const GpuRun*) {
    if (!f.loaded || !f.params) return {};
    Findings all;
    Finding x = host("options-not-applied", Severity::Reload);
    const auto usable = usableGpus(f);
    const bool differ = std::any_of(usable.begin(), usable.end(), [&](const Gpu* g) {
        return parse::dword(keyOfFiles(f, g->bdf)).value_or(0) !=
               parse::dword(keyTaken(f, g->bdf)).value_or(0);
    });
    if (differ && (oursLoaded(f) || oursInstalled(f))) {
        x.evidence.push_back(
            {f.params.path, "RegistryDwords: \"" + param(f, "RegistryDwords") + "\""});
        for (const char* name : {"NVreg_RegistryDwords", "NVreg_RegistryDwordsPerDevice"})
            if (const ModprobeOption* o = f.option(name))
                x.evidence.push_back({dwordsPath(*o), std::string(name) + "=" + o->value});
    }
    const ModprobeOption* grow = f.option("NVreg_EnableResizableBar");
    const std::string growing = param(f, "EnableResizableBar");
    if (grow && !growing.empty() && parse::dword(grow->value) != parse::dword(growing)) {
        x.evidence.push_back({f.params.path, "EnableResizableBar: " + growing});
        x.evidence.push_back({dwordsPath(*grow), "NVreg_EnableResizableBar=" + grow->value});
    }
    if (x.evidence.empty()) return all;
    x.cause = "The driver was loaded with other options than the files hold now.";
    x.remedy =
        "Reboot.  If it comes back, the initramfs holds the old files: update-initramfs -u, then "
        "reboot.";
    all.push_back(x);
    return all;
}

Findings riskyKeys(const Facts& f, const GpuRun*) {
    struct Key {
        const char *name, *why;
        bool (*bad)(const std::string&);
    };
    static const Key keys[] = {
        {"ForceP2P",
         "makes every pair claim peer access, also through a mailbox that does not work on GeForce",
         [](const std::string& v) { return parse::dword(v).value_or(0) != 0; }},
        {"RMForceStaticBar1", "keeps a GPU from starting when its BAR1 is too small",
         [](const std::string& v) { return parse::dword(v).value_or(0) == 1; }},
        {"RMForceP2PType", "means other things in other driver branches and switches NVLink off",
         [](const std::string& v) { return parse::dword(v).value_or(0) != 0; }},
        {"RMPcieP2PType", "is set by the changed driver itself for the GPUs that it covers",
         [](const std::string& v) { return parse::dword(v).value_or(0) != 0; }},
        {"PeerMappingOverride", "is from other P2P drivers and not needed here",
         [](const std::string& v) { return parse::dword(v).value_or(0) != 0; }},
    };
    Findings all;
    std::vector<std::pair<Evidence, std::string>> sources;
    for (const ModprobeOption& o : f.options)
        if (o.module == "nvidia" &&
            (o.name == "NVreg_RegistryDwords" || o.name == "NVreg_RegistryDwordsPerDevice"))
            sources.emplace_back(Evidence{dwordsPath(o), o.value}, o.value);
    if (const std::string v = param(f, "RegistryDwords"); !v.empty())
        sources.emplace_back(Evidence{f.params.path, "RegistryDwords: \"" + v + "\""}, v);
    for (const Key& k : keys) {
        Finding x = host("risky-registry-key", Severity::Warning);
        for (const auto& [evidence, text] : sources)
            for (const auto& [key, value] : parse::registryDwords(text))
                if (parse::sameKey(key, k.name) && k.bad(value)) {
                    x.evidence.push_back(evidence);
                    x.cause = fmt::format("{}={} {}.", key, value, k.why);
                }
        if (x.evidence.empty()) continue;
        x.remedy = fmt::format(
            "Take {} out of NVreg_RegistryDwords; NvP2pBar1=1 is all that this driver needs.",
            k.name);
        all.push_back(x);
    }
    return all;
}

Findings moduleUnknown(const Facts& f, const GpuRun*) {
    // Loaded, known by build-id, and that id is no file's: /lib/modules changed under it, and so
    // did what we could compare with.
    if (f.gpus.empty() || !f.loaded || f.loadedFile()) return {};
    const ModuleFile* chosen = f.chosenModule();
    if (chosen) return {};  // module-not-loaded-yet or module-not-ours
    const Kernel* kernel = f.runningKernel();
    if (!f.loaded->build_id && (!kernel || kernel->nvidia.empty()))
        return {};  // no-module-for-kernel
    Finding x = host("module-unknown", Severity::Inconclusive);
    x.cause =
        "The file that the loaded nvidia module came from is not here, so whether it is the "
        "changed one cannot be told.";
    x.remedy =
        "In a container, run p2p-verify on the host; else reinstall nvidia-p2p-dkms and reboot.";
    x.evidence.push_back(f.loaded->build_id ? Evidence{f.loaded->build_id.path, *f.loaded->build_id}
                                            : unreadEvidence(f.loaded->build_id));
    return {x};
}

}  // namespace

std::vector<Rule> moduleRules() {
    return {
        {"driver-library-mismatch", "module and libraries of different versions",
         "/sys/module/nvidia/version, library file names, nvmlInit, cuInit", libraryMismatch,
         "tinygrad/open-gpu-kernel-modules#47, stackhpc/ansible-slurm-appliance#287, "
         "illinois-scicomp/machine-shop-maintenance#70",
         false},
        {"module-not-loaded-yet", "installed module is not the loaded one",
         "build-ids in /sys/module/nvidia/notes and nvidia.ko", moduleNotLoadedYet,
         "tinygrad/open-gpu-kernel-modules#23, shine-cluster#30", false},
        {"options-not-applied", "driver runs with older options",
         "modprobe.d, /proc/driver/nvidia/params", notApplied, "noonghunna/club-3090 PR885", false},
        {"module-not-ours", "nvidia.ko without the marker", "modinfo field nvidia_p2p",
         moduleNotOurs,
         "tinygrad/open-gpu-kernel-modules#21, #22, #23; aikitoria/open-gpu-kernel-modules#15",
         true},
        {"module-unknown", "loaded module without its file", "build-ids", moduleUnknown, "", true},
        {"two-modules", "several nvidia.ko for one kernel", "/lib/modules", twoModules,
         "tinygrad/open-gpu-kernel-modules#21, #22", false},
        {"no-module-for-kernel", "kernels without the module", "/lib/modules, /var/lib/nvidia-p2p",
         noModule, "aikitoria/open-gpu-kernel-modules#10", false},
        {"dkms-build-failed", "a DKMS build failed", "/var/lib/dkms", buildFailed,
         "pop-os/pop#3117, NVIDIA/gpu-operator#564", false},
        {"compiler-mismatch", "cc older than the kernel's compiler", "/proc/version, /usr/bin/cc",
         compilerMismatch, "pop-os/pop#3117", false},
        {"secure-boot-unsigned", "signature that the kernel asks for",
         "SecureBoot variable, lockdown, module signer", unsignedModule,
         "linux-surface/linux-surface#906, NVIDIA/gpu-driver-container#44", false},
        {"secure-boot-key-not-enrolled", "signature of a key that is not trusted",
         "module signer, kernel log", keyNotEnrolled, "linux-surface/linux-surface#906", false},
        {"driver-too-old", "branch before 550", "module version", driverTooOld,
         "NVIDIA/nccl-tests#117, dmlc/xgboost#11242, pytorch/pytorch#119638", true},
        {"no-driver-library", "no libcuda, no libnvidia-ml", "folders of the dynamic linker",
         noLibrary, "", false},
        {"registry-conflict", "one options line hides another", "modprobe.d, command line",
         registryConflict, "", true},
        {"p2p-not-enabled", "changed driver not switched on",
         "modprobe.d, /proc/driver/nvidia/params", notEnabled,
         "aikitoria/open-gpu-kernel-modules#25", true},
        {"risky-registry-key", "registry keys that harm", "modprobe.d, /proc/driver/nvidia/params",
         riskyKeys, "aikitoria/open-gpu-kernel-modules#25, noonghunna/club-3090#873", false},
    };
}

}  // namespace p2p::rules_detail
