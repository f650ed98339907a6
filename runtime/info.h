/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine at hand beside the one that a run would make of it. Opens no runtime and no device.
 */
#ifndef DUET_RUNTIME_INFO_H
#define DUET_RUNTIME_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/duet.h>
#include <duet/machine.h>

#include "real/machine.h"

struct duet__info {
    struct duet__survey survey;
    /* Error, with why, if the machine could not be made though it was asked for nothing impossible;
       0: it was made. */
    int error;
    struct duet_message why;
    struct duet_machine machine; /* the machine that duet_open would make */
    uint64_t pin_bytes;          /* most of the host's memory that may be page-locked; 0: none */
    int *processors;             /* hardware thread by worker, -1 if it stays unbound */
    int *devices;                /* device in the survey by worker, -1 if it has none */
};

/*
 * Looks at the machine, and makes the one that duet_open(config) would run on; devices of other
 * kinds than it could have are looked for if `all`. *info is the caller's, for duet__info_fini.
 * DUET_EINVAL, DUET_ENOTFOUND and so on, with a message, where the configuration asks for what
 * there is not; DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__info_open(struct duet__info *info, const struct duet_config *config,
                                    bool all, struct duet_message *message);

void duet__info_fini(struct duet__info *info);

#endif
