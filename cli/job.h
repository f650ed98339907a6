/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: what the subcommands that make runs shall run, how, and which files they write. */
#ifndef DUET_CLI_JOB_H
#define DUET_CLI_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include <glib.h>

#include <duet/duet.h>

#include "cli/command.h"
#include "report/report.h"
#include "runs/request.h"
#include "runtime/settings.h"
#include "workloads/files/graph.h"

struct duet__schedule;
struct duet__tune;
struct duet__validation;

/* An option as it was given. */
struct duet__given {
    const struct duet__option *option;
    const char *text; /* "" for a flag */
};

/* A job: what was asked for. Zero-initialise; duet__job_fini frees it, half-built or not. */
struct duet__job {
    const struct duet__command *command;
    char *line;                 /* the command line, quoted for a shell */
    struct duet__values values; /* values of options; defaults can be set before options are read */
    GArray *given;              /* struct duet__given: all options, in order */
    bool several;   /* some options have several values, not in `values`: each makes a run */
    bool in_table;  /* the job is a cell of a table, and prints nothing itself */
    bool together;  /* other processes of a launcher make its runs with it, or may do so */
    char **program; /* the words behind "--", borrowed; NULL: none */
    struct duet__request request;
    const char *graph_path;    /* name of the graph's file, as given; NULL: none */
    struct duet__graph *graph; /* from a file, owned; NULL: the workload is one of duet's own */
    struct duet__workload graph_workload; /* submits `graph` */
    GHashTable *guesses; /* "dgemm on x5650", by duet__job_guess, owned; NULL: none is known */
    struct duet__platform *platform; /* simulated, or emulated at its pace, owned; a table's may be
                                        there before it is read */
    struct duet__schedule *improved; /* what --improve has found, owned; NULL: nothing */
    const char *platform_option;     /* the option that gave the platform: "--platform" */
};

/* Prepares a job of a command whose command line is argv. */
void duet__job_init(struct duet__job *job, const struct duet__command *command, int argc,
                    char *const *argv);

void duet__job_fini(struct duet__job *job);

/* Returns the kind of options of this command that a table varies, DUET__FACTOR or DUET__CASE; 0:
   none. */
unsigned duet__job_factors(const struct duet__job *job);

/* Takes an option as given, with a text that is kept. Returns errors of duet__option_set. */
DUET_MUST_CHECK int duet__job_set(struct duet__job *job, const struct duet__option *option,
                                  const char *text, struct duet_message *message);

/* Sets the job's request from the values of its options. */
void duet__job_take_values(struct duet__job *job);

/*
 * Executes what `run` and `simulate` do after reading options, and prints nothing. Writes a row for
 * each run (duet__report_write_rows), or one with "status" and "error".
 */
void duet__job_rows(struct duet__job *job, const char *workload, FILE *rows);

/* Executes `run` or `simulate` with options of several values: a table of all combinations. Returns
   the exit status. */
int duet__tabulate(struct duet__job *job, int argc, char *const *argv);

/* Reads options into values. Returns false after a complaint; --help ends the process. */
bool duet__job_options(struct duet__job *job, int *argc, char ***argv);

/* True if an option was given, "jobs". */
bool duet__given(const struct duet__job *job, const char *name);

/* DUET_EINVAL with a message if both options were given. */
DUET_MUST_CHECK int duet__exclude(const struct duet__job *job, const char *first,
                                  const char *second, struct duet_message *message);

/*
 * The functions below check what is asked for and complete it, in this order. Each returns 0 or
 * DUET_EINVAL, DUET_ENOTFOUND and so on with a message.
 */

/* Checks the options of the runs. */
DUET_MUST_CHECK int duet__job_check_run(struct duet__job *job, struct duet_message *message);
/*
 * Finds a workload by its name; NULL: it is missing. For simulate, run and export, the name of a
 * file means a task graph, which is read.
 */
DUET_MUST_CHECK int duet__job_find_workload(struct duet__job *job, const char *name,
                                            const struct duet__workload **out,
                                            struct duet_message *message);
/*
 * Makes the program behind "--" the workload of a request. Refuses options that only workloads
 * have, or that choose a workload: `named` is the first workload that is named, or NULL.
 */
DUET_MUST_CHECK int duet__job_take_program(const struct duet__job *job, const char *named,
                                           struct duet__request *request,
                                           struct duet_message *message);
/* Reads the one workload of the job's request: the program, or what the remaining arguments
   name. */
DUET_MUST_CHECK int duet__job_read_workload(struct duet__job *job, int argc, char *const *argv,
                                            struct duet_message *message);
/* Sets the problem of a request whose workload is known, and lets the workload's `check` judge
   it. */
DUET_MUST_CHECK int duet__job_take_problem(const struct duet__values *values,
                                           struct duet__request *request,
                                           struct duet_message *message);
