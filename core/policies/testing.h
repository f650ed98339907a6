/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Support for tests of policies: tasks that are given to one by hand, their places, and their
 * takers; also as statements of scripts (core/testing_script.h):
 *
 *     A 40/4!1 a:r        a task of so long on a core and on a device (0: not there; one number: a
 *                         tenth of it on a device), with priority 1, that nobody is given yet
 *     A any a:r b:w       a task as scripts have them
 *     push A B            to the policy, by whoever submits; "by gpu0 A B": by that worker
 *     pop gpu0 A          the worker is given that task, or "none"
 *     steal gpu0 cpu0 A   the worker is given that task of another's list, or "none"
 *     placed A gpu0       pushed, it is on the list of that worker, or on that of "all"
 *     goes A gpu0 cpu0    pushed by the last-named worker, it is on that list; it is taken off
 *     at 3000             the date, in us
 *     set 0 1             a parameter of the policy
 */
#ifndef DUET_CORE_POLICIES_TESTING_H
#define DUET_CORE_POLICIES_TESTING_H

#include "core/testing_script.h"

enum { SHARED = TESTING_WORKERS }; /* the list of all workers */

static inline void push_by(struct testing *t, int by, struct duet_task *const *tasks, size_t count)
{
    struct duet_view view = testing_view(t, by);
    struct duet_task *batch[64];
    TESTING_MUST(count <= G_N_ELEMENTS(batch));
    memcpy(batch, tasks, count * sizeof *batch);
    t->core->policy->push(t->core->policy_state, &view, batch, count, by, t->now);
}

static inline void push(struct testing *t, struct duet_task *const *tasks, size_t count)
{
    push_by(t, DUET_SUBMITTER, tasks, count);
}

static inline struct duet_task *popped(struct testing *t, unsigned worker)
{
    struct duet_view view = testing_view(t, (int)worker);
    return t->core->policy->pop(t->core->policy_state, &view, worker, t->now);
}

static inline struct duet_task *stolen(struct testing *t, unsigned thief, unsigned victim)
{
    struct duet_view view = testing_view(t, (int)thief);
    return t->core->policy->steal(t->core->policy_state, &view, thief, victim, t->now);
}

/* On whose list one more task goes that `by` makes ready, or SHARED. It stays there. */
static inline unsigned placed_by(struct testing *t, struct duet_task *one, int by)
{
    struct duet_view view = testing_view(t, by);
    const unsigned workers = t->workers;
    size_t shared = duet_list_length(duet_view_shared(&view)), before[TESTING_WORKERS];
    for (unsigned w = 0; w < workers; w++)
        before[w] = duet_list_length(duet_view_list(&view, w));
    push_by(t, by, &one, 1);
    if (duet_list_length(duet_view_shared(&view)) > shared)
        return SHARED;
    for (unsigned w = 0; w < workers; w++)
        if (duet_list_length(duet_view_list(&view, w)) > before[w])
            return w;
    g_assert_not_reached();
}

static inline unsigned placed(struct testing *t, struct duet_task *one)
{
    return placed_by(t, one, DUET_SUBMITTER);
}

/* Returns the worker of a task on empty lists, see placed_by; takes the task off its list again. */
static inline unsigned goes_to(struct testing *t, struct duet_task *one, int by)
{
    struct duet_view view = testing_view(t, by);
    struct duet_task *off = NULL;
    unsigned worker = placed_by(t, one, by);
    for (unsigned w = 0; w < t->workers && !off; w++)
        off = duet_pop_head(&view, duet_view_list(&view, worker), w);
    g_assert_true(off == one);
    return worker;
}

static inline struct duet_task *task_with(struct testing *t, struct duet_codelet *codelet,
                                          const double *args, size_t count,
                                          struct duet_handle *data, int priority)
{
    struct duet_access access = {data, DUET_R};
    const struct duet_task_desc desc = {.codelet = codelet,
                                        .accesses = &access,
                                        .access_count = data != NULL,
                                        .args = args,
                                        .args_bytes = count * sizeof *args,
                                        .priority = priority};
    t->hold = true;
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    t->hold = false;
    return t->held;
}

/* A task that takes so long on a core, and a tenth of it on a device. */
static inline struct duet_task *task_of(struct testing *t, struct duet_codelet *codelet, double ms,
                                        struct duet_handle *data, int priority)
{
    return task_with(t, codelet, (const double[]){ms * 1e6}, 1, data, priority);
}

static inline double times_work(const void *args)
{
    const double *ms = args;
    return 1e6 + 1e6 * ms[0] + ms[1];
}

