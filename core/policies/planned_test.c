/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions of the policies that know the whole graph, static and cp, on graphs calculated by hand.
 * Times in milliseconds on a core and on a device; 0: not there.
 */
#include "core/testing_script.h"

struct times {
    double cpu_ms, gpu_ms;
};

static double work(const void *args)
{
    const struct times *times = args;
    return 1e6 * times->cpu_ms + 1e3 * times->gpu_ms;
}

static double cost(const void *args, const char *arch)
{
    const struct times *times = args;
    return (strcmp(arch, "core") ? times->gpu_ms : times->cpu_ms) * 1e-3;
}

static struct duet_codelet *codelets[3]; /* for both, cores, devices */

static void register_codelets(struct testing *t)
{
    static const struct duet_implementation both[] = {{.arch = "cuda"}, {.arch = "cpu"}};
    static const char *const names[] = {"both", "core", "device"};
    for (unsigned i = 0; i < 3; i++) {
        const struct duet_codelet_desc desc = {.name = names[i],
                                               .implementations = both + (i == 1),
                                               .implementation_count = i ? 1 : 2,
                                               .flops = work,
                                               .cost = cost};
        g_assert_cmpint(duet_register_codelet(t->core, &desc, &codelets[i]), ==, DUET_OK);
    }
}

/* Submits a task of so long on a core and on a device, with up to two accesses. */
static void submit(struct testing *t, struct times times, const struct duet_access *accesses,
                   size_t count)
{
    const struct duet_task_desc desc = {.codelet = codelets[times.cpu_ms == 0   ? 2
                                                            : times.gpu_ms == 0 ? 1
                                                                                : 0],
                                        .accesses = accesses,
                                        .access_count = count,
                                        .args = &times,
                                        .args_bytes = sizeof times};
    g_assert_cmpint(duet_submit(t->core, &desc), ==, DUET_OK);
}

/* All is done, and these tasks ran on the worker, in this order. */
static void ran_on(struct stage *stage, int worker, char **ids)
{
    g_autofree struct duet_event *events = NULL;
    size_t count;
    g_assert_cmpint(duet_wait(stage->t->core), ==, DUET_OK);
    g_assert_cmpint(duet_trace_events(stage->t->core, &events, &count), ==, DUET_OK);
    for (size_t i = 0; i < count; i++)
        if (events[i].kind == DUET_EVENT_TASK && events[i].worker == worker)
            stage_same(stage, "the next one", (int64_t)events[i].id, stage_number(stage, *ids++));
    g_assert_null(*ids);
}

/*
 * "task 20 10 a:rw" takes so long on a core and on a device; "on gpu0 2 4" checks which tasks ran
 * there; "kernel" and "outside" say who submits: a kernel's tasks are planned by nobody.
 */
static bool planned_step(struct stage *stage, char **words)
{
    struct duet_access accesses[2];
    size_t count = 0;
    if (stage_is(words, "on")) {
        ran_on(stage, stage_worker(stage, words[1]), words + 2);
        return true;
    }
    if (stage_is(words, "kernel") || stage_is(words, "outside")) {
        stage->t->in_kernel = words[0][0] == 'k';
        return true;
    }
    if (stage_is(words, "enter")) {
        testing_let_in(stage->t);
        return true;
    }
    if (!stage_is(words, "task"))
        return false;
    if (!duet_codelet_find(stage->t->core, "both"))
        register_codelets(stage->t);
    for (; words[3 + count]; count++)
        accesses[count] = stage_access(stage, words[3 + count]);
    submit(stage->t, (struct times){g_ascii_strtod(words[1], NULL), g_ascii_strtod(words[2], NULL)},
           accesses, count);
    return true;
}

#define BOTH "cpus=1 gpus=1 unasked "

static const struct script scripts[] = {
    /*
     * The device waits for what the core computes, and what was submitted first, of the lowest
     * rank, fits into the gap: task 4 has a planned beginning before that of 3.
     *
     *     device  2 [0, 10]  4 [10, 15]   3 [20, 30]
     *     core    1 [0, 20]
     */
    {"static: a gap is filled", BOTH "static",
     "data a b; task 20 0 a:w; task 0 10 b:w; task 0 10 a:r b:rw; task 14 5; on cpu0 1;"
     "on gpu0 2 4 3"},
    /* though a core would be free at once: the device is at 10 + 10 + 3 ms when the core is at 40;
     * what comes from a kernel is planned by nobody, and goes to who ends it first */
    {"static: the long chain first, and what is short where it ends first", BOTH "static",
     "data a; task 40 3; task 90 10 a:rw; task 90 10 a:rw; on gpu0 2 3 1; kernel; task 1 2;"
     "task 2 1; outside; on cpu0 4; on gpu0 2 3 1 5"},
    /* a copy of 1 MB takes 1 ms */
    {"static: a task stays where its data is, and writers are waited for", BOTH "static",
     "data a*3906; task 2 0 a:w; task 1.5 1 a:rw; task 4 1 a:r; on cpu0 1 2; on gpu0 3"},
    {"tasks planned for a lost device go elsewhere", BOTH "{static|cp}",
     "3 task 10 1; enter; gpu0 lists 3; lose gpu0; on cpu0 1 2 3"},
    {"static: a task that no worker can run any more, before another of its data, blocks no other",
     "cpus=2 gpus=1 keep-going unasked static",
     "data a; lose gpu0; task 0 1 a:r; task 1 0 a:w; 3 task 1 0; wait ELOST; cpu0 ran 2; cpu1 ran "
     "2;"
     "end ELOST"},
    {"cp: the longest path first, whatever was submitted first; then unplanned tasks",
     "cpus=1 unasked cp",
     "data a; task 5 0; task 10 0 a:rw; task 10 0 a:rw; task 12 0; kernel; task 50 0; outside;"
     "on cpu0 2 4 3 1 5"},
    /* the device: 3, 6, 9, then 12 ms */
    {"cp: the place is decided when a task is ready", BOTH "cp",
     "5 task 10 3; on cpu0 4; on gpu0 1 2 3 5"},
    {"cp: of two devices the one that has the data", "gpus=2 unasked cp",
     "data a*391; task 0 1; task 0 1 a:w; task 0 1 a:r; on gpu1 2 3"},
};

static void test_scripts(void)
{
    scripts_play_with(scripts, G_N_ELEMENTS(scripts), &(struct stage_more){NULL, planned_step});
}

TEST_MAIN(test_scripts)
