/* SPDX-License-Identifier: Apache-2.0 */
/* Random layered graphs: shape, distributions, restrictions, costs; all depend on the seed
 * alone. */
#include "workloads/test_recorder.h"

#include "workloads/tiles.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/layered.c" /* NOLINT(bugprone-suspicious-include) */

#include "workloads/test_compute.h"

static struct duet_arch archs[] = {{"x5650", "cpu"}, {"c2050", "cuda"}, {"k40m", "cuda"}};
static const struct duet_machine hybrid = {.arch_count = 3, .archs = archs};
static const struct duet_machine only_cpus = {.arch_count = 1, .archs = archs};

static struct duet__problem problem_of(uint64_t n, uint64_t seed,
                                       const struct duet__setting *settings, size_t count)
{
    return (struct duet__problem){.n = n,
                                  .tile = 16,
                                  .precision = 'd',
                                  .seed = seed,
                                  .settings = settings,
                                  .setting_count = count};
}

static struct duet_runtime *record(const struct duet_machine *machine,
                                   const struct duet__problem *problem)
{
    struct duet_runtime *recorder = recorder_new();
    void *state;
    recorder->machine = machine;
    WORKS(recorded_layered.build(&recorded_layered, recorder, problem, &state, hear()));
    recorded_layered.fini(state);
    return recorder;
}

/* Returns the number of the task that writes this block: blocks are registered in order of
 * tasks. */
static guint writer(const struct duet_runtime *recorder, const struct duet_handle *handle)
{
    guint index;
    g_assert_true(g_ptr_array_find(recorder->handles, handle, &index));
    return index;
}

static void test_shape(void)
{
    static const struct duet__setting settings[] = {{"width", "20"}, {"degree", "3"}};
    struct duet__problem problem = problem_of(990, 1, settings, 2);
    OWNED(recorder_end) struct duet_runtime *recorder = record(&hybrid, &problem);
    size_t reads = 0;
    g_assert_cmpuint(recorder->tasks->len, ==, 990);
    for (guint i = 0; i < recorder->tasks->len; i++) {
        const struct recorded *task = recorder_task(recorder, i);
        const struct duet_access *own = &task->accesses[task->access_count - 1];
        g_assert_cmpuint(writer(recorder, own->handle), ==, i);
        g_assert_cmpint(own->mode, ==, i < 20 ? DUET_RW : DUET_W);
        g_assert_cmpuint(task->access_count, <=, 1 + 5);
        g_assert_cmpuint(task->access_count, >=, i < 20 ? 1 : 2);
        for (size_t a = 0; a + 1 < task->access_count; a++) {
            g_assert_cmpint(task->accesses[a].mode, ==, DUET_R);
            g_assert_cmpuint(writer(recorder, task->accesses[a].handle) / 20 + 1, ==, i / 20);
            reads++;
        }
    }
    /* mean 3, standard deviation sqrt(2) / sqrt(970) = 0.045: five of them */
    g_assert_cmpfloat_with_epsilon((double)reads / 970, 3, 0.23);
}

static void test_totals(void)
{
    static const char *const sizes[] = {"fixed", "uniform", "bimodal"};
    for (size_t i = 0; i < G_N_ELEMENTS(sizes); i++) {
        struct duet__setting settings[] = {{"sizes", sizes[i]}, {"work", "1e6"}};
        struct duet__problem problem = problem_of(4000, i, settings, 2);
        OWNED(recorder_end) struct duet_runtime *recorder = record(&hybrid, &problem);
        g_assert_cmpuint(recorded_layered.tasks(&problem), ==, 4000);
        g_assert_cmpfloat(recorder_flops(recorder), ==, recorded_layered.flops(&problem));
        /* means: 16 x 16 doubles and 10^6 flops, within five standard deviations */
        g_assert_cmpfloat_with_epsilon((double)recorder_bytes(recorder) / 4000 / 2048, 1, 0.12);
        g_assert_cmpfloat_with_epsilon(recorder_flops(recorder) / 4000 / 1e6, 1, 0.04);
    }
}

