/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conformance to policy.h of every policy, on machines of all shapes. DUET_TEST_POLICY=NAME limits
 * it to one.
 */
#include <math.h>

#include <glib.h>

#include "core/testing.h"

enum { MOST = 500 };

static const struct testing_machine machines[] = {
    {.cpus = 1},
    {.cpus = 4},
    {.gpus = 3},
    {.gpus = 1},
    {.cpus = 2, .gpus = 2},
    {.cpus = 3, .gpus = 4, .gpu_archs = 2},
    {.cpus = 3, .gpus = 3, .capacity_bytes = 1024, .no_peer = true},
    {.cpus = 4, .gpus = 64},
};

/* Calls `check` for every policy on every machine. */
static void everywhere(void (*check)(const struct duet_policy *policy,
                                     const struct testing_machine *machine))
{
    const char *only = g_getenv("DUET_TEST_POLICY");
    for (size_t p = 0; duet_policy_at(p); p++)
        for (unsigned m = 0; m < G_N_ELEMENTS(machines); m++)
            if (!only || !strcmp(only, duet_policy_at(p)->name))
                check(duet_policy_at(p), &machines[m]);
}

/* A kernel that this machine can run, of all kinds in turn. */
static struct duet_codelet *some(const struct testing *t, unsigned i)
{
    struct duet_codelet *kinds[] = {t->any, t->cpu ? t->cpu : t->gpu, t->gpu ? t->gpu : t->cpu};
    return kinds[i % 3];
}

/* ------------------------------------------------------------------------------------------- */
/* The slots, called by hand                                                                    */

/* Takes a worker's next task: its own or shared work, else another's. */
static struct duet_task *take(struct testing *t, unsigned worker)
{
    const struct duet_policy *policy = t->core->policy;
    struct duet_view view = testing_view(t, (int)worker);
    struct duet_task *task = policy->pop(t->core->policy_state, &view, worker, t->now);
    for (unsigned v = 0; !task && policy->steal && v < t->workers; v++)
        if (v != worker)
            task = policy->steal(t->core->policy_state, &view, worker, v, t->now);
    return task;
}

/* Pushes `count` tasks at once and takes them one by one: each once, by a worker that can run it.
 */
static void push_and_take(struct testing *t, unsigned count, int by, uint64_t *rng)
{
    struct duet_task *batch[MOST];
    bool seen[MOST] = {false};
    struct duet_handle *handles[] = {testing_handle(t, 100), testing_handle(t, 300)};
    for (unsigned i = 0; i < count; i++)
        batch[i] = testing_create(t, some(t, i), handles[i % 2], i % 3 ? DUET_R : 0,
                                  handles[(i + 1) % 2], i % 5 ? DUET_RW : 0, (int)(i % 4));
    uint64_t first = atomic_load(&t->core->submitted) - count + 1;
    struct duet_view view = testing_view(t, by);
    unsigned pushes = t->ops.pushes, taken = 0, failures = 0;
    t->core->policy->push(t->core->policy_state, &view, batch, count, by, t->now);
    g_assert_cmpuint(t->ops.pushes - pushes, ==, count);
    while (taken < count && failures < 1000) {
        unsigned worker = duet_random_below(rng, t->workers);
        struct duet_task *task = take(t, worker);
        failures = task ? 0 : failures + 1;
        if (!task)
            continue;
        uint64_t i = duet_task_id(task) - first;
        g_assert_cmpuint(i, <, count);
        g_assert_false(seen[i]);
        g_assert_true(duet_view_can_run(&view, worker, task));
        seen[i] = true;
        taken++;
    }
    g_assert_cmpuint(taken, ==, count);
    for (unsigned w = 0; w < t->workers; w++)
        g_assert_null(take(t, w));
}

static void check_slots(const struct duet_policy *policy, const struct testing_machine *machine)
{
    static const unsigned counts[] = {1, 2, 3, 31, 32, 33, 100, MOST};
    uint64_t rng = 1;
    OWNED(testing_end) struct testing *t = testing_init_policy(machine, policy, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(counts); i++) {
        push_and_take(t, counts[i], DUET_SUBMITTER, &rng);
        push_and_take(t, counts[i], (int)duet_random_below(&rng, t->workers), &rng);
    }
}

static void test_slots(void)
{
    everywhere(check_slots);
}

