/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: who makes contributions, when they are combined, and what becomes of them otherwise.
 */
#include "core/testing_script.h"

struct kernels {
    struct duet_codelet *init, *combine;
};

static struct duet_codelet *kernel(struct testing *t, const char *name, bool cpu, bool gpu)
{
    struct duet_implementation where[2];
    size_t count = 0;
    if (cpu)
        where[count++] = (struct duet_implementation){.arch = "cpu"};
    if (gpu)
        where[count++] = (struct duet_implementation){.arch = "cuda"};
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = where,
                                           .implementation_count = count};
    struct duet_codelet *made;
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &made), ==, DUET_OK);
    return made;
}

/* A sum, and what is known of it. */
static struct duet_handle *start(struct testing **made, struct kernels *kernels, unsigned cpus,
                                 unsigned gpus)
{
    struct testing *t = *made =
        lost_start(&(struct testing_machine){.cpus = cpus, .gpus = gpus}, "eager");
    kernels->init = kernel(t, "clear", true, true);
    kernels->combine = kernel(t, "add_up", true, true);
    struct duet_handle *sum = testing_handle(t, 64);
    g_assert_cmpint(duet_set_reduction(t->core, sum, kernels->init, kernels->combine), ==, DUET_OK);
    return sum;
}

/* Everybody does what there is to do, as an engine whose commands have ended asks again. */
static unsigned rest(struct testing *t)
{
    for (unsigned w = 0; w < t->workers; w++)
        t->woken[w] = true;
    return go(t, NULL);
}

/* The next command of the worker runs this kernel. */
static struct duet__engine_command runs(struct testing *t, unsigned worker, const char *name)
{
    struct duet__engine_command run = expect_run(t, worker);
    g_assert_cmpstr(duet_task_kernel(run.task), ==, name);
    return run;
}

static void reduce(struct testing *t, struct duet_handle *sum, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        submit_to(t, t->any, NULL, sum, DUET_REDUCE, NULL, 0);
}

/* Only this handle is left. */
static void check_alone(const struct testing *t, const struct duet_handle *handle)
{
    g_assert_true(t->core->handles == handle && !handle->next);
    g_assert_null(handle->head);
    g_assert_cmpuint(handle->active, ==, 0);
}

/*
 * "sum a b" registers data that tasks reduce, "rest 2" lets everybody do what there is to do, as an
 * engine whose commands have ended asks again, and "alone a" says that this handle alone is left.
 */
static bool reduction_step(struct stage *stage, char **words)
{
    struct testing *t = stage->t;
    if (stage_is(words, "sum")) {
        const struct kernels kernels = {kernel(t, "clear", true, true),
                                        kernel(t, "add_up", true, true)};
        for (unsigned i = 1; words[i]; i++) {
            *stage_place(stage, words[i]) = testing_handle(t, i * SLAB_ALIGN);
            g_assert_cmpint(duet_set_reduction(t->core, stage_data(stage, words[i]), kernels.init,
                                               kernels.combine),
                            ==, DUET_OK);
        }
    } else if (stage_is(words, "rest")) {
        stage_same(stage, "the number of tasks", rest(t), stage_number(stage, words[1]));
    } else if (stage_is(words, "reduces")) { /* what was begun last, a handle of so many blocks */
        const struct duet__engine_command *last = &stage->begun[stage->begun_count - 1];
        stage_same(stage, "its size", (int64_t)last->task->accesses[0].handle->bytes,
                   SLAB_ALIGN * stage_number(stage, words[1]));
    } else if (stage_is(words, "gone")) { /* the core learns it, and asks for nothing */
        g_assert_cmpint(duet__worker_lost(t->core, (unsigned)stage_worker(stage, words[1]), t->now,
                                          &t->ops),
                        ==, DUET_OK);
    } else if (stage_is(words, "alone")) {
        check_alone(t, stage_data(stage, words[1]));
    } else {
        return false;
    }
    return true;
}

#define BOTH "cpus=1 gpus=1"

