/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of references to tasks, and of what is called at their end. */
#include "core/testing_script.h"

enum { BLOCK = SLAB_ALIGN, MANY = 40 };

/* Reported ends of tasks. */
struct ends {
    struct testing *t;
    unsigned count, more; /* so many tasks are submitted at ends */
    int status;
    struct duet_ref *ref; /* the task's reference: it has not ended for others */
};

static void note_end(struct duet_runtime *runtime, void *arg, int status)
{
    struct ends *ends = arg;
    g_assert_true(runtime == ends->t->core);
    g_assert_true(!ends->ref || !duet_ref_ended(ends->ref));
    ends->count++;
    ends->status = status;
    if (ends->more) {
        ends->more--;
        (void)testing_submit(ends->t, ends->t->any, NULL, 0, NULL, 0, 0);
    }
}

/* A task without data after others. Its number. */
static uint64_t submit_after(struct testing *t, struct duet_ref **ref,
                             struct duet_ref *const *after, size_t count)
{
    double flops = 0;
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .args = &flops,
                                        .args_bytes = sizeof flops,
                                        .extra = &(struct duet_task_extra){.ref = ref,
                                                                           .after = after,
                                                                           .after_count = count}};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    return atomic_load(&t->core->submitted);
}

static const struct script scripts[] = {
    {"a task comes after another, and may still name it when that has ended", "cpus=2",
     "any>a; cpu0 run 1; any>b<a; any<b; go 0; pending a; done 1; ended a; any<a<c<b; drop a; drop "
     "b;"
     "wake cpu0; go 3"},
    {"the critical path goes along references; a new measurement counts nothing from before",
     "cpus=2",
     "any>a; any>b<a; any>c<b; any>d<c; any>e<d; go 5; critical_us 5000; reset; any<e; go 1;"
     "critical_us 1"},
    /* The kernel runs on two devices, both lost, then on a CPU: `a` is that one's task. Nobody
     * waits for what the kernel does not submit again. */
    {"tasks of a device's kernel are forgotten with it, and submitted again when it runs again",
     "cpus=1 gpus=2",
     "data h; any h:w; gpu0 run 1; inside gpu0 any>a; inside gpu0 any>b; any<a; lose gpu0; lost 1;"
     "gpu1 run 1; inside gpu1 any>c; lose gpu1; lost 1; pending a; cpu0 run 1; {|inside cpu0 "
     "any>d};"
     "done 1; {ended|pending} a; ended b; wake cpu0; go {1|2}; {order 1 4|order 1 6 4}; ended a b "
     "c;"
     "finished {2|3}"},
    {"tasks that never end are freed with the runtime, with what they come after", "cpus=1 unasked",
     "never a; any<a; cpu0 lists 0; await a ESTUCK; fini"},
};

/* "never a": a task that is held back. */
static bool ref_step(struct stage *stage, char **words)
{
    if (!stage_is(words, "never"))
        return false;
    stage->t->hold = true;
    (void)submit_after(stage->t, stage_ref(stage, words[1]), NULL, 0);
    stage->t->hold = false;
    return true;
}

static void test_scripts(void)
{
    scripts_play_with(scripts, G_N_ELEMENTS(scripts), &(struct stage_more){NULL, ref_step});
}

/* Many before one, one before many; with data as well. */
static void test_fans(void)
{
    struct duet_ref *all[MANY], *last;
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 3}, "ws");
    struct duet_handle *h = testing_handle(t, BLOCK);
    (void)testing_submit(t, t->any, h, DUET_RW, NULL, 0, 0);
    for (unsigned i = 0; i < MANY; i++)
        (void)submit_after(t, &all[i], NULL, 0);
    const struct duet_access access = {h, DUET_R};
    double flops = 0;
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .accesses = &access,
                                        .access_count = 1,
                                        .args = &flops,
                                        .args_bytes = sizeof flops,
                                        .extra = &(struct duet_task_extra){.ref = &last,
                                                                           .after = all,
                                                                           .after_count = MANY}};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    uint64_t id = atomic_load(&t->core->submitted), ids[2 * MANY + 2];
    for (unsigned i = 0; i < MANY; i++) {
        duet_ref_free(all[i]);
        (void)submit_after(t, NULL, &last, 1);
    }
    g_assert_cmpint(duet_ref_wait(t->core, last), ==, DUET_OK);
    duet_ref_free(last);
    testing_drain(t);
    g_assert_cmpuint(plan_order(t, ids, 2 * MANY + 2), ==, 2 * MANY + 2);
    g_assert_cmpuint(ids[MANY + 1], ==, id);
    lost_end(t, DUET_OK, "");
}

static int two_children(struct plan *plan, struct duet_expansion *expansion,
                        const struct duet_call *call)
{
    int error = plan_cut(plan, expansion, 0, 2 * BLOCK, 2);
    for (unsigned i = 0; i < 2 && !error; i++)
        error = plan_child(plan, expansion, plan->t->cpu, plan->blocks[i], DUET_RW, NULL, 0);
    return error;
}

/* A task that expands has ended when its children have. */
static void test_expansion(void)
{
    struct duet_ref *ref;
    uint64_t ids[3];
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1}, "eager");
    struct plan plan = {.t = t, .expand = two_children}, *argument = &plan;
    struct ends ends = {.t = t};
    const struct duet_access access = {testing_handle(t, (size_t)2 * BLOCK), DUET_RW};
    struct duet_task_desc desc = plan_desc(t, &argument, &access, 1);
    desc.extra = &(struct duet_task_extra){.ref = &ref, .done = note_end, .done_arg = &ends};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    uint64_t after = submit_after(t, NULL, &ref, 1);
    ends.ref = ref;
    g_assert_cmpuint(go(t, NULL), ==, 3);
    g_assert_cmpuint(plan_order(t, ids, 3), ==, 3);
    g_assert_cmpuint(ids[2], ==, after);
    g_assert_cmpuint(ends.count, ==, 1);
    duet_ref_free(ref);
    lost_end(t, DUET_OK, "");
}

