/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of this machine: found by duet__real_machine, or given by tests. */
#ifndef DUET_REAL_MACHINE_H
#define DUET_REAL_MACHINE_H

#include <duet/machine.h>

#include "backends/backend.h"
#include "real/links.h"
#include "real/real.h"
#include "real/topology.h"

/* A device that will be used. */
struct found {
    const struct duet__backend *backend;
    unsigned index; /* number of the device at its backend */
    struct backend_info info;
    unsigned arch; /* number in the machine: set by duet__machine_make */
};

struct parts {
    const struct real_wanted *wanted;
    struct places *places;
    unsigned cpus; /* CPU workers */
    struct found *devices;
    struct link_end *ends;        /* by device */
    struct backend_link *between; /* [source * device_count + destination] */
    unsigned device_count, device_capacity;
};

/*
 * Makes the machine of these parts, of which only devices[].arch changes. The caller owns *machine.
 * DUET_EINVAL (more memory wanted than a device has, windows that do not fit together), DUET_ENOMEM
 * with a message.
 */
DUET_MUST_CHECK int duet__machine_make(struct duet_machine *machine, struct parts *parts,
                                       struct duet_message *message);

#endif