/* Checks the emulation, and options that mean something only on an emulated platform or on GPUs. */
DUET_MUST_CHECK int duet__job_check_emulation(struct duet__job *job, struct duet_message *message);
/*
 * Finds which times of a task graph are guesses on the machine that is built: those that the
 * platform only estimates, and those that the graph has for another architecture or a backend,
 * such as "cuda". request.estimated gets the share of both in the time, job->guesses the kernels of
 * the latter with the architecture.
 */
void duet__job_guess(struct duet__job *job);

/* Checks the options of the machine; the platform is known. */
DUET_MUST_CHECK int duet__job_check_machine(struct duet__job *job, struct duet_message *message);

/* True if a name is that of a file: it has a '/' or a '.', or the file exists. */
bool duet__is_file(const char *name);

/*
 * Finds StarPU's performance models: where the option says, else where StarPU itself looks for
 * them. The texts live as long as the job.
 */
DUET_MUST_CHECK int duet__find_starpu(struct duet__job *job, struct duet__graph_models *models,
                                      struct duet_message *message);

/* Complains after reading failed. Returns the exit status. */
int duet__job_refuse(int error, const struct duet_message *message);

/*
 * Complains about a run that failed: about the input if that was to blame, else that `what` ("the
 * run of ws") failed. Returns the exit status.
 */
int duet__job_complain(const char *what, int error, const char *message);

/* Prints all policies, for "--policy help" and `duet list`; duet__print_models, all models. */
void duet__print_policies(void);
void duet__print_models(void);

/*
 * Checks that every file to be written has a name, and that no file is another of them or an input,
 * however the names are spelled. Returns DUET_EINVAL with a message that names both.
 */
DUET_MUST_CHECK int duet__files_distinct(const struct duet__job *job, struct duet_message *message);

/*
 * True if two names are of one file, which exists or would be made. False for a file that several
 * can write, such as /dev/null.
 */
bool duet__files_same(const char *first, const char *second);

/* Checks early that the files can be written. Returns the exit status. */
int duet__files_check(const struct duet__job *job);

/*
 * Writes the files that were asked for: trace and Gantt chart of every policy of the report, and
 * the page; none if the report has no policy. Complains about each file that cannot be written.
 * Returns the exit status.
 */
int duet__files_write(const struct duet__job *job, const struct duet__report *report);

/*
 * Judges the cases, prints them as the options say, writes the page, and complains if a case is off
 * by more than is allowed. Returns the exit status; the caller calls duet__validation_fini.
 */
int duet__validation_show(const struct duet__job *job, struct duet__validation *validation);

/* ------------------------------------------------------------------------------------------- */
/* Runs of OpenMP programs with duet's recorder in them, a tool that LLVM's OpenMP runtime opens. */

struct duet__openmp {
    char **program;     /* the program and its arguments, NULL-ended */
    const char *out;    /* the file that the recorder writes */
    uint64_t threads;   /* number of threads; 0: as the environment has it */
    uint64_t bytes;     /* size of what a depend clause names, in bytes; 0: not known */
    uint64_t loops;     /* parts that a loop is cut into; 0: a loop stays with its threads */
    bool static_loops;  /* also cut what may be a static loop of gcc's */
    bool only_makespan; /* the makespan alone is measured: no task is recorded, or delayed by
                           recording */
    bool on_duet;       /* duet executes the program, and writes a trace of figures to `out` */
    bool quiet;         /* discard the program's standard output */
};

/* Puts a library in front of those that programs are run with. Takes the list, returns it. */
char **duet__preload(char **environment, const char *library);

/*
 * Runs the program until it ends. Complains if it cannot be run, or has written no graph without
 * saying why. Signals that end a process are sent on to it, but for SIGINT, which a terminal sends
 * to both; *number is the last such signal, or 0. Returns the program's own exit status, or
 * DUET__FAILED, DUET__MISUSED.
 */
int duet__openmp_run(const struct duet__openmp *run, int *number);

/*
 * Executes `duet validate --openmp`: runs job->program in rounds, recorded and not, simulates the
 * recordings, and prints both makespans by number of threads. Returns the exit status.
 */
int duet__openmp_validate(struct duet__job *job);

/* ------------------------------------------------------------------------------------------- */
/* schedule.c: files of schedules                                                                */

/* True for the file of a schedule, and for nothing else that ends in .json. */
bool duet__schedule_in(const char *path);

/* Prints what a schedule gives each worker. Returns the exit status. */
int duet__list_schedule(const char *path);

/*
 * Makes the plan of a recorded run, or of none (NULL), under a policy, where time passed `scale`
 * times as slowly as planned. *out is zeroed by the caller, and stays so if that policy follows no
 * schedule. The caller frees out->tasks.events with g_free.
 */
void duet__run_plan_make(const char *policy, const struct duet__recording *recording, double scale,
                         struct duet__run_plan *out);

/* Prints which tasks have another worker in the second of two schedules, and what that costs.
   Returns the exit status. */
int duet__compare_schedules(const char *const paths[2]);

/* Prints what `duet tune` found, and writes the variables of the choice (tune_report.c). Returns
 * the exit status. */
int duet__tune_report(const struct duet__tune *tune, const struct duet__job *job);

#endif