/* The end is reported once, and submissions there are waited for. */
static void test_done(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 2}, "ws");
    struct duet_ref *ref;
    struct ends ends = {.t = t, .more = 1};
    double flops = 0;
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .args = &flops,
                                        .args_bytes = sizeof flops,
                                        .extra = &(struct duet_task_extra){.ref = &ref,
                                                                           .done = note_end,
                                                                           .done_arg = &ends}};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    ends.ref = ref;
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(ends.count, ==, 1);
    g_assert_cmpint(ends.status, ==, DUET_OK);
    g_assert_cmpuint(duet__finished_tasks(t->core), ==, 2);
    duet_ref_free(ref);
    lost_end(t, DUET_OK, "");
}

/* Failed tasks and those cancelled because of them are reported as well, and not waited for. */
static void test_failure(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1}, "eager");
    struct duet_ref *refs[2];
    struct ends ends[2] = {{.t = t}, {.t = t}};
    double flops = 0;
    for (unsigned i = 0; i < 2; i++) {
        const struct duet_task_desc desc = {.codelet = t->any,
                                            .args = &flops,
                                            .args_bytes = sizeof flops,
                                            .extra =
                                                &(struct duet_task_extra){.ref = &refs[i],
                                                                          .after = refs,
                                                                          .after_count = i,
                                                                          .done = note_end,
                                                                          .done_arg = &ends[i]}};
        g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    }
    struct duet__engine_command run = expect_run(t, 0);
    testing_done(t, &run, 1e-6, DUET_ETASK);
    g_assert_cmpint(duet_ref_wait(t->core, refs[1]), ==, DUET_ETASK);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmpuint(ends[i].count, ==, 1);
        g_assert_cmpint(ends[i].status, ==, DUET_ETASK);
        duet_ref_free(refs[i]);
    }
    lost_end(t, DUET_ETASK, "failed");
}

/* Nothing is submitted on a refusal, and there is no reference. */
static void test_refusals(void)
{
    struct testing *t = lost_start(&(struct testing_machine){.cpus = 1}, "eager");
    struct duet_ref *foreign, *ref = (struct duet_ref *)(void *)t;
    struct testing *other = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    (void)submit_after(other, &foreign, NULL, 0);
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .extra = &(struct duet_task_extra){.ref = &ref,
                                                                           .after = &foreign,
                                                                           .after_count = 1}};
    REFUSED(t->core, duet_submit(t->core, &desc), DUET_EINVAL, "of another runtime");
    g_assert_null(ref);
    g_assert_cmpint(duet_ref_wait(t->core, foreign), ==, DUET_EINVAL);
    REFUSED(t->core, duet_ref_wait(t->core, NULL), DUET_EINVAL, "it is NULL");
    const struct duet_task_desc nothing = {.codelet = t->any,
                                           .extra = &(struct duet_task_extra){.after_count = 1}};
    g_assert_cmpint(duet_submit(t->core, &nothing), ==, DUET_EINVAL);
    ref = (struct duet_ref *)(void *)t;
    g_assert_cmpint(duet_submit(t->core,
                                &(struct duet_task_desc){
                                    .extra = &(struct duet_task_extra){.ref = &ref}}),
                    ==, DUET_EINVAL);
    g_assert_null(ref);
    duet_ref_free(NULL);
    g_assert_true(duet_ref_ended(NULL));
    g_assert_cmpuint(atomic_load(&t->core->submitted), ==, 0);
    testing_drain(other);
    testing_fini(other);
    duet_ref_free(foreign); /* a reference of a runtime that is closed */
    lost_end(t, DUET_OK, "");
}

/* Arguments of any size, behind any number of accesses; what never ends is freed with the rest. */
static void test_sizes(void)
{
    static const size_t sizes[] = {8, 64, 65, 1000, 3000, 100000}, counts[] = {0, 1, 8, 9, 65535};
    struct duet_ref *first, *ref;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    struct duet_handle *handle = testing_handle(t, BLOCK);
    g_autofree struct duet_access *accesses = g_new(struct duet_access, 65535);
    for (unsigned i = 0; i < 65535; i++)
        accesses[i] = (struct duet_access){handle, DUET_R};
    g_autofree char *args = g_malloc(100000);
    for (unsigned i = 0; i < 100000; i++)
        args[i] = (char)(i % 251);
    t->hold = true;
    (void)submit_after(t, &first, NULL, 0);
    struct duet_ref *const after[] = {first, NULL, first};
    for (unsigned s = 0; s < G_N_ELEMENTS(sizes) * G_N_ELEMENTS(counts); s++) {
        size_t bytes = sizes[s % G_N_ELEMENTS(sizes)];
        const struct duet_task_desc desc = {.codelet = t->any,
                                            .accesses = accesses,
                                            .access_count = counts[s / G_N_ELEMENTS(sizes)],
                                            .args = args,
                                            .args_bytes = bytes,
                                            .extra = &(struct duet_task_extra){.ref = &ref,
                                                                               .after = after,
                                                                               .after_count = 3}};
        g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
        g_assert_cmpmem(duet__task_args(t->held), bytes, args, bytes);
        g_assert_cmpuint((uintptr_t)duet__task_args(t->held) % 16, ==, 0);
        duet_ref_free(ref);
    }
    duet_ref_free(first);
}

TEST_MAIN(test_scripts, test_fans, test_expansion, test_done, test_failure, test_refusals,
          test_sizes)
