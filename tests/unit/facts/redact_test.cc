// SPDX-License-Identifier: MIT
#include "lib/facts/redact.h"

#include <boost/test/unit_test.hpp>

using namespace p2p;

BOOST_AUTO_TEST_CASE(serial_numbers) {
    BOOST_TEST(redact("NVRM: GPU Board Serial Number: 0322917069872", "") ==
               "NVRM: GPU Board Serial Number: REDACTED");
    BOOST_TEST(redact("usb SerialNumber=AB12, x", "") == "usb SerialNumber=REDACTED, x");
    BOOST_TEST(redact("Serial\t\t: 00a5", "") == "Serial\t\t: REDACTED");
    BOOST_TEST(redact("console=ttyS0 serial port at 1", "") == "console=ttyS0 serial port at 1");
}

BOOST_AUTO_TEST_CASE(addresses_of_network_cards) {
    BOOST_TEST(redact("eth0:52:54:00:12:34:ab.", "") == "eth0:00:00:00:00:00:00.");
    BOOST_TEST(redact("01-52-54-00-12-34-AB", "") == "00-00-00-00-00-00-00");
    for (const char* kept :
         {"pci 0000:01:00.0", "12:34:56", "aa:bb:cc:dd:ee", "a52:54:00:12:34:56"})
        BOOST_TEST(redact(kept, "") == kept);
}

BOOST_AUTO_TEST_CASE(ids_and_names_of_machines) {
    BOOST_TEST(redact("id 0123456789abcdef0123456789abcdef", "") == "id " + std::string(32, '0'));
    BOOST_TEST(redact("a systemd.hostname=gpu-node-7 b", "") == "a systemd.hostname=REDACTED b");
    BOOST_TEST(redact("rd.hostname=\"gpu node\" b", "") == "rd.hostname=REDACTED b");
    BOOST_TEST(redact("BOOTIF=x ifname=eth0:y machine_id=z", "") ==
               "BOOTIF=REDACTED ifname=REDACTED machine_id=REDACTED");
    // The name that the machine had when the key was made; twice, and without one.
    const std::string key = " Secure Boot Module Signature key";
    BOOST_TEST(redact("old-name" + key + ", x" + key, "") == "HOST" + key + ", HOST" + key);
    BOOST_TEST(redact(key, "") == key);
}

BOOST_AUTO_TEST_CASE(a_command_line_keeps_settings_only) {
    BOOST_TEST(redactCmdline("BOOT_IMAGE=/boot/vmlinuz-6.8 root=UUID=1 ro iommu=pt quiet "
                             "nvidia.NVreg_X=\"a b\" ds=nocloud;h=node7 pti=on  amd_iommu=on\n") ==
               "BOOT_IMAGE=/boot/vmlinuz-6.8 root=REDACTED ro iommu=pt quiet "
               "nvidia.NVreg_X=\"a b\" ds=REDACTED pti=on  amd_iommu=on\n");
    BOOST_TEST(redactCmdline("BOOT_IMAGE=http://x/node7/vmlinuz a\"b=c\" d") ==
               "BOOT_IMAGE=REDACTED REDACTED d");
    BOOST_TEST(redactCmdline("quiet -- password\n") == "quiet\n");
    BOOST_TEST(redactCmdline("quiet --") == "quiet");
}

BOOST_AUTO_TEST_CASE(command_lines_in_the_log) {
    BOOST_TEST(redactMessage("Kernel command line: ro iommu=pt user=me -- password") ==
               "Kernel command line: ro iommu=pt user=REDACTED");
    BOOST_TEST(redactMessage("Unknown kernel command line parameters \"splash iommu.x=1 "
                             "ifname=eth\", will be passed to user space.") ==
               "Unknown kernel command line parameters \"splash iommu.x=1 ifname=REDACTED");
    BOOST_TEST(redactMessage("Loaded X.509 cert 'a: " + std::string(40, 'f') + "'") ==
               "Loaded X.509 cert 'a: " + std::string(40, '0') + "'");
    BOOST_TEST(redactMessage("nvidia 0000:01:00.0: x=y") == "nvidia 0000:01:00.0: x=y");
}

BOOST_AUTO_TEST_CASE(twice_is_once) {
    for (const char* t :
         {"root=\" ip=\"x", "ip=\"a root=b c\" d", "serial: root= x", "serial=\"root=x",
          "a\"b=c\" d",
          "Serial: x Secure Boot Module Signature key Secure Boot Module Signature key",
          "Kernel command line: a=\"b -- c", "Unknown kernel command line parameters \"a=b c"}) {
        const std::string text = t;
        for (auto f : {+[](const std::string& x) { return redact(x, "node"); },
                       +[](const std::string& x) { return redactCmdline(x); },
                       +[](const std::string& x) { return redactMessage(x); }})
            BOOST_TEST(f(f(text)) == f(text));
    }
}
