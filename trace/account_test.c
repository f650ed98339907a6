/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts of recordings whose parts are known, and of random ones whose sums are. */
#include "trace/account.h"

#include <math.h>

#include "trace/testing_account.h"

/* States, summed up as comparisons do. */
enum part { KERNEL, TO_DEVICE, TO_HOST, BETWEEN, OVERHEAD, IDLE, PARTS };

static double part_s(const struct duet__account *account, enum part part)
{
    static const enum duet__state firsts[] = {DUET_STATE_KERNEL,
                                              DUET_STATE_TO_DEVICE_QUEUE,
                                              DUET_STATE_TO_HOST_QUEUE,
                                              DUET_STATE_BETWEEN_QUEUE,
                                              DUET_STATE_OVERHEAD,
                                              DUET_STATE_ELSEWHERE,
                                              DUET_STATES};
    return duet__states_sum(account->states_s, firsts[part], firsts[part + 1] - 1);
}

/* Makes the account and compares its parts, all workers together. */
static struct duet__account expect_told(const struct testing_recording *testing,
                                        const double parts_s[PARTS])
{
    struct duet__account account;
    double sum_s = 0;
    WORKS(duet__account_make(&testing->recording, &account, hear()));
    for (unsigned i = 0; i < PARTS; i++) {
        if (fabs(part_s(&account, i) - parts_s[i]) > 1e-9)
            g_test_message("part %u: %g s", i, part_s(&account, i));
        testing_near(part_s(&account, i), parts_s[i]);
        sum_s += part_s(&account, i);
    }
    testing_near(sum_s, account.workers * account.makespan_s);
    return account;
}

/* Compares parts of an account of events that do not say what released them. */
static struct duet__account expect(struct testing_recording *testing, const double parts_s[PARTS])
{
    testing_release(testing);
    return expect_told(testing, parts_s);
}

/* Kernels; not ready; ready, but not run; nothing left to do; a worker without any task. */
static void test_without_copies(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    struct duet__account account;
    testing_init(&testing, 10);
    testing_task(&testing, 0, 0, 0, 0, 2);
    testing_task(&testing, 0, 1, 3, 4, 7);  /* idle 2 to 3, overhead 3 to 4, idle from 7 */
    testing_task(&testing, 1, 1, 5, 5, 10); /* idle 0 to 5 */
    account = expect(&testing, (const double[]){10, 0, 0, 0, 1, 19});
    g_assert_cmpuint(account.workers, ==, 3);
    g_assert_cmpuint(account.kernel_count, ==, 3);
    g_assert_cmpstr(account.kernels[1].name, ==, "gemm");
    g_assert_cmpstr(account.kernels[1].arch, ==, "x5650");
    testing_near(account.kernels[1].seconds, 3);
    g_assert_cmpstr(account.kernels[2].arch, ==, "c2050");
    testing_near(account.kernels[2].count, 1);
    testing_near(account.kernels[2].seconds, 5);
    duet__account_fini(&account);
    duet__account_fini(&account);
}

/* Several streams: 0 to 4 and 2 to 6, so 2 s alone, 2 s shared, 2 s alone. */
static void test_overlap(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    OWNED(duet__account_fini) struct duet__account account;
    testing_init(&testing, 6);
    testing_task(&testing, 1, 0, 0, 0, 4);
    testing_task(&testing, 1, 1, 0, 2, 6);
    testing_task(&testing, 1, 1, 3, 3, 3); /* has no length: takes nothing from the others */
    account = expect(&testing, (const double[]){6, 0, 0, 0, 0, 12});
    testing_near(account.kernels[0].seconds, 3);
    testing_near(account.kernels[1].seconds, 3);
    testing_near(account.kernels[1].count, 2);
}

