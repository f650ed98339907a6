/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel times that are drawn from measured quantiles, and runs in which everything that the
 * machine does to kernels comes together.
 */
#include "sim/testing_effects.h"

enum { DRAWS = 10000 };

/* Skewed, with a long tail, as measured times are; their mean is not 1. */
static const double quantiles[DUET_QUANTILES] = {0.90, 0.92, 0.94, 0.95, 0.97, 1.0,
                                                 1.05, 1.10, 1.20, 1.50, 3.0};

static double mean_of(const double levels[DUET_QUANTILES])
{
    double mean = 0;
    for (unsigned i = 1; i < DUET_QUANTILES; i++)
        mean += (duet__quantile_levels[i] - duet__quantile_levels[i - 1]) *
                (levels[i] + levels[i - 1]) / 2;
    return mean;
}

/* A run of DRAWS executions with noise. */
struct noisy {
    const char *policy, *where;
    unsigned cpus;
    bool base; /* 1 ms by base_s, else by the mean */
};

static void draw(const void *argument, FILE *out)
{
    const struct noisy *noisy = argument;
    struct duet__point point = {.mean_s = noisy->base ? 3e-3 : 1e-3,
                                .base_s = noisy->base ? 1e-3 : 0,
                                .deviation_s = 1e-3};
    memcpy(point.quantiles, quantiles, sizeof quantiles);
    struct duet__calibration calibration = lab_calibrate(&point, noisy->cpus, 1);
    struct lab lab = lab_open(&(struct lab_options){.cpus = noisy->cpus,
                                                    .gpus = 1,
                                                    .policy = noisy->policy,
                                                    .seed = 7,
                                                    .noise = true,
                                                    .calibration = &calibration});
    double seconds[DRAWS];
    for (unsigned i = 0; i < DRAWS; i++)
        lab_k(&lab, noisy->where, NULL, DUET_R);
    lab_finish(&lab);
    for (unsigned i = 0; i < DRAWS; i++)
        seconds[lab.events[i].id - 1] = lab.events[i].end_s - lab.events[i].start_s;
    fwrite(seconds, sizeof seconds, 1, out);
    lab_close(&lab);
    duet__calibration_fini(&calibration);
}

static double *draws(GByteArray *bytes)
{
    g_assert_cmpuint(bytes->len, ==, DRAWS * sizeof(double));
    return (double *)(void *)bytes->data;
}

/*
 * The mean of the draws is 1 ms, within five of its standard errors, and half of them lie below the
 * median, 1 in units of the quantiles, within five times 1/2 of the root of their number. A task
 * draws the same whoever runs it: but for the rounding of dates under a policy with more workers,
 * where the time depends on its circumstances, and on a GPU.
 */
static void test_quantiles(void)
{
    GByteArray *bytes[] = {lab_fork(draw, &(struct noisy){"eager", "cpu0", 1, false}),
                           lab_fork(draw, &(struct noisy){"ws", "cpu0,cpu1,cpu2", 3, false}),
                           lab_fork(draw, &(struct noisy){"eager", "cpu0,cpu1", 2, true}),
                           lab_fork(draw, &(struct noisy){"eager", "gpu0", 1, false})};
    const double *first = draws(bytes[0]);
    double sum = 0, squares = 0, mean = mean_of(quantiles);
    unsigned below = 0;
    for (unsigned i = 0; i < DRAWS; i++) {
        sum += first[i];
        squares += (first[i] - 1e-3) * (first[i] - 1e-3);
        below += first[i] < 1e-3 / mean;
        g_assert_cmpfloat(first[i], >, 1e-3 * quantiles[0] / mean - 1e-11);
        g_assert_cmpfloat(first[i], <, 1e-3 * quantiles[DUET_QUANTILES - 1] / mean + 1e-11);
        for (unsigned other = 1; other < G_N_ELEMENTS(bytes); other++)
            g_assert_cmpfloat(fabs(draws(bytes[other])[i] - first[i]), <, 1e-11);
    }
    g_assert_cmpfloat(fabs(sum / DRAWS - 1e-3), <, 5 * sqrt(squares) / DRAWS);
    g_assert_cmpfloat(fabs(below - 0.5 * DRAWS), <, 2.5 * sqrt(DRAWS));
    for (unsigned i = 0; i < G_N_ELEMENTS(bytes); i++)
        g_byte_array_unref(bytes[i]);
}