/* ------------------------------------------------------------------------------------------- */
/* Whole runs                                                                                   */

/* Asks only the workers that the core has woken, as an engine does. */
static void work_when_woken(struct testing *t)
{
    bool any = true;
    while (any) {
        any = false;
        for (unsigned w = 0; w < t->workers; w++) {
            if (!t->woken[w])
                continue;
            any = true;
            (void)testing_work(t, w, NULL);
        }
    }
}

/* Fans of tasks that become ready at once, between tasks that gather them. */
static void submit_fans(struct testing *t, struct duet_handle **handles)
{
    static const unsigned widths[] = {1, 2, 33, MOST};
    for (unsigned i = 0; i < G_N_ELEMENTS(widths); i++) {
        (void)testing_submit(t, some(t, i), handles[0], DUET_RW, handles[1], DUET_RW, 0);
        for (unsigned n = 0; n < widths[i]; n++)
            (void)testing_submit(t, some(t, n), handles[0], DUET_R, handles[2 + n % 6],
                                 n % 2 ? DUET_RW : DUET_W, (int)(n % 3));
    }
}

static void check_run(const struct duet_policy *policy, const struct testing_machine *machine)
{
    struct duet_stats stats;
    struct duet_handle *handles[8];
    OWNED(testing_end) struct testing *t = testing_init_policy(machine, policy, 1);
    for (unsigned h = 0; h < 8; h++)
        handles[h] = testing_handle(t, 256);
    for (unsigned w = 0; w < t->workers; w++)
        g_assert_cmpint(testing_next(t, w).kind, ==, DUET_IDLE);
    submit_fans(t, handles);
    work_when_woken(t);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, atomic_load(&t->core->submitted));
    /* again on workers that went idle after work */
    submit_fans(t, handles);
    work_when_woken(t);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, atomic_load(&t->core->submitted));
    duet_stats(t->core, &stats);
    g_assert_cmpuint(stats.pops + stats.steals, ==, stats.tasks + stats.revocations);
    if (!policy->revoke)
        g_assert_cmpuint(stats.revocations, ==, 0);
    if (!policy->steal)
        g_assert_cmpuint(stats.steal_attempts, ==, 0);
    for (unsigned w = 0; w < t->workers; w++)
        g_assert_cmpuint(duet_list_length(&t->core->workers[w].list), ==, 0);
}

static void test_runs(void)
{
    everywhere(check_run);
}

/* Returns the events of the tasks in order, with their workers. */
static struct duet_event *choices(const struct duet_policy *policy,
                                  const struct testing_machine *machine, uint64_t seed,
                                  size_t *count)
{
    struct duet_event *events;
    struct duet_handle *handles[8];
    struct testing *t = testing_init_policy(machine, policy, seed);
    for (unsigned h = 0; h < 8; h++)
        handles[h] = testing_handle(t, 256);
    submit_fans(t, handles);
    testing_drain(t);
    g_assert_cmpint(duet_trace_events(t->core, &events, count), ==, DUET_OK);
    testing_fini(t);
    return events;
}

static void check_deterministic(const struct duet_policy *policy,
                                const struct testing_machine *machine)
{
    size_t count, again;
    g_autofree struct duet_event *first = choices(policy, machine, 7, &count);
    g_autofree struct duet_event *second = choices(policy, machine, 7, &again);
    g_assert_cmpuint(count, ==, again);
    for (size_t i = 0; i < count; i++) {
        g_assert_cmpint(first[i].worker, ==, second[i].worker);
        g_assert_cmpuint(first[i].id, ==, second[i].id);
        g_assert_cmpfloat(first[i].end_s, ==, second[i].end_s);
    }
}

static void test_deterministic(void)
{
    everywhere(check_deterministic);
}

/* ------------------------------------------------------------------------------------------- */
/* The description and its check                                                                */

static void test_described(void)
{
    size_t count = 0;
    for (const struct duet_policy *p; (p = duet_policy_at(count)); count++) {
        g_assert_cmpint(duet_policy_check(p, NULL), ==, DUET_OK);
        g_assert_true(*p->name && *p->description && *p->source);
        for (const char *c = p->name; *c; c++)
            g_assert_true(g_ascii_islower(*c) || g_ascii_isdigit(*c) || *c == '-');
        g_assert_null(strchr(p->description, '\n'));
        g_assert_true(duet_policy_find(p->name) == p);
    }
    g_assert_cmpuint(count, >=, 5);
    g_assert_null(duet_policy_find("none"));
}

