/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel times that are drawn with measured noise, and runs in which everything that the machine
 * does to kernels comes together.
 */
#include "sim/testing_effects.h"

enum { DRAWS = 10000 };

static const double MEAN_S = 1e-3, DEVIATION_S = 2e-4;

/* A run of DRAWS executions with noise. */
struct noisy {
    const char *policy, *where;
    unsigned cpus;
    bool base; /* 1 ms by base_s, else by the mean */
    double noise;
    uint64_t seed;
};

static void draw(const void *argument, FILE *out)
{
    const struct noisy *noisy = argument;
    const struct duet__point point = {.mean_s = noisy->base ? 3 * MEAN_S : MEAN_S,
                                      .base_s = noisy->base ? MEAN_S : 0,
                                      .deviation_s = DEVIATION_S,
                                      .noise = noisy->noise};
    OWNED(duet__calibration_fini)
    struct duet__calibration calibration = lab_calibrate(&point, noisy->cpus, 1);
    OWNED(lab_close)
    struct lab lab = lab_open(&(struct lab_options){.cpus = noisy->cpus,
                                                    .gpus = 1,
                                                    .policy = noisy->policy,
                                                    .seed = noisy->seed,
                                                    .noise = true,
                                                    .calibration = &calibration});
    double seconds[DRAWS];
    for (unsigned i = 0; i < DRAWS; i++)
        lab_k(&lab, noisy->where, NULL, DUET_R);
    lab_finish(&lab);
    for (unsigned i = 0; i < DRAWS; i++)
        seconds[lab.events[i].id - 1] = lab.events[i].end_s - lab.events[i].start_s;
    fwrite(seconds, sizeof seconds, 1, out);
}

static double *draws(GByteArray *bytes)
{
    g_assert_cmpuint(bytes->len, ==, DRAWS * sizeof(double));
    return (double *)(void *)bytes->data;
}

/*
 * The mean of the draws is 1 ms, and that of the squares of their logarithms, in deviations, is 1,
 * within five standard errors (of relative deviation 0.3, and root of 2); the deviation of times
 * does not count beside measured noise. A task draws the same whoever runs it: but for the rounding
 * of dates under a policy with more workers, where the time depends on its circumstances, and on a
 * GPU.
 */
static void test_noise(void)
{
    GByteArray *bytes[] = {lab_fork(draw, &(struct noisy){"eager", "cpu0", 1, false, 0.3, 7}),
                           lab_fork(draw,
                                    &(struct noisy){"ws", "cpu0,cpu1,cpu2", 3, false, 0.3, 7}),
                           lab_fork(draw, &(struct noisy){"eager", "cpu0,cpu1", 2, true, 0.3, 7}),
                           lab_fork(draw, &(struct noisy){"eager", "gpu0", 1, false, 0.3, 7})};
    const double *first = draws(bytes[0]);
    double sum = 0, squares = 0, variance = log1p(0.3 * 0.3);
    for (unsigned i = 0; i < DRAWS; i++) {
        double logarithm = log(first[i] / 1e-3) + variance / 2;
        sum += first[i] / 1e-3;
        squares += logarithm * logarithm / variance;
        for (unsigned other = 1; other < G_N_ELEMENTS(bytes); other++)
            g_assert_cmpfloat(fabs(draws(bytes[other])[i] - first[i]), <, 1e-11);
    }
    g_assert_cmpfloat(fabs(sum / DRAWS - 1), <, 5 * 0.3 / sqrt(DRAWS));
    g_assert_cmpfloat(fabs(squares / DRAWS - 1), <, 5 * sqrt(2.0 / DRAWS));
    for (unsigned i = 0; i < G_N_ELEMENTS(bytes); i++)
        g_byte_array_unref(bytes[i]);
}

/*
 * Draws without measured noise have the deviation of times: of 10,000 the mean is off by 1 % of it
 * (its standard error), the deviation by about 1 %; five times that is allowed. All are positive.
 * Another seed: others.
 */
