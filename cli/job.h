/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands that make runs have in common: what to run, how, and what to write. */
#ifndef DUET_CLI_JOB_H
#define DUET_CLI_JOB_H

#include <stdbool.h>

#include <glib.h>

#include <duet/duet.h>

#include "cli/command.h"
#include "workloads/files/graph.h"
#include "report/report.h"
#include "runs/request.h"
#include "runtime/settings.h"

/* An option as it was given. */
struct duet__given {
    const struct duet__option *option;
    const char *text; /* "" of a flag */
};

/* What was asked for. Zero-initialise; duet__job_fini frees it, half-built or not. */
struct duet__job {
    const struct duet__command *command;
    char *line;                 /* the command line, quoted for a shell */
    struct duet__values values; /* of the options; defaults can be set before these are read */
    GArray *given;              /* struct duet__given, of all options, in order */
    bool several;   /* some have several values: these are not among `values`, each makes a run */
    bool in_table;  /* it is one of several, and says nothing itself */
    bool together;  /* other processes of a launcher make its runs with it, or may do so */
    char **program; /* what stands behind "--", borrowed; NULL: nothing does */
    struct duet__request request;
    const char *graph_path;    /* of a file, as it was given; NULL: none */
    struct duet__graph *graph; /* of a file, owned; NULL: the workload is one of duet's own */
    struct duet__workload graph_workload; /* that submits it */
    GHashTable *guesses; /* "dgemm on x5650", of duet__job_guess, owned; NULL: none is known */
    struct duet__platform *platform; /* that is simulated or emulated at its pace, owned; of
                                        a table it may be there before it is read */
    const char *platform_option;     /* by which a platform was given: "--platform" */
};

/* Prepares a job of a command whose command line is argv. */
void duet__job_init(struct duet__job *job, const struct duet__command *command, int argc,
                    char *const *argv);

void duet__job_fini(struct duet__job *job);

/*
 * Reads options, answers --help, "--policy help" and "--model help", and makes of the values what
 * they say of the request; arguments that are no options stay in *argv. Returns -1 to go on with
 * what follows, or the exit status.
 */
int duet__job_parse(struct duet__job *job, int *argc, char ***argv);

/* The options of this command that a table has factors of, DUET__FACTOR or DUET__CASE; 0: none. */
unsigned duet__job_factors(const struct duet__job *job);

/* Takes an option as given, with a text that is kept. Errors of duet__option_set. */
DUET_MUST_CHECK int duet__job_set(struct duet__job *job, const struct duet__option *option,
                                  const char *text, struct duet_message *message);

/* Makes of the values what they say of the request. */
void duet__job_take_values(struct duet__job *job);

/*
 * What is left of `run` and `simulate` once the options are read, and the runs, quietly: a row
 * each, duet__report_write_rows, or one that says "status" and "error". For g_free.
 */
char *duet__job_rows(struct duet__job *job, const char *workload);

/* `run` and `simulate` with options of several values: all combinations, as a table. Exit status.
 */
int duet__tabulate(struct duet__job *job, int argc, char *const *argv);

/* Reads options into values. Returns false after a complaint; --help ends the process. */
bool duet__job_options(struct duet__job *job, int *argc, char ***argv);

/* Whether an option was given, "jobs". */
bool duet__given(const struct duet__job *job, const char *name);

/* DUET_EINVAL with a message if both options were given. */
DUET_MUST_CHECK int duet__exclude(const struct duet__job *job, const char *first,
                                  const char *second, struct duet_message *message);

/*
 * Checks of what is asked for, and completing it, in this order. Each returns 0 or DUET_EINVAL,
 * DUET_ENOTFOUND and so on with a message.
 */

/* Options of the runs. */
DUET_MUST_CHECK int duet__job_check_run(struct duet__job *job, struct duet_message *message);
/*
 * A workload by its name; NULL: it is missing. Of simulate, run and export, the name of a file is a
 * task graph, which is read.
 */
DUET_MUST_CHECK int duet__job_find_workload(struct duet__job *job, const char *name,
                                            const struct duet__workload **out,
                                            struct duet_message *message);
/*
 * Makes the program behind "--" the workload of a request, and refuses the options that are of
 * workloads only, or that choose one: `named` is the first workload that is named, or NULL.
 */
DUET_MUST_CHECK int duet__job_take_program(const struct duet__job *job, const char *named,
                                           struct duet__request *request,
                                           struct duet_message *message);
/* The one workload of the job's request: the program, or what the remaining arguments name. */
DUET_MUST_CHECK int duet__job_read_workload(struct duet__job *job, int argc, char *const *argv,
                                            struct duet_message *message);
/* The problem of a request whose workload is known, which has the last word (its `check`). */
DUET_MUST_CHECK int duet__job_take_problem(const struct duet__values *values,
                                           struct duet__request *request,
                                           struct duet_message *message);
/* The emulation, and what means something only of an emulated platform or only of GPUs. */
DUET_MUST_CHECK int duet__job_check_emulation(struct duet__job *job, struct duet_message *message);
/*
 * Finds which times of a task graph are guesses on the machine that is built: those that the
 * platform only estimates, and those that the graph has for another architecture or a backend,
 * such as "cuda". request.estimated gets the share of both in the time, job->guesses the kernels of
 * the latter with the architecture.
 */
void duet__job_guess(struct duet__job *job);

/* Options of the machine; the platform is known. */
DUET_MUST_CHECK int duet__job_check_machine(struct duet__job *job, struct duet_message *message);

/* Whether a name is that of a file: it has a '/' or a '.', or the file is there. */
bool duet__is_file(const char *name);

/* Prints what is in a task graph. Exit status. */
int duet__print_graph(struct duet__job *job, const char *path);

/*
 * Where StarPU's performance models are: what the option says, else where StarPU itself looks for
 * them. The texts live as long as the job.
 */
DUET_MUST_CHECK int duet__find_starpu(struct duet__job *job, struct duet__graph_models *models,
                                      struct duet_message *message);

/* Exit status after reading failed: complains. */
int duet__job_refuse(int error, const struct duet_message *message);

/*
 * Complains about a run that failed: about the input where that was to blame, else that `what`
 * ("the run of ws") failed. Exit status.
 */
int duet__job_complain(const char *what, int error, const char *message);

/* Prints the policies, or the models, that there are: for "--policy help" and `duet list`. */
void duet__print_policies(void);
void duet__print_models(void);

/*
 * Checks that every file to be written has a name, and that none is another of them or an input,
 * whatever the ways in which they are written. DUET_EINVAL with a message that names both.
 */
DUET_MUST_CHECK int duet__files_distinct(const struct duet__job *job, struct duet_message *message);

/*
 * Whether two names are of one file, that is there or would be made. Not of one that several can
 * write, such as /dev/null.
 */
bool duet__files_same(const char *first, const char *second);

/* Finds out early whether the files can be written. Exit status. */
int duet__files_check(const struct duet__job *job);

/*
 * Writes the files that were asked for: trace and Gantt chart of every policy of the report, the
 * page; none if it has no policy. Exit status, after a complaint for each that could not be
 * written.
 */
int duet__files_write(const struct duet__job *job, const struct duet__report *report);

#endif
