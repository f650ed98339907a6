/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of fcrm: by weights where there are forecasts, to whoever is free where there are not. One
 * core, 1 Gflop/s; two devices, 10 Gflop/s; 1 MB takes 1 ms.
 */
#include "core/policies/testing.h"

enum { CPU = 0, GPU = 1, MB = 1000000 };

static struct testing *start(void)
{
    return testing_init_core(&(struct testing_machine){.cpus = 1,
                                                       .gpus = 2,
                                                       .capacity_bytes = 1 << 24},
                             (struct duet__core_config){.policy = duet_policy_find("fcrm"),
                                                        .model = duet_model_find(
                                                            duet_policy_find("fcrm")->model),
                                                        .seed = 1});
}

/* Tasks go by the time of the waiting ones, of the task itself, and of its copies. */
static void test_weights(void)
{
    OWNED(testing_end) struct testing *t = start();
    struct duet_handle *data = testing_handle(t, 2 * MB);
    g_assert_cmpuint(placed(t, task_of(t, t->any, 40, NULL, 0)), ==, GPU);     /* 40, 4, 4 */
    g_assert_cmpuint(placed(t, task_of(t, t->any, 40, NULL, 0)), ==, GPU + 1); /* 40, 8, 4 */
    g_assert_cmpuint(placed(t, task_of(t, t->any, 4, NULL, 0)), ==, CPU);      /* 4, 4.4, 4.4 */
    g_assert_cmpuint(placed(t, task_of(t, t->any, 2, data, 0)), ==, CPU); /* 6, 4.2 + 2, 4.2 + 2 */
    t->core->parameters[0] = 0;
    g_assert_cmpuint(placed(t, task_of(t, t->any, 2, data, 0)), ==, GPU); /* 8, 4.2, 4.2 */
}

/* Any free worker takes a kernel until workers of all kinds have run it. */
static void test_learning(void)
{
    struct duet_codelet *codelet;
    const struct duet_implementation both[] = {{.arch = "cpu"}, {.arch = "cuda"}};
    const struct duet_codelet_desc desc = {.name = "unknown",
                                           .implementations = both,
                                           .implementation_count = 2,
                                           .flops = testing_flops};
    OWNED(testing_end) struct testing *t = start();
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_OK);
    struct duet_task *one = task_of(t, codelet, 4, NULL, 0);
    g_assert_cmpuint(placed(t, one), ==, SHARED);
    g_assert_true(popped(t, GPU) == one);
    duet__class_measured(one->klass, &t->core->workers[GPU], 4e-3);
    g_assert_cmpuint(placed(t, task_of(t, codelet, 4, NULL, 0)), ==, SHARED); /* cores have not */
    duet__class_measured(one->klass, &t->core->workers[CPU], 1e-3);
    g_assert_cmpuint(placed(t, task_of(t, codelet, 4, NULL, 0)), ==, CPU);
    g_assert_cmpuint(placed(t, task_of(t, codelet, 4e3, NULL, 0)), ==,
                     SHARED); /* quite another size */
}

TEST_MAIN(test_weights, test_learning)
