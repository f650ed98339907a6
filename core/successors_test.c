/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what comes directly after a task, as far as it was submitted. */
#include "core/testing_lost.h"

static void check(const struct duet_task *task, size_t count, double normalised)
{
    struct duet_successors found = duet_task_successors(task);
    g_assert_cmpuint(found.count, ==, count);
    g_assert_cmpfloat_with_epsilon(found.normalised, normalised, 1e-12);
}

/* Three readers after a writer; the next writer is a third of each, and of two when one has ended.
 */
static void test_readers(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 3}, "eager");
    struct duet_handle *a = testing_handle(t, 8);
    (void)testing_submit(t, t->cpu, a, DUET_W, NULL, 0, 0);
    struct duet__engine_command first = expect_run(t, 0), readers[3];
    check(first.task, 0, 0);
    for (unsigned i = 0; i < 3; i++)
        (void)testing_submit(t, t->cpu, a, DUET_R, NULL, 0, 0);
    check(first.task, 3, 3);
    (void)testing_submit(t, t->cpu, a, DUET_RW, NULL, 0, 0);
    check(first.task, 3, 3);
    testing_done(t, &first, 1, 0);
    for (unsigned w = 0; w < 3; w++) {
        readers[w] = expect_run(t, w);
        check(readers[w].task, 1, 1.0 / 3);
    }
    testing_done(t, &readers[0], 1, 0);
    check(readers[1].task, 1, 1.0 / 2);
    testing_done(t, &readers[1], 1, 0);
    testing_done(t, &readers[2], 1, 0);
    lost_end(t, 0, NULL);
}

/* One that waits for two of a task's accesses counts twice, and is all of its own predecessor's. */
static void test_several(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 2}, "eager");
    struct duet_handle *a = testing_handle(t, 8), *b = testing_handle(t, 8);
    (void)testing_submit(t, t->cpu, a, DUET_RW, b, DUET_RW, 0);
    (void)testing_submit(t, t->cpu, a, DUET_RW, b, DUET_R, 0);
    struct duet__engine_command one = expect_run(t, 0);
    check(one.task, 2, 1);
    testing_done(t, &one, 1, 0);
    (void)testing_work(t, 0, NULL);
    struct duet_handle *c = testing_handle(t, 8);
    (void)testing_submit(t, t->cpu, b, DUET_RW, NULL, 0, 0);
    (void)testing_submit(t, t->cpu, c, DUET_RW, NULL, 0, 0);
    (void)testing_submit(t, t->cpu, b, DUET_R, c, DUET_R, 0);
    struct duet__engine_command two[2] = {expect_run(t, 0), expect_run(t, 1)};
    check(two[0].task, 1, 0.5);
    check(two[1].task, 1, 0.5);
    testing_done(t, &two[0], 1, 0);
    check(two[1].task, 1, 1);
    testing_done(t, &two[1], 1, 0);
    lost_end(t, 0, NULL);
}

/* Commuting tasks come together; an acquisition by the application is no task; references count. */
static void test_others(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1}, "eager");
    struct duet_handle *a = testing_handle(t, 8), *b = testing_handle(t, 8);
    struct duet_ref *ref;
    double flops = 0;
    struct duet_access access = {a, DUET_RW};
    struct duet_task_desc desc = {.codelet = t->cpu,
                                  .accesses = &access,
                                  .access_count = 1,
                                  .args = &flops,
                                  .args_bytes = sizeof flops,
                                  .extra = &(struct duet_task_extra){.ref = &ref}};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    for (unsigned i = 0; i < 2; i++)
        submit_to(t, t->cpu, NULL, a, DUET_COMMUTE, NULL, 0);
    desc.extra = &(struct duet_task_extra){.after = &ref, .after_count = 1};
    access = (struct duet_access){b, DUET_RW};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    struct duet__engine_command one = expect_run(t, 0);
    check(one.task, 3, 3);
    testing_done(t, &one, 1, 0);
    testing_drain(t);
    duet_ref_free(ref);
    access.handle = a;
    desc.extra = NULL;
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    g_assert_cmpint(duet_wont_use(t->core, a), ==, DUET_OK);
    one = expect_run(t, 0);
    check(one.task, 0, 0);
    testing_done(t, &one, 1, 0);
    lost_end(t, 0, NULL);
}

TEST_MAIN(test_readers, test_several, test_others)