/* A run of one execution of 1 ms on a machine whose state varies by a tenth, with this seed. */
static void state(const void *seed, FILE *out)
{
    struct duet__point point = {.mean_s = 1e-3, .run_deviation = 0.1};
    for (unsigned i = 0; i < DUET_QUANTILES; i++)
        point.quantiles[i] = 1;
    struct duet__calibration calibration = lab_calibrate(&point, 1, 1);
    struct lab lab = lab_open(&(struct lab_options){.cpus = 1,
                                                    .gpus = 1,
                                                    .policy = "eager",
                                                    .seed = *(const uint64_t *)seed,
                                                    .noise = true,
                                                    .calibration = &calibration});
    lab_k(&lab, "cpu0", NULL, DUET_R);
    lab_k(&lab, "cpu0", NULL, DUET_R);
    lab_finish(&lab);
    double seconds[2] = {lab.events[0].end_s - lab.events[0].start_s,
                         lab.events[1].end_s - lab.events[1].start_s};
    fwrite(seconds, sizeof seconds, 1, out);
    lab_close(&lab);
    duet__calibration_fini(&calibration);
}

/*
 * All executions of a run share its state; the first seed's is the median. Of the first nine, the
 * sequence of the golden ratio has three to six on either side, and they differ.
 */
static void test_states(void)
{
    unsigned above = 0;
    for (uint64_t seed = 1; seed <= 9; seed++) {
        GByteArray *bytes = lab_fork(state, &seed);
        const double *seconds = (const double *)(void *)bytes->data;
        g_assert_cmpuint(bytes->len, ==, 2 * sizeof *seconds);
        g_assert_cmpfloat(fabs(seconds[1] - seconds[0]), <, 1e-11);
        if (seed == 1)
            g_assert_cmpfloat(fabs(seconds[0] - 1e-3), <, 1e-11);
        else
            g_assert_cmpfloat(fabs(seconds[0] - 1e-3), >, 1e-6);
        /* beyond three deviations are 3 in 1000 */
        g_assert_cmpfloat(fabs(log(seconds[0] / 1e-3)), <, 0.3);
        above += seconds[0] > 1e-3 + 1e-9;
        g_byte_array_unref(bytes);
    }
    g_assert_cmpuint(above, >=, 3);
    g_assert_cmpuint(above, <=, 6);
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

enum { TILES = 6, TASKS = 300, MB = 1000000 };

static int by_start(const void *left, const void *right)
{
    const struct duet_event *a = left, *b = right;
    if (a->worker != b->worker)
        return a->worker < b->worker ? -1 : 1;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

/*
 * What no machine does: a worker that runs two kernels at once, or one faster than alone with all
 * its data in caches and all the luck there is (but for the rounding of dates).
 */
static void check(struct lab *lab)
{
    qsort(lab->events, lab->event_count, sizeof *lab->events, by_start);
    for (size_t i = 0; i < lab->event_count; i++) {
        const struct duet_event *event = &lab->events[i], *before = event - 1;
        if (event->kind != DUET_EVENT_TASK)
            continue;
        g_assert_cmpfloat(event->end_s - event->start_s, >=,
                          0.999e-3 * quantiles[0] / mean_of(quantiles));
        if (i && before->kind == DUET_EVENT_TASK && before->worker == event->worker)
            g_assert_cmpfloat(event->start_s, >=, before->end_s - 1e-12);
    }
}

/* Every effect at once, under a policy, on tasks that update tiles of a few. */
static void everything(const void *policy, FILE *out)
{
    struct duet__point point = {.mean_s = 2e-3,
                                .base_s = 1e-3,
                                .near_s = {0.2e-3},
                                .far_s = {0.5e-3},
                                .busy_ratio = 1.3,
                                .deviation_s = 1e-3};
    memcpy(point.quantiles, quantiles, sizeof quantiles);
    struct duet__calibration calibration = lab_calibrate(&point, 4, 2);
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
                              .sharing = {.private_bytes = MB,
                                          .shared_bytes = 3 * MB,
                                          .bandwidth_Bps = 3e9},
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
    lab_close(&lab);
    duet__calibration_fini(&calibration);
}

/* The same run, to the bit. */
static void test_again(const void *policy)
{
    GByteArray *first = lab_fork(everything, policy);
    GByteArray *again = lab_fork(everything, policy);
    g_assert_cmpmem(first->data, first->len, again->data, again->len);
    g_byte_array_unref(first);
    g_byte_array_unref(again);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/effects_runs/quantiles", test_quantiles);
    g_test_add_func("/effects_runs/states", test_states);
    for (size_t i = 0; duet_policy_at(i); i++) {
        g_autofree char *name = g_strdup_printf("/effects_runs/again/%s", duet_policy_at(i)->name);
        g_test_add_data_func(name, duet_policy_at(i)->name, test_again);
    }
    return g_test_run();
}
