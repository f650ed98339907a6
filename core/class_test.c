/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of execution classes, kernels, restrictions and refusals, and of the size of records. */
#include <math.h>

#include "core/testing.h"

_Static_assert(sizeof(struct duet_task) <= 192, "192 bytes a task");
_Static_assert(sizeof(struct access) <= 24, "24 bytes an access");

static const struct testing_machine both = {.cpus = 1, .gpus = 2, .gpu_archs = 2};

static int submit(struct testing *t, struct duet_codelet *codelet, double flops,
                  struct duet_handle *a, struct duet_handle *b, uint64_t where)
{
    struct duet_access accesses[] = {{a, DUET_R}, {b, DUET_RW}};
    struct duet_task_desc desc = {.codelet = codelet,
                                  .accesses = accesses,
                                  .access_count = !a   ? 0
                                                  : !b ? 1
                                                       : 2,
                                  .args = &flops,
                                  .args_bytes = sizeof flops,
                                  .where = where};
    return duet_submit(t->core, &desc);
}

/* Kernels with the same name, work and sequence of sizes have one class, in order of appearance. */
static void test_identity(void)
{
    struct duet_class_stats stats;
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    struct duet_handle *a = testing_handle(t, 100), *b = testing_handle(t, 100);
    struct duet_handle *c = testing_handle(t, 200);
    g_assert_cmpint(submit(t, t->any, 1e3, a, b, 0), ==, DUET_OK);
    g_assert_cmpint(submit(t, t->any, 1e3, b, a, 0), ==, DUET_OK); /* same sizes */
    g_assert_cmpuint(duet_class_count(t->core), ==, 1);
    g_assert_cmpint(submit(t, t->any, 1e3, a, c, 0), ==, DUET_OK);
    g_assert_cmpint(submit(t, t->any, 1e3, c, a, 0), ==, DUET_OK); /* other order of sizes */
    g_assert_cmpint(submit(t, t->any, 2e3, a, b, 0), ==, DUET_OK);
    g_assert_cmpint(submit(t, t->gpu, 1e3, a, b, 0), ==, DUET_OK);
    g_assert_cmpint(submit(t, t->any, 1e3, a, b, 0), ==, DUET_OK);
    g_assert_cmpuint(duet_class_count(t->core), ==, 5);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_class_stats(t->core, 0, &stats), ==, DUET_OK);
    g_assert_cmpstr(stats.kernel, ==, "any");
    g_assert_cmpuint(stats.tasks, ==, 3);
    g_assert_cmpfloat(stats.work, ==, 1e3);
    g_assert_cmpint(duet_class_stats(t->core, 4, &stats), ==, DUET_OK);
    g_assert_cmpstr(stats.kernel, ==, "for_gpus");
    g_assert_cmpfloat(stats.expected_s[0], ==, 0); /* cannot run on cores */
    g_assert_cmpint(duet_class_stats(t->core, 5, &stats), ==, DUET_EINVAL);
}

/* Hundreds of classes are found again after the table has grown. */
static void test_many(void)
{
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned i = 1; i <= 500; i++)
            g_assert_cmpint(submit(t, t->any, i, NULL, NULL, 0), ==, DUET_OK);
    g_assert_cmpuint(duet_class_count(t->core), ==, 500);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
}

/* Counts the flops of tasks without arguments alone. */
static double bare_flops(const void *args)
{
    return args ? NAN : 7;
}

