/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests of lost devices: workers are asked only when the core woke them, so that a
 * missing wake shows, and copies and kernels of a lost device end as an engine reports them.
 */
#ifndef DUET_CORE_TESTING_LOST_H
#define DUET_CORE_TESTING_LOST_H

#include "core/testing.h"

/* A core whose workers have all been asked once and found nothing. */
static inline struct testing *lost_start(const struct testing_machine *make, const char *policy)
{
    struct testing *t = testing_init(make, policy, 1);
    for (unsigned w = 0; w < t->workers; w++)
        g_assert_cmpint(testing_next(t, w).kind, ==, DUET_IDLE);
    return t;
}

/* The device of a worker is gone. */
static inline void lose(struct testing *t, unsigned worker)
{
    g_assert_cmpint(duet__worker_lost(t->core, worker, t->now, &t->ops), ==, DUET_OK);
    g_assert_cmpint(testing_next(t, worker).kind, ==, DUET_IDLE);
}

/* Reports a command of a device that is gone. */
static inline void done_lost(struct testing *t, const struct duet__engine_command *command)
{
    testing_done(t, command, 1e-6, DUET_ELOST);
    g_assert_cmpint(testing_next(t, command->worker).kind, ==, DUET_IDLE);
}

/* Asks whoever was woken until nobody is any more. How many tasks ran. */
static inline unsigned go(struct testing *t, struct testing_log *log)
{
    unsigned runs = 0;
    for (unsigned w = 0; w < t->workers; w++) {
        if (!t->woken[w])
            continue;
        runs += testing_work(t, w, log);
        w = UINT_MAX; /* from the first one again */
    }
    return runs;
}

/* The next command of a worker, which is a copy of that handle between these nodes. */
static inline struct duet__engine_command expect_copy(struct testing *t, unsigned worker,
                                                      const struct duet_handle *handle,
                                                      unsigned source, unsigned destination)
{
    struct duet__engine_command command = testing_next(t, worker);
    g_assert_cmpint(command.kind, ==, DUET_COPY);
    g_assert_true(command.copy->handle == handle);
    g_assert_cmpuint(command.copy->source, ==, source);
    g_assert_cmpuint(command.copy->destination, ==, destination);
    return command;
}

static inline struct duet__engine_command expect_run(struct testing *t, unsigned worker)
{
    struct duet__engine_command command = testing_next(t, worker);
    g_assert_cmpint(command.kind, ==, DUET_RUN);
    return command;
}

static inline void expect_idle(struct testing *t, unsigned worker)
{
    g_assert_cmpint(testing_next(t, worker).kind, ==, DUET_IDLE);
}

/* Submits a task of that kernel with one or two accesses to these architectures (NULL: any). */
static inline void submit_to(struct testing *t, const struct duet_codelet *codelet,
                             const char *where, struct duet_handle *a, int mode_a,
                             struct duet_handle *b, int mode_b)
{
    double flops = 0;
    struct duet_access accesses[] = {{a, (enum duet_mode)mode_a}, {b, (enum duet_mode)mode_b}};
    struct duet_task_desc desc = {.codelet = codelet,
                                  .accesses = accesses,
                                  .access_count = mode_b   ? 2
                                                  : mode_a ? 1
                                                           : 0,
                                  .args = &flops,
                                  .args_bytes = sizeof flops,
                                  .where = where ? duet_where(t->core, where) : 0};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
}

/* Checks that nothing is left half done: no device has pins or copies, and no link is queued for.
 */
static inline void check_rest(const struct testing *t)
{
    const struct duet_runtime *core = t->core;
    g_assert_cmpuint(unfinished(core), ==, 0);
    for (unsigned n = 1; n < core->machine.node_count; n++) {
        g_assert_cmpuint(atomic_load(&core->nodes[n].pinned), ==, 0);
        g_assert_cmpuint(core->nodes[n].leaving_bytes, ==, 0);
    }
    for (const struct duet_handle *h = core->handles; h; h = h->next) {
        for (unsigned n = 0; n < core->machine.node_count; n++) {
            const struct replica *replica = h->replicas[n];
            g_assert_false(bit_test(h->coming, n));
            g_assert_false(bit_test(h->valid, n) && atomic_load(&core->nodes[n].lost));
            if (replica)
                g_assert_true(!replica->copying && !replica->leaving && !replica->waiters &&
                              !replica->chained);
        }
    }
    for (unsigned w = 0; w < core->machine.worker_count; w++) {
        g_assert_cmpuint(core->workers[w].taken + core->workers[w].copying, ==, 0);
        g_assert_cmpint(atomic_load(&core->workers[w].taken_ns), ==, 0);
        g_assert_cmpuint(duet_list_length(&core->workers[w].list), ==, 0);
    }
    g_assert_cmpuint(duet_list_length(&core->shared), ==, 0);
    for (unsigned i = 0; i < core->machine.link_count + 2 * core->machine.node_count; i++)
        g_assert_cmpint(atomic_load(&core->queued_ns[i]), ==, 0);
}

/* All is finished, as `error` says (with a message that says `part`), and everybody can leave. */
static inline void lost_end(struct testing *t, int error, const char *part)
{
    REFUSED(t->core, duet_wait(t->core), error, error ? part : NULL);
    check_rest(t);
    testing_stop(t);
    testing_fini(t);
}

#endif
