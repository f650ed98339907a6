/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of data-aware (H1): to where most valid bytes are. Workers: two cores, two devices. */
#include "core/policies/testing.h"

enum { GPU0 = 2, GPU1 = 3, MANY = 200 };

static struct testing *start(void)
{
    return testing_init(&(struct testing_machine){.cpus = 2, .gpus = 2}, "data-aware", 1);
}

/* Makes the handle valid on one device alone. */
static void write_on(struct testing *t, unsigned worker, struct duet_handle *handle)
{
    (void)testing_submit(t, t->gpu, handle, DUET_W, NULL, 0, 0);
    g_assert_cmpuint(testing_work(t, worker, NULL), ==, 1);
}

static void test_most_bytes(void)
{
    OWNED(testing_end) struct testing *t = start();
    struct duet_handle *a = testing_handle(t, 1000), *b = testing_handle(t, 3000);
    struct duet_handle *c = testing_handle(t, 2500);
    write_on(t, GPU0, a);
    write_on(t, GPU1, b);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, a, DUET_R, b, DUET_R, 0), 0), ==, GPU1);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, a, DUET_R, NULL, 0, 0), 0), ==, GPU0);
    /* all accesses count, those that only write too; c is on the host, the local core's node */
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, b, DUET_W, c, DUET_R, 0), 1), ==, GPU1);
    g_assert_cmpuint(goes_to(t, testing_create(t, t->any, a, DUET_R, c, DUET_R, 0), 1), ==, 1);
    /* a worker that cannot run it is no candidate */
    g_assert_cmpuint(goes_to(t, testing_create(t, t->cpu, b, DUET_R, NULL, 0, 0), 1), ==, 1);
}

/* Among equals the local worker; if it is none of them, each of them now and then. */
static void test_ties(void)
{
    unsigned count[4] = {0};
    OWNED(testing_end) struct testing *t = start();
    struct duet_handle *c = testing_handle(t, 100);
    struct duet_task *anywhere = testing_create(t, t->any, NULL, 0, NULL, 0, 0);
    struct duet_task *on_host = testing_create(t, t->any, c, DUET_R, NULL, 0, 0);
    struct duet_task *on_gpu = testing_create(t, t->gpu, c, DUET_R, NULL, 0, 0);
    for (int by = 0; by < 4; by++)
        g_assert_cmpuint(goes_to(t, anywhere, by), ==, (unsigned)by);
    g_assert_cmpuint(goes_to(t, anywhere, DUET_SUBMITTER), ==, 0);
    for (unsigned i = 0; i < MANY; i++) {
        count[goes_to(t, on_host, GPU0)]++;
        count[goes_to(t, on_gpu, 0)]++;
    }
    for (unsigned w = 0; w < 4; w++)
        g_assert_cmpuint(count[w], >, MANY / 4);
}

static void test_ends(void)
{
    OWNED(testing_end) struct testing *t = start();
    struct duet_handle *a = testing_handle(t, 1000);
    write_on(t, GPU0, a);
    check_ends(t, GPU0, a, DUET_R);
}

TEST_MAIN(test_most_bytes, test_ties, test_ends)
