/* SPDX-License-Identifier: Apache-2.0 */
/* Records of StarPU and its performance models are read as they are, and bad input is refused. */
#include "workloads/files/graph.h"
#include "workloads/files/testing.h"
#include "report/testing_mutate.h"

static int parse(const char *text, struct duet__graph *graph, struct duet_message *message)
{
    duet__graph_init(graph);
    return duet__graph_read_starpu(graph, text, strlen(text), "t.rec", message);
}

static void parsed(const char *text, struct duet__graph *graph)
{
    const int error = parse(text, graph, hear());
    g_assert_cmpstr(heard(), ==, "");
    g_assert_cmpint(error, ==, 0);
}

static const uint32_t *after(const struct duet__graph *graph, size_t task, size_t wanted)
{
    size_t count;
    const uint32_t *tasks = duet__graph_after(graph, task, &count);
    g_assert_cmpuint(count, ==, wanted);
    return tasks;
}

/* Two writers, a reader of both, a successor of the first without data, StarPU's own tasks. */
static const char record[] = "# what a tool made\n\n"
                             "Name: GEMM\nModel: gemm\nJobId: 7\nSubmitOrder: 3\nPriority: -2\n"
                             "DependsOn: 5 6 99\nWorkerId: 1\nMemoryNode: 0\nSubmitTime: 2.5\n"
                             "StartTime: 10.0\nEndTime: 14.0\nFootprint: a1\nGFlop: 0.5\n"
                             "Handles: a0 b0\nModes: R RW\nSizes: 100 200\nMPIRank: -1\n\n"
                             "Control: WontUse\nJobId: 8\nSubmitOrder: 4\nHandles: a0\n\n"
                             "Model: potrf\nJobId: 5\nSubmitOrder: 1\nWorkerId: 0\nMemoryNode: 1\n"
                             "SubmitTime: 2\nStartTime: 3\nEndTime: 9\nFootprint: a2\n"
                             "Handles: a0\nModes: RW\nSizes: 100\n\n"
                             "Model: gemm\nJobId: 6\nSubmitOrder: 2\nWorkerId: 2\nMemoryNode: 2\n"
                             "SubmitTime: 2\nStartTime: 3\nEndTime: 4\nFootprint: a1\n"
                             "Handles: b0 c0\nModes: W S\nSizes: 200 300\n\n"
                             "Name: _starpu_data_acquire_cb_pre\nJobId: 9\nDependsOn: 7\n\n"
                             "Name: post\nJobId: 10\nDependsOn: 9\n\n"
                             "Name: POTRF\nModel: potrf\nJobId: 11\nSubmitOrder: 5\n"
                             "DependsOn: 5\nWorkerId: 0\nMemoryNode: 1\nSubmitTime: 3\n"
                             "StartTime: 20\nEndTime: 28\nFootprint: a2\r\n";

static void test_record(void)
{
    static const char *const kernels[] = {"potrf", "gemm", "gemm", "potrf"};
    OWNED(duet__graph_fini) struct duet__graph graph;
    const struct duet__graph_access *access;
    size_t count;
    g_assert_true(duet__graph_is_starpu(record, strlen(record), "t.rec"));
    g_assert_false(duet__graph_is_starpu("digraph { JobId: 1 }", 20, "t.rec"));
    parsed(record, &graph);
    g_assert_cmpuint(graph.tasks->len, ==, 4);
    for (size_t i = 0; i < 4; i++)
        g_assert_cmpstr(duet__graph_kernel_name(&graph, duet__graph_task(&graph, i)->kernel), ==,
                        kernels[i]);
    g_assert_cmpstr(duet__graph_task(&graph, 2)->name, ==, "GEMM");
    g_assert_cmpint(duet__graph_task(&graph, 2)->priority, ==, -2);
    g_assert_cmpfloat(duet__graph_task(&graph, 2)->work, ==, 5e8);
    g_assert_cmpfloat_with_epsilon(graph.makespan_s, 0.026, 1e-12);
    access = duet__graph_accesses(&graph, 2, &count);
    g_assert_cmpuint(count, ==, 2);
    g_assert_cmpuint(access[0].mode, ==, DUET_R);
    g_assert_cmpuint(access[1].mode, ==, DUET_RW);
    g_assert_cmpuint(access[0].data, ==, duet__graph_accesses(&graph, 0, &count)->data);
    access = duet__graph_accesses(&graph, 1, &count);
    g_assert_cmpuint(access[1].mode, ==, DUET_SCRATCH);
    g_assert_cmpuint(duet__graph_datum(&graph, access[0].data)->bytes, ==, 200);
    g_assert_false(duet__graph_datum(&graph, access[0].data)->initial);
    g_assert_true(duet__graph_datum(&graph, 0)->initial);
    /* edges that data implies are dropped */
    (void)after(&graph, 2, 0);
    g_assert_cmpuint(after(&graph, 3, 1)[0], ==, 0);
}

