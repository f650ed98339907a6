/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of graphs that are submitted again: as their tasks, with other values and other data. */
#include <duet/graph.h>
#include <duet/parts.h>
#include <duet/trace.h>

#include "core/testing.h"

enum { DATA = 14, ROUNDS = 4 };

/* A kernel without flops and cost, whose class no argument changes. */
static struct duet_codelet *plain_codelet(struct testing *t, const char *name)
{
    struct duet_codelet *made = NULL;
    const struct duet_implementation where = {.arch = "cpu"};
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = &where,
                                           .implementation_count = 1};
    g_assert_cmpint(duet_register_codelet(t->core, &desc, &made), ==, DUET_OK);
    return made;
}

static void count_end(struct duet_runtime *runtime, void *arg, int status)
{
    g_assert_cmpint(status, ==, DUET_OK);
    ++*(unsigned *)arg;
}

/* ------------------------------------------------------------------------------------------- */
/* As submitted again                                                                           */

/* Tasks of all kinds: all of these are in a graph, whether it has models of them or not. */
static void submit_all(struct testing *t, struct duet_handle **data, void *ends)
{
    struct duet_access many[DATA];
    const double flops[20] = {3e6};
    for (unsigned i = 0; i < DATA; i++)
        many[i] = (struct duet_access){data[i], i % 3 ? DUET_R : DUET_RW};
    (void)testing_submit(t, t->any, data[0], DUET_W, NULL, 0, 2);
    (void)testing_submit(t, t->cpu, data[1], DUET_R, data[0], DUET_RW, -1);
    (void)testing_submit(t, t->any, data[2], DUET_R, data[2], DUET_W, 0);
    (void)testing_submit(t, t->any, data[3], DUET_COMMUTE, data[4], DUET_COMMUTE, 0);
    (void)testing_submit(t, t->any, data[6], DUET_REDUCE, data[0], DUET_R, 0);
    (void)testing_submit(t, t->cpu, data[6], DUET_REDUCE, data[1], DUET_R, 1);
    (void)testing_submit(t, t->any, data[6], DUET_RW, NULL, 0, 0);
    (void)testing_submit(t, t->any, data[5], DUET_SCRATCH, data[4], DUET_R, 0);
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 0);
    const struct duet_task_extra extra = {.done = count_end,
                                          .done_arg = ends,
                                          .name = "named",
                                          .iteration = 7};
    const struct duet_task_desc rest[] =
        {{.codelet = t->any, .accesses = many, .access_count = DATA},
         {.codelet = t->any, .args = flops, .args_bytes = sizeof flops, .complexity = 5},
         {.codelet = t->any, .accesses = many, .access_count = 2, .extra = &extra},
         {.codelet = t->any,
          .accesses = many,
          .access_count = 3,
          .where = duet_where(t->core, "cuda"),
          .args = flops,
          .args_bytes = sizeof *flops}};
    for (unsigned i = 0; i < G_N_ELEMENTS(rest); i++)
        g_assert_cmpint(duet_submit(t->core, &rest[i]), ==, DUET_OK);
}

/* Runs a program that submits these tasks several times, as a graph or not. Returns its records. */
static struct duet_event *run(struct duet__core_config config, bool as_graph, size_t *count)
{
    struct duet_handle *data[DATA];
    struct duet_graph *graph = NULL;
    struct duet_event *events;
    unsigned ends = 0;
    config.model = duet_model_at(0);
    config.seed = 1;
    OWNED(testing_end)
    struct testing *t = testing_init_core(&(struct testing_machine){.cpus = 2, .gpus = 2}, config);
    for (unsigned i = 0; i < DATA; i++)
        data[i] = testing_handle(t, 64 * (i / 3 + 1));
    g_assert_cmpint(duet_set_reduction(t->core, data[6], t->any, t->any), ==, DUET_OK);
    for (unsigned round = 0; round < ROUNDS; round++) {
        if (as_graph && round) {
            g_assert_cmpint(duet_graph_submit(t->core, graph), ==, DUET_OK);
            testing_let_in(t);
            continue;
        }
        if (as_graph)
            g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
        submit_all(t, data, &ends);
        if (as_graph)
            g_assert_cmpint(duet_graph_end(t->core, &graph), ==, DUET_OK);
        testing_let_in(t);
    }
    duet_graph_free(graph); /* its tasks have not run */
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(ends, ==, ROUNDS);
    g_assert_cmpint(duet_trace_events(t->core, &events, count), ==, DUET_OK);
    return events;
}

