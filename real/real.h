/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real engine: one thread a worker, devices through backends/. Interface for the library's
 * start-up.
 */
#ifndef DUET_REAL_H
#define DUET_REAL_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/duet.h>
#include <duet/machine.h>

#include "core/engine.h"

/*
 * Time for which an idle thread spins before it sleeps, where there is a core for every thread:
 * about the cost of waking it.
 */
enum { SPIN_NS = 30000 };

/* A paced emulation: kernels on every worker, CPUs too, take their times and compute nothing. */
struct real_pace {
    double scale; /* factor of all times; 0: no kernel is paced */
    /* Returns the seconds of a kernel before scaling; 0 or below: it cannot run there. */
    double (*seconds)(void *times, const struct duet__class *klass, unsigned arch);
    /*
     * Replaces `seconds` in deciding which architectures can run a class, as ops.classify; may be
     * NULL.
     */
    int (*classify)(void *times, const struct duet__class *klass, uint64_t *archs,
                    struct duet_message *message);
    void *times;
};

/* Part of this machine that one of several processes has: real devices go by turns. */
struct duet__part {
    unsigned part, parts; /* number `part` of so many */
    unsigned cores;       /* its own cores; 0: fewer than processes */
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

/* Returns the bytes of the host's memory that this configuration may page-lock; 0: none. */
uint64_t duet__real_pin_bytes(const struct duet_config *config);

/*
 * Describes this machine: CPU workers cpu0 ... (more than cores if requested), devices gpu0 ...,
 * the links that they share as far as the system and backends know (real/machine.h). All cores are
 * those that feed no device, but at least one; all devices are those that can be described. No
 * backend of devices is asked when none is wanted. Emulated devices get the backend "cuda", for
 * which they stand. The caller owns *machine and frees *devices (`devices` may be NULL): each
 * device's number at its backend, which differs from that in the machine behind a device that
 * cannot be described. DUET_EINVAL (more devices than there are, no worker at all, no such backend
 * of devices), with a message that says what there is. Says on standard error, unless quiet or
 * without `devices`, why GPUs are left out when all are wanted. `part` NULL: all of this machine.
 */
DUET_MUST_CHECK int duet__real_machine(struct duet_machine *machine, unsigned **devices,
                                       const struct duet_config *config,
                                       const struct duet__part *part, struct duet_message *message);

/*
 * Checks the list of emulated devices to be lost: as `lose` in struct duet_config, NULL for none;
 * all devices of the machine count as emulated. DUET_EINVAL with a message; DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__real_check_lose(const struct duet_machine *machine, const char *text,
                                          struct duet_message *message);

/*
 * Makes an engine for `machine` (copied) as a checked configuration says. `devices`: the number of
 * each device at its backend, as duet__real_machine gives it; NULL: 0, 1 and so on. `pace` NULL:
 * kernels compute. Prints one line on standard error, unless quiet, when there are more computing
 * workers than cores. Errors: DUET_EINVAL, DUET_ENOMEM, DUET_EABSENT with a message.
 */
DUET_MUST_CHECK int duet__real_new(void **out, const struct duet_machine *machine,
                                   const struct duet_config *config, const unsigned *devices,
                                   const struct real_pace *pace, struct duet_message *message);

const struct duet__engine_ops *duet__real_ops(void);

/* ------------------------------------------------------------------------------------------- */
/* Teams: programs whose threads are the engine's CPU workers, as those of OpenMP. */

/*
 * Keeps the first CPU worker for the threads of the application that call duet__team_run, one at a
 * time, until duet__team_leave, which comes before duet_close. Workers with nothing to do spin for
 * `spin_s` seconds (below 0: as usual). BLAS and OpenMP libraries of the program keep their numbers
 * of threads, which other engines set to one (one_thread.c).
 */
void duet__team_keep(void *engine, double spin_s);
void duet__team_leave(void *engine);

/*
 * Runs one task of this description on each CPU worker at once, whose codelet waits, past the
 * policy; the calling thread is the first worker, whose task begins when all have been made.
 * Returns when that one has ended: the tasks have to wait for each other before they end. Errors as
 * duet_submit: some may have begun.
 */
DUET_MUST_CHECK int duet__team_run(void *engine, const struct duet_task_desc *member,
                                   struct duet_message *message);

/*
 * Waits, in a task that may wait, until `reached` says so or the run has failed, and runs other
 * tasks of the worker meanwhile; the task's own children may be among them. It is asked again after
 * each task, and after duet__team_call, which a thread calls that has changed its answer.
 */
void duet__team_wait(void *engine, bool (*reached)(void *arg), void *arg);
void duet__team_call(void *engine);

/*
 * Returns the address below which a part of the calling thread's stack is left, 2: half of it; a
 * low one if the stack is not known.
 */
const char *duet__stack_part(unsigned part);

/*
 * Connects the engine to its core, starts the threads and opens the devices, and returns when all
 * are ready. On error nothing runs any more, and the core has to be freed (which destroys the
 * engine).
 */
DUET_MUST_CHECK int duet__real_attach(void *engine, struct duet_runtime *core,
                                      struct duet_message *message);

#endif