static inline double times_cost(const void *args, const char *arch)
{
    return ((const double *)args)[strcmp(arch, "core") != 0] * 1e-3;
}

/* A task with expected times of its own, 0: not there. Each has a kernel, so that measurements do
   not mix. */
static inline struct duet_task *task(struct testing *t, double cpu_ms, double gpu_ms,
                                     struct duet_handle *data, int priority)
{
    char name[DUET_NAME_MAX];
    struct duet_codelet *codelet;
    struct duet_implementation both[] = {{.arch = "cpu"}, {.arch = "cuda"}};
    struct duet_codelet_desc desc = {.name = name,
                                     .implementations = cpu_ms > 0 ? both : both + 1,
                                     .implementation_count = cpu_ms > 0 && gpu_ms > 0 ? 2 : 1,
                                     .flops = times_work,
                                     .cost = times_cost};
    testing_name(name, "kernel", (unsigned)duet_kernel_count(t->core));
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelet), ==, DUET_OK);
    return task_with(t, codelet, (const double[]){cpu_ms, gpu_ms}, 2, data, priority);
}

/* ------------------------------------------------------------------------------------------- */
/* Statements                                                                                   */

static struct duet_task *script_tasks[26]; /* by letter */

static inline struct duet_task *script_task(const char *word)
{
    return word && strcmp(word, "none") != 0 ? script_tasks[word[0] - 'A'] : NULL;
}

static inline void script_create(struct stage *stage, char **words)
{
    char *end;
    if (words[1] && g_ascii_islower(words[1][0])) {
        stage->t->hold = true;
        stage_same(stage, "its result", stage_task(stage, NULL, words + 1), DUET_OK);
        stage->t->hold = false;
        script_tasks[words[0][0] - 'A'] = stage->t->held;
        return;
    }
    const double cpu_ms = g_ascii_strtod(words[1], &end);
    const double gpu_ms = *end == '/' ? g_ascii_strtod(end + 1, &end) : -1;
    const int priority = *end == '!' ? (int)stage_number(stage, end + 1) : 0;
    struct duet_handle *data = words[2] ? stage_data(stage, words[2]) : NULL;
    script_tasks[words[0][0] - 'A'] = gpu_ms < 0
                                          ? task_of(stage->t, stage->t->any, cpu_ms, data, priority)
                                          : task(stage->t, cpu_ms, gpu_ms, data, priority);
}

static inline void script_check(struct stage *stage, const struct duet_task *is, const char *word)
{
    stage_same(stage, "the task", is ? (int64_t)is->id : 0,
               script_task(word) ? (int64_t)script_task(word)->id : 0);
}

static inline bool policy_step(struct stage *stage, char **words)
{
    struct testing *t = stage->t;
    const int worker = words[1] ? stage_worker(stage, words[1]) : -1;
    if (g_ascii_isupper(words[0][0])) {
        script_create(stage, words);
    } else if (stage_is(words, "push") || stage_is(words, "by")) {
        struct duet_task *tasks[16];
        size_t count = 0;
        for (char **word = words + 1 + (worker >= 0); *word; word++)
            tasks[count++] = script_task(*word);
        push_by(t, worker >= 0 ? worker : DUET_SUBMITTER, tasks, count);
    } else if (stage_is(words, "pop")) {
        script_check(stage, popped(t, (unsigned)worker), words[2]);
    } else if (stage_is(words, "steal")) {
        const unsigned victim = (unsigned)stage_worker(stage, words[2]);
        script_check(stage, stolen(t, (unsigned)worker, victim), words[3]);
    } else if (stage_is(words, "placed")) {
        const int place = strcmp(words[2], "all") ? stage_worker(stage, words[2]) : SHARED;
        stage_same(stage, "its place", placed(t, script_task(words[1])), place);
    } else if (stage_is(words, "goes")) {
        stage_same(stage, "its place",
                   goes_to(t, script_task(words[1]), stage_worker(stage, words[3])),
                   stage_worker(stage, words[2]));
    } else if (stage_is(words, "at")) {
        t->now = 1e-6 * g_ascii_strtod(words[1], NULL);
    } else if (stage_is(words, "set")) {
        t->core->parameters[stage_number(stage, words[1])] = g_ascii_strtod(words[2], NULL);
    } else {
        return false;
    }
    return true;
}

static inline void policy_scripts_play(const struct script *scripts, size_t count)
{
    scripts_play_with(scripts, count, &(struct stage_more){NULL, policy_step});
}

#endif