/* A graph submitted again leaves the same records as its tasks submitted one by one. */
static void test_same(void)
{
    const struct duet__core_config configs[] = {
        {.policy = duet_policy_find("eager")},
        {.policy = duet_policy_find("dmdas")},
        {.policy = duet_policy_find("ws"), .window = 3},
        {.policy = duet_policy_find("dmdas"), .priorities = DUET__NONE, .perturbation = 0.3},
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(configs); i++) {
        size_t plain_count, count;
        g_autofree struct duet_event *plain = run(configs[i], false, &plain_count);
        g_autofree struct duet_event *events = run(configs[i], true, &count);
        g_assert_cmpuint(count, ==, plain_count);
        for (size_t e = 0; e < count; e++) {
            g_assert_cmpint(events[e].kind, ==, plain[e].kind);
            g_assert_cmpuint(events[e].id, ==, plain[e].id);
            g_assert_cmpuint(events[e].worker, ==, plain[e].worker);
            g_assert_cmpuint(events[e].kernel, ==, plain[e].kernel);
            g_assert_cmpuint(events[e].bytes, ==, plain[e].bytes);
            g_assert_cmpuint(events[e].where, ==, plain[e].where);
            g_assert_cmpint(events[e].priority, ==, plain[e].priority);
            g_assert_cmpuint(events[e].iteration, ==, plain[e].iteration);
            g_assert_cmpfloat(events[e].work, ==, plain[e].work);
            g_assert_cmpfloat(events[e].ready_s, ==, plain[e].ready_s);
            g_assert_cmpfloat(events[e].start_s, ==, plain[e].start_s);
            g_assert_cmpfloat(events[e].end_s, ==, plain[e].end_s);
        }
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Changes                                                                                      */

/* Submits a graph of one task, which is then in t->held. */
static struct duet_task *submit_one(struct testing *t, struct duet_graph *graph)
{
    t->held = NULL;
    g_assert_cmpint(duet_graph_submit(t->core, graph), ==, DUET_OK);
    g_assert_nonnull(t->held);
    return t->held;
}

/* Values change from the next submission on, with the class of the task where it depends on them.
 */
static void test_values(void)
{
    struct duet_graph *graph, *inserted;
    const double more = 5e6, less = 4e6;
    const int number = 3, other = 4;
    const char whole[64] = {0}; /* head and values of `inserted` */
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    struct duet_codelet *plain = plain_codelet(t, "plain");
    t->hold = true;
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    (void)testing_submit(t, t->any, NULL, 0, NULL, 0, 0);
    g_assert_cmpint(duet_graph_end(t->core, &graph), ==, DUET_OK);
    g_assert_cmpfloat(duet__task_class(submit_one(t, graph)).work, ==, 1e6);
    g_assert_cmpint(duet_graph_set_value(graph, 0, 0, &more, sizeof more), ==, DUET_OK);
    const struct duet_task *task = submit_one(t, graph);
    g_assert_cmpfloat(duet__task_class(task).work, ==, more);
    g_assert_cmpfloat(duet_task_complexity(task), ==, more);
    g_assert_cmpmem(duet__task_args(task), sizeof more, &more, sizeof more);

    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_insert(t->core, plain, DUET_VALUE, &number, sizeof number, DUET_VALUE,
                                &more, sizeof more, 0),
                    ==, DUET_OK);
    g_assert_cmpint(duet_graph_end(t->core, &inserted), ==, DUET_OK);
    g_assert_cmpint(duet_graph_set_value(inserted, 0, 1, &less, sizeof less), ==, DUET_OK);
    const void *args = duet__task_args(submit_one(t, inserted));
    g_assert_cmpint(*(const int *)duet_value(args, 0, sizeof number), ==, number);
    g_assert_cmpfloat(*(const double *)duet_value(args, 1, sizeof less), ==, less);
    g_assert_cmpint(duet_graph_set_value(inserted, 0, 0, &other, sizeof other), ==, DUET_OK);
    args = duet__task_args(submit_one(t, inserted));
    g_assert_cmpint(*(const int *)duet_value(args, 0, sizeof number), ==, other);

    refuses(t, duet_graph_set_value(graph, 1, 0, &more, sizeof more), "task 1 of a graph of 1");
    refuses(t, duet_graph_set_value(graph, 0, 1, &more, sizeof more), "no value 1");
    refuses(t, duet_graph_set_value(graph, 0, 0, &number, sizeof number), "of 4 bytes");
    refuses(t, duet_graph_set_value(inserted, 0, 2, &more, sizeof more), "no value 2");
    refuses(t, duet_graph_set_value(inserted, 0, 0, whole, sizeof whole), "of 64 bytes");
    refuses(t, duet_graph_set_value(graph, 0, 0, NULL, sizeof more), "no value 0");
    duet_graph_free(inserted);
    duet_graph_free(graph);
}

/* Handles are exchanged, joined where they become one, and put back. */
static void test_handles(void)
{
    struct duet_graph *graph;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    struct duet_codelet *plain = plain_codelet(t, "plain");
    struct duet_handle *data[] = {testing_handle(t, 8), testing_handle(t, 8), testing_handle(t, 8),
                                  testing_handle(t, 16)},
                       *parts[2];
    static const struct { /* handles that stand for the first two, and how many are different */
        unsigned first, second, different;
    } cases[] = {{0, 1, 2}, {1, 0, 2}, {2, 0, 2}, {1, 1, 1}, {0, 1, 2}};
    t->hold = true;
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    (void)testing_submit(t, plain, data[0], DUET_R, data[1], DUET_W, 0);
    g_assert_cmpint(duet_graph_end(t->core, &graph), ==, DUET_OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct duet_handle *first = data[cases[i].first], *second = data[cases[i].second];
        g_assert_cmpint(duet_graph_set_handle(graph, data[0], first), ==, DUET_OK);
        g_assert_cmpint(duet_graph_set_handle(graph, data[1], second), ==, DUET_OK);
        const struct duet_task *task = submit_one(t, graph);
        g_assert_true(task->accesses[0].handle == first && task->accesses[1].handle == second);
        g_assert_cmpuint(task->accesses[0].mode, ==, first == second ? DUET_RW : DUET_R);
        g_assert_cmpuint(task->accesses[1].mode, ==, first == second ? 0 : DUET_W);
        g_assert_cmpint(atomic_load(&task->pending), ==, (int)cases[i].different + 1);
        g_assert_cmpuint(task->accesses[0].order, ==, first > second);
    }
    refuses(t, duet_graph_set_handle(graph, data[2], data[0]), "no task of the graph used");
    refuses(t, duet_graph_set_handle(graph, data[0], data[3]), "handle 4 cannot replace handle 1");
    refuses(t, duet_graph_set_handle(graph, data[0], NULL), "(it is NULL)");
    t->hold = false;
    g_assert_cmpint(duet_cut_blocks(t->core, data[3], 2, 1, parts), ==, DUET_OK);
    refuses(t, duet_graph_set_handle(graph, data[0], parts[0]), "and no parts");
    g_assert_cmpint(duet_unregister(t->core, data[0]), ==, DUET_OK);
    g_assert_cmpint(duet_graph_set_handle(graph, data[0], data[2]), ==, DUET_OK);
    refuses(t, duet_graph_set_handle(graph, data[0], data[3]), "handle 4 cannot replace handle 1");
    duet_graph_free(graph);
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    (void)testing_submit(t, plain, parts[0], DUET_R, NULL, 0, 0);
    g_assert_cmpint(duet_graph_end(t->core, &graph), ==, DUET_OK);
    refuses(t, duet_graph_set_handle(graph, parts[0], data[2]), "and no parts");
    duet_graph_free(graph);
}

/* ------------------------------------------------------------------------------------------- */
/* Tasks that are recorded, and those that are refused                                          */

/* A graph has what the thread submits itself, also by another graph; inside a task both work. */
static void test_recorded(void)
{
    struct duet_graph *inner, *outer;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    struct duet_handle *a = testing_handle(t, 8), *b = testing_handle(t, 8);
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    (void)testing_submit(t, t->any, a, DUET_RW, NULL, 0, 0);
    t->in_kernel = 1;
    (void)testing_submit(t, t->any, a, DUET_RW, NULL, 0, 0);
    g_assert_cmpint(duet_unregister_submit(t->core, b), ==, DUET_OK); /* bars nothing */
    refuses(t, duet_graph_end(t->core, &inner), "inside a task");
    t->in_kernel = 0;
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    (void)testing_submit(t, t->any, a, DUET_R, NULL, 0, 0);
    g_assert_cmpint(duet_graph_end(t->core, &inner), ==, DUET_OK);
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_graph_submit(t->core, inner), ==, DUET_OK);
    g_assert_cmpint(duet_graph_submit(t->core, inner), ==, DUET_OK);
    g_assert_cmpint(duet_graph_end(t->core, &outer), ==, DUET_OK);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 4 + 4);
    t->in_kernel = 1;
    g_assert_cmpint(duet_graph_submit(t->core, outer), ==, DUET_OK);
    t->in_kernel = 0;
    g_assert_cmpint(duet_graph_submit(t->core, outer), ==, DUET_OK);
    g_assert_cmpint(duet_wait(t->core), ==, DUET_OK);
    g_assert_cmpuint(duet_tasks_done(t->core), ==, 4 + 4 + 2 * 4);
    duet_graph_free(inner);
    duet_graph_free(outer);
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_graph_end(t->core, &inner), ==, DUET_OK); /* it is empty */
    g_assert_cmpint(duet_graph_submit(t->core, inner), ==, DUET_OK);
    duet_graph_free(inner);
}