/* Tasks have their own times where they ran, elsewhere means of tasks like them. */
static void test_measured(void)
{
    OWNED(duet__graph_fini) struct duet__graph graph;
    const double *seconds;
    parsed(record, &graph);
    g_assert_cmpstr(graph.archs->pdata[0], ==, "cpu");
    g_assert_cmpstr(graph.archs->pdata[1], ==, "cuda");
    seconds = duet__graph_seconds(&graph, 1);
    g_assert_cmpfloat_with_epsilon(seconds[0], 0.004, 1e-12);
    g_assert_cmpfloat_with_epsilon(seconds[1], 0.001, 1e-12);
    seconds = duet__graph_seconds(&graph, 3);
    g_assert_true(isnan(seconds[0]));
    g_assert_cmpfloat_with_epsilon(seconds[1], 0.008, 1e-12);
    g_assert_cmpstr(graph.wheres->pdata[duet__graph_task(&graph, 3)->where], ==, "cuda");
    g_assert_cmpuint(duet__graph_task(&graph, 1)->where, ==, 0);
}

#define TASK(job, order, more)                                                                     \
    "Model: k\nJobId: " #job "\nSubmitOrder: " #order "\nWorkerId: 0\n" more "\n"
#define TIMES(submit, start, end)                                                                  \
    "SubmitTime: " #submit "\nStartTime: " #start "\nEndTime: " #end "\n"
#define ACCESS(mode) "Handles: ab\nModes: " mode "\nSizes: 8\n"

static void test_modes(void)
{
    static const struct {
        const char *mode;
        enum duet_mode wanted;
    } modes[] = {{"R", DUET_R},       {"W", DUET_W},         {"RW", DUET_RW},
                 {"S", DUET_SCRATCH}, {"RWC", DUET_COMMUTE}, {"X", DUET_REDUCE},
                 {"RWX-mpi", DUET_RW}};

    for (size_t i = 0; i < G_N_ELEMENTS(modes); i++) {
        g_autofree char *text = g_strdup_printf(
            "Model: k\nJobId: 1\n" TIMES(0, 1, 2) "Handles: ab cd\nSizes: 8 9\nModes: %s \n",
            modes[i].mode);
        OWNED(duet__graph_fini) struct duet__graph graph;
        size_t count;
        parsed(text, &graph);
        /* the second access has no mode and is ignored */
        g_assert_cmpuint(duet__graph_accesses(&graph, 0, &count)->mode, ==, modes[i].wanted);
        g_assert_cmpuint(count, ==, 1);
    }
}

/* Groups of readers, or of commuting tasks: the next writer comes after all of them, as edges
 * say. */
static void test_groups(void)
{
    OWNED(duet__graph_fini) struct duet__graph graph;
    parsed(TASK(1, 1, TIMES(0, 1, 2) ACCESS("RW"))
               TASK(2, 2, TIMES(0, 2, 3) ACCESS("R") "DependsOn: 1\n")
                   TASK(3, 3, TIMES(0, 2, 3) ACCESS("R") "DependsOn: 1\n")
                       TASK(4, 4, TIMES(0, 3, 4) ACCESS("RW") "DependsOn: 2 3 1\n"),
           &graph);
    (void)after(&graph, 1, 0);
    (void)after(&graph, 2, 0);
    g_assert_cmpuint(after(&graph, 3, 1)[0], ==, 0); /* a reader would need only this edge */
    g_assert_cmpuint(graph.data->len, ==, 1);
}

