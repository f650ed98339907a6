/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the writers of a comparison: names, the order of cases, the explanation of all. */
#ifndef DUET_VALIDATION_PARTS_H
#define DUET_VALIDATION_PARTS_H

#include <stdio.h>

#include <glib.h>

#include "validate/validation.h"

/* Prints the rounds, from 1, in which others used the cores, and the number of their runs that the
 * figures leave out for that; nothing if count is 0. */
void duet__put_disturbed(FILE *stream, const size_t *rounds, size_t count, size_t left_out);

/* Returns "error", or, if nothing was predicted, "difference". */
const char *duet__error_word(const struct duet__validation *validation);

/* Returns "dgemm on c2050", or the name of the reason. Borrowed from the difference or constant. */
const char *duet__difference_name(const struct duet__difference *difference);

/* A time with four significant digits and its unit: "15.20 ms". The caller frees it with g_free. */
char *duet__time_text(double seconds);

/* A share in percent, always with a sign: "+5.2 %"; "-" if not known. The caller frees it with
 * g_free. */
char *duet__percent_text(double share);

/*
 * Returns the main part of a case's difference: the largest one that is not idle, overhead or
 * spread, if it has the sign of the largest of all and is at least a third of it; else that one.
 * Borrowed; NULL without an explanation.
 */
const struct duet__difference *duet__culprit(const struct duet__explanation *explanation);

/* Returns this part in words: "dgemm on cpu takes 1.52 ms predicted, 1.01 ms measured (+50 %)";
 * free with g_free. NULL without an explanation. */
char *duet__culprit_text(const struct duet__validation *validation,
                         const struct duet__explanation *explanation);

/* One part of the explanation over all cases. */
struct duet__mean_part {
    enum duet__reason reason;
    char name[2 * DUET_NAME_MAX];
    double share; /* mean over the explained cases of its seconds by the measured makespan */
};

/* The parts of the explanation over all cases, the largest in absolute value first. */
struct duet__causes {
    struct duet__mean_part *parts;
    size_t count;
    size_t cases; /* number that are explained */
    double whole; /* sum of the shares: the mean error of those cases */
};

/* The caller frees .parts with g_free. */
struct duet__causes duet__causes_of(const struct duet__validation *validation);

#endif
