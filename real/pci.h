/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where devices are on PCI Express: which bridges are between them and the processor, how fast the
 * links are, which processors are near. From Linux's sysfs, read once for each device.
 *
 * hwloc would find the same bridges in the same files, but only by looking at all devices of the
 * machine (7 ms on one with six), and it gives a link the speed at which it runs at that moment:
 * GPUs that have nothing to do slow theirs down to that of the first generation. sysfs also
 * says what a link is able to do. hwloc says which cores and packages the near processors are
 * (topology.h).
 */
#ifndef DUET_REAL_PCI_H
#define DUET_REAL_PCI_H

#include <stdbool.h>

enum {
    PCI_PORTS = 16,   /* on one path; what is deeper counts as not known */
    PCI_ADDRESS = 20, /* bytes of "0000:3b:00.0"; domains may have more digits */
    PCI_LIST = 4096,  /* bytes of a list of processors */
};

/* One PCI function: a bridge's port, or the device itself. 0: not known. */
struct pci_port {
    char address[PCI_ADDRESS];
    double speed_GTps, speed_now_GTps; /* of a lane, in transfers: what it can do, what it does */
    unsigned lanes, lanes_now;
};

/* The ports from the processor's to the device, which is the last. No port: nothing is known. */
struct pci_path {
    unsigned count;
    struct pci_port ports[PCI_PORTS];
    char processors[PCI_LIST]; /* that are near, as Linux lists them; "": not known */
};

/* Reads the path of a device ("0000:3b:00.0"). `root` is where sysfs is mounted: "/sys". */
void duet__pci_read(const char *root, const char *address, struct pci_path *path);

/*
 * Bytes per second, one way, that copies reach on the link between ports[port] and the one before
 * it; 0: not known.
 */
double duet__pci_Bps(const struct pci_path *path, unsigned port);

/*
 * The next port towards the processor whose link to the one before it is a physical one, and not
 * the inside of a switch: begins with the device, path->count - 1. false: there is none.
 */
bool duet__pci_up(const struct pci_path *path, unsigned *port);

#endif
