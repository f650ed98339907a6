/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of one side of a case while they are made: accounted one by one, in rounds. */
#ifndef DUET_VALIDATE_SAMPLE_H
#define DUET_VALIDATE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

#include "trace/run.h"
#include "validate/validation.h"

/* duet__sample_init, duet__sample_fini. */
struct duet__sample {
    bool keep;           /* recordings are wanted */
    bool fresh;          /* the next run is the first of a round */
    GArray *accounts;    /* struct duet__account, by run */
    GArray *records;     /* struct duet__recording, by run; zeroed where not kept */
    GArray *rounds;      /* size_t: runs of each round; empty: not made in rounds */
    GArray *disturbed;   /* gboolean, by round: others computed meanwhile */
    double *makespans_s; /* this and the next are made by duet__sample_conclude */
    struct duet__account mean;
};

void duet__sample_init(struct duet__sample *sample, bool keep);
void duet__sample_fini(struct duet__sample *sample); /* safe on a zeroed one */

static inline size_t duet__sample_count(const struct duet__sample *sample)
{
    return sample->accounts->len;
}

/*
 * Takes the next run, recorded with dates that count from the first submission: accounts it, and
 * keeps its records if that is wanted and there is room for their events. The run is freed. Errors
 * of duet__account_make.
 */
DUET_MUST_CHECK int duet__sample_put(struct duet__sample *sample, struct duet__run *run,
                                     struct duet_message *message);

/* The runs that are put from now on are of another round. */
void duet__sample_begin(struct duet__sample *sample);

/* The runs of the round at hand, if there are any yet, were disturbed by other processes. */
void duet__sample_disturb(struct duet__sample *sample);

/*
 * Leaves out the runs of disturbed rounds, where there are others. Returns how many: these and
 * what is known of them is gone.
 */
size_t duet__sample_leave_out(struct duet__sample *sample);

/* Half of the 95 % interval of the median, by the median; INFINITY of less than two runs. */
double duet__sample_width(const struct duet__sample *sample);

/*
 * About what it would be if rounds did not differ, which is what more runs in a round make
 * narrower: from the distances of runs from the medians of their rounds, as of normally distributed
 * ones. INFINITY of less than two runs a round on average, which say nothing of it.
 */
double duet__sample_width_within(const struct duet__sample *sample);

/*
 * After the last run (of at least one): multiplies all times by `factor`, makes the mean account,
 * and keeps one recording, that of the run nearest to the median among those that were kept. *out
 * borrows from the sample.
 */
void duet__sample_conclude(struct duet__sample *sample, double factor, struct duet__side *out);

#endif
