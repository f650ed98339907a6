/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real engine: one thread a worker, devices through backends/. Interface for the library's
 * start-up.
 */
#ifndef DUET_REAL_H
#define DUET_REAL_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/machine.h>

#include "core/engine.h"

/*
 * Time for which an idle thread spins before it sleeps, where there is a core for every thread:
 * about the cost of waking it.
 */
enum { SPIN_NS = 30000 };

struct real_options {
    bool bind;                  /* threads are bound to cores */
    bool quiet;                 /* as in struct duet_config */
    double watchdog_s;          /* as in struct duet_config, resolved: > 0, or INFINITY */
    bool emulate;               /* devices are emulated, whatever their architecture's backend */
    const char *lose;           /* as in struct duet_config */
    unsigned gpu_streams;       /* as in struct duet_config, resolved: at least 1 */
    bool gpu_untimed;           /* as in struct duet_config */
    uint64_t pin_bytes;         /* as in struct duet_config, resolved: 0 for none */
    uint64_t (*pin_more)(void); /* recomputes a default pin_bytes; NULL: it was given */
    /*
     * The number of each device at its backend, as duet__real_machine gives it; the caller's. NULL:
     * 0, 1 and so on.
     */
    const unsigned *devices;
    /*
     * Factor of all times in a paced emulation; 0: none. Kernels on every worker, CPUs too, then
     * take seconds(pace, class, arch) x scale and compute nothing; seconds <= 0: cannot run there.
     */
    double scale;
    double (*seconds)(void *pace, const struct duet__class *klass, unsigned arch);
    /*
     * Replaces `seconds` in deciding which architectures can run a class, as ops.classify; may be
     * NULL.
     */
    int (*classify)(void *pace, const struct duet__class *klass, uint64_t *archs,
                    struct duet_message *message);
    void (*free_pace)(void *pace); /* called by the engine's destroy; may be NULL */
    void *pace;
};

/* The part of this machine to use. */
struct real_wanted {
    int cpus, gpus;            /* numbers of computing cores and devices; -1: all */
    uint64_t gpu_memory_bytes; /* bytes of each device; 0: all usable */
    double gpu_memory_share;   /* share of the usable memory, when gpu_memory_bytes is 0; 0: 0.9,
                                  all of an emulated device */
    unsigned gpu_window, gpu_window_short; /* as in struct duet_config */
    bool emulate;        /* free emulation: `gpus` emulated devices (-1: 1), beside real cores */
    const char *devices; /* backend of other devices, "opencl"; NULL: "cuda" */
    bool no_peer;
    /* Number of processes among which real devices are divided, and this one's number; parts 0: it
       has all of them. */
    unsigned part, parts;
    unsigned cores; /* most cores to use; 0: all */
    /* Receives one line that says why GPUs are left out when all are wanted. NULL: none. */
    void (*say)(const char *line);
};

/*
 * Returns the number of cores that this process may use (affinity mask, control groups): at least
 * 1.
 */
unsigned duet__real_cores(void);

/*
 * Takes part number `part` of `parts` equal parts of these cores, one for each process: from now on
 * this process is bound to it, if `bind`. Returns the number of its cores: 0 if there are fewer
 * than parts.
 */
unsigned duet__real_take_cores(unsigned part, unsigned parts, bool bind);

/*
 * Returns the host memory that this process may use: all, or what control groups leave. 0: unknown.
 */
uint64_t duet__real_memory_bytes(void);

/*
 * Describes this machine: CPU workers cpu0 ... (more than cores if requested), devices gpu0 ...,
 * the links that they share as far as the system and backends know (real/links.h). All cores are
 * those that feed no device, but at least one; all devices are those that can be described. No
 * backend of devices is asked when none is wanted. Emulated devices get the backend "cuda", for
 * which they stand. The caller owns *machine and frees *devices (`devices` may be NULL): each
 * device's number at its backend, which differs from that in the machine behind a device that
 * cannot be described. DUET_EINVAL (more devices than there are, no worker at all, no such backend
 * of devices), with a message that says what there is.
 */
DUET_MUST_CHECK int duet__real_machine(struct duet_machine *machine, unsigned **devices,
                                       const struct real_wanted *wanted,
                                       struct duet_message *message);

/*
 * Checks the list of emulated devices to be lost: as `lose` in struct duet_config, NULL for none;
 * all devices of the machine count as emulated. DUET_EINVAL with a message; DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__real_check_lose(const struct duet_machine *machine, const char *text,
                                          struct duet_message *message);

/*
 * Makes an engine for `machine` (copied). Prints one line on standard error, unless quiet, when
 * there are more computing workers than cores. Errors: DUET_EINVAL, DUET_ENOMEM, DUET_EABSENT with
 * a message.
 */
DUET_MUST_CHECK int duet__real_new(void **out, const struct duet_machine *machine,
                                   const struct real_options *options,
                                   struct duet_message *message);

const struct duet__engine_ops *duet__real_ops(void);

/*
 * Connects the engine to its core, starts the threads and opens the devices, and returns when all
 * are ready. On error nothing runs any more, and the core has to be freed (which destroys the
 * engine).
 */
DUET_MUST_CHECK int duet__real_attach(void *engine, struct duet_runtime *core,
                                      struct duet_message *message);

#endif
