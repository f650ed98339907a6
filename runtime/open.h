/* SPDX-License-Identifier: Apache-2.0 */
/* Start-ups of the worlds, and what they share. */
#ifndef DUET_RUNTIME_OPEN_H
#define DUET_RUNTIME_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include <duet/duet.h>
#include <duet/machine.h>
#include <duet/policy.h>

#include "platforms/platform.h"
#include "real/machine.h"
#include "trace/recording.h"

struct duet__core_config;
struct duet__history;

/*
 * Opens a runtime as duet_open, on a platform in memory: the one that the configuration names to be
 * simulated or emulated says which world it is, and is not loaded. `platform` is borrowed until
 * this returns, and is not changed: several runtimes may be opened on it, also in forked processes.
 * NULL: the one that is named. The same errors; DUET_EINVAL where the configuration names none.
 */
DUET_MUST_CHECK int duet__open_with(struct duet_runtime **out, const struct duet_config *config,
                                    const struct duet__platform *platform,
                                    struct duet_message *message);

/*
 * Open a runtime in one of the worlds, as duet__open_with, for a checked configuration. Errors with
 * or without a message.
 */
DUET_MUST_CHECK int duet__open_simulated(struct duet_runtime **out,
                                         const struct duet_config *config,
                                         const struct duet__platform *platform,
                                         struct duet_message *message);
DUET_MUST_CHECK int duet__open_real(struct duet_runtime **out, const struct duet_config *config,
                                    const struct duet__platform *platform,
                                    struct duet_message *message);

/* True if emulated GPUs work at the pace of a platform, rather than as fast as they can. */
bool duet__open_paced(const struct duet_config *config);

/* The kernel times of a platform, as one runtime lives by them. */
struct duet__times {
    struct duet__calibration calibration; /* times of the configuration's context */
    bool extrapolate;
    const char *file, *digest; /* see struct duet__platform */
};

void duet__times_free(struct duet__times *times); /* NULL is fine */

/*
 * Builds the machine that the configuration makes of a platform (counts, memory, links, costs), and
 * copies the platform's kernel times for the configuration's context (NULL: not wanted). Both are
 * the caller's. `platform` NULL: the one called `name`, which is loaded and freed. Errors of
 * duet__platform_load and duet__platform_build, DUET_EINVAL (links, costs), DUET_ENOMEM; nothing is
 * then to be freed.
 */
DUET_MUST_CHECK int duet__open_platform(const struct duet__platform *platform, const char *name,
                                        const struct duet_config *config,
                                        struct duet__times **times, struct duet_machine *machine,
                                        struct duet_message *message);

/*
 * Finds the network between nodes like the platform, in simulations: the configuration's, completed
 * by the platform's, with a shape for so many nodes. DUET_EINVAL with a message: neither has one,
 * or it has no room.
 */
DUET_MUST_CHECK int duet__open_network(const struct duet__platform *platform,
                                       const struct duet_config *config, unsigned nodes,
                                       struct duet__network *out, struct duet_message *message);

/*
 * Returns the links of a platform that the configuration gives no figures though it does others
 * like them, as duet__platform_kept_links says it; NULL: none. Free with g_free.
 */
char *duet__open_kept_links(const struct duet__platform *platform,
                            const struct duet_config *config);

/*
 * Returns where tasks run on a machine of this name, so that nobody takes an emulated run for
 * another one: "idgraf", "an emulated idgraf (times x 0.01, nothing computed)". Free with g_free.
 */
char *duet__place(const struct duet_config *config, const char *machine);

/* Returns the number of cores that this process may use: at least 1. */
unsigned duet__usable_cores(void);

/*
 * Returns the seconds that a worker on this machine that has nothing to do watches before its
 * thread sleeps, where there are as many cores as workers.
 */
double duet__spin_s(void);

/*
 * Sets everything of a core that does not depend on the world, without machine, engine and ops.
 * DUET_ENOTFOUND for an unknown policy or model, with the known ones.
 */
DUET_MUST_CHECK int duet__open_core(struct duet__core_config *core,
                                    const struct duet_config *config, struct duet_message *message);

