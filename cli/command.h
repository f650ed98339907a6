/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `duet`, and what they have in common. */
#ifndef DUET_CLI_COMMAND_H
#define DUET_CLI_COMMAND_H

#include <glib.h>

#include <duet/error.h>

/* Exit status of the command. */
enum {
    DUET__DONE = 0,
    DUET__FAILED = 1,     /* a check or a run failed, an output could not be written */
    DUET__MISUSED = 2,    /* bad usage or bad input */
    DUET__SIGNALLED = 128 /* and the number of the signal that ended it early, with a report */
};

struct duet__job;

/* A subcommand. */
struct duet__command {
    const char *name;
    const char *description;     /* one line */
    unsigned where;              /* DUET__IN_...: the settings that it has; 0: none */
    const char *arguments;       /* what help shows behind the options; NULL: nothing */
    const char *summary, *notes; /* before and after the options in help; NULL: nothing */
    /*
     * Does it, with options that were read; argv[0] is its name, and what is left after it are its
     * arguments. Returns the exit status. The vector may be changed, its strings may not.
     */
    int (*work)(struct duet__job *job, int argc, char **argv);
};

/* Reads options and does what the command does. Exit status. */
int duet__command_run(const struct duet__command *command, int argc, char **argv);

/* Which of the processes this is that a launcher of MPI programs has started; 0: it is alone. */
unsigned duet__launched_as(unsigned *count);

/* duet__command_run by ranks together: rank 0 says what there is to be said, and has the status. */
int duet__command_run_as_ranks(const struct duet__command *command, int argc, char **argv);

/* Of a rank that is not 0, the last line that was not said; lives until there is another one. */
const char *duet__last_line(void);

/* All of them, NULL-ended. */
extern const struct duet__command *const duet__commands[];

extern const struct duet__command duet__simulate_command;
extern const struct duet__command duet__run_command;
extern const struct duet__command duet__study_command;
extern const struct duet__command duet__tune_command;
extern const struct duet__command duet__calibrate_command;
extern const struct duet__command duet__validate_command;
extern const struct duet__command duet__compare_command;
extern const struct duet__command duet__explain_command;
extern const struct duet__command duet__info_command;
extern const struct duet__command duet__list_command;
extern const struct duet__command duet__platform_command;
extern const struct duet__command duet__record_command;
extern const struct duet__command duet__export_command;

/* Prints "duet: ..." as one line on standard error and returns `status`. */
int duet__complain(int status, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Exit status for a negative enum duet_error: whether the input was bad, or something failed. */
int duet__status_of(int error);

/* Ends standard output. Returns DUET__DONE, or DUET__FAILED after a complaint. */
int duet__finish_output(void);

#endif
