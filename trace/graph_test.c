/* SPDX-License-Identifier: Apache-2.0 */
/* Task graphs of runs: those of random programs, made from records and from traces, have the
 * dependences of the programs, and simulate alike. */
#include "workloads/files/testing.h"
#include "runs/session.h"
#include "trace/trace.h"

enum { TASKS = 60, DATA = 6, VIEWS = 16, ROWS = 16, COLS = 8, USES = 3, SEEDS = 4 };
enum { REDUCED = 1, TEMPORARY = DATA - 1 };

/* Data, and the parts that some programs cut: rows and their parts, rows and columns. */
static const struct view {
    unsigned data, row, col, rows, cols;
    int of;
    unsigned count; /* number of parts, for the first part of a cut */
} views[VIEWS] = {
    {0, 0, 0, 16, 8, -1, 0}, {1, 0, 0, 16, 8, -1, 0}, {2, 0, 0, 16, 8, -1, 0},
    {3, 0, 0, 16, 8, -1, 0}, {4, 0, 0, 16, 8, -1, 0}, {5, 0, 0, 16, 8, -1, 0},
    {0, 0, 0, 4, 8, 0, 4},   {0, 4, 0, 4, 8, 0, 0},   {0, 8, 0, 4, 8, 0, 0},
    {0, 12, 0, 4, 8, 0, 0},  {0, 4, 0, 4, 4, 7, 2},   {0, 4, 4, 4, 4, 7, 0},
    {3, 0, 0, 8, 8, 3, 2},   {3, 8, 0, 8, 8, 3, 0},   {3, 0, 0, 16, 4, 3, 2},
    {3, 0, 4, 16, 4, 3, 0},
};

/* The current program, of a seed; processes that simulate have it, too. */
static struct {
    bool cuts, restricts;
    struct planned {
        unsigned count, view[USES];
        enum duet_mode mode[USES];
        int after; /* index of the task before; below 0: none */
        double seconds;
    } tasks[TASKS];
} plan;

/* Draws a view of data, or of a part of it. */
static unsigned choose_view(GRand *random, unsigned data)
{
    unsigned view;
    do
        view = g_rand_int(random) % (plan.cuts ? VIEWS : DATA);
    while (views[view].data != data);
    return view;
}

static void make_plan(guint32 seed)
{
    static const enum duet_mode modes[] = {DUET_R,       DUET_R,       DUET_W,     DUET_RW,
                                           DUET_COMMUTE, DUET_SCRATCH, DUET_REDUCE};
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    plan.cuts = seed % 2;
    plan.restricts = seed % 3;
    for (int i = 0; i < TASKS; i++) {
        struct planned *task = &plan.tasks[i];
        const unsigned first = i ? g_rand_int(random) % DATA : TEMPORARY;
        task->count = i && i < TASKS - 1 ? 1 + g_rand_int(random) % USES : 1;
        task->after = i && g_rand_int(random) % 3 == 0 ? g_rand_int_range(random, 0, i) : -1;
        task->seconds = g_rand_int_range(random, 1, 1000) / 1e6;
        for (unsigned k = 0; k < task->count; k++) {
            const unsigned data = (first + k) % DATA;
            task->view[k] = choose_view(random, data);
            task->mode[k] = modes[g_rand_int(random) % (G_N_ELEMENTS(modes) - (data != REDUCED))];
        }
    }
    /* temporary data is written first, and read by its last user */
    plan.tasks[0].mode[0] = DUET_W;
    plan.tasks[TASKS - 1].view[0] = TEMPORARY;
    plan.tasks[TASKS - 1].mode[0] = DUET_R;
}

/* ------------------------------------------------------------------------------------------- */
/* The program                                                                                  */

static double cost(const void *args, const char *arch)
{
    return *arch ? plan.tasks[*(const int *)args].seconds : 0;
}

/* Work of a task, which no other one has, so that no two are of one class. */
static double work_of(const void *args)
{
    return 1e9 + *(const int *)args;
}

static double instant(const void *args, const char *arch)
{
    return *arch ? 1e-9 : 0;
}

static struct duet_codelet *codelet(struct duet_runtime *duet, const char *name, bool computes)
{
    static const struct duet_implementation both[] = {{.arch = "cpu"}, {.arch = "cuda"}};
    const struct duet_codelet_desc desc = {.name = name,
                                           .implementations = both,
                                           .implementation_count = 2,
                                           .cost = computes ? cost : instant,
                                           .flops = computes ? work_of : NULL};
    struct duet_codelet *made = NULL;
    g_assert_cmpint(duet_register_codelet(duet, &desc, &made), ==, 0);
    return made;
}

