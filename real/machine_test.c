/* SPDX-License-Identifier: Apache-2.0 */
/* The machine at hand as the scheduler sees it, and what may be asked of it. */
#include <stdlib.h>

#include "backends/backend.h"
#include "real/testing.h"

static void check(int cpus, int gpus, bool no_peer, unsigned expected_cpus, unsigned expected_gpus)
{
    const struct duet_config wanted = {.cpus = cpus,
                                       .gpus = gpus,
                                       .gpu_memory_bytes = 12345,
                                       .gpu_window = 3,
                                       .emulate = "free",
                                       .no_peer = no_peer};
    OWNED(duet_machine_fini) struct duet_machine machine;
    WORKS(duet__real_machine(&machine, NULL, &wanted, NULL, hear()));
    WORKS(duet_machine_check(&machine, hear()));
    g_assert_cmpuint(machine.node_count, ==, 1 + expected_gpus);
    g_assert_cmpuint(machine.worker_count, ==, expected_cpus + expected_gpus);
    for (unsigned w = 0; w < machine.worker_count; w++) {
        const struct duet_worker *worker = &machine.workers[w];
        bool gpu = w >= expected_cpus;
        g_autofree char *name =
            g_strdup_printf("%s%u", gpu ? "gpu" : "cpu", gpu ? w - expected_cpus : w);
        g_assert_cmpstr(worker->name, ==, name);
        g_assert_cmpuint(worker->window, ==, gpu ? 3 : 1);
        g_assert_cmpuint(worker->window_short, ==, gpu ? 3 : 0);
        g_assert_cmpstr(machine.archs[worker->arch].name, ==, gpu ? "emulated" : "cpu");
        g_assert_cmpstr(machine.archs[worker->arch].backend, ==, gpu ? "cuda" : "cpu");
        if (gpu)
            g_assert_cmpuint(machine.nodes[worker->node].capacity_bytes, ==, 12345);
    }
    for (unsigned s = 1; s < machine.node_count; s++)
        for (unsigned d = 1; d < machine.node_count; d++)
            g_assert_cmpint(duet_machine_route(&machine, s, d)->direct, ==, s != d && !no_peer);
}

static void test_machine(void)
{
    unsigned cores = duet__real_cores();
    g_assert_cmpuint(cores, >, 0);
    check(3, 0, false, 3, 0);
    check(0, 1, false, 0, 1);
    check(2, 3, false, 2, 3);
    check(1, 2, true, 1, 2);
    check((int)cores + 5, 0, false, cores + 5, 0);
    check(-1, 0, false, cores, 0);
    check(-1, -1, false, cores > 1 ? cores - 1 : 1, 1);
    check(-1, 60, false, cores > 60 ? cores - 60 : 1, 60);
}

/* Windows and memory where nothing, or something else, is wanted of them. */
static void check_gpu(const struct duet_config *wanted, unsigned window, unsigned window_short,
                      uint64_t capacity_bytes)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    WORKS(duet__real_machine(&machine, NULL, wanted, NULL, hear()));
    const struct duet_worker *gpu = &machine.workers[machine.worker_count - 1];
    g_assert_cmpuint(gpu->window, ==, window);
    g_assert_cmpuint(gpu->window_short, ==, window_short);
    g_assert_cmpuint(machine.nodes[gpu->node].capacity_bytes, ==, capacity_bytes);
}

static void test_wanted(void)
{
    struct duet_config wanted = {.cpus = 1, .gpus = 1, .emulate = "free"};
    struct backend_info info;
    const struct duet__backend *backend = duet__backend_find("emulated");
    g_assert_cmpint(backend->describe(0, &info, NULL), ==, DUET_OK);
    uint64_t all = info.memory_bytes, most = all;
    check_gpu(&wanted, 2, 8, most);
    wanted.gpu_window_short = 5;
    check_gpu(&wanted, 2, 5, most);
    wanted.gpu_window = 4;
    check_gpu(&wanted, 4, 5, most);
    wanted.gpu_window_short = 0;
    wanted.gpu_memory_share = 0.25;
    check_gpu(&wanted, 4, 4, all / 4);
    wanted.gpu_memory_share = 1;
    check_gpu(&wanted, 4, 4, all);
    wanted.gpu_memory_share = 1e-30;
    check_gpu(&wanted, 4, 4, 1);
    wanted.gpu_memory_share = 0;
    wanted.gpu_memory_bytes = 77;
    check_gpu(&wanted, 4, 4, 77);
}

