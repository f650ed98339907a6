/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by tests of measurements: which machine they are of, and what interrupts them. */
#ifndef DUET_CALIBRATE_TESTING_H
#define DUET_CALIBRATE_TESTING_H

#include "calibrate/microbench.h"

/* So much of an emulated machine, or (NULL) of this one; -1: all. */
static inline struct duet_config testing_part(const char *emulate, int cpus, int gpus)
{
    struct duet_config config;
    duet_config_init(&config);
    config.no_bind = true;
    config.emulate = emulate;
    config.cpus = cpus;
    config.gpus = gpus;
    return config;
}

/* Interrupts a measurement that has asked so often. */
static inline bool testing_stop_after(void *context)
{
    unsigned *left = context;
    return (*left)-- == 0;
}

#endif