static void make_data(struct duet_runtime *duet, struct duet_handle **handles)
{
    static const size_t bytes[DATA] = {3000, 40, 500, 7000, 100, 1200};
    for (unsigned i = 0; i < (plan.cuts ? VIEWS : DATA); i++) {
        const struct view *view = &views[i];
        int error = 0;
        if (i == TEMPORARY)
            error = duet_register_temporary(duet, ROWS, COLS, bytes[i], &handles[i]);
        else if (i < DATA)
            error = duet_register_matrix(duet, NULL, ROWS, COLS, ROWS, bytes[i], &handles[i]);
        else if (view->count)
            error = view->cols < views[view->of].cols
                        ? duet_cut_blocks(duet, handles[view->of], 1, view->count, &handles[i])
                        : duet_cut_blocks(duet, handles[view->of], view->count, 1, &handles[i]);
        g_assert_cmpint(error, ==, 0);
    }
    g_assert_cmpint(duet_set_reduction(duet, handles[REDUCED], codelet(duet, "init", false),
                                       codelet(duet, "add", false)),
                    ==, 0);
}

static int build(const struct duet__workload *self, struct duet_runtime *duet,
                 const struct duet__problem *problem, void **state, struct duet_message *message)
{
    struct duet_codelet *const codelets[] = {codelet(duet, "even", true),
                                             codelet(duet, "odd", true)};
    struct duet_handle *handles[VIEWS] = {NULL};
    struct duet_ref *refs[TASKS] = {NULL};
    *state = NULL;
    make_data(duet, handles);
    for (int i = 0; i < TASKS; i++) {
        const struct planned *task = &plan.tasks[i];
        const char *where = i % 7 == 1 ? "cpu" : i % 7 == 2 ? "cuda" : NULL;
        struct duet_access accesses[USES];
        const struct duet_task_extra extra = {.ref = &refs[i],
                                              .after = &refs[MAX(task->after, 0)],
                                              .after_count = task->after >= 0,
                                              .name = i % 2 ? "odd one" : NULL};
        const struct duet_task_desc desc = {
            .codelet = codelets[i % 2],
            .accesses = accesses,
            .access_count = task->count,
            .args = &i,
            .args_bytes = sizeof i,
            .priority = i % 5 - 2,
            .where = plan.restricts && where ? duet_where(duet, where) : 0,
            .extra = &extra,
        };
        for (unsigned k = 0; k < task->count; k++)
            accesses[k] = (struct duet_access){handles[task->view[k]], task->mode[k]};
        if (duet_submit(duet, &desc))
            g_error("%s", duet_last_message(duet));
    }
    for (int i = 0; i < TASKS; i++)
        duet_ref_free(refs[i]);
    return duet_unregister_submit(duet, handles[TEMPORARY]);
}

static void fini(void *state)
{
    g_assert_null(state);
}

/* ------------------------------------------------------------------------------------------- */
/* Runs                                                                                         */

struct place {
    const char *platform;
    int cpus, gpus;
};

/* Returns the makespan of a graph; `out` (for duet__run_fini): of the program, whose run it
 * gets. */
static double simulate(const struct duet__graph *graph, const struct place *place,
                       const char *policy, struct duet__run *out)
{
    struct duet__workload workload = duet__graph_workload(graph);
    OWNED(duet__request_fini) struct duet__request request;
    OWNED(duet__series_fini) struct duet__series series = {0};
    struct duet__progress progress = {0};
    double makespan_s;
    int number = 0;
    duet__request_init(&request);
    request.workload = &workload;
    request.problem.graph = graph;
    request.policies = g_strsplit(policy, ",", -1);
    request.policy_count = 1;
    request.config.simulate = place->platform;
    request.config.cpus = place->cpus;
    request.config.gpus = place->gpus;
    if (out) {
        request.records = DUET_RECORDS_TRACE;
        workload.build = build;
        workload.fini = fini;
    }
    if (duet__request_build(&request, hear()) ||
        duet__simulate(&request, &progress, &series, &number, hear()) || series.error)
        g_error("%s%s", heard(), series.message.text);
    makespan_s = series.runs[0].stats.makespan_s;
    if (out) {
        *out = series.runs[0];
        series.runs[0] = (struct duet__run){0};
    }
    return makespan_s;
}

static void read(const struct duet__graph_format *format, const char *text, struct duet__graph *out)
{
    g_assert_true(format->is(text + strspn(text, " "), strlen(text), "a file"));
    duet__graph_init(out);
    WORKS(format->read(out, text, strlen(text), "a file", hear()));
}

static void write_trace(FILE *stream, const void *trace)
{
    duet__trace_write(stream, trace);
}

/* ------------------------------------------------------------------------------------------- */
/* Expected dependences */

