/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of `duet`, and what they have in common. */
#ifndef DUET_CLI_COMMAND_H
#define DUET_CLI_COMMAND_H

#include <stdbool.h>

#include <glib.h>

#include <duet/error.h>

/* Exit status of the command. */
enum {
    DUET__DONE = 0,
    DUET__FAILED = 1,     /* a check or a run failed, an output could not be written */
    DUET__MISUSED = 2,    /* bad usage or bad input */
    DUET__SIGNALLED = 128 /* and the number of the signal that ended it early, with a report */
};

/* A subcommand. */
struct duet__command {
    const char *name;
    const char *description; /* one line */
    /* argv[0] is the subcommand's name; what comes after it are its arguments. Returns the exit
     * status. The vector may be changed, its strings may not. */
    int (*run)(int argc, char **argv);
};

extern const struct duet__command duet__simulate_command;
extern const struct duet__command duet__run_command;
extern const struct duet__command duet__calibrate_command;
extern const struct duet__command duet__validate_command;
extern const struct duet__command duet__compare_command;
extern const struct duet__command duet__info_command;
extern const struct duet__command duet__list_command;
extern const struct duet__command duet__platform_command;

/* Prints "duet: ..." as one line on standard error and returns `status`. */
int duet__complain(int status, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Exit status for a negative enum duet_error: whether the input was bad, or something failed. */
int duet__status_of(int error);

/*
 * Parses options: "duet NAME" in help and messages. Arguments that are no options stay in *argv.
 * Returns false after a complaint. --help prints `summary`, the options and `notes` (either may be
 * NULL) and exits with status 0. `data` is for entries that are callbacks.
 */
bool duet__parse_options(const char *name, const char *arguments, const char *summary,
                         const char *notes, const GOptionEntry *entries, void *data, int *argc,
                         char ***argv);

/* Domain of errors of such a callback about a value, whose message says it all. */
#define DUET__OPTION_ERROR g_quark_from_static_string("duet-option")

/* Ends standard output. Returns DUET__DONE, or DUET__FAILED after a complaint. */
int duet__finish_output(void);

#endif