/* Work is flops where these are counted, else bytes, else 1. A task without arguments has NULL. */
static void test_work(void)
{
    struct duet_codelet *codelet;
    struct duet_implementation implementation = {.arch = "core"};
    struct duet_codelet_desc desc = {.name = "uncounted",
                                     .implementations = &implementation,
                                     .implementation_count = 1,
                                     .flops = bare_flops};
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_OK);
    struct duet_handle *a = testing_handle(t, 100), *b = testing_handle(t, 50);
    t->hold = true;
    g_assert_cmpint(submit(t, codelet, 1, a, b, 0), ==, DUET_OK);
    struct duet__class klass = duet__task_class(t->held);
    g_assert_cmpfloat(klass.work, ==, 150);
    g_assert_false(klass.counts_flops);
    g_assert_cmpfloat(duet__class_cost(&klass, 0), ==, 0);
    g_assert_cmpint(submit(t, codelet, 1, NULL, NULL, 0), ==, DUET_OK);
    g_assert_cmpfloat(duet__task_class(t->held).work, ==, 1);
    const struct duet_task_extra named = {.name = "named"};
    for (int i = 0; i < 2; i++) {
        const struct duet_task_desc bare = {.codelet = codelet, .extra = i ? &named : NULL};
        g_assert_cmpint(duet_submit(t->core, &bare), ==, DUET_OK);
        g_assert_cmpfloat(duet__task_class(t->held).work, ==, 7);
    }
    g_assert_cmpint(submit(t, t->any, 5e3, a, b, 0), ==, DUET_OK);
    klass = duet__task_class(t->held);
    g_assert_cmpfloat(klass.work, ==, 5e3);
    g_assert_true(klass.counts_flops);
    g_assert_cmpfloat_with_epsilon(duet__class_cost(&klass, 1), 5e-7, 1e-15);
    g_assert_cmpfloat(duet_task_complexity(t->held), ==, 5e3);
}

/* Expected times come from the calibration first, then from the codelet, then from measurements. */
static void test_expected(void)
{
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    t->hold = true;
    g_assert_cmpint(submit(t, t->cpu, 1e6, NULL, NULL, 0), ==, DUET_OK);
    struct duet_task *task = t->held;
    g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, task), 1e-3, 1e-12);
    const struct worker *cpu = &t->core->workers[0];
    duet__class_measured(task->klass, cpu, 4e-3);
    g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, task), 4e-3, 1e-12);
    duet__class_measured(task->klass, cpu, 2e-3);
    g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, task), 3e-3, 1e-12);
    /* short executions are told in bundles, here of two, and all of them count */
    duet__class_measured(task->klass, cpu, 1e-6);
    g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, task), 3e-3, 1e-12);
    duet__class_measured(task->klass, cpu, 2e-6);
    g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, task), 6.003e-3 / 4, 1e-12);
    g_assert_cmpint(duet__prime(t->core, "later", 0, 1e6, 7e-3, 3), ==, DUET_OK);
    g_assert_cmpint(duet__prime(t->core, "later", 9, 1e6, 7e-3, 3), ==, DUET_EINVAL);
    struct duet_codelet *later = testing_codelet(t->core, "later", true, true);
    g_assert_cmpint(submit(t, later, 1e6, NULL, NULL, 0), ==, DUET_OK);
    g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, t->held), 7e-3, 1e-12);
    g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 1, t->held), 1e-4, 1e-12);
}

/* The word of a kernel whose flops tell nothing: its argument, on devices a tenth of that. */
static double said(const void *args, const char *arch)
{
    return testing_flops(args) / (strcmp(arch, "core") ? 10 : 1);
}

static double seven(const void *args)
{
    return 7;
}

static struct duet_codelet *costly(struct testing *t)
{
    struct duet_codelet *codelet = NULL;
    struct duet_implementation everywhere[] = {{.arch = "cpu"}, {.arch = "cuda"}};
    struct duet_codelet_desc desc = {.name = "costly",
                                     .implementations = everywhere,
                                     .implementation_count = 2,
                                     .flops = seven,
                                     .cost = said};
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_OK);
    return codelet;
}