static void refuse(struct duet_policy policy, const char *fragment)
{
    FAILS(duet_policy_check(&policy, hear()), DUET_EINVAL, fragment);
}

static void test_check(void)
{
    struct duet_policy good = *duet_policy_at(0), bad;
    g_assert_cmpint(duet_policy_check(NULL, NULL), ==, DUET_EINVAL);
    g_assert_false(duet_policy_find(NULL) || duet_model_find(NULL));
    bad = good, bad.name = "", refuse(bad, "name");
    bad = good, bad.description = NULL, refuse(bad, "description");
    bad = good, bad.source = NULL, refuse(bad, "source");
    bad = good, bad.model = "none", refuse(bad, "model none");
    bad = good, bad.push = NULL, refuse(bad, "push");
    bad = good, bad.pop = NULL, refuse(bad, "pop");
    bad = good, bad.order = (enum duet_order)9, refuse(bad, "order");
    static const struct duet_policy_parameter unnamed[] = {{"a:b", 1, 0, 2, "how"}, {NULL}};
    static const struct duet_policy_parameter mute[] = {{"a", 1, 0, 2, NULL}, {NULL}};
    static const struct duet_policy_parameter beyond[] = {{"a", 3, 0, 2, "how"}, {NULL}};
    struct duet_policy_parameter many[DUET_PARAMETERS_MAX + 2] = {{NULL}};
    for (unsigned i = 0; i <= DUET_PARAMETERS_MAX; i++)
        many[i] = (struct duet_policy_parameter){"a", 1, 0, 2, "how"};
    bad = good, bad.parameters = unnamed, refuse(bad, "a name without");
    bad = good, bad.parameters = mute, refuse(bad, "a description");
    bad = good, bad.parameters = beyond, refuse(bad, "is 3 at first: not from 0 to 2");
    bad = good, bad.parameters = many, refuse(bad, "17 parameters");
}

/* ------------------------------------------------------------------------------------------- */
/* Promises of the core to a policy */

struct probe {
    int step, refuse;
    double alpha, beta;
    uint64_t pushed[16];
    unsigned batches, count;
    int by;
    double note;
    struct duet_times times;
};

static int refusal;
static unsigned ended;
static double last_beta;

static const struct duet_policy_parameter probe_parameters[] = {{"alpha", 0.5, 0, 1, "the first"},
                                                                {"beta", 2, -INFINITY, INFINITY,
                                                                 "the other"},
                                                                {NULL}};

static int probe_init(void *self, struct duet_view *view)
{
    struct probe *probe = self;
    g_assert_cmpint(probe->step, ==, 0);
    probe->alpha = duet_view_parameter(view, 0);
    probe->beta = duet_view_parameter(view, 1);
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        uint64_t *mine = duet_view_worker_state(view, w);
        g_assert_cmpuint(*mine, ==, 0);
        *mine = w + 1;
    }
    return refusal;
}

static void probe_fini(void *self)
{
    const struct probe *probe = self;
    ended++;
    last_beta = probe->beta;
}

static void probe_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                       int by, double now)
{
    struct probe *probe = self;
    probe->batches++;
    probe->by = by;
    for (size_t i = 0; i < count; i++) {
        g_assert_cmpfloat(duet_task_note(batch[i]), ==, 0);
        duet_task_set_note(batch[i], (double)duet_task_id(batch[i]));
        probe->pushed[probe->count++] = duet_task_id(batch[i]);
        duet_push_tail(view, duet_view_shared(view), batch[i]);
    }
}

static struct duet_task *probe_pop(void *self, struct duet_view *view, unsigned worker, double now)
{
    g_assert_cmpuint(*(uint64_t *)duet_view_worker_state(view, worker), ==, worker + 1);
    return duet_pop_head(view, duet_view_shared(view), worker);
}

static void probe_prologue(void *self, struct duet_view *view, struct duet_task *task,
                           unsigned worker, double now)
{
    struct probe *probe = self;
    probe->step = 1;
    g_assert_cmpint(task->state, ==, TASK_TAKEN);
}