static const struct script scripts[] = {
    {"a later access that reads nothing needs no sum; parts left at the end are freed", "cpus=2",
     "sum a; 3 any a:+; rest 4; cpu a:w; rest 1; alone a; 3 any a:+; rest 4"},
    {"a task that reduces two handles has both initialised, one after the other", "cpus=1",
     "sum a b; cpu a:+ b:+; cpu0 run clear; reduces 1; done cpu0; cpu0 run clear; reduces 2;"
     "done cpu0; cpu0 run for_cpus; done cpu0; leave a; leave b; rest 2; handles 0"},
    /* failures */
    {"the device is lost while it initialises, or runs the first that adds: no data is lost", BOTH,
     "sum a; any a:+; gpu0 run clear; {|done gpu0}; {|gpu0 run any}; gone gpu0; lost gpu0; rest 2;"
     "cpu a:r; rest 2; alone a"},
    {"the device is lost with what was added there", BOTH,
     "sum a; gpu a:+; rest 2; lose gpu0; cpu a:r; rest 0; alone a;"
     "end ELOST add_up): the only valid copy of its data was lost"},
    {"given up while one initialises, and the other was about to", "cpus=2",
     "sum a; 5 any a:+; cpu a:rw; cpu0 run clear; cpu1 run clear; {cancel|}; done cpu0 {OK|EIO};"
     "done cpu1; rest 0; alone a; end {ECANCELED|EIO}"},
};

static void test_scripts(void)
{
    scripts_play_with(scripts, G_N_ELEMENTS(scripts), &(struct stage_more){NULL, reduction_step});
}

/* Each worker initialises its own once; another access has them combined before it. */
static void test_tree(void)
{
    struct testing *t;
    struct kernels kernels;
    struct duet_handle *sum = start(&t, &kernels, 4, 0);
    struct duet__engine_command run[4];
    reduce(t, sum, 9);
    for (unsigned w = 0; w < 4; w++)
        run[w] = runs(t, w, "clear");
    for (unsigned w = 0; w < 4; w++) {
        g_assert_true(run[w].task->accesses[0].handle != sum);
        g_assert_true(duet_valid(t->core, sum)); /* while the first ones are made, too */
        testing_done(t, &run[w], 1e-6, 0);
        g_assert_true(duet_valid(t->core, sum));
        run[w] = runs(t, w, "for_cpus");
        for (unsigned other = 0; other < w; other++)
            g_assert_true(run[w].task->accesses[0].handle != run[other].task->accesses[0].handle);
    }
    for (unsigned w = 0; w < 4; w++)
        testing_done(t, &run[w], 1e-6, 0);
    g_assert_cmpuint(rest(t), ==, 5);
    g_assert_cmpuint(sum->version, ==, 0);
    submit_to(t, t->cpu, NULL, sum, DUET_R, NULL, 0);
    /* two at once, one of these two, one with the handle, then the reader */
    run[0] = runs(t, 0, "add_up");
    run[1] = runs(t, 1, "add_up");
    expect_idle(t, 2);
    testing_done(t, &run[0], 1e-6, 0);
    testing_done(t, &run[1], 1e-6, 0);
    run[0] = runs(t, 0, "add_up");
    expect_idle(t, 1);
    testing_done(t, &run[0], 1e-6, 0);
    run[0] = runs(t, 0, "add_up");
    g_assert_true(run[0].task->accesses[0].handle == sum);
    expect_idle(t, 1);
    testing_done(t, &run[0], 1e-6, 0);
    g_assert_cmpuint(sum->version, ==, 1);
    run[0] = runs(t, 0, "for_cpus");
    testing_done(t, &run[0], 1e-6, 0);
    check_alone(t, sum);
    /* once more */
    reduce(t, sum, 2);
    submit_to(t, t->cpu, NULL, sum, DUET_RW, NULL, 0);
    reduce(t, sum, 1);
    (void)rest(t);
    g_assert_cmpint(duet_unregister(t->core, sum), ==, DUET_OK);
    g_assert_null(t->core->handles);
    lost_end(t, DUET_OK, NULL);
}

static struct testing *looked_at;
static uint64_t least = UINT64_MAX; /* tasks unfinished when a combination was made */

static double look(const void *args)
{
    if (looked_at)
        least = MIN(least, unfinished(looked_at->core));
    return 1e3;
}

/*
 * A hint, which nobody waits for, has them combined: not all is finished before that is. What the
 * runtime has submitted itself is not counted as done.
 */
static void test_hint(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 2}, "eager");
    const struct duet_implementation where = {.arch = "cpu"};
    const struct duet_codelet_desc desc = {.name = "add_up",
                                           .implementations = &where,
                                           .implementation_count = 1,
                                           .flops = look};
    struct duet_codelet *combine;
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &combine), ==, DUET_OK);
    struct duet_handle *sum = testing_handle(t, 64);
    struct duet_codelet *init = kernel(t, "clear", true, false);
    g_assert_cmpint(duet_set_reduction(t->core, sum, init, combine), ==, DUET_OK);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 0);
    looked_at = t;
    reduce(t, sum, 3);
    g_assert_cmpint(duet_prefetch(t->core, sum, DUET_HOST), ==, DUET_OK);
    (void)rest(t);
    looked_at = NULL;
    g_assert_cmpuint(least, >, 0);
    g_assert_cmpuint(least, <, UINT64_MAX);
    g_assert_cmpuint(unfinished(t->core), ==, 0);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 3);
    check_alone(t, sum);
    lost_end(t, DUET_OK, NULL);
}