/* Each task has its own cost, before and after others have been measured, or a cost again. */
static void test_costs(void)
{
    static const double costs[] = {4e-3, 2e-3, 1e-3, 4e-3};
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    struct duet_codelet *codelet = costly(t);
    t->hold = true;
    for (unsigned i = 0; i < G_N_ELEMENTS(costs); i++) {
        g_assert_cmpint(submit(t, codelet, costs[i], NULL, NULL, 0), ==, DUET_OK);
        struct duet__class klass = duet__task_class(t->held);
        g_assert_cmpfloat(duet__class_cost(&klass, 0), ==, costs[i]);
        g_assert_cmpfloat(duet__class_cost(&klass, 1), ==, costs[i] / 10);
        if (i < 3)
            g_assert_cmpfloat(duet_view_seconds(&view, 0, t->held), ==, costs[i]);
        else /* as the first, which was measured */
            g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, t->held), 8e-3, 1e-12);
        duet__class_measured(t->held->klass, &t->core->workers[0], 2 * costs[i]);
        g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, t->held), 2 * costs[i], 1e-12);
        g_assert_cmpfloat(duet_view_seconds(&view, 1, t->held), ==, costs[i] / 10);
    }
    g_assert_cmpuint(duet_class_count(t->core), ==, 3);
}

/*
 * 20,000 tasks that all differ in size, over four decades, share a few thousand classes. What each
 * is and who can run it is its own, what is expected is what others of about its size took, and
 * nothing is missing in the sums.
 */
static void test_sizes(void)
{
    enum { TASKS = 20000 };
    struct duet_stats stats;
    double sum = 0;
    uint64_t tasks = 0;
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    struct duet_handle *fits = testing_handle(t, 1 << 20), *not = testing_handle(t, 2 << 20);
    struct duet_task *held[TASKS];
    t->hold = true;
    for (unsigned i = 0; i < TASKS; i++) {
        double flops = 1e4 * pow(1e4, (double)i / TASKS), seconds = flops / 1e7;
        g_assert_cmpint(submit(t, t->any, flops, i % 2 ? not : fits, NULL, 0), ==, DUET_OK);
        struct duet__class klass = duet__task_class(held[i] = t->held);
        g_assert_cmpfloat(klass.work, ==, flops);
        g_assert_cmpfloat(duet__class_cost(&klass, 0), ==, flops / 1e9);
        g_assert_cmpint(duet_view_can_run(&view, 1, t->held), ==, i % 2 == 0);
        duet__class_measured(t->held->klass, &t->core->workers[0], seconds);
        g_assert_cmpfloat(fabs(duet_view_seconds(&view, 0, t->held) / seconds - 1), <, 0.125);
        sum += flops;
    }
    REFUSED(t->core, submit(t, t->any, 1, not, NULL, duet_where(t->core, "cuda")), DUET_ETOOBIG,
            "needs 2097152 bytes");
    for (unsigned i = 0; i < TASKS; i++)
        duet__link(t->core, held[i], DUET_SUBMITTER, t->now, &t->ops);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(duet_class_count(t->core), <, 3000);
    for (size_t i = 0; i < duet_class_count(t->core); i++) {
        struct duet_class_stats of;
        g_assert_cmpint(duet_class_stats(t->core, i, &of), ==, DUET_OK);
        tasks += of.tasks;
    }
    duet_stats(t->core, &stats);
    g_assert_cmpuint(tasks, ==, TASKS);
    g_assert_cmpfloat_with_epsilon(stats.flops / sum, 1, 1e-9);
}

/* However many costs tasks have, on two architectures that do not go together. */
static double unlike(const void *args, const char *arch)
{
    double flops = testing_flops(args);
    return strcmp(arch, "core") ? flops : 1e12 / flops * (1 + fmod(flops, 1e3));
}

static void test_many_costs(void)
{
    uint64_t rng = 1;
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    struct duet_codelet *codelet = costly(t);
    codelet->cost = unlike;
    for (unsigned i = 0; i < 20000; i++)
        g_assert_cmpint(submit(t, codelet, exp(20 * duet_random_unit(&rng)), NULL, NULL, 0), ==,
                        DUET_OK);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(duet_class_count(t->core), ==, 2 * 1024 + 1); /* one amount of work */
}