static bool overlap(const struct view *a, const struct view *b)
{
    return a->data == b->data && a->row < b->row + b->rows && b->row < a->row + a->rows &&
           a->col < b->col + b->cols && b->col < a->col + a->cols;
}

/* True if a task has to come after an earlier one; of commuting tasks, after one in its turn. */
static bool follows(int later, int earlier)
{
    const struct planned *a = &plan.tasks[earlier], *b = &plan.tasks[later];
    for (unsigned i = 0; i < a->count; i++)
        for (unsigned k = 0; k < b->count; k++) {
            const bool alike = a->mode[i] == b->mode[k] &&
                               (a->mode[i] == DUET_R || a->mode[i] == DUET_REDUCE),
                       scratch = a->mode[i] == DUET_SCRATCH || b->mode[k] == DUET_SCRATCH;
            if (!alike && !scratch && overlap(&views[a->view[i]], &views[b->view[k]]))
                return true;
        }
    return b->after == earlier;
}

/* Finds, for each earlier and later task, whether a path of edges joins them. */
static void reach(const struct duet__graph *graph, bool reaches[TASKS][TASKS])
{
    struct duet__graph_walk *walk = duet__graph_walk_new(graph);
    memset(reaches, 0, sizeof(bool[TASKS][TASKS]));
    for (unsigned task = 0; task < TASKS; task++) {
        size_t count;
        const struct duet__graph_edge *edges = duet__graph_walk_next(walk, &count);
        for (size_t i = 0; i < count; i++)
            for (unsigned before = 0; before <= edges[i].from; before++)
                reaches[before][task] |= before == edges[i].from || reaches[before][edges[i].from];
    }
    duet__graph_walk_free(walk);
}

static void check_order(const struct duet__graph *graph)
{
    bool reaches[TASKS][TASKS], wanted[TASKS][TASKS] = {{false}};
    g_assert_cmpuint(duet__graph_count(graph), ==, TASKS);
    reach(graph, reaches);
    for (int later = 0; later < TASKS; later++)
        for (int from = later - 1; from >= 0; from--) {
            if (!follows(later, from))
                continue;
            for (int before = 0; before <= from; before++)
                wanted[before][later] |= before == from || wanted[before][from];
        }
    for (int later = 0; later < TASKS; later++)
        for (int earlier = 0; earlier < later; earlier++)
            if (wanted[earlier][later] != reaches[earlier][later] &&
                (wanted[earlier][later] || !plan.cuts))
                g_error("task %d and %d: %s", earlier, later,
                        wanted[earlier][later] ? "not in order" : "in an order");
}

/* Other formats keep the order of tasks, our own keeps times, too. */
static void check_formats(const struct duet__graph *graph)
{
    static const char *const names[] = {"stg", "dot", "json", "wfformat"};
    bool own[TASKS][TASKS], other[TASKS][TASKS], *first = own[0], *second = other[0];
    reach(graph, own);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        const struct duet__graph_format *format = duet__graph_format_find(names[i]);
        g_autofree char *text = testing_written(format->write, graph);
        OWNED(duet__graph_fini) struct duet__graph back;
        read(format, text, &back);
        g_assert_cmpuint(duet__graph_count(&back), ==, TASKS);
        reach(&back, other);
        for (int pair = 0; pair < TASKS * TASKS; pair++)
            /* WfFormat knows only reading and writing */
            g_assert_true(first[pair] == second[pair] || (!first[pair] && i == 3));
    }
}

/* The trace of a program is the graph of its records, and takes as long on other machines. */
static void test_program(gconstpointer number)
{
    static const struct place places[] = {{"idgraf", 4, 8}, {"mirage", -1, -1}, {"idgraf", 3, 0}};
    static const char *const policies[] = {"ws", "heft", "dmdas", "eager"};
    struct duet__trace trace = {.workload = (char *)(uintptr_t) "program"};
    struct duet__graph none, graph, direct;
    struct duet__run run;
    make_plan(GPOINTER_TO_UINT(number));
    duet__graph_init(&none);
    none.name = g_strdup(trace.workload);
    (void)simulate(&none, &places[0], "eager", &trace.run);
    g_autofree char *text = testing_written(write_trace, (const void *)&trace);
    read(duet__graph_format_find("trace"), text, &graph);
    check_order(&graph);
    check_formats(&graph);
    duet__graph_init(&direct);
    direct.name = g_strdup(trace.workload);
    g_assert_cmpint(duet__graph_take(&direct, &trace.run.recording, NULL), ==, 0);
    g_assert_cmpuint(direct.accesses->len, ==, graph.accesses->len);
    g_autofree char *ours = testing_written(duet__graph_write_json, &graph);
    duet__graph_fini(&graph);
    read(duet__graph_format_find("json"), ours, &graph);
    for (size_t i = 0; i < (plan.restricts ? 2 : G_N_ELEMENTS(places)); i++)
        for (size_t k = i % 2; k < G_N_ELEMENTS(policies); k += 2) {
            const double makespan_s = simulate(&graph, &places[i], policies[k], NULL);
            if (plan.cuts)
                continue;
            g_assert_cmpfloat(makespan_s, ==, simulate(&none, &places[i], policies[k], &run));
            g_assert_cmpfloat(makespan_s, ==, simulate(&direct, &places[i], policies[k], NULL));
            duet__run_fini(&run);
        }
    duet__run_fini(&trace.run);
    duet__graph_fini(&none);
    duet__graph_fini(&graph);
    duet__graph_fini(&direct);
}