static void test_layers(void)
{
    static const struct duet__setting settings[] = {{"layers", "7"}, {"width", "5"}};
    struct duet__problem problem = problem_of(990, 1, settings, 2);
    g_assert_cmpuint(recorded_layered.tasks(&problem), ==, 35);
}

/* Layers narrower than the number of predecessors: tasks read all of the layer before, each
 * once. */
static void test_narrow(void)
{
    static const struct duet__setting settings[] = {{"width", "2"}, {"degree", "64"}};
    struct duet__problem problem = problem_of(100, 3, settings, 2);
    OWNED(recorder_end) struct duet_runtime *recorder = record(&hybrid, &problem);
    size_t full = 0;
    for (guint i = 2; i < 100; i++) {
        g_assert_cmpuint(recorder_task(recorder, i)->access_count, <=, 3);
        full += recorder_task(recorder, i)->access_count == 3;
    }
    g_assert_cmpuint(full, >, 90);
}

static void test_widest(void)
{
    static const struct duet__setting settings[] = {{"width", "500"}, {"degree", "64"}};
    struct duet__problem problem = problem_of(1500, 3, settings, 2);
    OWNED(recorder_end) struct duet_runtime *recorder = record(&hybrid, &problem);
    size_t most = 0; /* the recorder checks that no access is repeated */
    for (guint i = 0; i < 1500; i++)
        most = MAX(most, recorder_task(recorder, i)->access_count);
    g_assert_cmpuint(most, >, 120);
    g_assert_cmpuint(most, <=, 128);
}

static void test_independent(void)
{
    static const struct duet__setting settings[] = {{"degree", "0"}};
    struct duet__problem problem = problem_of(100, 3, settings, 1);
    OWNED(recorder_end) struct duet_runtime *recorder = record(&hybrid, &problem);
    for (guint i = 0; i < 100; i++) {
        g_assert_cmpuint(recorder_task(recorder, i)->access_count, ==, 1);
        g_assert_cmpint(recorder_task(recorder, i)->accesses[0].mode, ==, DUET_RW);
    }
}

static bool same_graph(const struct duet_runtime *a, const struct duet_runtime *b)
{
    if (a->tasks->len != b->tasks->len)
        return false;
    for (guint i = 0; i < a->tasks->len; i++) {
        const struct recorded *s = recorder_task(a, i), *t = recorder_task(b, i);
        if (s->access_count != t->access_count || s->where != t->where ||
            strcmp(s->codelet->name, t->codelet->name) != 0 ||
            memcmp(s->args, t->args, sizeof s->args) != 0)
            return false;
        for (size_t k = 0; k < s->access_count; k++) {
            if (writer(a, s->accesses[k].handle) != writer(b, t->accesses[k].handle) ||
                s->accesses[k].handle->rows != t->accesses[k].handle->rows)
                return false;
        }
    }
    return true;
}

static void test_seed(void)
{
    struct duet__problem first = problem_of(300, 1, NULL, 0), second = problem_of(300, 2, NULL, 0);
    OWNED(recorder_end)
    struct duet_runtime *a = record(&hybrid, &first), *b = record(&hybrid, &first);
    OWNED(recorder_end) struct duet_runtime *c = record(&hybrid, &second);
    g_assert_true(same_graph(a, b));
    g_assert_false(same_graph(a, c));
}

/* The first outputs of splitmix64 from state 1234567 are those published with the algorithm. */
static void test_splitmix(void)
{
    uint64_t state = 1234567;
    g_assert_cmpuint(duet_random_next(&state), ==, UINT64_C(6457827717110365317));
    g_assert_cmpuint(duet_random_next(&state), ==, UINT64_C(3203168211198807973));
    g_assert_cmpuint(duet_random_next(&state), ==, UINT64_C(9817491932198370423));
}