static void probe_epilogue(void *self, struct duet_view *view, struct duet_task *task,
                           unsigned worker, const struct duet_times *times, double now)
{
    struct probe *probe = self;
    probe->step = 2;
    probe->times = *times;
    probe->note = duet_task_note(task);
    if (duet_task_id(task) == 1)
        g_assert_cmpuint(probe->batches, ==, 1); /* its successors are not ready yet */
}

static const struct duet_policy probe_policy = {
    .name = "probe",
    .description = "what the core does with a policy",
    .source = "this test",
    .state_size = sizeof(struct probe),
    .state_size_a_worker = sizeof(uint64_t),
    .parameters = probe_parameters,
    .init = probe_init,
    .fini = probe_fini,
    .push = probe_push,
    .pop = probe_pop,
    .prologue = probe_prologue,
    .epilogue = probe_epilogue,
};

static void test_promises(void)
{
    struct testing *t = testing_init_policy(&machines[4], &probe_policy, 1);
    struct probe *probe = t->core->policy_state;
    g_assert_cmpfloat(probe->alpha, ==, 0.5);
    g_assert_cmpfloat(probe->beta, ==, 2);
    ended = 0;
    struct duet_handle *a = testing_handle(t, 8), *b = testing_handle(t, 8);
    (void)testing_submit(t, t->any, b, DUET_RW, a, DUET_RW, 0);
    g_assert_cmpint(probe->by, ==, DUET_SUBMITTER);
    (void)testing_submit(t, t->any, a, DUET_R, NULL, 0, 0);
    (void)testing_submit(t, t->any, b, DUET_R, NULL, 0, 0);
    (void)testing_submit(t, t->any, b, DUET_R, NULL, 0, 0);
    struct duet__engine_command command = testing_next(t, 1);
    g_assert_cmpint(probe->step, ==, 1);
    t->now = 5;
    testing_done(t, &command, 3, 0);
    g_assert_cmpint(probe->step, ==, 2);
    g_assert_cmpfloat(probe->times.start_s, ==, 5);
    g_assert_cmpfloat(probe->times.end_s, ==, 8);
    g_assert_cmpfloat_with_epsilon(probe->times.predicted_s, 1e-3, 1e-12);
    g_assert_cmpfloat(probe->note, ==, 1);
    /* one batch, in order of activation: by access of the finished task, then by submission */
    g_assert_cmpuint(probe->batches, ==, 2);
    g_assert_cmpint(probe->by, ==, 1);
    static const uint64_t order[] = {1, 3, 4, 2};
    for (unsigned i = 0; i < 4; i++)
        g_assert_cmpuint(probe->pushed[i], ==, order[i]);
    testing_drain(t);
    g_assert_cmpuint(ended, ==, 0);
    testing_fini(t);
    g_assert_cmpuint(ended, ==, 1);
}

/* A parameter beyond those that there are fails the run. */
static void test_no_such_parameter(void)
{
    OWNED(testing_end) struct testing *t = testing_init_policy(&machines[0], &probe_policy, 1);
    struct duet_view view = testing_view(t, 0);
    g_assert_cmpfloat(duet_view_parameter(&view, 1), ==, 2);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpfloat(duet_view_parameter(&view, 2), ==, 0);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_EINVAL);
}