/* Each direction has one wait; a copy decided before the task is ready counts from then. */
static void test_directions(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    OWNED(duet__account_fini) struct duet__account account;
    testing_init(&testing, 10);
    testing_copy(&testing, 1, 0, 1, 1, 2, 4); /* to worker 1: ready at 2, starts at 4.5 */
    testing_task(&testing, 1, 1, 2, 4.5, 10);
    testing_copy(&testing, 2, 1, 2, 3, 3, 6); /* to worker 2 from 1: ready at 1 */
    testing_task(&testing, 2, 1, 1, 6, 10);
    testing_copy(&testing, 3, 2, 0, 5, 5.5, 7); /* to the host: ready at 4 */
    testing_task(&testing, 0, 0, 4, 7, 10);
    /* overhead: 4 to 4.5, 1 to 3 and 4 to 5 */
    account = expect(&testing, (const double[]){12.5, 2, 2, 3, 3.5, 7});
    for (unsigned i = 0; i < 3; i++)
        testing_near(account.bytes[i], 1000);
}

/* A copy that ends after the kernel starts, comes elsewhere, or makes room, is not waited for. */
static void test_other_copies(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    OWNED(duet__account_fini) struct duet__account account;
    testing_init(&testing, 10);
    testing_copy(&testing, 1, 0, 1, 0, 0, 6);                    /* the next task's */
    testing_copy(&testing, 2, 0, 2, 0, 0, 4);                    /* another device's */
    testing_copy(&testing, 3, 2, 0, 0, 0, 4);                    /* the host's */
    testing_copy(&testing, 3, 2, 0, 0, 0, 4)->write_back = true; /* another device's room */
    testing_task(&testing, 1, 1, 0, 5, 10);
    testing_copy(&testing, 4, 1, 0, 0, 1, 5)->failed = true; /* a failed copy has no bytes */
    testing_task(&testing, 0, 1, 0, 5, 10);
    account = expect(&testing, (const double[]){10, 0, 4, 0, 6, 10});
    testing_near(account.bytes[1], 2000);
}

/* Through the host: its first half is a copy to the host, also for the device that waits. */
static void test_chained(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    struct duet__account account;
    testing_init(&testing, 10);
    testing_copy(&testing, 7, 1, 0, 1, 1, 4);
    testing_copy(&testing, 7, 0, 2, 4.0001, 4.0001, 6); /* noticed, and decided, a little later */
    testing_task(&testing, 2, 1, 0, 6, 10);
    account = expect(&testing, (const double[]){4, 1.9999, 3.0001, 0, 1, 20});
    duet__account_fini(&account);
    /* decided later: the data was in the host's memory for another reason */
    testing.events[1].ready_s = 5;
    testing.events[1].released_by = 0;
    account = expect_told(&testing, (const double[]){4, 1, 0, 0, 5, 20});
    duet__account_fini(&account);
}

/* Room has to be made before the copy in is decided. */
static void test_room(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    OWNED(duet__account_fini) struct duet__account account;
    testing_init(&testing, 8);
    testing_copy(&testing, 1, 1, 0, 1, 1, 3)->write_back = true;
    testing_copy(&testing, 2, 0, 1, 3, 3, 5);
    testing_task(&testing, 1, 1, 0, 5, 8);
    account = expect(&testing, (const double[]){3, 2, 2, 0, 1, 16});
}

/* The copy that ends last of several is waited for; and two kernels wait one by one. */
static void test_at_once(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    OWNED(duet__account_fini) struct duet__account account;
    testing_init(&testing, 20);
    testing_copy(&testing, 1, 0, 1, 0, 0, 6);
    testing_copy(&testing, 2, 2, 1, 2, 2, 4); /* inside the other: nothing */
    testing_copy(&testing, 3, 2, 1, 5, 5, 8); /* counts from 5 on */
    testing_task(&testing, 1, 1, 0, 8, 10);
    testing_copy(&testing, 4, 0, 1, 9, 9, 12); /* 10 to 12 */
    testing_task(&testing, 1, 1, 0, 13, 20);   /* overhead 12 to 13 */
    account = expect(&testing, (const double[]){9, 2, 0, 3, 6, 40});
}

