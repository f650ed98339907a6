/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of locality-aware (H2): to who holds what is written. Workers: two cores, two devices. */
#include "core/policies/testing.h"

enum { GPU0 = 2, GPU1 = 3, MANY = 200 };

static struct testing *start(void)
{
    return testing_init(&(struct testing_machine){.cpus = 2, .gpus = 2}, "locality-aware", 1);
}

/* Makes the handle valid on one device alone. */
static void write_on(struct testing *t, unsigned worker, struct duet_handle *handle)
{
    (void)testing_submit(t, t->gpu, handle, DUET_W, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, worker, NULL), ==, 1);
}

/* Tasks go to a worker with a valid copy of the written data, however little, whatever is read. */
static void test_owner(void)
{
    OWNED(testing_end) struct testing *t = start();
    struct duet_handle *a = testing_handle(t, 10000), *b = testing_handle(t, 10);
    write_on(t, GPU0, a);
    write_on(t, GPU1, b);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, a, DUET_R, b, DUET_RW, 0), 0), ==, GPU1);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, b, DUET_W, a, DUET_R, 0), 0), ==, GPU1);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, a, DUET_RW, b, DUET_R, 0), 0), ==, GPU0);
}

/* Local if nobody holds it, if nothing is written, or if who holds it cannot run the task. */
static void test_local(void)
{
    OWNED(testing_end) struct testing *t = start();
    struct duet_handle *a = testing_handle(t, 1000);
    write_on(t, GPU0, a);
    for (int by = 0; by < 4; by++) {
        unsigned local = (unsigned)by;
        g_assert_cmpuint(goes_to(t, testing_create(t, t->any, NULL, 0, NULL, 0, 0), by), ==, local);
        g_assert_cmpuint(goes_to(t, testing_create(t, t->any, a, DUET_R, NULL, 0, 0), by), ==,
                         local);
        g_assert_cmpuint(goes_to(t, testing_create(t, t->cpu, a, DUET_RW, NULL, 0, 0), by), ==,
                         local);
    }
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, NULL, 0, NULL, 0, 0), DUET_SUBMITTER), ==,
                     0);
}

/* Several holders: each of them now and then, the local one no more than the others. */
static void test_several(void)
{
    unsigned count[4] = {0};
    OWNED(testing_end) struct testing *t = start();
    struct duet_handle *a = testing_handle(t, 1000), *b = testing_handle(t, 1000);
    (void)testing_submit(t, t->gpu, a, DUET_R, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, GPU0, NULL), ==, 1);
    write_on(t, GPU1, b);
    struct duet_task *task = testing_create(t, t->any, a, DUET_RW, NULL, 0, 0);
    struct duet_task *both = testing_create(t, t->any, a, DUET_RW, b, DUET_RW, 0);
    for (unsigned i = 0; i < MANY; i++)
        count[goes_to(t, task, 1)]++;
    g_assert_cmpuint(count[GPU1], ==, 0);
    for (unsigned w = 0; w < 3; w++)
        g_assert_cmpuint(count[w], >, MANY / 5);
    for (unsigned i = 0; i < MANY; i++)
        count[goes_to(t, both, GPU1)]++;
    g_assert_cmpuint(count[GPU1], >, MANY / 8);
    g_assert_cmpuint(count[GPU1], <, MANY / 2);
}

static void test_ends(void)
{
    OWNED(testing_end) struct testing *t = start();
    struct duet_handle *a = testing_handle(t, 1000);
    write_on(t, GPU0, a);
    check_ends(t, GPU0, a, DUET_RW);
}

TEST_MAIN(test_owner, test_local, test_several, test_ends)
