/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that are held until the application waits, and their upward ranks on graphs that are small
 * enough to say by hand what these are. Kernels take as many milliseconds as they say on a core, a
 * tenth of it on a device; copies 1 us, and 1 ns for each byte.
 */
#include "core/testing_script.h"

enum { MOST = 16 };

/* Submitted tasks with ranks; the tasks enter. */
static struct ranked {
    size_t count;
    double ranks[MOST];
    int priorities[MOST];
} seen;

static void see(void *self, struct duet_view *view, struct duet_task *const *tasks, size_t count,
                const double *ranks, double now)
{
    g_assert_cmpuint(count, <=, MOST);
    seen.count = count;
    for (size_t i = 0; i < count; i++) {
        seen.ranks[i] = ranks[i];
        seen.priorities[i] = duet_task_priority(tasks[i]);
    }
}

static void hold(struct testing *t, enum duet__priorities priorities)
{
    if (!t->core->held) /* a policy that plans has its own */
        g_assert_cmpint(duet__held_new(t->core), ==, DUET_OK);
    t->core->priorities = priorities;
    t->core->priority_bits = priorities == DUET__WORKLOAD ? -1 : 0;
}

/*
 * "hold" is the first statement of these scripts, with "ranks" for priorities by rank; "ready 2"
 * says how many tasks have entered and wait, "ranks 9000 6000" which ranks tasks have had, in us,
 * and "priorities 1 0" which priorities; "inside" and "outside" say whether a kernel submits;
 * "enter" is a wait for nothing; "third b a2" is another name of
 * data, and "bytes a 1000" registers data of that size.
 */
static bool held_step(struct stage *stage, char **words)
{
    struct testing *t = stage->t;
    if (stage_is(words, "hold")) {
        hold(t, words[1] ? DUET__BOTTOM_LEVEL : DUET__WORKLOAD);
        seen.count = 0;
    } else if (stage_is(words, "ready")) {
        stage_same(stage, "ready", (int64_t)duet_list_length(&t->core->shared),
                   stage_number(stage, words[1]));
    } else if (stage_is(words, "inside") || stage_is(words, "outside")) {
        t->in_kernel = words[0][0] == 'i';
    } else if (stage_is(words, "enter")) {
        testing_let_in(t);
    } else if (stage_is(words, "computes")) {
        t->core->computes = true;
    } else if (stage_is(words, "third")) {
        *stage_place(stage, words[1]) = stage_data(stage, words[2]);
    } else if (stage_is(words, "bytes")) {
        *stage_place(stage, words[1]) = testing_handle(t, (size_t)stage_number(stage, words[2]));
    } else if (stage_is(words, "ranks")) {
        testing_let_in(t);
        stage_same(stage, "their number", (int64_t)seen.count, g_strv_length(words + 1));
        for (unsigned i = 0; i < seen.count; i++)
            g_assert_cmpfloat_with_epsilon(seen.ranks[i], 1e-6 * g_ascii_strtod(words[1 + i], NULL),
                                           1e-12);
    } else if (stage_is(words, "priorities")) {
        for (unsigned i = 0; i < seen.count; i++)
            stage_same(stage, "a priority", seen.priorities[i], stage_number(stage, words[1 + i]));
    } else {
        return false;
    }
    return true;
}

#define ONE "cpus=1 unasked"
#define BOTH "cpus=1 gpus=1 unasked"

static const struct script scripts[] = {
    /* holding */
    {"tasks wait until the application waits, and then no more", ONE,
     "hold; data a; any; any a:rw; any a:rw; ready 0; unfinished 3; enter; ready 2; any; ready 2;"
     "wait; finished 4"},
    {"a hint that is held uses its handle, which is unregistered when it has ended", BOTH,
     "hold; data a; computes; prefetch a gpu0; unregister a; handles 0"},
    {"hints and the end of data keep their turn: what is read was written, what was given up is "
     "not",
     BOTH,
     "hold; data a b; any a:w b:r; prefetch a gpu0; invalidate b; leave b; ready 0; good b; wait;"
     "valid a host gpu0; handles 1"},
    {"submissions of a kernel do not wait: its worker is not the application", ONE,
     "hold; any; inside; any; outside; ready 1"},
    {"acquiring, waiting for a reference, and unregistering are waits, too", ONE,
     "hold; data a b; any a:rw; acquire a:r; finished 1; any>r b:rw; release a; await r; any b:rw;"
     "unregister b; finished 3"},
    {"a runtime is given up with tasks held", ONE,
     "hold ranks; any>r; any<r; drop r; stop; woken cpu0; cpu0 exit; fini"},
    {"data that a kernel unregisters is still there for tasks that are held", ONE,
     "hold; data a; any a:rw; inside; leave a; outside; handles 1; wait; handles 0"},

    /* ranks */
    {"writers are in turn; readers beside each other, between them", ONE,
     "hold ranks; data a b; any=1 a:w; any=2 a:r; any=3 a:r b:w; any=4 a:rw; any=5 b:r; any=6;"
     "ranks 9000 6000 8000 4000 5000 6000; priorities 4 2 3 0 1 2"},
    {"commuting tasks have no order, and readers come after both", ONE,
     "hold ranks; data a; any=1 a:c; any=2 a:c; any=3 a:r; any=4 a:c; ranks 8000 9000 7000 4000"},
    {"a second batch knows nothing of the first one, and a hint takes no time", ONE,
     "hold ranks; data a; any=1 a:rw; any=2 a:rw; ranks 3000 2000; any=1 a:rw; prefetch a host;"
     "any=5 a:rw; ranks 6000 5000"},
    {"parts are beside each other; the whole, and another cut, come in turn", ONE,
     "hold ranks; data a*6; cut a 3; third b a2; cut a 2; any=1 a0:rw; any=2 a1:rw; any=3 b:rw;"
     "any=4 a:rw; any=5 a0:rw a1:rw; ranks 13000 14000 12000 9000 5000"},
    {"references are followed", ONE,
     "hold ranks; any=1>a; any=2<a>b; any=3<b; ranks 6000 5000 3000"},
    /* A task takes 0.7 ms in the mean: 1 ms on two cores, 0.1 ms on the device. Data that is
     * written and then read is copied, in 2 us, between four of six pairs of workers. */
    {"ranks are of means over the workers", "cpus=2 gpus=1 unasked",
     "hold ranks; bytes a 1000; any=1 a:w; any=1 a:r; any=1 a:w;"
     "ranks 2101.3333333333333 1400 700"},
};

