/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of fcrm: by weights where there are forecasts, to whoever is free where there are not. One
 * core, 1 Gflop/s; two devices, 10 Gflop/s; 1 MB takes 1 ms.
 */
#include <glib.h>

#include "core/testing.h"

enum { CPU = 0, GPU = 1, SHARED = 3, MB = 1000000 };

static void start(struct testing *t)
{
    testing_init_core(t, &(struct testing_machine){.cpus = 1, .gpus = 2, .capacity_bytes = 1 << 24},
                      (struct duet__core_config){.policy = duet_policy_find("fcrm"),
                                                 .model = duet_model_find(
                                                     duet_policy_find("fcrm")->model),
                                                 .seed = 1});
}

static struct duet_task *task(struct testing *t, struct duet_codelet *codelet, double ms,
                              struct duet_handle *data)
{
    double flops = ms * 1e6; /* on a core; a tenth of it on a device */
    struct duet_access access = {data, DUET_R};
    const struct duet_task_desc desc = {.codelet = codelet,
                                        .accesses = &access,
                                        .access_count = data != NULL,
                                        .args = &flops,
                                        .args_bytes = sizeof flops};
    t->hold = true;
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    t->hold = false;
    return t->held;
}

/* Where one more task goes. It stays there. */
static unsigned placed(struct testing *t, struct duet_task *one)
{
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    size_t shared = duet_list_length(duet_view_shared(&view)), before[3];
    for (unsigned w = 0; w < 3; w++)
        before[w] = duet_list_length(duet_view_list(&view, w));
    t->core->policy->push(t->core->policy_state, &view, &one, 1, DUET_SUBMITTER, t->now);
    if (duet_list_length(duet_view_shared(&view)) > shared)
        return SHARED;
    for (unsigned w = 0; w < 3; w++)
        if (duet_list_length(duet_view_list(&view, w)) > before[w])
            return w;
    g_assert_not_reached();
}

/* By what waits, what the task itself takes, and its copies. */
static void test_weights(void)
{
    struct testing t;
    start(&t);
    struct duet_handle *data = testing_handle(&t, 2 * MB);
    g_assert_cmpuint(placed(&t, task(&t, t.any, 40, NULL)), ==, GPU);     /* 40, 4, 4 */
    g_assert_cmpuint(placed(&t, task(&t, t.any, 40, NULL)), ==, GPU + 1); /* 40, 8, 4 */
    g_assert_cmpuint(placed(&t, task(&t, t.any, 4, NULL)), ==, CPU);      /* 4, 4.4, 4.4 */
    g_assert_cmpuint(placed(&t, task(&t, t.any, 2, data)), ==, CPU);      /* 6, 4.2 + 2, 4.2 + 2 */
    t.core->parameters[0] = 0;
    g_assert_cmpuint(placed(&t, task(&t, t.any, 2, data)), ==, GPU); /* 8, 4.2, 4.2 */
    testing_fini(&t);
}

/* As long as a kind of workers has run none of the kernel, whoever is free takes it. */
static void test_learning(void)
{
    struct testing t;
    struct duet_codelet *codelet;
    const struct duet_implementation both[] = {{.arch = "cpu"}, {.arch = "cuda"}};
    const struct duet_codelet_desc desc = {.name = "unknown",
                                           .implementations = both,
                                           .implementation_count = 2,
                                           .flops = testing_flops};
    start(&t);
    g_assert_cmpint(duet_codelet(t.core, &desc, &codelet), ==, DUET_OK);
    struct duet_task *one = task(&t, codelet, 4, NULL);
    g_assert_cmpuint(placed(&t, one), ==, SHARED);
    struct duet_view view = testing_view(&t, GPU);
    g_assert_true(t.core->policy->pop(t.core->policy_state, &view, GPU, 0) == one);
    duet__class_measured(one->klass, &t.core->workers[GPU], 4e-3);
    g_assert_cmpuint(placed(&t, task(&t, codelet, 4, NULL)), ==, SHARED); /* cores have not */
    duet__class_measured(one->klass, &t.core->workers[CPU], 1e-3);
    g_assert_cmpuint(placed(&t, task(&t, codelet, 4, NULL)), ==, CPU);
    g_assert_cmpuint(placed(&t, task(&t, codelet, 4e3, NULL)), ==, SHARED); /* quite another size */
    testing_fini(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fcrm/weights", test_weights);
    g_test_add_func("/fcrm/learning", test_learning);
    return g_test_run();
}