/* ------------------------------------------------------------------------------------------- */
/* Traces that duet seldom or never writes */

/* Reads the graph of a trace with one task, on one of so many architectures. */
static void read_task(const char *accesses, unsigned archs, struct duet__graph *out)
{
    g_autoptr(GString) names = g_string_new("\"a0\""), backends = g_string_new("\"cpu\"");
    for (unsigned i = 1; i < archs; i++) {
        g_string_append_printf(names, ",\"a%u\"", i);
        g_string_append(backends, ",\"cpu\"");
    }
    g_autofree char *text = g_strdup_printf(
        "{\"otherData\":{\"producer\":\"duet\",\"architectures\":[%s],\"backends\":[%s],\"nodes\":["
        "\"host\"],"
        "\"workers\":[{\"name\":\"w\",\"architecture\":\"a0\",\"node\":\"host\"}]},"
        "\"traceEvents\":[{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\","
        "\"args\":{\"worker\":\"w\"}},{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1,"
        "\"cat\":\"kernel\",\"name\":\"k\",\"args\":{\"task\":1,\"bytes\":8,\"submitted_us\":0,"
        "\"ready_us\":0,\"accesses\":[%s]}}]}",
        names->str, backends->str, accesses);
    read(duet__graph_format_find("trace"), text, out);
    g_assert_cmpuint(duet__graph_count(out), ==, 1);
}

/* Empty parts of parts that occur twice are one datum. */
static void test_empty_parts(void)
{
    enum { LEVELS = 20 };
    g_autoptr(GString) accesses = g_string_new("[1,0,\"rw\"]");
    OWNED(duet__graph_fini) struct duet__graph graph;
    for (unsigned i = 2; i < 2 * LEVELS; i++)
        g_string_append_printf(accesses, ",[%u,0,\"\",%u,1]", i / 2 + 1, i / 2);
    read_task(accesses->str, 1, &graph);
    g_assert_cmpuint(graph.accesses->len, ==, 1);
}

/* The size of data of which only parts are accessed, of two cuts, is that of one cut. */
static void test_sizes(void)
{
    OWNED(duet__graph_fini) struct duet__graph graph;
    read_task("[2,30,\"r\",1,2],[3,10,\"r\",1,2],[4,25,\"r\",1,4],[5,15,\"r\",1,4]", 1, &graph);
    g_assert_cmpuint(graph.data->len, ==, 1);
    g_assert_cmpuint(duet__graph_datum(&graph, 0)->bytes, ==, 40);
}

/* Any letters of a mode are accepted together. */
static void test_modes(void)
{
    static const char *const texts[] = {"c", "rws", "rwcx", "t"};
    struct duet__graph graph;
    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autofree char *access = g_strdup_printf("[1,8,\"%s\"]", texts[i]);
        read_task(access, 1, &graph);
        for (guint k = 0; k < graph.accesses->len; k++)
            g_assert_nonnull(duet__graph_mode_name(
                g_array_index(graph.accesses, struct duet__graph_access, k).mode));
        g_assert_cmpuint(graph.accesses->len, ==, i < 3);
        duet__graph_fini(&graph);
    }
}

/* There may be as many architectures as bits. */
static void test_architectures(void)
{
    OWNED(duet__graph_fini) struct duet__graph graph;
    read_task("[1,8,\"r\"]", 64, &graph);
    g_assert_cmpuint(graph.archs->len, ==, 64);
    g_assert_cmpuint(duet__graph_task(&graph, 0)->where, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recording/empty-parts", test_empty_parts);
    g_test_add_func("/recording/sizes", test_sizes);
    g_test_add_func("/recording/modes", test_modes);
    g_test_add_func("/recording/architectures", test_architectures);
    for (guint i = 0; i < SEEDS; i++) {
        g_autofree char *name = g_strdup_printf("/recording/program/%u", i);
        g_test_add_data_func(name, GUINT_TO_POINTER(i), test_program);
    }
    return g_test_run();
}
