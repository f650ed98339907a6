/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `duet`, and what they have in common. */
#ifndef DUET_CLI_COMMAND_H
#define DUET_CLI_COMMAND_H

#include <glib.h>

/* Exit status of the command. */
enum {
    DUET__DONE = 0,
    DUET__FAILED = 1,     /* a check or a run failed, an output could not be written */
    DUET__MISUSED = 2,    /* bad usage or bad input */
    DUET__SIGNALLED = 128 /* this plus the number of the signal that ended it early, with a
                             report */
};

struct duet__job;

/* A subcommand. */
struct duet__command {
    const char *name;
    const char *description;     /* one line */
    unsigned where;              /* DUET__IN_...: selects the settings that it has; 0: none */
    const char *arguments;       /* help shows it behind the options; NULL: nothing */
    const char *summary, *notes; /* help shows them before and after the options; NULL: nothing */
    /*
     * Executes the command after its options were read; argv[0] is its name, and its arguments
     * follow. Returns the exit status. It may change the vector, but not the strings.
     */
    int (*work)(struct duet__job *job, int argc, char **argv);
};

/* Reads options and executes the command. Returns the exit status. */
int duet__command_run(const struct duet__command *command, int argc, char **argv);

/* Returns the number of this process among *count started by a launcher of MPI programs; 0 if
   alone. */
unsigned duet__launched_as(unsigned *count);

/* Executes duet__command_run in all ranks: only rank 0 prints, and its status counts. */
int duet__command_run_as_ranks(const struct duet__command *command, int argc, char **argv);

/* Returns the last line that a rank other than 0 did not print; valid until the next such line. */
const char *duet__last_line(void);

/* All subcommands, NULL-ended. */
extern const struct duet__command *const duet__commands[];

#define COMMAND(name) extern const struct duet__command duet__##name##_command;
#include "cli/commands.h"
#undef COMMAND

/* Prints "duet: ..." as one line on standard error and returns `status`. */
int duet__complain(int status, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Returns the exit status for a negative enum duet_error: bad input, or something failed. */
int duet__status_of(int error);

/* Ends standard output. Returns DUET__DONE, or DUET__FAILED after a complaint. */
int duet__finish_output(void);

#endif