static unsigned told; /* times that the model was told something */

static int count_add(void *state, double work, uint64_t footprint, double mean_s, uint64_t samples)
{
    told++;
    return duet_model_at(0)->add(state, work, footprint, mean_s, samples);
}

/*
 * Workers tell the model of kernels that take 20 us once in 100 us, and of long ones at once; none
 * of them waits for another one that does, and nothing is left out.
 */
static void test_telling(void)
{
    struct duet_model counting = *duet_model_at(0);
    counting.add = count_add;
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    t->core->model = &counting;
    t->hold = true;
    g_assert_cmpint(submit(t, t->cpu, 1e4, NULL, NULL, 0), ==, DUET_OK);
    struct task_class *klass = t->held->klass;
    const struct worker *cpu = &t->core->workers[0];
    told = 0;
    for (unsigned i = 0; i < 1000; i++)
        duet__class_measured(klass, cpu, 20e-6);
    g_assert_cmpuint(told, <=, 203);
    g_assert_cmpfloat_with_epsilon(duet_view_seconds(&view, 0, t->held), 20e-6, 1e-15);
    spin_lock(&t->cpu->model_lock);
    for (unsigned i = 0; i < 1000; i++)
        duet__class_measured(klass, cpu, 40e-6);
    spin_unlock(&t->cpu->model_lock);
    unsigned before = told;
    duet__class_measured(klass, cpu, 40e-6);
    g_assert_cmpuint(told, ==, before + 1);
    double of_all = t->core->model->predict(t->cpu->models[0], klass->work, klass->footprint);
    g_assert_cmpfloat_with_epsilon(of_all, 30e-6, 0.02e-6);
    for (unsigned i = 0; i < 10; i++)
        duet__class_measured(klass, cpu, 1e-3);
    g_assert_cmpuint(told, ==, before + 11);
}

/* The engine may know no time on some architecture, on none, or refuse. */
static void test_classify(void)
{
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    t->hold = true;
    t->untimed = duet_where(t->core, "card0");
    g_assert_cmpint(submit(t, t->any, 1, NULL, NULL, 0), ==, DUET_OK);
    g_assert_true(duet_view_can_run(&view, 0, t->held));
    g_assert_false(duet_view_can_run(&view, 1, t->held));
    g_assert_true(duet_view_can_run(&view, 2, t->held));
    t->untimed = duet_where(t->core, "cuda");
    g_assert_cmpint(submit(t, t->gpu, 1, NULL, NULL, 0), ==, DUET_ENOWORKER);
    t->refusal = DUET_ENOMODEL;
    g_assert_cmpint(submit(t, t->any, 2, NULL, NULL, 0), ==, DUET_ENOMODEL);
    g_assert_cmpstr(duet_last_message(t->core), ==, "kernel any refused by the test");
    t->refusal = 0;
    g_assert_cmpint(submit(t, t->any, 2, NULL, NULL, 0), ==, DUET_OK);
    g_assert_cmpuint(atomic_load(&t->core->submitted), ==, 2);
}

/* Restrictions by architecture, backend, both; what nobody can run is refused. */
static void test_where(void)
{
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    t->hold = true;
    static const struct {
        const char *name;
        bool able[3];
    } cases[] = {{NULL, {true, true, true}},         {"core", {true, false, false}},
                 {"card1", {false, false, true}},    {"cuda", {false, true, true}},
                 {"card0,cpu", {true, true, false}}, {"card0,unknown,card1", {false, true, true}}};
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpint(submit(t, t->any, 1, NULL, NULL, duet_where(t->core, cases[i].name)), ==,
                        DUET_OK);
        for (unsigned w = 0; w < 3; w++)
            g_assert_cmpint(duet_view_can_run(&view, w, t->held), ==, cases[i].able[w]);
    }
    g_assert_cmpuint(duet_where(t->core, "unknown"), ==, 0);
    g_assert_cmpuint(duet_where(t->core, "card"), ==, 0);
    g_assert_cmpuint(duet_where(t->core, ""), ==, 0);
    REFUSED(t->core, submit(t, t->cpu, 1, NULL, NULL, duet_where(t->core, "cuda")), DUET_ENOWORKER,
            "for_cpus with this restriction");
}