static void run_at_once(void *engine, struct duet_task *task)
{
    testing_submitted(engine, task);
    testing_drain(engine);
}

static void spoil(struct duet_runtime *runtime, void *arg, int status)
{
    *(double *)arg = 0;
}

/* A task may end, and its description with it, before its submission returns. */
static void test_ended(void)
{
    struct duet_graph *graph;
    struct duet_event *events;
    size_t count;
    double flops = 5e6;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    const struct duet_task_extra extra = {.done = spoil, .done_arg = &flops};
    const struct duet_task_desc desc = {.codelet = t->any,
                                        .args = &flops,
                                        .args_bytes = sizeof flops,
                                        .extra = &extra},
                                bad = {.codelet = t->any, .args_bytes = sizeof flops},
                                worse = {.codelet = t->any, .where = 1ULL << 40};
    t->core->enter = run_at_once;
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
    refuses(t, duet_submit(t->core, &bad), "at no address");
    refuses(t, duet_submit(t->core, NULL), "needs a codelet");
    g_assert_cmpint(duet_submit(t->core, &worse), ==, DUET_ENOWORKER);
    g_assert_cmpint(duet_graph_end(t->core, &graph), ==, DUET_OK);
    g_assert_cmpfloat(flops, ==, 0);
    g_assert_cmpint(duet_graph_submit(t->core, graph), ==, DUET_OK);
    g_assert_cmpint(duet_trace_events(t->core, &events, &count), ==, DUET_OK);
    g_assert_cmpuint(count, ==, 2);
    g_assert_cmpfloat(events[1].work, ==, 5e6);
    refuses(t, duet_graph_set_value(graph, 1, 0, &flops, sizeof flops), "a graph of 1");
    free(events);
    duet_graph_free(graph);
}

