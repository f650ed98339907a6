/* SPDX-License-Identifier: Apache-2.0 */
/* Support for tests of tasks that expand: a kernel that calls the functions its argument gives. */
#ifndef DUET_CORE_TESTING_EXPAND_H
#define DUET_CORE_TESTING_EXPAND_H

#include "core/testing.h"

enum { PLAN_BLOCKS = 16, PLAN_IDS = 64 };

/* Work of one task when it expands, and its results. The task's argument points to it. */
struct plan {
    int (*expand)(struct plan *plan, struct duet_expansion *expansion,
                  const struct duet_call *call);
    struct testing *t;
    struct duet_handle *blocks[PLAN_BLOCKS];
    unsigned calls, children;
    uint64_t ids[PLAN_IDS]; /* numbers of its children */
    struct plan *inner;     /* plan of a child that expands */
    const void *data;       /* that its first buffer had */
};

static inline int plan_expand(struct duet_expansion *expansion, const struct duet_call *call)
{
    struct plan *plan;
    memcpy(&plan, call->args, sizeof plan);
    plan->calls++;
    plan->data = call->buffer_count ? call->buffers[0].data : NULL;
    TESTING_MUST(call->runtime == plan->t->core);
    return plan->expand(plan, expansion, call);
}

/* The kernel of such tasks. */
static inline struct duet_codelet *plan_codelet(struct testing *t)
{
    struct duet_codelet *codelet = duet_codelet_find(t->core, "split");
    struct duet_codelet_desc desc = {.name = "split", .expand = plan_expand};
    if (!codelet)
        TESTING_MUST(!duet_register_codelet(t->core, &desc, &codelet));
    return codelet;
}

static inline struct duet_task_desc plan_desc(struct testing *t, struct plan *const *plan,
                                              const struct duet_access *accesses, size_t count)
{
    return (struct duet_task_desc){.codelet = plan_codelet(t),
                                   .accesses = accesses,
                                   .access_count = count,
                                   .args = plan,
                                   .args_bytes = sizeof *plan};
}

/* Submits a task that expands, with up to two accesses (mode 0: none). Its number. */
static inline uint64_t plan_submit(struct testing *t, struct plan *plan, struct duet_handle *a,
                                   int mode_a, struct duet_handle *b, int mode_b)
{
    struct duet_access accesses[] = {{a, (enum duet_mode)mode_a}, {b, (enum duet_mode)mode_b}};
    struct duet_task_desc desc = plan_desc(t, &plan, accesses, mode_b ? 2 : mode_a ? 1 : 0);
    plan->t = t;
    TESTING_MUST(!duet_submit(t->core, &desc));
    return atomic_load(&t->core->submitted);
}

/* A child with up to two accesses; 0 or the error. */
static inline int plan_child(struct plan *plan, struct duet_expansion *expansion,
                             const struct duet_codelet *codelet, struct duet_handle *a, int mode_a,
                             struct duet_handle *b, int mode_b)
{
    struct duet_access accesses[] = {{a, (enum duet_mode)mode_a}, {b, (enum duet_mode)mode_b}};
    double flops = 0;
    struct duet_task_desc desc = {.codelet = codelet,
                                  .accesses = accesses,
                                  .access_count = mode_b   ? 2
                                                  : mode_a ? 1
                                                           : 0,
                                  .args = &flops,
                                  .args_bytes = sizeof flops};
    int error = duet_expand_submit(expansion, &desc);
    if (!error)
        plan->ids[plan->children++ % PLAN_IDS] = atomic_load(&plan->t->core->submitted);
    return error;
}

/* A child that expands in turn. */
static inline int plan_inner(struct plan *plan, struct duet_expansion *expansion,
                             struct duet_handle *a, int mode_a)
{
    struct duet_access access = {a, (enum duet_mode)mode_a};
    struct duet_task_desc desc = plan_desc(plan->t, &plan->inner, &access, mode_a ? 1 : 0);
    plan->inner->t = plan->t;
    int error = duet_expand_submit(expansion, &desc);
    if (!error)
        plan->ids[plan->children++ % PLAN_IDS] = atomic_load(&plan->t->core->submitted);
    return error;
}

/* Cuts an access of `rows` x 1 into `count` equal blocks. */
static inline int plan_cut(struct plan *plan, struct duet_expansion *expansion, size_t index,
                           size_t rows, unsigned count)
{
    int error = DUET_OK;
    for (unsigned i = 0; i < count && !error; i++)
        error = duet_expand_block(expansion, index, i * (rows / count), 0, rows / count, 1,
                                  &plan->blocks[i]);
    return error;
}

/* Numbers of the tasks that ran without failing, in order of their beginning. How many. */
static inline unsigned plan_order(struct testing *t, uint64_t *ids, unsigned max)
{
    struct duet_event *events;
    size_t count;
    unsigned found = 0;
    TESTING_MUST(!duet_trace_events(t->core, &events, &count));
    for (size_t i = 0; i < count; i++) {
        if (events[i].kind != DUET_EVENT_TASK || events[i].failed)
            continue;
        TESTING_MUST(found < max);
        ids[found++] = events[i].id;
    }
    free(events);
    return found;
}

#endif