/* Questions about what does not exist have harmless answers, and no effect. */
static void test_out_of_range(void)
{
    static const unsigned none[] = {7, 64, 1000, UINT32_MAX};
    struct duet_policy policy = probe_policy;
    policy.prologue = NULL;
    policy.epilogue = NULL;
    OWNED(testing_end) struct testing *t = testing_init_policy(&machines[4], &policy, 1);
    struct duet_handle *h = testing_handle(t, 8);
    struct duet_task *task = testing_create(t, t->any, h, DUET_RW, NULL, 0, 0);
    struct duet_view view = testing_view(t, 0);
    struct duet_list *shared = duet_view_shared(&view);
    duet_push_tail(&view, shared, task);
    for (unsigned i = 0; i < G_N_ELEMENTS(none); i++) {
        const unsigned n = none[i] == 7 ? duet_view_workers(&view) : none[i];
        g_assert_cmpuint(duet_view_arch(&view, n) + duet_view_node(&view, n), ==, 0);
        g_assert_false(duet_view_is_device(&view, n) || duet_view_can_run(&view, n, task));
        g_assert_false(duet_view_idle(&view, n));
        g_assert_null(duet_view_worker_state(&view, n));
        g_assert_cmpfloat(duet_view_seconds(&view, n, task), ==, 0);
        g_assert_cmpfloat(duet_view_transfer_seconds(&view, n, task, true), ==, 0);
        g_assert_cmpfloat(duet_view_load(&view, n), ==, 0);
        g_assert_cmpint(duet_view_sooner(&view, task, n, 1, 1), ==, -1);
        g_assert_null(duet_pop_head(&view, shared, n));
        g_assert_null(duet_pop_tail(&view, shared, n));
        g_assert_null(duet_pop_own_or_shared(NULL, &view, n, 0));
        g_assert_null(duet_pop_best(&view, shared, n, NULL, NULL));
        g_assert_null(duet_steal_tail(&view, shared, n));
        duet_move(&view, shared, duet_view_list(&view, 0), n, NULL, NULL);
        duet_luf_count(&view, task, n, 1);
        g_assert_cmpuint(duet_worker_stats(t->core, n).tasks, ==, 0);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(none); i++) {
        const unsigned n = none[i] == 7 ? duet_view_nodes(&view) : none[i];
        g_assert_cmpfloat(duet_view_copy_alone_seconds(&view, n, 0, 8), ==, 0);
        g_assert_cmpfloat(duet_view_copy_alone_seconds(&view, 0, n, 8), ==, 0);
        g_assert_cmpuint(duet_view_capacity_bytes(&view, n) + duet_view_free_bytes(&view, n), ==,
                         0);
        g_assert_cmpuint(duet_view_valid_bytes(&view, n, task), ==, 0);
        g_assert_false(duet_view_valid(&view, n, task, 0));
        g_assert_null(duet_task_place_state(&view, task, 0, n));
        g_assert_null(duet_task_place_state(&view, task, n, 0));
        g_assert_null(duet_task_data_state(&view, task, n));
        duet_view_prefetch(&view, task, n);
    }
    g_assert_true(duet_pop_head(&view, shared, 0) == task);
    duet_push_tail(&view, shared, task);
    testing_drain(t);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
}

/* ------------------------------------------------------------------------------------------- */
/* Planning, and what is kept with data                                                         */

struct planned {
    unsigned plans, count;
    double ranks[4];
    uint64_t data[4];
};

static void probe_plan(void *self, struct duet_view *view, struct duet_task *const *tasks,
                       size_t count, const double *ranks, double now)
{
    struct planned *planned = self;
    planned->plans++;
    planned->count = (unsigned)count;
    for (size_t i = 0; i < count; i++) {
        unsigned *uses = duet_task_data_state(view, tasks[i], 0);
        g_assert_cmpuint((*uses)++, ==, duet_task_note(tasks[i]) + i);
        g_assert_cmpint(duet_task_priority(tasks[i]), ==, (int)i);
        duet_task_set_priority(tasks[i], -(int)i);
        duet_task_set_note(tasks[i], (double)i);
        planned->ranks[i] = ranks[i];
        planned->data[i] = duet_task_data(tasks[i], 0);
    }
    g_assert_cmpfloat(duet_view_copy_alone_seconds(view, 0, 0, 1000), ==, 0);
    g_assert_cmpfloat_with_epsilon(duet_view_copy_alone_seconds(view, 0, 1, 1000), 2e-6, 1e-15);
    g_assert_cmpfloat_with_epsilon(duet_view_copy_alone_seconds(view, 1, 2, 1000), 4e-6, 1e-15);
}

static void planned_push(void *self, struct duet_view *view, struct duet_task **batch, size_t count,
                         int by, double now)
{
    for (size_t i = 0; i < count; i++) {
        g_assert_cmpint(duet_task_priority(batch[i]), ==, -(int)duet_task_note(batch[i]));
        duet_push_tail(view, duet_view_shared(view), batch[i]);
    }
}

static struct duet_task *planned_pop(void *self, struct duet_view *view, unsigned worker,
                                     double now)
{
    return duet_pop_head(view, duet_view_shared(view), worker);
}