/*
 * Makes a core, which takes over its engine, and whose models know the kernel `times` that it lives
 * by (NULL: none), times `scale`. On error the engine is freed. DUET_ENOMEM, DUET_EINVAL.
 */
DUET_MUST_CHECK int duet__open_bind(struct duet_runtime **out, const struct duet__core_config *core,
                                    const struct duet_config *config,
                                    const struct duet__times *times, double scale,
                                    struct duet_message *message);

/* Keeps the kernel times, which it takes over, and what the configuration wants at the closing. */
void duet__remember(struct duet_runtime *runtime, const struct duet_config *config,
                    struct duet__times *times);

/* Keeps the cores of all nodes of a simulation, which it takes over; the first one's is freed. */
void duet__remember_cores(struct duet_runtime *runtime, struct duet_runtime **cores,
                          unsigned count);

/* Keeps the history to be added to at the closing, which it takes over; NULL: none. */
void duet__remember_history(struct duet_runtime *runtime, struct duet__history *history);

/*
 * Returns the name of a program, by which the times of its kernels are known: that of its file, as
 * far as names of platform files allow. Free with g_free.
 */
char *duet__program_name(const char *path);

/*
 * Finds the policy that a text means: the name of a built-in one, or, with a '/' or ending in .so,
 * the symbol `duet_policy` of that shared object, which stays loaded until the process ends, or the
 * schedule in a file that ends in .json (schedule.h); then values of its parameters,
 * "NAME:alpha=0.5:beta=2". `values` (NULL: not wanted) is filled for all that it has.
 * DUET_ENOTFOUND (the message lists the known names), DUET_EINVAL (not a policy, or a parameter:
 * the message lists what it has); *out is constant.
 */
DUET_MUST_CHECK int duet__policy_load(const char *text, const struct duet_policy **out,
                                      double values[DUET_PARAMETERS_MAX],
                                      struct duet_message *message);

/*
 * Tells that code which may keep something from one runtime to the next is in this process now:
 * SimGrid, whose engine works once, or a policy of others.
 */
void duet__code_came(void);

/* Returns true if duet__code_came was not called yet. */
bool duet__is_fresh(void);

struct duet__schedule;

/* follow.c: sets the policy of a schedule, which follows it. */
void duet__follow(struct duet__schedule *schedule);
/* Returns the schedule that a policy follows; NULL: none. */
const struct duet__schedule *duet__followed(const struct duet_policy *policy);

/* Returns the name or path alone, without parameters; free with g_free. */
char *duet__policy_base(const char *text);

/* ------------------------------------------------------------------------------------------- */
/* Keeps kernel times of programs' own runs in a platform file, run after run. Part of libduet, too:
 * duet_open and duet_close call it if duet_config.calibrate names a file. */

struct duet__history;

/*
 * Looks at this machine, and at the file that config->calibrate names: there is none yet, or one of
 * this machine that can be written again. *out is the caller's (duet__history_free), and does not
 * keep the configuration. Errors of duet__platform_may_write and of looking at the machine;
 * DUET_EINVAL if the file is of another machine; with a message.
 */
DUET_MUST_CHECK int duet__history_open(struct duet__history **out, const struct duet_config *config,
                                       struct duet_message *message);

/*
 * Adds the executions of a recorded run (with accesses), made in this context: kernel times are
 * fitted as `duet calibrate` does, and pooled (duet__platform_pool) with those of the file, which
 * is read and replaced in one step under duet__history_lock. A new file describes the machine
 * without measurements. A run without a successful kernel leaves the file as it was. So do errors,
 * with a message: those of reading and writing it, and of duet__model_fit.
 */
DUET_MUST_CHECK int duet__history_add(const struct duet__history *history,
                                      const struct duet__recording *recording, const char *context,
                                      struct duet_message *message);

void duet__history_free(struct duet__history *history); /* NULL is fine */

/* Locks FILE.lock beside a platform file, for all who add to it. Returns a descriptor for
 * duet__history_unlock, or DUET_EIO with a message, also if others keep it for a minute. */
DUET_MUST_CHECK int duet__history_lock(const char *path, struct duet_message *message);
void duet__history_unlock(const char *path, int locked);

/* ------------------------------------------------------------------------------------------- */
/* The machine at hand beside the one that a run would make of it, without a runtime or a device */

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
