/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the ready lists: order at both ends and across restrictions, against a plain array. */
#include <string.h>

#include "core/testing.h"

enum { TASKS = 64, STEPS = 20000 };

/* Tasks in list order, with what a worker may take: bit 0 CPUs, bit 1 devices. */
struct model {
    struct duet_task *tasks[TASKS];
    unsigned count;
};

static unsigned able(const struct testing *t, const struct duet_task *task)
{
    struct duet_view view = {.core = t->core};
    return duet_view_can_run(&view, 0, task) | duet_view_can_run(&view, t->cpus, task) << 1;
}

static void remove_at(struct model *model, unsigned i)
{
    for (model->count--; i < model->count; i++)
        model->tasks[i] = model->tasks[i + 1];
}

/* Returns the task that pop must give: the first that the worker can run from that end; by
   priority, if so ordered. */
static struct duet_task *expected(const struct testing *t, struct model *model, bool device,
                                  bool from_head, bool by_priority)
{
    int best = -1;
    for (unsigned i = 0; i < model->count; i++) {
        if (!(able(t, model->tasks[i]) >> device & 1))
            continue;
        if (best < 0 || (by_priority && model->tasks[i]->priority > model->tasks[best]->priority) ||
            (!by_priority && !from_head))
            best = (int)i;
    }
    if (best < 0)
        return NULL;
    struct duet_task *task = model->tasks[best];
    remove_at(model, (unsigned)best);
    return task;
}

static void make_tasks(struct testing *t, struct duet_task **tasks)
{
    struct duet_codelet *codelets[] = {t->any, t->cpu, t->gpu};
    t->hold = true;
    for (unsigned i = 0; i < TASKS; i++) {
        (void)testing_submit(t, codelets[i % 3], NULL, 0, NULL, 0, (int)(i * 7 % 5));
        tasks[i] = t->held;
    }
}

static void compare(const char *policy)
{
    struct duet_task *outside[TASKS];
    struct model model = {.count = 0};
    unsigned left = TASKS;
    uint64_t rng = 3;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 2, .gpus = 2}, policy, 1);
    make_tasks(t, outside);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    struct duet_list *list = duet_view_list(&view, 1);
    bool by_priority = list->order == DUET_HEAP;
    for (unsigned step = 0; step < STEPS; step++) {
        bool head = duet_random_below(&rng, 2);
        if (left && duet_random_below(&rng, 2)) {
            struct duet_task *task = outside[--left];
            (head ? duet_push_head : duet_push_tail)(&view, list, task);
            unsigned at = head && !by_priority ? 0 : model.count;
            memmove(&model.tasks[at + 1], &model.tasks[at],
                    (model.count++ - at) * sizeof(struct duet_task *));
            model.tasks[at] = task;
        } else {
            unsigned worker = duet_random_below(&rng, 4);
            struct duet_task *task = expected(t, &model, worker >= 2, head, by_priority);
            g_assert_true((head ? duet_pop_head : duet_pop_tail)(&view, list, worker) == task);
            if (task)
                outside[left++] = task;
        }
        g_assert_cmpuint(duet_list_length(list), ==, model.count);
    }
}

static void test_deque(void)
{
    compare("ws");
}

static void test_priority(void)
{
    compare("eager");
}

/* The load of a worker is what its list and its slots are expected to take. */
static void test_load(void)
{
    struct duet_task *tasks[TASKS];
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1, .gpus = 1}, "ws", 1);
    make_tasks(t, tasks);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    g_assert_cmpfloat(duet_view_load(&view, 0), ==, 0);
    duet_push_tail(&view, duet_view_list(&view, 0), tasks[0]);
    duet_push_tail(&view, duet_view_list(&view, 0), tasks[1]);
    duet_push_tail(&view, duet_view_shared(&view), tasks[3]);
    g_assert_cmpfloat_with_epsilon(duet_view_load(&view, 0), 2e-3, 1e-9);
    (void)duet_pop_tail(&view, duet_view_list(&view, 0), 0);
    g_assert_cmpfloat_with_epsilon(duet_view_load(&view, 0), 1e-3, 1e-9);
    struct duet__engine_command command = testing_next(t, 0);
    g_assert_cmpint(command.kind, ==, DUET_RUN);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 0)), ==, 0);
    g_assert_cmpfloat_with_epsilon(duet_view_load(&view, 0), 1e-3, 1e-9);
    testing_done(t, &command, 5e-3, 0);
    g_assert_cmpfloat(duet_view_load(&view, 0), ==, 0);
}