/* Bounds leave out architectures on which no task of a class may run. */
static void test_possible(void)
{
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    struct duet_codelet *codelet = costly(t);
    struct duet_class_stats stats;
    static const struct {
        const char *name;
        bool counted[3]; /* core, card0, card1 */
    } tasks[] = {{"card1", {false, false, true}},
                 {"core", {true, false, true}},
                 {NULL, {true, true, true}}};
    for (unsigned i = 0; i < G_N_ELEMENTS(tasks); i++) {
        g_assert_cmpint(submit(t, codelet, 1, NULL, NULL, duet_where(t->core, tasks[i].name)), ==,
                        DUET_OK);
        g_assert_cmpint(duet_class_stats(t->core, 0, &stats), ==, DUET_OK);
        for (unsigned a = 0; a < 3; a++)
            g_assert_cmpint(stats.expected_s[a] > 0, ==, tasks[i].counted[a]);
    }
}

/* No more sets of workers than there is room for; each gets its number once. */
static void test_masks(void)
{
    uint8_t number, again;
    OWNED(testing_end)
    struct testing *t =
        testing_init(&(struct testing_machine){.cpus = 1, .gpus = 8, .gpu_archs = 8}, "eager", 1);
    unsigned before = atomic_load(&t->core->mask_count);
    for (uint64_t kinds = 1; kinds <= MASKS_MAX - before; kinds++) {
        g_assert_cmpint(duet__mask_find(t->core, kinds, &number), ==, DUET_OK);
        g_assert_cmpint(duet__mask_find(t->core, kinds, &again), ==, DUET_OK);
        g_assert_cmpuint(number, ==, again);
        g_assert_cmpuint(t->core->masks[number].kinds, ==, kinds);
        g_assert_cmpuint(t->core->masks[number].workers[0], ==, kinds);
    }
    g_assert_cmpint(duet__mask_find(t->core, 255, &number), ==, DUET_ENOMEM);
    g_assert_cmpint(duet__mask_find(t->core, 1, &number), ==, DUET_OK);
}

static void test_refusals(void)
{
    char args[DUET_ARGS_INLINE + 1] = {0};
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    struct duet_handle *h = testing_handle(t, 8), *none;
    struct duet_access access = {h, (enum duet_mode)0};
    struct duet_task_desc desc = {.codelet = t->any, .args = args, .args_bytes = sizeof args};
    g_assert_cmpint(duet_submit(t->core, NULL), ==, DUET_EINVAL);
    g_assert_cmpint(duet_submit(t->core, &(struct duet_task_desc){.codelet = NULL}), ==,
                    DUET_EINVAL);
    desc.args = NULL;
    REFUSED(t->core, duet_submit(t->core, &desc), DUET_EINVAL,
            "65 bytes of arguments at no address");
    desc.args = args;
    desc.args_bytes = SIZE_MAX;
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_ENOMEM);
    desc.args_bytes = sizeof args;
    desc.access_count = 1;
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_EINVAL);
    desc.accesses = &access;
    REFUSED(t->core, duet_submit(t->core, &desc), DUET_EINVAL, "no valid mode");
    access = (struct duet_access){NULL, DUET_R};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_EINVAL);
    access.handle = h;
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    g_assert_cmpint(duet_register_vector(t->core, NULL, 0, 8, &none), ==, DUET_EINVAL);
    g_assert_cmpint(duet_register_matrix(t->core, NULL, 4, 4, 3, 8, &none), ==, DUET_EINVAL);
    g_assert_cmpint(duet_register_matrix(t->core, NULL, 1, SIZE_MAX / 8, 1, 8, &none), ==,
                    DUET_EINVAL);
    g_assert_null(none);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
}