/* Dates that rounding has moved are taken as they were meant; others are refused. */
static void test_dates(void)
{
    OWNED(testing_fini) struct testing_recording testing;
    struct duet__account account;
    testing_init(&testing, 4);
    testing_task(&testing, 1, 1, -1e-9, -1e-9, 2 + 1e-9);
    testing_task(&testing, 1, 1, 2, 2 - 1e-9, 4 + 1e-9);
    WORKS(duet__account_make(&testing.recording, &account, hear()));
    testing_near(account.states_s[DUET_STATE_KERNEL], 4);
    testing_near(part_s(&account, IDLE), 8);
    duet__account_fini(&account);

    testing.events[0].end_s = 6;
    FAILS(duet__account_make(&testing.recording, &account, hear()), DUET_EINVAL, "task 1");
    testing.events[0].failed = true; /* dates of failed tasks are not checked */
    WORKS(duet__account_make(&testing.recording, &account, hear()));
    duet__account_fini(&account);
    testing.events[0].end_s = NAN;
    g_assert_cmpint(duet__account_make(&testing.recording, &account, hear()), ==, DUET_EINVAL);
    testing.events[0].end_s = 3;
    testing.events[0].worker = 3;
    g_assert_cmpint(duet__account_make(&testing.recording, &account, hear()), ==, DUET_EINVAL);
    testing_copy(&testing, 1, 0, 3, 0, 0, 1);
    testing.events[0].worker = 1;
    g_assert_cmpint(duet__account_make(&testing.recording, &account, hear()), ==, DUET_EINVAL);
    testing.recording.event_count = 0;
    testing.recording.makespan_s = INFINITY;
    g_assert_cmpint(duet__account_make(&testing.recording, &account, hear()), ==, DUET_EINVAL);
    testing.recording.makespan_s = 0;
    WORKS(duet__account_make(&testing.recording, &account, hear()));
    duet__account_fini(&account);
}

/* Returns the direction of copies a worker's next task waits for at a moment; overhead: none. */
static enum part slow_wait(const struct duet__recording *recording, const struct duet_event *next,
                           double at_s)
{
    const struct duet_event *copy = &recording->events[next->released_by - 1];
    if (!next->released_by || copy->kind != DUET_EVENT_COPY)
        return OVERHEAD;
    if (at_s < copy->ready_s || at_s > copy->end_s)
        return at_s < copy->ready_s ? slow_wait(recording, copy, at_s) : OVERHEAD;
    return copy->destination == DUET_HOST ? TO_HOST
           : copy->source == DUET_HOST    ? TO_DEVICE
                                          : BETWEEN;
}

/* The parts of one worker, moment by moment: what the sweep is checked against. */
static void slow_account(const struct duet__recording *recording, unsigned worker, unsigned steps,
                         double parts_s[PARTS])
{
    for (unsigned step = 0; step < steps; step++) {
        double at_s = (step + 0.5) * recording->makespan_s / steps;
        const struct duet_event *next = NULL;
        enum part part = IDLE;
        for (size_t i = 0; i < recording->event_count; i++) {
            const struct duet_event *event = &recording->events[i];
            if (event->kind != DUET_EVENT_TASK || event->worker != (int)worker)
                continue;
            if (event->start_s <= at_s && event->end_s > at_s)
                part = KERNEL;
            if (event->start_s > at_s && (!next || event->start_s < next->start_s))
                next = event;
        }
        if (part == IDLE && next && at_s >= next->ready_s)
            part = slow_wait(recording, next, at_s);
        parts_s[part] += recording->makespan_s / steps;
    }
}

/* Checks that the gaps of an account are in order and apart, and takes them off its sums. */
static void assert_gaps(const struct duet__recording *recording, struct duet__account *account)
{
    g_autoptr(GArray) gaps = duet__account_gaps(recording);
    for (guint i = 0; i < gaps->len; i++) {
        const struct duet__gap *gap = &g_array_index(gaps, struct duet__gap, i);
        g_assert_cmpfloat(gap->end_s, >, gap->start_s);
        g_assert_true(!i || gap->worker > gap[-1].worker || gap->start_s >= gap[-1].end_s);
        account->workers_s[gap->worker][gap->state] -= gap->end_s - gap->start_s;
    }
    for (unsigned i = 0; i < account->workers * DUET_STATES; i++)
        if (i % DUET_STATES != DUET_STATE_KERNEL)
            testing_near(account->workers_s[i / DUET_STATES][i % DUET_STATES], 0);
}