/* An address is used again, by other data if nobody waited and all had ended. */
static void test_addresses(void)
{
    struct duet__graph graph;
    size_t count;
    parsed(TASK(1, 1, TIMES(0, 1, 2) ACCESS("RW")) TASK(2, 2, TIMES(2, 3, 4) ACCESS("R")), &graph);
    g_assert_cmpuint(graph.data->len, ==, 2);
    g_assert_cmpuint(duet__graph_accesses(&graph, 1, &count)->data, ==, 1);
    g_assert_true(duet__graph_datum(&graph, 1)->initial);
    duet__graph_fini(&graph);
    /* a dependence through a task of StarPU's own counts, too */
    parsed(TASK(1, 1,
                TIMES(0, 1, 2)
                    ACCESS("RW")) "JobId: 9\nDependsOn: 1\n\n" TASK(2, 2,
                                                                    TIMES(2, 3, 4) ACCESS(
                                                                        "R") "DependsOn: 9\n"),
           &graph);
    g_assert_cmpuint(graph.data->len, ==, 1);
    g_assert_cmpuint(graph.tasks->len, ==, 3);
    g_assert_cmpuint(duet__graph_accesses(&graph, 2, &count)->data, ==, 0);
    duet__graph_fini(&graph);
    /* data of another size is other data */
    parsed(TASK(1, 1, TIMES(0, 1, 2) ACCESS("RW"))
               TASK(2, 2, TIMES(0, 3, 4) "Handles: ab\nModes: R\nSizes: 9\n"),
           &graph);
    g_assert_cmpuint(graph.data->len, ==, 2);
    duet__graph_fini(&graph);
    FAILS(parse(TASK(1, 1, TIMES(0, 1, 2) ACCESS("RW")) TASK(2, 2, TIMES(1, 3, 4) ACCESS("R")),
                &graph, hear()),
          DUET_EPARSE, "t.rec:12: job 2: it follows others by data, but not");
    duet__graph_fini(&graph);
}

/* Tasks that all read what the first one wrote, each also after the one before it. */
static void test_chains(void)
{
    enum { TASKS = 2000 };
    g_autoptr(GString) text = g_string_new(TASK(1, 1, TIMES(0, 1, 2) ACCESS("RW")));
    OWNED(duet__graph_fini) struct duet__graph graph;
    for (int i = 2; i <= TASKS; i++)
        g_string_append_printf(text,
                               "Model: k\nJobId: %d\nSubmitOrder: %d\nDependsOn: %d\n"
                               "SubmitTime: 0\nStartTime: %d\nEndTime: %d\n" ACCESS("R") "\n",
                               i, i, i - 1, i, i + 1);
    parsed(text->str, &graph);
    g_assert_cmpuint(graph.data->len, ==, 1);
    (void)after(&graph, 1, 0); /* implied by data */
    for (uint32_t i = 2; i < TASKS; i++)
        g_assert_cmpuint(after(&graph, i, 1)[0], ==, i - 1);
}

static void test_bad(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"Model: k\nName: K\n",
         "t.rec:1: a task without JobId (K): a record of a task has a JobId"},
        {"\nJobId: 1\nSubmitOrder: x\n",
         "t.rec:2: job 1: SubmitOrder: not a number from 0 to 1e+15: x"},
        {"JobId: 1\nModel: k\nStartTime: 2\nEndTime: 1\n",
         "t.rec:1: job 1: it ends before it starts"},
        {"JobId: 1\n\nJobId: 1\n", "t.rec:3: job 1: its JobId is there twice"},
        {"JobId: 1\nMPIRank: 0\n\nJobId: 2\nMPIRank: 1\n",
         "t.rec:4: job 2: it is of another MPI rank than the ones before: 1"},
        {"JobId: 1\nModel: k\n", "t.rec:1: job 1: no time of it or of one like it is known"},
        {TASK(1, 1, TIMES(0, 1, 2) "Handles: a b\nModes: R R\nSizes: 1\n"),
         "t.rec:1: job 1: not as many Modes or Sizes as Handles"},
        {TASK(1, 1, TIMES(0, 1, 2) "Handles: (nil)\nModes: R\nSizes: 1\n"),
         "t.rec:1: job 1: Handles: no address: (nil)"},
        {TASK(1, 1, TIMES(0, 1, 2) "Handles: a\nModes: Q\nSizes: 1\n"),
         "t.rec:1: job 1: Modes: unknown: Q"},
        {TASK(1, 1, TIMES(0, 1, 2) "Handles: a\nModes: R\nSizes: -1\n"),
         "t.rec:1: job 1: Sizes: no number of bytes: -1"},
        {TASK(1, 1, TIMES(0, 1, 2) "DependsOn: 2\n") TASK(2, 2, TIMES(0, 1, 2) "DependsOn: 1\n"),
         "t.rec: a cycle, no order of these is possible: job 2 (k), then job 1 (k)"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct duet_message message = {""};
        OWNED(duet__graph_fini) struct duet__graph graph;
        g_assert_cmpint(parse(cases[i].text, &graph, &message), ==, DUET_EPARSE);
        g_assert_cmpstr(message.text, ==, cases[i].message);
    }
}

