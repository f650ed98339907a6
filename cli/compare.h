/* SPDX-License-Identifier: Apache-2.0 */
/* `duet compare`: what its files share. Two files become cases, one side of each from each file. */
#ifndef DUET_CLI_COMPARE_H
#define DUET_CLI_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

#include "validate/account.h"
#include "report/runs_file.h"
#include "report/trace_file.h"
#include "validate/validation.h"

/* One of the two files. Zero-initialise; duet__input_fini. */
struct duet__input {
    char *name; /* "A: run.json" */
    enum duet_file_kind kind;
    struct duet_runs_file runs;   /* of a report or a validation */
    struct duet_trace_file trace; /* of a trace, as what follows */
    struct duet_account account;
    double makespan_s;
};

/*
 * Reads the file `path`, which is called `letter`. Errors as of its reader, DUET_EIO,
 * DUET_EPARSE (it is none of duet's files).
 */
DUET_MUST_CHECK int duet__input_read(struct duet__input *input, char letter, const char *path,
                                     struct duet_message *message);

void duet__input_fini(struct duet__input *input);

/* "cholesky on idgraf": what is known of where its runs were made; free with g_free. */
char *duet__input_place(const struct duet__input *input);

/* The comparison. Zero-initialise; duet__match_fini. */
struct duet__match {
    GArray *cases;    /* struct duet_case; what they point to belongs to the inputs and to texts */
    GPtrArray *texts; /* strings */
    GPtrArray *notes; /* lines about what is not compared, or only in part */
};

/*
 * Puts together what the inputs have in common; `policy` NULL: runs of all policies. DUET_EINVAL
 * with a message where that is nothing, or not clear.
 */
DUET_MUST_CHECK int duet__match_make(struct duet__match *match, const struct duet__input inputs[2],
                                     const char *policy, struct duet_message *message);

void duet__match_fini(struct duet__match *match);

#endif