/* A policy that pushes a task twice, or asks for a worker that is not there, ends the run. */
static void test_misuse(void)
{
    for (int mistake = 0; mistake < 2; mistake++) {
        struct duet_task *tasks[TASKS];
        OWNED(testing_end)
        struct testing *t = testing_init(&(struct testing_machine){.cpus = 1, .gpus = 1}, "ws", 1);
        make_tasks(t, tasks);
        struct duet_view view = testing_view(t, DUET_SUBMITTER);
        duet_push_tail(&view, duet_view_list(&view, 0), tasks[0]);
        if (mistake == 0)
            duet_push_head(&view, duet_view_list(&view, 1), tasks[0]);
        else
            g_assert_true(duet_view_list(&view, 99) == duet_view_shared(&view));
        g_assert_cmpint(duet__run_error(t->core), ==, DUET_EINVAL);
        struct duet_message stuck;
        duet__explain(t->core, &stuck); /* begins with what has gone wrong */
        TOLD(t->core, mistake ? "worker 99 of 2" : "twice");
        g_assert_nonnull(strstr(stuck.text, mistake ? "worker 99 of 2; " : "twice; "));
        g_assert_cmpuint(duet_list_length(duet_view_list(&view, 0)), ==, 1);
    }
}

/* A pushed task wakes its owner if that is idle, else one idle worker that can run it. */
static void test_wakes(void)
{
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 3, .gpus = 2}, "ws", 1);
    struct duet_view view = testing_view(t, DUET_SUBMITTER);
    g_assert_false(duet__hungry(t->core));
    for (unsigned w = 0; w < t->workers; w++)
        g_assert_cmpint(testing_next(t, w).kind, ==, DUET_IDLE);
    g_assert_true(duet__hungry(t->core));
    (void)testing_submit(t, t->cpu, NULL, 0, NULL, 0, 0);
    g_assert_true(t->woken[0]);
    g_assert_cmpuint(t->wakes, ==, 1);
    (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 0);
    g_assert_cmpuint(t->wakes, ==, 2);
    g_assert_true(t->woken[3] || t->woken[4]);
    (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 0);
    g_assert_true(t->woken[3] && t->woken[4]);
    (void)testing_submit(t, t->gpu, NULL, 0, NULL, 0, 0);
    g_assert_cmpuint(t->wakes, ==, 3);
    g_assert_cmpuint(duet_list_length(duet_view_list(&view, 0)), ==, 4);
}

/* Calls of the next test's policy, with their workers. */
static struct {
    struct testing *t;
    struct duet_task *early, *late; /* pushed as soon as the worker has looked, and after that */
} busy;

/* Tasks appear while worker 0 looks for some. */
static struct duet_task *pop_late(void *self, struct duet_view *view, unsigned worker, double now)
{
    struct duet_list *own = duet_view_list(view, worker);
    if (worker != 0)
        return NULL;
    struct duet_view other = testing_view(busy.t, DUET_SUBMITTER);
    struct duet_task *task = duet_pop_head(view, own, worker);
    if (busy.early)
        duet_push_head(&other, own, busy.early);
    else
        duet_push_head(&other, duet_view_shared(view), busy.late);
    busy.early = NULL;
    duet__view_flush(&other);
    return task;
}

static void push_nowhere(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                         int by, double now)
{
}

/*
 * A worker that says it is idle, and then finds a task that was pushed just before, may have been
 * called meanwhile for another one: somebody else is called then.
 */
static void test_called_late(void)
{
    static const struct duet_policy policy = {.name = "late",
                                              .description = "late",
                                              .source = "none",
                                              .push = push_nowhere,
                                              .pop = pop_late};
    for (uint64_t seed = 0; seed < 20; seed++) {
        OWNED(testing_end)
        struct testing *t =
            testing_init_policy(&(struct testing_machine){.cpus = 1, .gpus = 1}, &policy, seed);
        busy.t = t;
        busy.early = testing_create(t, t->cpu, NULL, 0, NULL, 0, 0);
        busy.late = testing_create(t, t->any, NULL, 0, NULL, 0, 0);
        g_assert_cmpint(testing_next(t, 1).kind, ==, DUET_IDLE);
        g_assert_cmpint(testing_next(t, 0).kind, ==, DUET_RUN);
        g_assert_true(t->woken[1]);
    }
}

TEST_MAIN(test_misuse, test_deque, test_priority, test_load, test_wakes, test_called_late)
