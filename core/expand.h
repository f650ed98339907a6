/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that has children: while it expands and until they have ended, or, if it waits for them,
 * while it runs.
 */
#ifndef DUET_CORE_EXPAND_H
#define DUET_CORE_EXPAND_H

#include "core/internal.h"

struct duet_expansion {
    struct duet_runtime *core;
    struct duet_task *task;       /* the task that expands */
    struct duet_view *view;       /* the call in which it expands; NULL afterwards */
    _Atomic(uint64_t) unfinished; /* children, plus 1 while it expands or does not wait */
    _Atomic(int) failed;          /* status of its failure, or of the first child's; 0: none */
    struct parts *blocks;         /* a list for each access with blocks */
    unsigned block_count;         /* blocks of all lists: as many as a task may have accesses */
    bool any_data; /* children use data beyond its blocks, which no task outside uses meanwhile */
    /* fields of a task that waits */
    bool any;                     /* children were submitted since it last waited */
    uint64_t kept;                /* children that the worker keeps to itself: nested.c */
    _Atomic(bool) ready;          /* it waits no more: set by the thread that ends the last child */
    struct worker *self;          /* worker that runs it; NULL: it does not wait */
    struct duet_expansion *below; /* expansion of the task on top of which it began */
    /* last error of the functions called with it, or the application's own; of a task that waits,
       its worker's, as thousands of these may be on a stack */
    struct duet_message *message;
};

/*
 * expand.c, for tasks that wait: next steps when the last child has ended, and when the blocks have
 * arrived
 */
void duet__children_ended(struct duet_view *view, struct duet_expansion *body);
void duet__body_ready(struct duet_view *view, struct duet_expansion *body);

#endif
