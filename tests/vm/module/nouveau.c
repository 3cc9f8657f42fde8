// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for nouveau: binds GPUs under its name and does nothing else.  The
 * real one refuses a GPU without a VBIOS, which the fake ones do not have.
 */
#include <linux/module.h>
#include <linux/pci.h>

static const struct pci_device_id ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_NVIDIA, PCI_ANY_ID),
	  .class = PCI_CLASS_DISPLAY_VGA << 8, .class_mask = ~0xff },
	{}
};
MODULE_DEVICE_TABLE(pci, ids);

static int bind(struct pci_dev *dev, const struct pci_device_id *id)
{
	return 0;
}

static struct pci_driver nouveau_standin = {
	.name = "nouveau",
	.id_table = ids,
	.probe = bind,
};
module_pci_driver(nouveau_standin);
MODULE_DESCRIPTION("Stand-in for the nouveau driver");
MODULE_LICENSE("GPL");