static void test_refusals(void)
{
    const struct {
        struct duet_config wanted;
        const char *says;
    } cases[] = {
        {{.cpus = 0, .gpus = 0}, "at least one worker"},
        {{.cpus = 0, .gpus = 0, .emulate = "free"}, "at least one worker"},
        {{.cpus = 1, .gpus = 100000}, "100000 GPUs are wanted"},
        {{.cpus = 1, .gpus = 100000, .emulate = "free"}, "100000 emulated GPUs are wanted"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct duet_machine machine;
        FAILS(duet__real_machine(&machine, NULL, &cases[i].wanted, NULL, hear()), DUET_EINVAL,
              cases[i].says);
        g_assert_null(machine.workers);
    }
}

/* Why there is no GPU is said with what was asked for, and a run without GPUs needs none. */
static void test_reasons(void)
{
    const struct duet_config wanted = {.cpus = 1, .gpus = 1}, all = {.cpus = 1, .gpus = -1};
    struct duet_machine machine;
    struct duet_message message = {""}, why = {""};
    if (duet__backend_find("cuda")->count(&why)) {
        g_test_skip("there is a GPU");
        return;
    }
    g_assert_cmpstr(why.text, !=, "");
    g_assert_cmpint(duet__real_machine(&machine, NULL, &wanted, NULL, &message), ==, DUET_EINVAL);
    g_autofree char *since = g_strdup_printf("there are 0 (%s): ask for fewer", why.text);
    g_assert_nonnull(strstr(message.text, since));
    g_assert_cmpint(duet__real_machine(&machine, NULL, &all, NULL, &message), ==, DUET_OK);
    g_assert_cmpuint(machine.worker_count, ==, 1);
    duet_machine_fini(&machine);
}

static void test_lose(void)
{
    const struct {
        const char *text, *says;
    } cases[] = {
        {"gpu0", "not 'gpu0'"},
        {"gpu0@", "'gpu0@'"},
        {"gpu0@0", "'gpu0@0'"},
        {"gpu0@-1", "'gpu0@-1'"},
        {"gpu0@1x", "'gpu0@1x'"},
        {"gpu0@99999999999999999999", "from 1"},
        {"gpu2@1", "cannot lose 'gpu2'"},
        {"gpu@1", "cannot lose 'gpu'"},
        {"cpu0@1", "(it has gpu0, gpu1)"},
        {"gpu0@1,gpu0@2", "gpu0 is to be lost twice"},
        {"gpu0@1,,gpu1@1", "not ''"},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct testing t = {.cpus = 1, .gpus = 2, .lose = cases[i].text};
        int error;
        g_assert_null(testing_try(&t, &error));
        g_assert_cmpint(error, ==, DUET_EINVAL);
        g_assert_nonnull(strstr(t.message.text, cases[i].says));
    }
    struct testing t = {.cpus = 1, .gpus = 2, .lose = "gpu1@1000,gpu0@1000"};
    duet__core_free(testing_open(&t));
}

/* An engine for a machine that nothing here can run. */
static void test_engine_refusals(void)
{
    struct duet_config wanted = {.cpus = 1, .gpus = 1, .emulate = "free"};
    OWNED(duet_machine_fini) struct duet_machine machine;
    void *engine;
    WORKS(duet__real_machine(&machine, NULL, &wanted, NULL, hear()));
    wanted.emulate = NULL;
    strcpy(machine.archs[1].backend, "abacus");
    FAILS(duet__real_new(&engine, &machine, &wanted, NULL, NULL, hear()), DUET_EABSENT,
          "gpu0 is programmed by abacus");
    strcpy(machine.archs[1].backend, "cpu");
    g_assert_cmpint(duet__real_new(&engine, &machine, &wanted, NULL, NULL, hear()), ==,
                    DUET_EINVAL);
    wanted.emulate = "free";
    WORKS(duet__real_new(&engine, &machine, &wanted, NULL, NULL, hear()));
    duet__real_ops()->destroy(engine); /* the engine has no core yet */
}

/* A device that cannot be opened: nothing runs on, and the reason is given. */
static void test_open_fails(void)
{
    for (unsigned round = 0; round < 4; round++) {
        struct testing t = {.cpus = round, .gpus = 3, .gpu_memory_bytes = UINT64_C(1) << 62};
        int error;
        g_assert_null(testing_try(&t, &error));
        g_assert_cmpint(error, ==, DUET_ENOMEM);
        g_assert_cmpstr(t.message.text, !=, "");
    }
}

TEST_MAIN(test_machine, test_wanted, test_refusals, test_reasons, test_lose, test_engine_refusals,
          test_open_fails)
