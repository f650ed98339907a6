/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of duet__costs_measure. Each opens a runtime of its own, and closes it. */
#ifndef DUET_CALIBRATE_COSTS_PARTS_H
#define DUET_CALIBRATE_COSTS_PARTS_H

#include "calibrate/costs.h"
#include "calibrate/lab.h"

/* One measurement of all costs. */
struct duet__costing {
    const struct duet_config *config;
    struct duet__budget budget;
    struct duet__measured *costs; /* DUET__COSTS */
    struct duet_message *message;
};

/* Why there is no figure. At most 95 bytes. */
void duet__costing_why(struct duet__costing *costing, enum duet__cost cost, const char *why);

/* Errors of all: of duet_open, DUET_ENOMEM, DUET_ETASK, DUET_ECANCELED; with a message. */
DUET_MUST_CHECK int duet__costs_tasks(struct duet__costing *costing);   /* SUBMIT to TASK */
DUET_MUST_CHECK int duet__costs_steals(struct duet__costing *costing);  /* STEAL, ATTEMPT */
DUET_MUST_CHECK int duet__costs_wakes(struct duet__costing *costing);   /* WAKE, SPIN */
DUET_MUST_CHECK int duet__costs_devices(struct duet__costing *costing); /* the others */

#endif