static const struct duet_policy planned_policy = {
    .name = "planned",
    .description = "what the core does with a policy that plans",
    .source = "this test",
    .order = DUET_HEAP,
    .state_size = sizeof(struct planned),
    .state_size_a_data = sizeof(unsigned),
    .push = planned_push,
    .pop = planned_pop,
    .plan = probe_plan,
};

/* All that was submitted is there at once, before the first of it is pushed; with its ranks. */
static void test_plan(void)
{
    const struct testing_machine make = {.cpus = 1, .gpus = 2, .no_peer = true};
    OWNED(testing_end) struct testing *t = testing_init_policy(&make, &planned_policy, 1);
    const struct planned *planned = t->core->policy_state;
    struct duet_handle *a = testing_handle(t, 8);
    double flops = 1e6;
    struct duet_access access = {a, DUET_RW};
    struct duet_task_desc desc = {.codelet = t->cpu,
                                  .accesses = &access,
                                  .access_count = 1,
                                  .args = &flops,
                                  .args_bytes = sizeof flops};
    for (desc.priority = 0; desc.priority < 4; desc.priority++)
        g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    g_assert_cmpuint(planned->plans, ==, 0);
    testing_let_in(t);
    g_assert_cmpuint(planned->plans, ==, 1);
    g_assert_cmpuint(planned->count, ==, 4);
    for (unsigned i = 0; i < 4; i++) {
        g_assert_cmpfloat(planned->ranks[i], >=, (4 - i) * 1e-3);
        g_assert_cmpuint(planned->data[i], ==, planned->data[0]);
    }
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 4);
    g_assert_cmpuint(planned->plans, ==, 1); /* not for nothing */
}

/* An init that fails makes no core, and the engine stays the caller's. */
static void test_init_fails(void)
{
    OWNED(duet_machine_fini) struct duet_machine machine;
    struct duet_runtime *core;
    struct testing t = {.destroyed = 0};
    testing_machine(&machine, &machines[4]);
    struct duet__core_config config = {.machine = &machine,
                                       .policy = &probe_policy,
                                       .model = duet_model_at(0),
                                       .ops = &testing_ops,
                                       .engine = &t};
    refusal = DUET_ENOTFOUND;
    ended = 0;
    config.chosen = true;
    config.parameters[1] = 7;
    g_assert_cmpint(duet__core_new(&core, &config, hear()), ==, DUET_ENOTFOUND);
    refusal = 0;
    g_assert_cmpuint(ended, ==, 1); /* with what it was made with */
    g_assert_cmpfloat(last_beta, ==, 7);
    g_assert_null(core);
    g_assert_cmpstr(heard(), ==, "policy probe: its init returned -6 (unknown name)");
    g_assert_cmpuint(t.destroyed, ==, 0);
    config.model_error = 1;
    g_assert_cmpint(duet__core_new(&core, &config, hear()), ==, DUET_EINVAL);
    config.model_error = 0;
    config.perturbation = 1;
    g_assert_cmpint(duet__core_new(&core, &config, hear()), ==, DUET_EINVAL);
    config.perturbation = 0;
    machine.nodes[1].capacity_bytes = 0;
    g_assert_cmpint(duet__core_new(&core, &config, hear()), ==, DUET_EINVAL);
}

static unsigned wrong_victim;

static void wrong_victims(void *self, struct duet_view *view, unsigned thief, unsigned *order)
{
    if (thief == 1)
        order[2] = wrong_victim;
}

/* An order of victims that leaves out somebody, or has the thief, makes no core. */
static void test_victims(void)
{
    static const unsigned wrong[] = {0, 1, 4, UINT32_MAX};
    struct duet_policy policy = probe_policy;
    policy.victims = wrong_victims;
    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        OWNED(duet_machine_fini) struct duet_machine machine;
        struct duet_runtime *core;
        testing_machine(&machine, &machines[4]);
        struct duet__core_config config = {.machine = &machine,
                                           .policy = &policy,
                                           .model = duet_model_at(0),
                                           .ops = &testing_ops};
        wrong_victim = wrong[i];
        FAILS(duet__core_new(&core, &config, hear()), DUET_EINVAL,
              "the victims of worker 1 are all others");
    }
}

TEST_MAIN(test_described, test_check, test_promises, test_plan, test_init_fails,
          test_no_such_parameter, test_out_of_range, test_victims, test_slots, test_runs,
          test_deterministic)
