/* SPDX-License-Identifier: Apache-2.0 */
/* Explanations name the change between two runs, and add up to the difference. */
#include <math.h>

#include "trace/testing_account.h"

static double sum_of(const struct duet__explanation *explanation)
{
    double sum_s = 0;
    for (size_t i = 0; i < explanation->count; i++)
        sum_s += explanation->differences[i].seconds;
    return sum_s;
}

static const struct duet__difference *find(const struct duet__explanation *explanation,
                                           enum duet__reason reason, const char *what)
{
    for (size_t i = 0; i < explanation->count; i++)
        if (explanation->differences[i].reason == reason &&
            strcmp(explanation->differences[i].what, what) == 0)
            return &explanation->differences[i];
    return NULL;
}

/*
 * The plain run: one GPU copies a tile in and computes on it, ten times; the CPU runs two kernels.
 * The last three of the `moved` kernels of the GPU run on the CPU instead.
 */
struct knobs {
    double gemm_s, copy_s;
    unsigned moved;
};

static void make_run(struct testing_recording *testing, const struct knobs *knobs,
                     struct duet__account *account)
{
    double at_s = 0, cpu_s = 4;
    testing_init(testing, 0);
    testing_task(testing, 0, 0, 0, 0, 2);
    testing_task(testing, 0, 0, 2, 2, 4);
    for (unsigned i = 0; i < 10 - knobs->moved; i++) {
        testing_copy(testing, i + 1, 0, 1, at_s, at_s, at_s + knobs->copy_s);
        at_s += knobs->copy_s;
        testing_task(testing, 1, 1, 0, at_s, at_s + knobs->gemm_s);
        at_s += knobs->gemm_s;
    }
    for (unsigned i = 0; i < knobs->moved; i++) {
        testing_task(testing, 0, 1, 0, cpu_s, cpu_s + 3);
        cpu_s += 3;
    }
    testing->recording.makespan_s = MAX(at_s, cpu_s);
    testing_release(testing);
    WORKS(duet__account_make(&testing->recording, account, hear()));
}

/* Explains a run with other knobs against the plain one. */
static struct duet__explanation explain(const struct knobs *knobs)
{
    static const struct knobs plain = {.gemm_s = 2, .copy_s = 0.5};
    struct testing_recording first, second;
    struct duet__account accounts[2];
    struct duet__explanation explanation;
    make_run(&first, knobs, &accounts[0]);
    make_run(&second, &plain, &accounts[1]);
    duet__explain_difference(&accounts[0], &accounts[1], 0, 0, &explanation);
    testing_near(explanation.whole_s, first.recording.makespan_s - second.recording.makespan_s);
    testing_near(sum_of(&explanation), explanation.whole_s);
    for (size_t i = 0; i < explanation.count; i++) {
        const struct duet__difference *difference = &explanation.differences[i];
        if (i)
            g_assert_cmpfloat(fabs(difference->seconds), <=, fabs(difference[-1].seconds));
        if (difference->reason != DUET_REASON_KERNEL)
            testing_near(difference->seconds, difference->first - difference->second);
    }
    duet__account_fini(&accounts[0]);
    duet__account_fini(&accounts[1]);
    testing_fini(&first);
    testing_fini(&second);
    return explanation;
}

static void test_same(void)
{
    struct duet__explanation explanation = explain(&(struct knobs){.gemm_s = 2, .copy_s = 0.5});
    testing_near(explanation.whole_s, 0);
    g_assert_cmpuint(explanation.count, >, 0);
    for (size_t i = 0; i < explanation.count; i++)
        testing_near(explanation.differences[i].seconds, 0);
    testing_near(explanation.moved_share, 0);
    duet__explanation_fini(&explanation);
    duet__explanation_fini(&explanation);
}

/* Kernels of one worker in three take 10 % more, ten of 2 s; the two others wait for it, idle. */
static void test_kernel(void)
{
    OWNED(duet__explanation_fini)
    struct duet__explanation explanation = explain(&(struct knobs){.gemm_s = 2.2, .copy_s = 0.5});
    const struct duet__difference *kernel = find(&explanation, DUET_REASON_KERNEL, "gemm on c2050");
    const struct duet__difference *idle = find(&explanation, DUET_REASON_IDLE, "");
    testing_near(explanation.whole_s, 2);
    g_assert_nonnull(kernel);
    testing_near(kernel->seconds, 2.0 / 3);
    testing_near(kernel->first, 2.2);
    testing_near(kernel->second, 2);
    testing_near(idle->seconds, 4.0 / 3);
    testing_near(find(&explanation, DUET_REASON_KERNEL, "potrf on x5650")->seconds, 0);
    testing_near(find(&explanation, DUET_REASON_SCHEDULE, "")->seconds, 0);
}

static void test_copies(void)
{
    OWNED(duet__explanation_fini)
    struct duet__explanation explanation = explain(&(struct knobs){.gemm_s = 2, .copy_s = 1});
    testing_near(explanation.whole_s, 5);
    testing_near(find(&explanation, DUET_REASON_TO_DEVICE, "")->seconds, 5.0 / 3);
    testing_near(find(&explanation, DUET_REASON_TO_HOST, "")->seconds, 0);
    testing_near(find(&explanation, DUET_REASON_KERNEL, "gemm on c2050")->seconds, 0);
}

/* Three of ten kernels of 2 s ran elsewhere, where they take 3 s; all kernels take 24 s. */
static void test_mapping(void)
{
    OWNED(duet__explanation_fini)
    struct duet__explanation explanation =
        explain(&(struct knobs){.gemm_s = 2, .copy_s = 0.5, .moved = 3});
    const struct duet__difference *schedule = find(&explanation, DUET_REASON_SCHEDULE, "");
    testing_near(schedule->seconds, (3 * 3 - 3 * 2) / 3.0);
    testing_near(explanation.moved_share, 6.0 / 24);
    g_assert_null(find(&explanation, DUET_REASON_KERNEL, "gemm on x5650"));
    testing_near(find(&explanation, DUET_REASON_KERNEL, "gemm on c2050")->seconds, 0);
}

/* Medians that differ by another amount than the accounts do: the spread completes the sum. */
static void test_spread(void)
{
    OWNED(sample_fini) struct sample sample;
    struct duet__account accounts[2];
    struct duet__explanation explanation;
    sample_init(&sample, 3, 2, 400);
    for (unsigned i = 0; i < 2; i++)
        WORKS(duet__account_make(&sample.recordings[i], &accounts[i], hear()));
    duet__explain_difference(&accounts[0], &accounts[1], 5, 4, &explanation);
    testing_near(explanation.whole_s, 1);
    /* thousands of dates are added up */
    g_assert_cmpfloat_with_epsilon(sum_of(&explanation), 1, 1e-9);
    g_assert_nonnull(find(&explanation, DUET_REASON_SPREAD, ""));
    duet__explanation_fini(&explanation);

    duet__explain_difference(&accounts[0], &accounts[1], 0, 0, &explanation);
    g_assert_cmpfloat_with_epsilon(sum_of(&explanation),
                                   accounts[0].makespan_s - accounts[1].makespan_s, 1e-9);
    g_assert_null(find(&explanation, DUET_REASON_SPREAD, ""));
    duet__explanation_fini(&explanation);
    for (unsigned i = 0; i < 2; i++)
        duet__account_fini(&accounts[i]);
}

TEST_MAIN(test_same, test_kernel, test_copies, test_mapping, test_spread)
