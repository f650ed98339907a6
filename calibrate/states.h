/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the machine: what all executions of a run have in common. */
#ifndef DUET_CALIBRATE_STATES_H
#define DUET_CALIBRATE_STATES_H

#include <stddef.h>

#include <duet/error.h>

#include "calibrate/samples.h"

/*
 * Takes the state of the machine out of the times of host kernels. On a machine that others use, or
 * whose clock changes, a run is faster or slower as a whole than another one that did the same: a
 * state is the factor by which. It is the median over the run's executions, each weighted by its
 * usual time, of measured by usual time; usual is the median of that kernel in all runs that did
 * the same (duet__observation.item), and states are scaled so that their median is 1. Then
 * samples->runs[].state is set, and the times of its samples are divided by it: they are those of
 * the median state. Runs of fewer than three that did the same have no known state (0), and their
 * times stay. DUET_ENOMEM.
 */
DUET_MUST_CHECK int duet__states_remove(struct duet__samples *samples);

/*
 * Relative deviation of the states of those runs (indices, may repeat beside each other) that have
 * one: 1.4826 times the median of |log state|, without those runs that are the median themselves
 * (with few runs of an item these would be a large part); 0 with fewer than two. `room` has as many
 * doubles.
 */
double duet__states_deviation(const struct duet__samples *samples, const size_t *runs, size_t count,
                              double *room);

#endif
