/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real engine: one thread a worker, devices through backends/. What the library's start-up
 * needs of it.
 */
#ifndef DUET_REAL_H
#define DUET_REAL_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/machine.h>

#include "core/engine.h"

struct real_options {
    bool bind;            /* threads to cores */
    double watchdog_s;    /* as in struct duet_config, resolved: > 0, or INFINITY */
    bool emulate;         /* devices, whatever their architecture's backend, are emulated */
    const char *lose;     /* as in struct duet_config */
    unsigned gpu_streams; /* likewise, resolved: at least 1 */
    uint64_t pin_bytes;   /* likewise, resolved: 0 for none */
    /*
     * Paced emulation: > 0 the factor of all times. Kernels on every worker, CPUs too, then take
     * seconds(pace, class, arch) x scale and compute nothing; <= 0 seconds: cannot run there.
     */
    double scale;
    double (*seconds)(void *pace, const struct duet_class *klass, unsigned arch);
    /* Says, instead of `seconds`, what can run where, as ops.classify does; may be NULL. */
    int (*classify)(void *pace, const struct duet_class *klass, uint64_t *archs,
                    struct duet_message *message);
    void (*free_pace)(void *pace); /* by the engine's destroy; may be NULL */
    void *pace;
};

/* Which part of this machine to use. */
struct real_wanted {
    int cpus, gpus;            /* computing cores and devices; -1: all */
    uint64_t gpu_memory_bytes; /* of each device; 0: what there is */
    double gpu_memory_share;   /* of what is usable, when gpu_memory_bytes is 0; 0: 0.9, all of
                                  an emulated device */
    unsigned gpu_window, gpu_window_short; /* as in struct duet_config */
    bool emulate; /* free emulation: `gpus` emulated devices (-1: 1), beside real cores */
    bool no_peer;
};

/* Cores that this process may use (affinity mask, control groups): at least 1. */
unsigned duet__real_cores(void);

/*
 * Describes the machine at hand: CPU workers cpu0 ... (more than cores when asked for), devices
 * gpu0 ..., the links that they share as far as the system and backends know (real/links.h). All
 * cores are those that feed no device, but at least one; all devices are those that can be
 * described. No backend of devices is asked when none is wanted. Emulated devices are programmed as
 * what they stand for: "cuda". The caller owns *machine. DUET_EINVAL (more devices than there are,
 * no worker at all), with a message that says what there is.
 */
DUET_MUST_CHECK int duet__real_machine(struct duet_machine *machine,
                                       const struct real_wanted *wanted,
                                       struct duet_message *message);

/*
 * Makes an engine for `machine` (copied). Prints one line on standard error when workers that
 * compute are more than cores. Errors: DUET_EINVAL, DUET_ENOMEM, DUET_EABSENT with a message.
 */
DUET_MUST_CHECK int duet__real_new(void **out, const struct duet_machine *machine,
                                   const struct real_options *options,
                                   struct duet_message *message);

const struct duet_engine_ops *duet__real_ops(void);

/*
 * Ties the engine to its core, starts the threads and opens the devices, and returns when all are
 * ready. On error nothing runs any more, and the core is to be freed (which destroys the engine).
 */
DUET_MUST_CHECK int duet__real_attach(void *engine, struct duet_runtime *core,
                                      struct duet_message *message);

#endif