static void test_deviation(void)
{
    g_autoptr(GByteArray) bytes = lab_fork(draw, &(struct noisy){"eager", "cpu0", 1, false, 0, 7});
    g_autoptr(GByteArray) seed = lab_fork(draw, &(struct noisy){"eager", "cpu0", 1, false, 0, 8});
    const double *seconds = draws(bytes);
    double sum = 0, squares = 0;
    unsigned equal = 0;
    for (unsigned i = 0; i < DRAWS; i++) {
        g_assert_cmpfloat(seconds[i], >, 0);
        sum += seconds[i];
        squares += (seconds[i] - MEAN_S) * (seconds[i] - MEAN_S);
        equal += fabs(seconds[i] - draws(seed)[i]) < 1e-12;
    }
    g_assert_cmpfloat(fabs(sum / DRAWS - MEAN_S), <, 0.05 * DEVIATION_S);
    g_assert_cmpfloat(fabs(sqrt(squares / DRAWS) - DEVIATION_S), <, 0.05 * DEVIATION_S);
    g_assert_cmpuint(equal, <, 3);
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

enum { TILES = 6, TASKS = 300, MB = 1000000 };

static const double NOISE = 0.05;

static int by_start(const void *left, const void *right)
{
    const struct duet_event *a = left, *b = right;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

/*
 * Checks that no worker runs two kernels at once, or one faster than alone with all its data in
 * caches and the luck of four deviations.
 */
static void check(struct lab *lab)
{
    qsort(lab->events, lab->event_count, sizeof *lab->events, by_start);
    for (size_t i = 0; i < lab->event_count; i++) {
        const struct duet_event *event = &lab->events[i], *before = event - 1;
        if (event->kind != DUET_EVENT_TASK)
            continue;
        g_assert_cmpfloat(event->end_s - event->start_s, >, 1e-3 * exp(-4 * NOISE));
        if (i && before->kind == DUET_EVENT_TASK && before->worker == event->worker)
            g_assert_cmpfloat(event->start_s, >=, before->end_s - 1e-12);
    }
}

/* Every effect at once, under a policy, on tasks that update tiles of a few. */
static void everything(const void *policy, FILE *out)
{
    const struct duet__point point = {.mean_s = 2e-3,
                                      .base_s = 1e-3,
                                      .memory_s = 0.7e-3,
                                      .busy_ratio = 1.3,
                                      .noise = NOISE};
    OWNED(duet__calibration_fini)
    struct duet__calibration calibration = lab_calibrate(&point, 4, 2);
    OWNED(lab_close)
    struct lab lab = lab_open(
        &(struct lab_options){.cpus = 4,
                              .gpus = 2,
                              .emulated = true,
                              .cores = 3,
                              .first_waits = true,
                              .window = 50,
                              .noise = true,
                              .seed = 3,
                              .policy = policy,
                              .sharing = {.shared_bytes = 3 * MB, .bandwidth_Bps = 3e9},
                              .costs = {1e-5, 1e-6, 2e-6, 3e-6, 4e-6, 5e-6, 1e-5, 5e-5, 1e-4},
                              .calibration = &calibration});
    struct duet_handle *tiles[TILES];
    for (unsigned i = 0; i < TILES; i++)
        tiles[i] = lab_data(&lab, MB);
    for (unsigned i = 0; i < TASKS; i++)
        lab_k(&lab, NULL, tiles[i * i % TILES], i % 5 ? DUET_R : DUET_RW);
    lab_finish(&lab);
    g_assert_cmpuint(lab_count(&lab, DUET_EVENT_TASK), ==, TASKS);
    check(&lab);
    for (size_t i = 0; i < lab.event_count; i++) {
        const double dates[] = {lab.events[i].start_s, lab.events[i].end_s};
        fwrite(dates, sizeof dates, 1, out);
    }
}

/* Runs are repeatable to the bit. */
static void test_again(const void *policy)
{
    g_autoptr(GByteArray) first = lab_fork(everything, policy);
    g_autoptr(GByteArray) again = lab_fork(everything, policy);
    g_assert_cmpmem(first->data, first->len, again->data, again->len);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/effects_runs/noise", test_noise);
    g_test_add_func("/effects_runs/deviation", test_deviation);
    for (size_t i = 0; duet_policy_at(i); i++) {
        g_autofree char *name = g_strdup_printf("/effects_runs/again/%s", duet_policy_at(i)->name);
        g_test_add_data_func(name, duet_policy_at(i)->name, test_again);
    }
    return g_test_run();
}
