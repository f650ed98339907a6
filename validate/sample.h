/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of one side of a case while they are made: accounted one by one, in rounds. */
#ifndef DUET_VALIDATE_SAMPLE_H
#define DUET_VALIDATE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

#include "trace/run.h"
#include "validate/validation.h"

/* The runs of one side: duet__sample_init before use, duet__sample_fini frees it. */
struct duet__sample {
    bool keep;           /* recordings are wanted */
    bool fresh;          /* the next run is the first of a round */
    GArray *accounts;    /* struct duet__account, by run */
    GArray *records;     /* struct duet__recording, by run; zeroed where not kept */
    GArray *rounds;      /* size_t: runs of each round; empty: the runs were not made in rounds */
    GArray *disturbed;   /* gboolean, by round: other processes computed meanwhile */
    double *makespans_s; /* seconds by run; duet__sample_conclude sets this */
    struct duet__account mean;
};

void duet__sample_init(struct duet__sample *sample, bool keep);
void duet__sample_fini(struct duet__sample *sample); /* safe on a zeroed sample */

static inline size_t duet__sample_count(const struct duet__sample *sample)
{
    return sample->accounts->len;
}

/*
 * Takes the next run, recorded with dates that count from the first submission: accounts it, and
 * keeps its records if they are wanted and there is room for their events. Frees the run. Returns
 * errors of duet__account_make.
 */
DUET_MUST_CHECK int duet__sample_put(struct duet__sample *sample, struct duet__run *run,
                                     struct duet_message *message);

/* Begins another round: the next runs belong to it. */
void duet__sample_begin(struct duet__sample *sample);

/* Notes that other processes disturbed the runs of the round at hand, if there are any yet. */
void duet__sample_disturb(struct duet__sample *sample);

/*
 * Leaves out the runs of disturbed rounds, if there are other rounds. Returns the number of runs
 * left out, which the sample then has no longer.
 */
size_t duet__sample_leave_out(struct duet__sample *sample);

/* Returns half of the 95 % interval of the median, by the median; INFINITY for less than two
   runs. */
double duet__sample_width(const struct duet__sample *sample);

/*
 * Returns about what duet__sample_width would be if rounds did not differ, which more runs in a
 * round make narrower: from the distances of runs from the medians of their rounds, as of normally
 * distributed ones. INFINITY for less than two runs a round on average, which say nothing of it.
 */
double duet__sample_width_within(const struct duet__sample *sample);

/*
 * Concludes after the last run (of at least one): multiplies all times by `factor`, makes the mean
 * account, and keeps one recording, that of the run nearest to the median among the kept ones. *out
 * borrows from the sample.
 */
void duet__sample_conclude(struct duet__sample *sample, double factor, struct duet__side *out);

#endif
