/* SPDX-License-Identifier: Apache-2.0 */
/* The list of workloads, and the properties of each. */
#include <string.h>

#include <glib.h>
#include "workloads/tiles.h"

static struct duet__problem default_problem(const struct duet__workload *workload)
{
    return (struct duet__problem){.n = workload->default_n,
                                  .tile = workload->default_tile,
                                  .precision = 'd',
                                  .seed = 1};
}

static void test_find(void)
{
    size_t count = 0;
    for (; duet__workload_at(count); count++)
        g_assert_true(duet__workload_find(duet__workload_at(count)->name) ==
                      duet__workload_at(count));
    g_assert_cmpuint(count, >=, 4);
    g_assert_null(duet__workload_at(count + 1));
    g_assert_null(duet__workload_find("chol"));
    g_assert_null(duet__workload_find(""));
    g_assert_cmpstr(duet__workload_find("cholesky")->name, ==, "cholesky");
}

static void test_complete(void)
{
    for (size_t i = 0; duet__workload_at(i); i++) {
        const struct duet__workload *w = duet__workload_at(i);
        struct duet__problem problem = default_problem(w);
        g_assert_true(w->name && *w->name && w->description && *w->description);
        g_assert_true(w->source && *w->source && w->kernels);
        g_assert_null(strchr(w->description, '\n'));
        g_assert_true(w->check && w->flops && w->tasks && w->build && w->fini);
        g_assert_cmpint(w->check(&problem, NULL), ==, 0);
        g_assert_cmpuint(w->tasks(&problem), >, 0);
        g_assert_true((duet__tiled_bytes(w, &problem) > 0) == (w->tiled != NULL));
        g_assert_cmpfloat(w->flops(&problem), >, 0);
        w->fini(NULL);
    }
}

/* Initial values are accepted; unknown names and invalid values are refused with a message. */
static void test_parameters(void)
{
    for (size_t i = 0; duet__workload_at(i); i++) {
        const struct duet__workload *w = duet__workload_at(i);
        for (const struct duet__parameter *p = w->parameters; p && p->name; p++) {
            struct duet__setting setting = {p->name, p->initial};
            struct duet__problem problem = default_problem(w);
            problem.settings = &setting;
            problem.setting_count = 1;
            g_assert_true(p->values && *p->values && p->description && *p->description);
            WORKS(w->check(&problem, hear()));
            setting.value = "?";
            FAILS(w->check(&problem, hear()), DUET_EINVAL, p->values);
            setting = (struct duet__setting){"no-such", "1"};
            FAILS(w->check(&problem, hear()), DUET_EINVAL, p->name);
        }
    }
}

TEST_MAIN(test_find, test_complete, test_parameters)
