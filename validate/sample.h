/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of one side of a case while they are made: accounted one by one, in rounds. */
#ifndef DUET_VALIDATE_SAMPLE_H
#define DUET_VALIDATE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

#include <glib.h>

#include "runs/run.h"
#include "validate/validation.h"

/* duet_sample_init, duet_sample_fini. */
struct duet_sample {
    bool keep;           /* recordings are wanted */
    bool fresh;          /* the next run is the first of a round */
    GArray *accounts;    /* struct duet_account, by run */
    GArray *records;     /* struct duet_recording, by run; zeroed where not kept */
    GArray *rounds;      /* size_t: runs of each round; empty: not made in rounds */
    GArray *disturbed;   /* gboolean, by round: others computed meanwhile */
    double *makespans_s; /* this and the next are made by duet_sample_conclude */
    struct duet_account mean;
};

void duet_sample_init(struct duet_sample *sample, bool keep);
void duet_sample_fini(struct duet_sample *sample); /* safe on a zeroed one */

static inline size_t duet_sample_count(const struct duet_sample *sample)
{
    return sample->accounts->len;
}

/*
 * Takes the next run, recorded with dates that count from the first submission: accounts it, and
 * keeps its records if that is wanted and it is among the first. The run is freed. Errors of
 * duet_account_make.
 */
DUET_MUST_CHECK int duet_sample_put(struct duet_sample *sample, struct duet_run *run,
                                    struct duet_message *message);

/* The runs that are put from now on are of another round. */
void duet_sample_begin(struct duet_sample *sample);

/* The runs of the round at hand, if there are any yet, were disturbed by other processes. */
void duet_sample_disturb(struct duet_sample *sample);

/*
 * Leaves out the runs of disturbed rounds, where there are others. Returns how many: these and
 * what is known of them is gone.
 */
size_t duet_sample_leave_out(struct duet_sample *sample);

/* Half of the 95 % interval of the median, by the median; INFINITY of less than two runs. */
double duet_sample_width(const struct duet_sample *sample);

/*
 * About what it would be if rounds did not differ, which is what more runs in a round make
 * narrower: from the distances of runs from the medians of their rounds, as of normally distributed
 * ones. INFINITY of less than two runs a round on average, which say nothing of it.
 */
double duet_sample_width_within(const struct duet_sample *sample);

/*
 * After the last run (of at least one): multiplies all times by `factor`, makes the mean account,
 * and keeps one recording, that of the run nearest to the median among those that were kept. *out
 * borrows from the sample.
 */
void duet_sample_conclude(struct duet_sample *sample, double factor, struct duet_side *out);

#endif
