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

/*
 * That an idle thread spins before it sleeps, where there is a core for every thread: about what
 * waking it costs.
 */
enum { SPIN_NS = 30000 };

struct real_options {
    bool bind;                  /* threads to cores */
    bool quiet;                 /* as in struct duet_config */
    double watchdog_s;          /* as in struct duet_config, resolved: > 0, or INFINITY */
    bool emulate;               /* devices, whatever their architecture's backend, are emulated */
    const char *lose;           /* as in struct duet_config */
    unsigned gpu_streams;       /* likewise, resolved: at least 1 */
    bool gpu_untimed;           /* likewise */
    uint64_t pin_bytes;         /* likewise, resolved: 0 for none */
    uint64_t (*pin_more)(void); /* recomputes a default pin_bytes; NULL: it was given */
    /*
     * The number of each device at its backend, as duet__real_machine gives it; the caller's. NULL:
     * 0, 1 and so on.
     */
    const unsigned *devices;
    /*
     * Paced emulation: > 0 the factor of all times. Kernels on every worker, CPUs too, then take
     * seconds(pace, class, arch) x scale and compute nothing; <= 0 seconds: cannot run there.
     */
    double scale;
    double (*seconds)(void *pace, const struct duet__class *klass, unsigned arch);
    /* Says, instead of `seconds`, what can run where, as ops.classify does; may be NULL. */
    int (*classify)(void *pace, const struct duet__class *klass, uint64_t *archs,
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
    bool emulate;        /* free emulation: `gpus` emulated devices (-1: 1), beside real cores */
    const char *devices; /* the backend of others, "opencl"; NULL: "cuda" */
    bool no_peer;
    /* Devices that are not emulated are dealt out to so many processes, of which this is number
       `part`; parts 0: it has all of them. */
    unsigned part, parts;
    unsigned cores; /* at most, of those that it may use; 0: all */
    /* Hears, in one line, why GPUs are left out when all are wanted. NULL: nobody. */
    void (*say)(const char *line);
};

/* Cores that this process may use (affinity mask, control groups): at least 1. */
unsigned duet__real_cores(void);

/*
 * Takes one of `parts` equal parts of these cores, of which there is number `part` in each process:
 * from now on this process is bound to it, where `bind` says so. How many cores that are: 0 if
 * there are fewer than parts.
 */
unsigned duet__real_take_cores(unsigned part, unsigned parts, bool bind);

/* Memory of the host that this process may use: all, or what control groups leave. 0: unknown. */
uint64_t duet__real_memory_bytes(void);

/*
 * Describes the machine at hand: CPU workers cpu0 ... (more than cores when asked for), devices
 * gpu0 ..., the links that they share as far as the system and backends know (real/links.h). All
 * cores are those that feed no device, but at least one; all devices are those that can be
 * described. No backend of devices is asked when none is wanted. Emulated devices are programmed as
 * what they stand for: "cuda". The caller owns *machine and frees *devices: the number that each
 * device has at its backend, which is another one than in the machine behind a device that cannot
 * be described; `devices` may be NULL. DUET_EINVAL (more devices than there are, no worker at all,
 * no such backend of devices), with a message that says what there is.
 */
DUET_MUST_CHECK int duet__real_machine(struct duet_machine *machine, unsigned **devices,
                                       const struct real_wanted *wanted,
                                       struct duet_message *message);

/*
 * Checks which devices of a machine, all emulated, are to be lost: as `lose` in struct duet_config,
 * NULL for none. DUET_EINVAL with a message; DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__real_check_lose(const struct duet_machine *machine, const char *text,
                                          struct duet_message *message);

/*
 * Makes an engine for `machine` (copied). Prints one line on standard error, unless it is to be
 * quiet, when workers that compute are more than cores. Errors: DUET_EINVAL, DUET_ENOMEM,
 * DUET_EABSENT with a message.
 */
DUET_MUST_CHECK int duet__real_new(void **out, const struct duet_machine *machine,
                                   const struct real_options *options,
                                   struct duet_message *message);

const struct duet__engine_ops *duet__real_ops(void);

/*
 * Ties the engine to its core, starts the threads and opens the devices, and returns when all are
 * ready. On error nothing runs any more, and the core is to be freed (which destroys the engine).
 */
DUET_MUST_CHECK int duet__real_attach(void *engine, struct duet_runtime *core,
                                      struct duet_message *message);

#endif