/* Random dates on a grid of whole seconds, so that the slow account is exact. */
static void test_random(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    for (unsigned round = 0; round < 300; round++) {
        OWNED(testing_fini) struct testing_recording testing;
        OWNED(duet__account_fini) struct duet__account account;
        double parts_s[PARTS] = {0};
        testing_init(&testing, 40);
        for (unsigned i = 0; i < 30; i++) {
            int start = g_rand_int_range(random, 0, 39);
            int end = g_rand_int_range(random, start + 1, MIN(start + 8, 40) + 1);
            int ready = g_rand_int_range(random, MAX(0, start - 6), start + 1);
            uint16_t to = (uint16_t)g_rand_int_range(random, 0, 3);
            if (i % 2)
                testing_task(&testing, g_rand_int_range(random, 0, 3), i % 4 == 1, ready, start,
                             end);
            else /* a handle of its own: nothing is chained */
                testing_copy(&testing, i + 1, to ? (uint16_t)(i % 4 ? 0 : 3 - to) : 1, to, ready,
                             start, end);
        }
        testing_release(&testing);
        for (unsigned worker = 0; worker < 3; worker++)
            slow_account(&testing.recording, worker, 40, parts_s);
        account = expect_told(&testing, parts_s);
        assert_gaps(&testing.recording, &account);
    }
}

/* The sums also hold for runs with many events of many lengths. */
static void test_sums(void)
{
    OWNED(sample_fini) struct sample sample;
    struct duet__account accounts[SAMPLE_POLICIES], mean;
    sample_init(&sample, 5, 7, 4000);
    for (unsigned p = 0; p < SAMPLE_POLICIES; p++) {
        double sum_s = 0, kernels_s = 0;
        struct duet__account *account = &accounts[p];
        WORKS(duet__account_make(&sample.recordings[p], account, hear()));
        for (unsigned i = 0; i < DUET_STATES; i++) {
            g_assert_cmpfloat(account->states_s[i], >=, 0);
            sum_s += account->states_s[i];
        }
        for (size_t i = 0; i < account->kernel_count; i++)
            kernels_s += account->kernels[i].seconds;
        g_assert_cmpfloat_with_epsilon(sum_s / (12 * account->makespan_s), 1, 1e-9);
        g_assert_cmpfloat_with_epsilon(kernels_s / account->states_s[DUET_STATE_KERNEL], 1, 1e-9);
        g_assert_cmpfloat_with_epsilon(kernels_s / sample.runs[p][0].stats.busy_s, 1, 1e-9);
    }
    duet__account_mean(accounts, SAMPLE_POLICIES, &mean);
    for (unsigned i = 0; i < DUET_STATES; i++) {
        double sum_s = 0;
        for (unsigned p = 0; p < SAMPLE_POLICIES; p++)
            sum_s += accounts[p].states_s[i];
        g_assert_cmpfloat_with_epsilon(mean.states_s[i], sum_s / SAMPLE_POLICIES,
                                       1e-9 * (1 + sum_s));
    }
    duet__account_fini(&mean);
    for (unsigned p = 0; p < SAMPLE_POLICIES; p++)
        duet__account_fini(&accounts[p]);
}

/* A kernel that only one of two runs has counts half in their mean. */
static void test_mean(void)
{
    struct duet__account_kernel one = {.name = "gemm", .arch = "gpu", .count = 4, .seconds = 8};
    struct duet__account_kernel two[] = {{.name = "gemm", .arch = "cpu", .count = 2, .seconds = 20},
                                         one};
    struct duet__account accounts[] = {
        {.workers = 1, .makespan_s = 8, .states_s = {8}, .kernels = &one, .kernel_count = 1},
        {.workers = 1, .makespan_s = 28, .states_s = {28}, .kernels = two, .kernel_count = 2},
    };
    OWNED(duet__account_fini) struct duet__account mean;
    duet__account_mean(accounts, 2, &mean);
    testing_near(mean.makespan_s, 18);
    g_assert_cmpuint(mean.kernel_count, ==, 2);
    testing_near(mean.kernels[0].count, 4);
    testing_near(mean.kernels[0].seconds, 8);
    g_assert_cmpstr(mean.kernels[1].arch, ==, "cpu");
    testing_near(mean.kernels[1].count, 1);
    testing_near(mean.kernels[1].seconds, 10);
}

TEST_MAIN(test_without_copies, test_overlap, test_directions, test_other_copies, test_chained,
          test_room, test_at_once, test_dates, test_random, test_sums, test_mean)
