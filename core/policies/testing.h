/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests of policies: tasks that are given to one by hand, their places, and their
 * takers.
 */
#ifndef DUET_CORE_POLICIES_TESTING_H
#define DUET_CORE_POLICIES_TESTING_H

#include "core/testing.h"

enum { SHARED = TESTING_WORKERS }; /* the list of all workers */

static inline void push_by(struct testing *t, int by, struct duet_task *const *tasks, size_t count)
{
    struct duet_view view = testing_view(t, by);
    struct duet_task *batch[64];
    TESTING_MUST(count <= G_N_ELEMENTS(batch));
    memcpy(batch, tasks, count * sizeof *batch);
    t->core->policy->push(t->core->policy_state, &view, batch, count, by, t->now);
}

static inline void push(struct testing *t, struct duet_task *const *tasks, size_t count)
{
    push_by(t, DUET_SUBMITTER, tasks, count);
}

static inline struct duet_task *popped(struct testing *t, unsigned worker)
{
    struct duet_view view = testing_view(t, (int)worker);
    return t->core->policy->pop(t->core->policy_state, &view, worker, t->now);
}

static inline struct duet_task *stolen(struct testing *t, unsigned thief, unsigned victim)
{
    struct duet_view view = testing_view(t, (int)thief);
    return t->core->policy->steal(t->core->policy_state, &view, thief, victim, t->now);
}

/* On whose list one more task goes that `by` makes ready, or SHARED. It stays there. */
static inline unsigned placed_by(struct testing *t, struct duet_task *one, int by)
{
    struct duet_view view = testing_view(t, by);
    const unsigned workers = t->workers;
    size_t shared = duet_list_length(duet_view_shared(&view)), before[TESTING_WORKERS];
    for (unsigned w = 0; w < workers; w++)
        before[w] = duet_list_length(duet_view_list(&view, w));
    push_by(t, by, &one, 1);
    if (duet_list_length(duet_view_shared(&view)) > shared)
        return SHARED;
    for (unsigned w = 0; w < workers; w++)
        if (duet_list_length(duet_view_list(&view, w)) > before[w])
            return w;
    g_assert_not_reached();
}

static inline unsigned placed(struct testing *t, struct duet_task *one)
{
    return placed_by(t, one, DUET_SUBMITTER);
}

/* Returns the worker of a task on empty lists, see placed_by; takes the task off its list again. */
static inline unsigned goes_to(struct testing *t, struct duet_task *one, int by)
{
    struct duet_view view = testing_view(t, by);
    struct duet_task *off = NULL;
    unsigned worker = placed_by(t, one, by);
    for (unsigned w = 0; w < t->workers && !off; w++)
        off = duet_pop_head(&view, duet_view_list(&view, worker), w);
    g_assert_true(off == one);
    return worker;
}

static inline struct duet_task *task_with(struct testing *t, struct duet_codelet *codelet,
                                          const double *args, size_t count,
                                          struct duet_handle *data, int priority)
{
    struct duet_access access = {data, DUET_R};
    const struct duet_task_desc desc = {.codelet = codelet,
                                        .accesses = &access,
                                        .access_count = data != NULL,
                                        .args = args,
                                        .args_bytes = count * sizeof *args,
                                        .priority = priority};
    t->hold = true;
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    t->hold = false;
    return t->held;
}

/* A task that takes so long on a core, and a tenth of it on a device. */
static inline struct duet_task *task_of(struct testing *t, struct duet_codelet *codelet, double ms,
                                        struct duet_handle *data, int priority)
{
    return task_with(t, codelet, (const double[]){ms * 1e6}, 1, data, priority);
}

static inline double times_work(const void *args)
{
    const double *ms = args;
    return 1e6 + 1e6 * ms[0] + ms[1];
}

static inline double times_cost(const void *args, const char *arch)
{
    return ((const double *)args)[strcmp(arch, "core") != 0] * 1e-3;
}

/* A task with expected times of its own, 0: not there. Each has a kernel, so that measurements do
   not mix. */
static inline struct duet_task *task(struct testing *t, double cpu_ms, double gpu_ms,
                                     struct duet_handle *data, int priority)
{
    char name[DUET_NAME_MAX];
    struct duet_codelet *codelet;
    struct duet_implementation both[] = {{.arch = "cpu"}, {.arch = "cuda"}};
    struct duet_codelet_desc desc = {.name = name,
                                     .implementations = cpu_ms > 0 ? both : both + 1,
                                     .implementation_count = cpu_ms > 0 && gpu_ms > 0 ? 2 : 1,
                                     .flops = times_work,
                                     .cost = times_cost};
    testing_name(name, "kernel", (unsigned)duet_kernel_count(t->core));
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_OK);
    return task_with(t, codelet, (const double[]){cpu_ms, gpu_ms}, 2, data, priority);
}

#endif