/* In device memory too small for more than one task; contributions come and go with the rest. */
static void test_devices(void)
{
    struct kernels kernels;
    struct duet_handle *sum, *other;
    struct testing *t =
        lost_start(&(struct testing_machine){.cpus = 1, .gpus = 2, .capacity_bytes = 512}, "eager");
    kernels.init = kernel(t, "clear", true, true);
    kernels.combine = kernel(t, "add_up", true, true);
    sum = testing_handle(t, 64);
    other = testing_handle(t, 64);
    g_assert_cmpint(duet_set_reduction(t->core, sum, kernels.init, kernels.combine), ==, DUET_OK);
    for (unsigned i = 0; i < 12; i++) {
        submit_to(t, t->any, NULL, sum, DUET_REDUCE, other, i % 4 ? DUET_R : DUET_RW);
        submit_to(t, t->gpu, NULL, other, DUET_RW, other, DUET_SCRATCH);
    }
    submit_to(t, t->cpu, NULL, sum, DUET_R, NULL, 0);
    (void)rest(t);
    g_assert_cmpuint(unfinished(t->core), ==, 0);
    g_assert_cmpuint(sum->version, ==, 1);
    lost_end(t, DUET_OK, NULL);
}

/* The reason that keeps a kernel's tasks off an architecture begins so; NULL: there is none. */
static void check_barrier(const struct testing *t, const char *kernel, const char *arch,
                          const char *wanted)
{
    const struct duet_machine *machine = duet_runtime_machine(t->core);
    struct duet_class_stats stats;
    char why[200];
    unsigned found = 0;
    for (size_t c = 0; !duet_class_stats(t->core, c, &stats); c++)
        for (unsigned a = 0; a < machine->arch_count; a++) {
            if (strcmp(stats.kernel, kernel) != 0 || strcmp(machine->archs[a].backend, arch) != 0)
                continue;
            (void)duet__class_barrier(t->core, c, a, why, sizeof why);
            g_assert_true(wanted ? g_str_has_prefix(why, wanted) : !*why);
            found++;
        }
    g_assert_cmpuint(found, ==, 1);
}

static void test_misuse(void)
{
    struct testing *t;
    struct kernels kernels;
    struct duet_handle *sum = start(&t, &kernels, 1, 1), *plain = testing_handle(t, 64);
    struct duet_access accesses[] = {{plain, DUET_REDUCE}, {sum, DUET_R}};
    struct duet_task_desc desc = {.codelet = t->cpu, .accesses = accesses, .access_count = 1};
    REFUSED(t->core, duet_submit(t->core, &desc), DUET_EINVAL, "call duet_set_reduction before");
    accesses[0].handle = sum;
    desc.access_count = 2;
    REFUSED(t->core, duet_submit(t->core, &desc), DUET_EINVAL, "also uses it in another way");
    g_assert_cmpint(duet_set_reduction(t->core, sum, kernels.init, kernels.combine), ==,
                    DUET_EINVAL);
    g_assert_cmpint(duet_set_reduction(t->core, plain, NULL, kernels.combine), ==, DUET_EINVAL);
    t->refusal = DUET_ENOMODEL;
    g_assert_cmpint(duet_set_reduction(t->core, testing_handle(t, 72), kernels.init,
                                       kernels.combine),
                    ==, DUET_ENOMODEL);
    t->refusal = DUET_OK;
    /* where the contribution can be initialised */
    struct duet_codelet *on_gpu = kernel(t, "clear_on_gpu", false, true);
    g_assert_cmpint(duet_set_reduction(t->core, plain, on_gpu, kernels.combine), ==, DUET_OK);
    accesses[0].handle = plain;
    desc.access_count = 1;
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_ENOWORKER);
    submit_to(t, t->any, NULL, plain, DUET_REDUCE, NULL, 0);
    check_barrier(t, "any", "cpu", "clear_on_gpu, which initialises what it reduces, cannot run");
    check_barrier(t, "any", "cuda", NULL);
    expect_idle(t, 0);
    g_assert_cmpuint(testing_work(t, 1, NULL), ==, 2);
    lost_end(t, DUET_OK, NULL);
}

TEST_MAIN(test_scripts, test_tree, test_hint, test_devices, test_misuse)