static void test_scripts(void)
{
    struct duet_policy policy = *duet_policy_find("eager");
    policy.plan = see;
    scripts_play_with(scripts, G_N_ELEMENTS(scripts), &(struct stage_more){&policy, held_step});
}

static struct testing *start(enum duet__priorities priorities)
{
    struct testing *t = stage_of(ONE);
    hold(t, priorities);
    return t;
}

/* A task of `ms` on a core, with up to two accesses (mode 0: none), after another one. */
static void submit_after(struct testing *t, double ms, struct duet_handle *a, int mode_a,
                         struct duet_handle *b, int mode_b, const struct duet_task_extra *extra)
{
    const struct duet_access accesses[] = {{a, (enum duet_mode)mode_a},
                                           {b, (enum duet_mode)mode_b}};
    const double flops = ms * 1e6;
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .accesses = accesses,
                                        .access_count = mode_b   ? 2
                                                        : mode_a ? 1
                                                                 : 0,
                                        .args = &flops,
                                        .args_bytes = sizeof flops,
                                        .extra = extra,
                                        .priority = 7};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
}

static void submit(struct testing *t, double ms, struct duet_handle *a, int mode_a,
                   struct duet_handle *b, int mode_b)
{
    submit_after(t, ms, a, mode_a, b, mode_b, NULL);
}

static void end(struct testing *t)
{
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    testing_fini(t);
}

/* A full window is a wait, too. */
static void test_window(void)
{
    struct testing *t = start(DUET__WORKLOAD);
    struct duet_handle *a = testing_handle(t, 8);
    t->core->window = 2;
    for (unsigned i = 0; i < 5; i++)
        submit(t, 1, a, DUET_RW, NULL, 0);
    g_assert_cmpuint(duet_tasks_done(t->core), >=, 2);
    end(t);
}

static void submit_at_end(struct duet_runtime *core, void *argument, int status)
{
    submit(argument, 1, NULL, 0, NULL, 0);
}

/* Nor does what the end of a task submits, on whichever thread. */
static void test_done(void)
{
    struct testing *t = start(DUET__WORKLOAD);
    submit_after(t, 1, NULL, 0, NULL, 0,
                 &(struct duet_task_extra){.done = submit_at_end, .done_arg = t});
    testing_let_in(t);
    g_assert_cmpuint(testing_work(t, 0, NULL), ==, 2);
    end(t);
}

static bool submits_once(void *argument)
{
    struct testing *t = argument;
    if (!duet_tasks_done(t->core) && !duet_list_length(&t->core->shared)) {
        submit(t, 1, NULL, 0, NULL, 0); /* another thread of the application */
        g_assert_cmpuint(duet_list_length(&t->core->shared), ==, 1);
    }
    return true;
}

/* While a thread waits nothing is held: it may be what that waits for. */
static void test_while_waiting(void)
{
    struct testing *t = start(DUET__WORKLOAD);
    g_assert_cmpint(duet__wait_until(t->core, submits_once, t), ==, DUET_OK);
    submit(t, 1, NULL, 0, NULL, 0);
    g_assert_cmpuint(duet_list_length(&t->core->shared), ==, 1);
    end(t);
}

/* ------------------------------------------------------------------------------------------- */
/* Priorities                                                                                   */

static int two_children(struct plan *plan, struct duet_expansion *expansion,
                        const struct duet_call *call)
{
    const double flops = 1e6;
    const struct duet_task_desc child = {.codelet = plan->t->cpu,
                                         .args = &flops,
                                         .args_bytes = sizeof flops,
                                         .priority = 99};
    int error = duet_expand_submit(expansion, &child);
    return error ? error : duet_expand_submit(expansion, &child);
}

/*
 * Checks the priorities of the tasks that run, in order: a task that expands, one after it, and
 * another.
 */
static void check_priorities(enum duet__priorities priorities, const int *expected)
{
    struct plan plan = {.expand = two_children};
    struct testing *t = start(priorities);
    struct duet_handle *a = testing_handle(t, 8);
    (void)plan_submit(t, &plan, a, DUET_RW, NULL, 0);
    submit(t, 5, a, DUET_RW, NULL, 0);
    submit(t, 2, NULL, 0, NULL, 0);
    testing_let_in(t);
    for (unsigned i = 0; i < 4; i++) {
        struct duet__engine_command command = testing_next(t, 0);
        g_assert_cmpint(command.kind, ==, DUET_RUN);
        g_assert_cmpint(duet_task_priority(command.task), ==, expected[i]);
        testing_done(t, &command, 1e-3, 0);
    }
    end(t);
}

static void test_priorities(void)
{
    check_priorities(DUET__WORKLOAD, (const int[]){7, 99, 99, 7});
    check_priorities(DUET__NONE, (const int[]){0, 0, 0, 0});
    /* children have that of the task that they are children of */
    check_priorities(DUET__BOTTOM_LEVEL, (const int[]){2, 2, 1, 0});
}

TEST_MAIN(test_scripts, test_window, test_done, test_while_waiting, test_priorities)
