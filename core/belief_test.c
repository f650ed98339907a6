/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of what is believed: errors put into it, and models that change their mind on all sizes. */
#include <math.h>

#include "core/testing.h"

enum { TASKS = 1000 };

static const struct testing_machine two = {.cpus = 2, .gpus = 1};

static struct testing *setup(const char *model, double perturbation, uint64_t seed)
{
    struct testing *t =
        testing_init_core(&two, (struct duet__core_config){.policy = duet_policy_find("eager"),
                                                           .model = duet_model_find(model),
                                                           .perturbation = perturbation,
                                                           .seed = seed});
    t->hold = true;
    return t;
}

/* A kernel of which nothing is known but its work. */
static struct duet_codelet *unknown(struct testing *t, const char *name)
{
    struct duet_codelet *codelet;
    const struct duet_implementation implementation = {.arch = "core"};
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = &implementation,
                                           .implementation_count = 1,
                                           .flops = testing_flops};
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_OK);
    return codelet;
}

/* A task of so many flops, which does not enter the graph. */
static struct duet_task *task_of(struct testing *t, struct duet_codelet *codelet, double flops)
{
    const struct duet_task_desc desc = {.codelet = codelet,
                                        .args = &flops,
                                        .args_bytes = sizeof flops};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    return t->held;
}

/* The factor of the logarithm, in microseconds. */
static double factor(double believed_s, double seconds)
{
    return log(1e6 * believed_s) / log(1e6 * seconds);
}

/* Factors fill [1-h, 1+h], differ from task to task and by architecture, and stay a task's. */
static void test_perturbation(void)
{
    double least = INFINITY, most = 0, sum = 0, product = 0, other = 0;
    OWNED(testing_end) struct testing *t = setup("history", 0.25, 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    for (unsigned i = 0; i < TASKS; i++) {
        struct duet_task *task = task_of(t, t->any, 1e6); /* 1 ms, or 0.1 ms */
        double own = factor(duet_view_seconds(&view, 0, task), 1e-3);
        double gpu = factor(duet_view_seconds(&view, 2, task), 1e-4);
        g_assert_cmpfloat(duet_view_seconds(&view, 1, task), ==, duet_view_seconds(&view, 0, task));
        least = fmin(least, fmin(own, gpu));
        most = fmax(most, fmax(own, gpu));
        sum += own / TASKS;
        other += gpu / TASKS;
        product += own * gpu / TASKS;
    }
    g_assert_cmpfloat(least, >=, 0.75 - 1e-9);
    g_assert_cmpfloat(least, <, 0.80);
    g_assert_cmpfloat(most, <=, 1.25 + 1e-9);
    g_assert_cmpfloat(most, >, 1.20);
    g_assert_cmpfloat(fabs(sum - 1), <, 0.1);
    g_assert_cmpfloat(fabs(product - sum * other), <, 0.01); /* each is drawn by itself */
    g_assert_cmpuint(duet_class_count(t->core), ==, 32);
}

/* Equal seeds give equal errors, different ones different errors, also in measured times. */
static void test_seeds(void)
{
    double believed[3], measured[3];
    for (unsigned i = 0; i < 3; i++) {
        OWNED(testing_end) struct testing *t = setup("history", 0.5, i < 2 ? 7 : 8);
        struct duet_view view = testing_view(t, DUET_SUBMITTER);
        struct duet_task *task = task_of(t, t->any, 1e6);
        believed[i] = duet_view_seconds(&view, 0, task);
        duet__class_measured(task->klass, &t->core->workers[0], 4e-3);
        measured[i] = duet_view_seconds(&view, 0, task);
        g_assert_cmpfloat_with_epsilon(factor(measured[i], 4e-3), factor(believed[i], 1e-3), 1e-9);
    }
    g_assert_cmpfloat(believed[0], ==, believed[1]);
    g_assert_cmpfloat(believed[0], !=, believed[2]);
}

/*
 * A measurement of one size changes the estimates of other sizes at once, if the model has one
 * curve.
 */
static void test_news(void)
{
    struct duet_task *tasks[4];
    OWNED(testing_end) struct testing *t = setup("segmented", 0, 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    struct duet_codelet *codelet = unknown(t, "unknown"), *other = unknown(t, "other");
    for (unsigned i = 0; i < 4; i++) {
        tasks[i] = task_of(t, i < 3 ? codelet : other, i < 3 ? 1e6 * (i + 1) : 1e6);
        g_assert_cmpfloat(duet_view_seconds(&view, 0, tasks[i]), ==, 0);
    }
    duet__class_measured(tasks[0]->klass, &t->core->workers[0], 1e-3);
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, tasks[i]), 1e-3 * (i + 1), 1e-9);
    g_assert_cmpfloat(duet_view_seconds(&view, 0, tasks[3]), ==, 0);
    duet__class_measured(tasks[2]->klass, &t->core->workers[1], 9e-3); /* a miss: the square */
    for (unsigned i = 0; i < 3; i++)
        g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, tasks[i]),
                                       1e-3 * (i + 1) * (i + 1), 1e-9);
}

/* Costs that codelets give stay until their tasks are measured. */
static void test_cost_stays(void)
{
    OWNED(testing_end) struct testing *t = setup("segmented", 0, 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    struct duet_task *one = task_of(t, t->cpu, 1e6), *two_more = task_of(t, t->cpu, 2e6);
    duet__class_measured(one->klass, &t->core->workers[0], 7e-3);
    g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, one), 7e-3, 1e-9);
    g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, two_more), 2e-3, 1e-9);
}

TEST_MAIN(test_perturbation, test_seeds, test_news, test_cost_stays)
