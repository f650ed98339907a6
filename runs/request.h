/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request to run something: a problem, under which policies, how often, in which world and on
 * which machine. Everything is a value that was checked; texts have been read by then.
 */
#ifndef DUET_RUNS_REQUEST_H
#define DUET_RUNS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <glib.h>

#include <duet/duet.h>
#include <duet/machine.h>

#include "platforms/platform.h"
#include "runtime/settings.h"
#include "workloads/workload.h"

/* Runs of a policy that are recorded. */
enum duet__recorded {
    DUET_RECORDS_NONE,
    DUET_RECORDS_FIRST,    /* the first measured run */
    DUET_RECORDS_ALL,      /* every measured run */
    DUET_RECORDS_TRACE,    /* the first measured run, with the data that tasks use */
    DUET_RECORDS_ACCESSES, /* every measured run, with the data that tasks use */
};

/* A request; duet__request_init comes first; duet__request_fini frees it, half-built or not. */
struct duet__request {
    const struct duet__workload *workload;
    struct duet__problem problem; /* data belongs to whoever makes the runs */
    struct duet_config
        config;      /* every run has this configuration, with its own policy, seed and records */
    char **policies; /* NULL-ended, owned */
    size_t policy_count;
    size_t reps, warmups; /* runs of each policy: measured, and before those */
    uint64_t seed;        /* seed of real runs; simulated run r (from 0) of a policy has seed + r */
    enum duet__recorded records;
    bool bounds;                /* true if bounds of each run are wanted */
    enum duet__verified verify; /* results that are judged */
    unsigned jobs;              /* number of simulated runs at a time */
    /* platform in memory, for simulated runs; borrowed; NULL: config.simulate is loaded */
    const struct duet__platform *platform;
    /* by policy: the request of its simulated runs, for this one; NULL: this one for all */
    const struct duet__request *variants;
    /* machine of the runs; owned: simulated ones have it from duet__request_build, real ones once a
       runtime is open */
    struct duet_machine machine;
    char *platform_name; /* the platform's name in reports */
    char *estimated;     /* the kernels whose times nobody has measured, "dgeqrt, dtsqrt", or "all
                            kernels of a100"; NULL */
    /* set of kernels on architectures whose times are guesses, "dgemm on x5650": one of them that a
       simulated run has executed is its `guess`; borrowed; NULL: there are none */
    GHashTable *guesses;
    GPtrArray *kept; /* memory of the members above, for g_free; shared by copies */
};

/* Makes a request of one run of "ws" with seed 1, of no problem yet. */
void duet__request_init(struct duet__request *request);

void duet__request_fini(struct duet__request *request);

/* Copies a request, without the machine and its name; the copy is freed like any other. */
void duet__request_copy(struct duet__request *to, const struct duet__request *from);

/* Keeps memory, which it takes over, as long as the request and its copies. NULL is fine. */
void *duet__request_keep(struct duet__request *request, void *memory);

/*
 * Takes "NAME=VALUE"s (NULL-ended, NULL: none) as the parameters of the workload, instead of those
 * before. DUET_EINVAL where one is not of that form, or a name stands twice.
 */
DUET_MUST_CHECK int duet__request_set_params(struct duet__request *request, char *const *params,
                                             struct duet_message *message);

/* Takes these priorities of tasks, NULL: the workload's own. DUET_ENOTFOUND if there are no such.
 */
DUET_MUST_CHECK int duet__request_set_priorities(struct duet__request *request, const char *text,
                                                 struct duet_message *message);

/* Returns the priorities' name, "workload" if nothing was said; lives as long as the request. */
const char *duet__request_priorities(const struct duet__request *request);

/* Returns the parameters, "variant=left, width=8", of a program its arguments; "" if none. Free
   with g_free. */
char *duet__request_settings(const struct duet__request *request);

/*
 * Reads "A,B,...", names and shared objects, into an array that the caller frees with g_strfreev;
 * NULL is "ws", and "all" among them stands for every policy that there is, or that can run on the
 * nodes of `request`, which may be NULL. DUET_EINVAL, DUET_ENOTFOUND; *policies is then NULL.
 */
DUET_MUST_CHECK int duet__policies_read(const char *list, const struct duet__request *request,
                                        char ***policies, struct duet_message *message);

/* Takes these policies in place of those before. Errors of duet__policies_read. */
DUET_MUST_CHECK int duet__request_set_policies(struct duet__request *request, const char *list,
                                               struct duet_message *message);

/* Reads a problem's precision, "s" or "d". DUET_EINVAL. */
DUET_MUST_CHECK int duet__precision_read(const char *text, char *precision,
                                         struct duet_message *message);

/* Returns the platform, name or file, that is simulated or emulated at its pace; NULL: none. */
const char *duet__request_platform(const struct duet__request *request);

/* True if runs are made here at the pace of a platform, and nothing is computed. */
bool duet__request_paced(const struct duet__request *request);

/* Returns how several nodes share the work, and the parameters: "nodes=2x2, variant=left". */
char *duet__request_facts(const struct duet__request *request);

/* Returns the number of nodes that its runs are made on. */
unsigned duet__request_nodes(const struct duet__request *request);

/* Returns the place of its runs, "idgraf with emulated GPUs", "idgraf x 4, torus:10Gbps"; never
   NULL, free with g_free. */
char *duet__request_place(const struct duet__request *request);

/* Returns the records to be made of measured run `rep` (from 0) of a policy. */
enum duet__recorded duet__request_records(const struct duet__request *request, size_t rep);

/* Returns the factor of time of a paced emulation, else 1. */
double duet__request_scale(const struct duet__request *request);

/* Returns the number of tasks of one run. */
uint64_t duet__request_tasks(const struct duet__request *request);

/*
 * Builds the machine that simulated runs are made on: that of request->platform, or of the one that
 * config.simulate names, with the counts, memories, links and costs of the configuration. Errors of
 * duet__platform_load and duet__platform_build, with a message.
 */
DUET_MUST_CHECK int duet__request_build(struct duet__request *request,
                                        struct duet_message *message);

/* Returns a message of the library with the command's options: --NAME for --duet-NAME. */
char *duet__own_options(const char *message);

#endif