/* Two implementations on a CPU, two GPUs, four cores together. */
static const char model[] =
    "# version\n45\n# COMBs\n4\n"
    "1\n0\n0\n1\n2\n# entries\n2\n0 0 0 0 nan nan 0 0 0\nnan nan nan\n0\n"
    "000000a1 8 1e6 4000 1 1 1 10\nffffffff 8 1e6 0 0 0 0 0\n"
    "1\n0 0 0 0 nan nan 0 0 0\nnan nan nan\n3 1 2 3# hash\na1 8 1e6 3000 1 1 1 10\n"
    "1\n1\n0\n1\n1\n1\n0 0 0 0 nan nan 0 0 0\nnan nan nan\n0\na1 8 1e6 100 1 1 1 10\n"
    "1\n1\n12\n1\n1\n1\n0 0 0 0 nan nan 0 0 0\nnan nan nan\n0\na1 8 200 1 1 1 30\n"
    "1\n0\n0\n4\n1\n1\n0 0 0 0 nan nan 0 0 0\nnan nan nan\n0\na1 8 1e6 1 1 1 1 10\n";

static GArray *times_of(const char *text, struct duet_message *message)
{
    GArray *times = g_array_new(FALSE, FALSE, sizeof(struct duet__starpu_time));
    if (duet__starpu_times_parse(text, "k.host", times, message))
        g_clear_pointer(&times, g_array_unref);
    return times;
}

static void test_model(void)
{
    GArray *times = times_of(model, hear());
    g_assert_cmpstr(heard(), ==, "");
    g_assert_cmpfloat_with_epsilon(duet__starpu_seconds(times, "cpu", 0xa1), 3e-3, 1e-15);
    g_assert_cmpfloat_with_epsilon(duet__starpu_seconds(times, "cuda0", 0xa1), 1e-4, 1e-15);
    g_assert_cmpfloat_with_epsilon(duet__starpu_seconds(times, "cuda12", 0xa1), 2e-4, 1e-15);
    g_assert_cmpfloat_with_epsilon(duet__starpu_seconds(times, "cuda", 0xa1), 1.75e-4, 1e-15);
    g_assert_true(isnan(duet__starpu_seconds(times, "cuda1", 0xa1)));
    g_assert_true(isnan(duet__starpu_seconds(times, "opencl", 0xa1)));
    g_assert_true(isnan(duet__starpu_seconds(times, "cpu", 0xffffffff)));
    g_array_unref(times);
    /* version 44 has no coefficients */
    times = times_of("44\n1\n1\n0\n0\n1\n1\n1\n0 0 0 0 nan nan 0 0 0\nnan nan nan\n"
                     "a1 8 5000 1 1 1 10\n",
                     hear());
    g_assert_cmpfloat_with_epsilon(duet__starpu_seconds(times, "cpu", 0xa1), 5e-3, 1e-15);
    g_array_unref(times);
    g_assert_null(times_of("43\n", hear()));
    g_assert_cmpstr(heard(), ==,
                    "k.host:1: no performance model of StarPU's: there should "
                    "be version 44 or 45");
    g_assert_null(times_of("45\n# combinations\n1\n1\n<zone>\n", hear()));
    g_assert_cmpstr(heard(), ==,
                    "k.host:5: no performance model of StarPU's: there should "
                    "be the kind of a device");
    g_assert_null(times_of("", hear()));
}

/* A mutated text gives a graph that can be submitted, or one message. DUET_TEST_LONG=1000000 tries
 * so many records, and as many models. */
static void test_fuzz(void)
{
    const char *wanted = g_getenv("DUET_TEST_LONG");
    const guint64 rounds = 2 * (wanted ? g_ascii_strtoull(wanted, NULL, 10) : 1500);
    g_autoptr(GRand) random = g_rand_new_with_seed(1310);
    guint64 read[2] = {0};
    for (guint64 round = 0; round < rounds; round++) {
        g_autoptr(GString) text = g_string_new(round % 2 ? record : model);
        struct duet__graph graph;
        GArray *times;
        int error = 0;
        testing_mutate(text, random);
        if (round % 2) {
            error = parse(text->str, &graph, hear());
            for (guint i = 0; i < graph.after->len && !error; i++)
                g_assert_cmpuint(g_array_index(graph.after, uint32_t, i), <, graph.tasks->len);
            for (guint i = 0; i < graph.accesses->len && !error; i++)
                g_assert_cmpuint(g_array_index(graph.accesses, struct duet__graph_access, i).data,
                                 <, graph.data->len);
            duet__graph_fini(&graph);
        } else {
            times = times_of(text->str, hear());
            error = !times;
            g_clear_pointer(&times, g_array_unref);
        }
        g_assert_true(!error || heard()[0]);
        read[round % 2] += !error;
    }
    g_test_message("%" PRIu64 " models and %" PRIu64 " records of %" PRIu64 " could be read",
                   read[0], read[1], rounds / 2);
}

TEST_MAIN(test_record, test_measured, test_modes, test_groups, test_addresses, test_chains,
          test_bad, test_model, test_fuzz)