static void test_restrictions(void)
{
    static const struct duet__setting settings[] = {{"cpu_only", "30"}, {"gpu_only", "20"}};
    struct duet__problem problem = problem_of(4000, 1, settings, 2);
    struct duet_runtime *recorder = record(&hybrid, &problem);
    size_t cpu = 0, gpu = 0;
    for (guint i = 0; i < 4000; i++) {
        uint64_t where = recorder_task(recorder, i)->where;
        g_assert_true(where == 0 || where == 1 || where == 6);
        cpu += where == 1;
        gpu += where == 6;
    }
    g_assert_cmpfloat_with_epsilon((double)cpu / 4000, 0.3, 0.04);
    g_assert_cmpfloat_with_epsilon((double)gpu / 4000, 0.2, 0.04);
    recorder_free(recorder);

    /* without GPUs, tasks for GPUs only run anywhere */
    recorder = record(&only_cpus, &problem);
    for (guint i = 0; i < 4000; i++)
        g_assert_cmpuint(recorder_task(recorder, i)->where, <=, 1);
    recorder_free(recorder);
}

static void test_costs(void)
{
    static const struct duet__setting settings[] = {{"kernels", "8"}, {"speedup", "10"}};
    struct duet__problem problem = problem_of(500, 1, settings, 2);
    OWNED(recorder_end) struct duet_runtime *recorder = record(&hybrid, &problem);
    double speedups[RECORDER_CODELETS] = {0};
    g_assert_cmpuint(recorder->codelet_count, ==, 8);
    for (guint i = 0; i < 500; i++) {
        const struct recorded *task = recorder_task(recorder, i);
        double work = task->codelet->flops(task->args);
        double cpu = task->codelet->cost(task->args, "x5650");
        double gpu = task->codelet->cost(task->args, "c2050");
        double *speedup = &speedups[task->codelet - recorder->codelets];
        g_assert_cmpfloat_with_epsilon(cpu, work / 1e9, 1e-15);
        g_assert_cmpfloat(cpu / gpu, >=, 1);
        g_assert_cmpfloat(cpu / gpu, <=, 10);
        g_assert_cmpfloat(gpu, !=, task->codelet->cost(task->args, "k40m"));
        if (*speedup > 0) /* the same for all tasks of a kernel */
            g_assert_cmpfloat_with_epsilon(cpu / gpu, *speedup, 1e-9);
        *speedup = cpu / gpu;
    }
    g_assert_cmpfloat(speedups[0], !=, speedups[1]);
}

static void refuse(const char *name, const char *value, const char *text)
{
    struct duet__setting settings[] = {{name, value}, {"cpu_only", "60"}};
    struct duet__problem problem = problem_of(1000, 1, settings, 2);
    FAILS(recorded_layered.check(&problem, hear()), DUET_EINVAL, text);
}

static void test_too_many(void)
{
    static const struct duet__setting settings[] = {{"layers", "1000000"}, {"width", "1000"}};
    struct duet__problem problem = problem_of(1, 1, settings, 2);
    FAILS(recorded_layered.check(&problem, hear()), DUET_EINVAL, "1000000000 tasks are too many");
    problem = problem_of(UINT64_MAX, 1, NULL, 0);
    g_assert_cmpint(recorded_layered.check(&problem, hear()), ==, DUET_EINVAL);
    problem = problem_of(1, 1, NULL, 0);
    WORKS(recorded_layered.check(&problem, hear()));
}

static void test_bad_settings(void)
{
    refuse("gpu_only", "41", "more than 100 percent");
    refuse("gpu_only", "101", "0..100");
    refuse("degree", "65", "0..64");
    refuse("kernels", "0", "1..64");
    refuse("work", "0", "1.0..1e15");
    refuse("work", "inf", "1.0..1e15");
    refuse("speedup", "0.5", "1.0..1e6");
    refuse("sizes", "huge", "fixed|uniform|bimodal");
}

static void test_failures(void)
{
    struct duet__problem problem = problem_of(40, 1, NULL, 0);
    check_failures(&recorded_layered, &problem, 4 + 2 * 40, &hybrid);
}

TEST_MAIN(test_shape, test_totals, test_layers, test_narrow, test_widest, test_independent,
          test_seed, test_splitmix, test_restrictions, test_costs, test_too_many, test_bad_settings,
          test_failures)
