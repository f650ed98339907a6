/* SPDX-License-Identifier: Apache-2.0 */
/* The area bound of any of a runtime's tasks, and what tasks then are worth. */
#ifndef DUET_TRACE_AREA_H
#define DUET_TRACE_AREA_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/bounds.h"

/* What is known of a runtime's classes of tasks, and of its machine. */
struct duet__classes {
    size_t count, arch_count; /* architectures that have workers */
    unsigned *workers;        /* by architecture */
    bool *device;             /* by architecture: its workers compute in memories of their own */
    double *tasks;            /* by class: that have ended */
    double *times_s; /* by class, then architecture: 2^-exponent of the times, at most 1; INFINITY:
                        cannot run */
    double *best_s;  /* by class: the least of these; 0: none has ended */
    int exponent;
};

/*
 * Of nodes whose architectures are the same; the workers of all of them are shared, the tasks of
 * each take what they take there. false: one that has tasks can run nowhere. To be freed by
 * duet__classes_free in either case.
 */
bool duet__classes_make(struct duet__classes *classes, const struct duet__node_classes *nodes,
                        unsigned node_count);
void duet__classes_free(struct duet__classes *classes);

/* Tasks that take the same times, and the same of the links where their data has to be copied. */
struct duet__area_tasks {
    double tasks, link_s;
    const double *times_s; /* of one, by architecture */
};

/* A multiset of tasks, on the workers and perhaps the links of the machine. */
struct duet__area {
    const struct duet__classes *of;
    struct duet__area_tasks *groups;
    size_t group_count;
    bool link;      /* the links are looked at, too: as one more architecture, of one worker */
    double spare_s; /* that links need not be busy of what the groups say */
    double *prices; /* by architecture: the best, as far as they are found */
};

/* Of no task so far, to be freed by duet__area_fini; `link`: as there. */
struct duet__area duet__area_new(const struct duet__classes *classes, bool link);

/* Takes so many tasks of each class, as groups. */
void duet__area_fill(struct duet__area *area, const double *counts);

/* What a task costs where it is cheapest, and where that is. */
double duet__area_cost(const struct duet__area *area, const double *times_s, double link_s,
                       const double *prices, size_t *where);

/*
 * The bound, and the prices, of which all workers (and links) earn 1 a second: what all tasks cost
 * where each is cheapest. For more than two architectures, links among them, it ends after so many
 * products of a time and a price; links need two architectures.
 */
double duet__area_bound(struct duet__area *area, double most_products);

void duet__area_fini(struct duet__area *area);

#endif
