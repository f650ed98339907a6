/* SPDX-License-Identifier: Apache-2.0 */
/* A choice among policies, and the trial of one of them. */
#ifndef DUET_CORE_TRIAL_H
#define DUET_CORE_TRIAL_H

#include "core/internal.h"

/* A policy with its parameters. */
struct candidate {
    const struct duet_policy *policy;
    double parameters[DUET_PARAMETERS_MAX];
    char text[64]; /* "cp:beta=0" */
};

/*
 * Returns the seconds until the last of these tasks, none of which has begun, would end under the
 * candidate, if they were submitted now and nothing else: INFINITY if that were after limit_s, if
 * there is no memory, or if the policy never ends. `ranks`: their upward ranks. Called by the
 * thread that lets tasks in.
 */
double duet__trial(struct duet_runtime *core, const struct candidate *candidate,
                   struct duet_task *const *tasks, const double *ranks, size_t count,
                   double limit_s);

#endif
