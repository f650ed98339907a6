/* SPDX-License-Identifier: Apache-2.0 */
/* What the start-ups of the worlds share. */
#ifndef DUET_LIB_OPEN_H
#define DUET_LIB_OPEN_H

#include <duet/calibration.h>
#include <duet/duet.h>
#include <duet/machine.h>

#include "core/engine.h"
#include "platforms/platform.h"

/* The worlds: duet_open for a checked configuration. Errors with or without a message. */
DUET_MUST_CHECK int duet__open_simulated(struct duet_runtime **out,
                                         const struct duet_config *config,
                                         struct duet_message *message);
DUET_MUST_CHECK int duet__open_real(struct duet_runtime **out, const struct duet_config *config,
                                    struct duet_message *message);

/*
 * Loads the platform `name`, with the kernel times of the configuration's context, and builds the
 * machine that the configuration makes of it (counts, memory, links, costs). Both are the caller's.
 * Errors of duet_platform_load and duet_platform_build, DUET_EINVAL (links, costs); nothing is then
 * to be freed.
 */
DUET_MUST_CHECK int duet__open_platform(const char *name, const struct duet_config *config,
                                        struct duet_platform **platform,
                                        struct duet_machine *machine, struct duet_message *message);

/*
 * The machine at hand, with real or freely emulated devices, as the configuration wants it, and
 * their numbers at their backends (NULL: not wanted). Both are the caller's. Errors of
 * duet__real_machine and duet_machine_check; nothing is then to be freed.
 */
DUET_MUST_CHECK int duet__open_machine(struct duet_machine *machine, unsigned **devices,
                                       const struct duet_config *config,
                                       struct duet_message *message);

/* How much of the host's memory may be page-locked by this configuration; 0: none. */
uint64_t duet__open_pin_bytes(const struct duet_config *config);

/*
 * Sets everything of a core that does not depend on the world, without machine, engine and ops.
 * DUET_ENOTFOUND for an unknown policy or model, with the known ones.
 */
DUET_MUST_CHECK int duet__open_core(struct duet_core_config *core, const struct duet_config *config,
                                    struct duet_message *message);

/* Gives a calibration's means, times `scale`, to the scheduler's models. DUET_ENOMEM. */
DUET_MUST_CHECK int duet__open_prime(struct duet_runtime *core,
                                     const struct duet_calibration *calibration, double scale);

#endif
