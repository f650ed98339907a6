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
#include "real/pci.h"

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
