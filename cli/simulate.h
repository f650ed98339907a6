/* SPDX-License-Identifier: Apache-2.0 */
/* `duet simulate`: what its files share. */
#ifndef DUET_CLI_SIMULATE_H
#define DUET_CLI_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <glib.h>

#include <duet/duet.h>

#include "platforms/platform.h"
#include "validate/report.h"
#include "workloads/workload.h"

/* What was asked for. Zero-initialise; duet__simulation_fini frees it, half-built or not. */
struct duet__simulation {
    char *command; /* the command line, quoted for a shell */
    const struct duet_workload *workload;
    struct duet_problem problem;
    GArray *settings;          /* struct duet_setting, what problem.settings points to */
    GArray *links;             /* struct duet_link_override */
    struct duet_config config; /* of every run, but for policy, seed and record */
    GPtrArray *texts;          /* strings that the fields above point to */
    char **policies;           /* NULL-ended */
    size_t policy_count;
    size_t reps; /* runs of each policy: run r with seed `seed` + r */
    uint64_t seed;
    unsigned jobs; /* runs at a time */
    bool json, csv, wall, quiet;
    char *trace, *gantt, *html;  /* files to write; NULL: not wanted */
    char *machine_xml;           /* likewise; written before the runs */
    char *platform_name;         /* as reports call it */
    struct duet_machine machine; /* what the runs simulate */
};

/* What one run left. Zero-initialise. */
struct duet__outcome {
    struct duet_run run;
    struct duet_recording recording; /* points into `mapping`; machine NULL: not recorded */
    const char **kernels;            /* what recording.kernels is */
    void *mapping;
    size_t mapped_bytes;
};

/*
 * Reads the command line and checks everything that can be checked before a run: workload, sizes,
 * policies, platform, machine. Returns -1 to go on, or an exit status (0 after "--policy help").
 */
int duet__simulation_parse(struct duet__simulation *simulation, int argc, char **argv);

void duet__simulation_fini(struct duet__simulation *simulation);

/* Prints the policies, or the models, that there are: for "--policy help" and `duet list`. */
void duet__print_policies(void);
void duet__print_models(void);

/*
 * Makes all runs in child processes, `jobs` at a time. outcomes[policy * reps + run] is filled and
 * owned by the caller (duet__outcome_fini). The first run of each policy is recorded if a file
 * wants it. Returns an exit status; after a complaint on standard error outcomes may be partly
 * filled. A signal that ends the process ends the children too.
 */
int duet__simulation_run(const struct duet__simulation *simulation, struct duet__outcome *outcomes);

void duet__outcome_fini(struct duet__outcome *outcome);

/* Counter of finished tasks that a run shares with the process that started it. */
typedef _Atomic uint64_t duet__counter;

/*
 * In a child process: makes one run and writes what came out to `stream`, to be read by
 * duet__outcome_read. Counts finished tasks in *done while it lasts.
 */
void duet__simulation_child(const struct duet__simulation *simulation, size_t policy, size_t rep,
                            FILE *stream, duet__counter *done);

/*
 * Reads what a child wrote to the file `fd`. Returns the run's error code with its message, or
 * DUET_EIO where the file is not whole.
 */
DUET_MUST_CHECK int duet__outcome_read(struct duet__outcome *outcome, int fd,
                                       const struct duet_machine *machine,
                                       struct duet_message *message);

/*
 * Names of the files that the option's value `path` stands for: one, or one a policy where `each`;
 * none for NULL. Ended by NULL; free with g_strfreev.
 */
char **duet__files_paths(const struct duet__simulation *simulation, const char *path, bool each);

/*
 * Checks that every file to be written has a name, and that none is another of them or an input,
 * whatever the ways in which they are written. DUET_EINVAL with a message that names both.
 */
DUET_MUST_CHECK int duet__files_distinct(const struct duet__simulation *simulation,
                                         struct duet_message *message);

/* Finds out early whether the files can be written. Exit status. */
int duet__files_check(const struct duet__simulation *simulation);

/*
 * Writes the files that were asked for: trace and Gantt chart of every policy, the page. Exit
 * status, after a complaint for each that could not be written.
 */
int duet__files_write(const struct duet__simulation *simulation, const struct duet_report *report);

#endif
