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

#include "real/survey.h"

struct duet__info {
    struct duet__survey survey;
    /* What the machine could not be made for, though it was asked for nothing impossible: with why.
     * 0: there is one. */
    int error;
    struct duet_message why;
    struct duet_machine machine; /* as duet_open would make it */
    uint64_t pin_bytes;          /* of the host's memory that may be page-locked; 0: none */
    int *processors;             /* each worker's hardware thread, -1 where it stays unbound */
    int *devices;                /* each worker's device in the survey, -1 where it is none of it */
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