/* Each call of a runtime refuses data and codelets of another one, and does not change them. */
static void test_another_runtime(void)
{
    static const char why[] = "of another";
    struct duet_handle *parts[3];
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    OWNED(testing_end) struct testing *other = testing_init(&both, "eager", 1);
    struct duet_handle *h = testing_handle(other, 8), *own = testing_handle(t, 8);
    static const int modes[] = {DUET_R, DUET_RW, DUET_COMMUTE, DUET_REDUCE};
    for (unsigned i = 0; i < G_N_ELEMENTS(modes); i++)
        refuses(t, duet_insert(t->core, t->any, DUET_R, own, modes[i], h, 0), why);
    refuses(t, duet_insert(t->core, other->any, DUET_R, own, 0), why);
    refuses(t, duet_set_reduction(t->core, own, other->any, t->any), why);
    refuses(t, duet_set_reduction(t->core, h, t->any, t->any), why);
    refuses(t, duet_acquire(t->core, h, DUET_R), why);
    g_assert_cmpint(duet_acquire(other->core, h, DUET_R), ==, DUET_OK);
    refuses(t, duet_release(t->core, h), why);
    g_assert_cmpint(duet_release(other->core, h), ==, DUET_OK);
    refuses(t, duet_wont_use(t->core, h), why);
    refuses(t, duet_cut_blocks(t->core, h, 2, 1, parts), why);
    g_assert_cmpint(duet_cut_blocks(other->core, h, 2, 1, parts), ==, DUET_OK);
    refuses(t, duet_uncut(t->core, parts[0]), why);
    refuses(t, duet_unregister(t->core, h), why);
    refuses(t, duet_unregister_submit(t->core, h), why);
    g_assert_true(duet_valid(other->core, h) && !duet_valid(t->core, h));
    g_assert_cmpint(duet_unregister(other->core, h), ==, DUET_OK);
}

static void test_codelets(void)
{
    struct duet_codelet *codelet;
    struct duet_implementation nowhere = {.arch = "vector_unit"};
    struct duet_codelet_desc desc = {.name = "x", .implementations = &nowhere};
    OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_EINVAL);
    desc.implementation_count = 1;
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_OK);
    g_assert_cmpint(submit(t, codelet, 1, NULL, NULL, 0), ==, DUET_ENOWORKER);
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_EINVAL);
    g_assert_null(codelet);
    desc.name = "a_name_of_thirty-two_characters_";
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_EINVAL);
    desc.name = "";
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_EINVAL);
    g_assert_cmpuint(duet_kernel_count(t->core), ==, 4);
    g_assert_cmpstr(duet_kernel_name(t->core, 3), ==, "x");
    g_assert_null(duet_kernel_name(t->core, 4));
}

/* No more tasks are unfinished than the window allows, however small it is. */
static void test_window(void)
{
    static const size_t windows[] = {1, 2, 7, 8, 9, 64};
    for (unsigned i = 0; i < G_N_ELEMENTS(windows); i++) {
        OWNED(testing_end) struct testing *t = testing_init(&both, "eager", 1);
        t->core->window = windows[i];
        for (unsigned n = 0; n < 200; n++) {
            g_assert_cmpint(submit(t, t->any, 1, NULL, NULL, 0), ==, DUET_OK);
            uint64_t left = atomic_load(&t->core->submitted) - duet_tasks_done(t->core);
            g_assert_cmpuint(left, <=, windows[i]);
        }
    }
}

TEST_MAIN(test_identity, test_many, test_work, test_expected, test_costs, test_sizes,
          test_many_costs, test_telling, test_classify, test_where, test_possible, test_masks,
          test_refusals, test_another_runtime, test_codelets, test_window)
