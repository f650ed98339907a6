/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links of the machine at hand, and the routes over them. A device has a link of its own each
 * way ("pcie0-to-device", "pcie0-to-host"); devices below the same switch share what joins it with
 * the processor ("switch0-to-device", "switch0-to-host"), in as many levels as there are switches.
 * Links of a switch with one device in use are part of that device's own. Between processors
 * nothing is known to be shared: the system does not say how fast they are joined.
 */
#ifndef DUET_REAL_LINKS_H
#define DUET_REAL_LINKS_H

#include <duet/machine.h>

#include "backends/backend.h"
#include "real/pci.h"

/* A device, as its links are concerned. */
struct link_end {
    double bandwidth_Bps, latency_s; /* as its backend knows, 0: it does not. The path is better */
    struct pci_path path;
};

struct links;

/*
 * Plans them for `count` devices. between[source * count + destination] says how data goes from one
 * device to another. The caller frees *out. DUET_ENOMEM, DUET_EINVAL (more links than a machine
 * may have).
 */
DUET_MUST_CHECK int duet__links_new(struct links **out, const struct link_end *ends, unsigned count,
                                    const struct backend_link *between);
/* NULL is fine. */
void duet__links_free(struct links *links);

unsigned duet__links_count(const struct links *links);

/* Writes links and routes of a machine that has room for them and whose node 1 + i is device i. */
void duet__links_fill(const struct links *links, struct duet_machine *machine);

#endif
