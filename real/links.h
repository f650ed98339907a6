/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links of this machine, and the routes over them. A device has a link of its own each way
 * ("pcie0-to-device", "pcie0-to-host"); devices below the same switch share its link to the
 * processor ("switch0-to-device", "switch0-to-host"), in as many levels as there are switches.
 * Links of a switch with one device in use are part of that device's own. Nothing is known to be
 * shared between processors: the system does not say how fast they are joined.
 */
#ifndef DUET_REAL_LINKS_H
#define DUET_REAL_LINKS_H

#include <duet/machine.h>

#include "backends/backend.h"

#include <stdbool.h>

/* ------------------------------------------------------------------------------------------- */
/*
 * Places of devices on PCI Express: the bridges between them and the processor, the speeds of the
 * links, the processors nearby. From Linux's sysfs, read once for each device.
 *
 * hwloc would find the same bridges in the same files, but only by looking at all devices of the
 * machine (7 ms on one with six), and it gives the current speed of a link: idle GPUs slow theirs
 * down to that of the first generation. sysfs also gives the possible speed. hwloc gives the cores
 * and packages of the near processors (topology.h).
 */

enum {
    PCI_PORTS = 16,   /* ports of one path; deeper paths count as not known */
    PCI_ADDRESS = 20, /* bytes of "0000:3b:00.0"; domains may have more digits */
    PCI_LIST = 4096,  /* bytes of a list of processors */
};

/* One PCI function: a bridge's port, or the device itself. 0: not known. */
struct pci_port {
    char address[PCI_ADDRESS];
    double speed_GTps, speed_now_GTps; /* possible and current speed of a lane, in transfers */
    unsigned lanes, lanes_now;
};

/* The ports from the processor's to the device's, which is the last. No port: nothing is known. */
struct pci_path {
    unsigned count;
    struct pci_port ports[PCI_PORTS];
    char processors[PCI_LIST]; /* near processors, as Linux lists them; "": not known */
};

/* Reads the path of a device ("0000:3b:00.0"). `root` is where sysfs is mounted: "/sys". */
void duet__pci_read(const char *root, const char *address, struct pci_path *path);

/*
 * Returns the bytes per second, one way, that copies reach on the link between ports[port] and the
 * one before it; 0: not known.
 */
double duet__pci_Bps(const struct pci_path *path, unsigned port);

/*
 * Moves *port to the next port towards the processor whose link to the one before it is a physical
 * one, and not the inside of a switch; begins with the device, path->count - 1. Returns false if
 * there is none.
 */
bool duet__pci_up(const struct pci_path *path, unsigned *port);

/* ------------------------------------------------------------------------------------------- */

/* A device's end of its links. */
struct link_end {
    double bandwidth_Bps, latency_s; /* by its backend, 0: not known; data of the path takes
                                        precedence */
    struct pci_path path;
};

struct links;

/*
 * Plans the links of `count` devices. between[source * count + destination] describes the
 * connection of two devices. The caller frees *out. DUET_ENOMEM, DUET_EINVAL (more links than a
 * machine may have).
 */
DUET_MUST_CHECK int duet__links_new(struct links **out, const struct link_end *ends, unsigned count,
                                    const struct backend_link *between);
/* Frees the plan. NULL is fine. */
void duet__links_free(struct links *links);

unsigned duet__links_count(const struct links *links);

/* Writes links and routes of a machine that has room for them and whose node 1 + i is device i. */
void duet__links_fill(const struct links *links, struct duet_machine *machine);

#endif