static void *close_other(void *other)
{
    testing_fini(other);
    return NULL;
}

static void test_refused(void)
{
    struct duet_graph *graph = NULL;
    struct duet_ref *ref = NULL;
    OWNED(testing_end)
    struct testing *t = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    struct testing *other = testing_init(&(struct testing_machine){.cpus = 1}, "eager", 1);
    struct duet_handle *a = testing_handle(t, 8);
    refuses(t, duet_graph_end(t->core, &graph), "records no graph");
    t->in_kernel = 1;
    refuses(t, duet_graph_begin(t->core), "inside a task");
    t->in_kernel = 0;
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    refuses(t, duet_graph_begin(t->core), "records already");
    refuses(other, duet_graph_begin(other->core), "records already");
    refuses(other, duet_graph_end(other->core, &graph), "records no graph");
    g_assert_cmpint(duet_acquire(t->core, a, DUET_R), ==, DUET_OK);
    g_assert_cmpint(duet_release(t->core, a), ==, DUET_OK);
    refuses(t, duet_graph_end(t->core, &graph), "cannot call duet_acquire again");
    g_assert_null(graph);
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_unregister_submit(t->core, a), ==, DUET_OK);
    refuses(t, duet_graph_end(t->core, &graph), "cannot call duet_unregister_submit again");
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_insert(t->core, t->any, DUET_REF, &ref, 0), ==, DUET_OK);
    g_assert_cmpint(duet_insert(t->core, t->any, DUET_AFTER, ref, 0), ==, DUET_OK);
    refuses(t, duet_graph_end(t->core, &graph), "comes after others by references");
    duet_ref_free(ref);
    refuses(t, duet_graph_submit(t->core, NULL), "(it is NULL)");
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
    g_assert_cmpint(duet_insert(t->core, t->any, DUET_REF, &ref, DUET_AFTER, NULL, 0), ==, DUET_OK);
    g_assert_cmpint(duet_graph_end(t->core, &graph), ==, DUET_OK);
    duet_ref_free(ref);
    t->core->perturbation = 1; /* no model would be made, and none later */
    t->in_kernel = 1 + (unsigned)DUET_FORKED;
    refuses(t, duet_graph_submit(t->core, graph), "made by fork");
    t->in_kernel = 0;
    t->core->perturbation = 0;
    t->hold = true;
    t->core->enter = NULL; /* not called: the task has a model */
    g_assert_null(submit_one(t, graph)->extra);
    t->core->enter = testing_submitted;
    t->hold = false;
    duet_graph_free(graph);
    g_assert_cmpint(duet_graph_begin(other->core), ==, DUET_OK);
    g_assert_cmpint(duet_graph_end(other->core, &graph), ==, DUET_OK);
    refuses(t, duet_graph_submit(t->core, graph), "of another one");
    g_assert_cmpint(duet_graph_begin(other->core), ==, DUET_OK);
    GThread *closer = g_thread_new("closer", close_other, other);
    (void)g_thread_join(closer); /* ends the recording */
    duet_graph_free(graph);
    duet_graph_free(NULL);
    g_assert_cmpint(duet_graph_begin(t->core), ==, DUET_OK);
}

TEST_MAIN(test_same, test_values, test_handles, test_recorded, test_ended, test_refused)
