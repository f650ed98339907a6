/* SPDX-License-Identifier: Apache-2.0 */
/* The area bound of any of a runtime's tasks, and what tasks then are worth. */
#ifndef DUET_TRACE_AREA_H
#define DUET_TRACE_AREA_H

#include <stdbool.h>
#include <stddef.h>

#include "trace/bounds.h"

/* Classes of a runtime's tasks, and the workers of its machine. */
struct duet__classes {
    size_t count, arch_count; /* architectures that have workers */
    unsigned *workers;        /* number of workers, by architecture */
    bool *device;             /* true if its workers have memories of their own */
    double *tasks;            /* number of tasks that have ended, by class */
    double *times_s; /* seconds by class, then architecture, times 2^-exponent: at most 1; INFINITY:
                        cannot run */
    double *best_s;  /* least of times_s, by class; 0: no task has ended */
    int exponent;
};

/*
 * Makes the classes of nodes that have the same architectures: the workers of all are shared, the
 * tasks of each node take what they take there. Returns false if a class that has tasks can run
 * nowhere. The caller frees *classes (duet__classes_free) in either case.
 */
bool duet__classes_make(struct duet__classes *classes, const struct duet__node_classes *nodes,
                        unsigned node_count);
void duet__classes_free(struct duet__classes *classes);

/* Tasks that take the same times, also of the links where their data has to be copied. */
struct duet__area_tasks {
    double tasks, link_s;
    const double *times_s; /* times of one task, by architecture */
};

/* A multiset of tasks, on the workers and perhaps the links of the machine. */
struct duet__area {
    const struct duet__classes *of;
    struct duet__area_tasks *groups;
    size_t group_count;
    bool link;      /* true if links count, as one more architecture, of one worker */
    double spare_s; /* part of the groups' link times that links need not be busy */
    double *prices; /* best prices found so far, by architecture */
};

/* Returns an area of no task so far; `link`: links count. Free with duet__area_fini. */
struct duet__area duet__area_new(const struct duet__classes *classes, bool link);

/* Takes so many tasks of each class, as groups. */
void duet__area_fill(struct duet__area *area, const double *counts);

/* Returns what a task costs where it is cheapest; *where: that architecture. */
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
