/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutated files of task graphs: whatever the input, a reader gives a graph that holds together or
 * fails with a message. DUET_TEST_LONG=1000000 tries so many of each format.
 */
#include <sys/resource.h>

#include "workloads/files/testing.h"
#include "report/testing_mutate.h"

static void check(const struct duet__graph *graph)
{
    struct duet__graph_walk *walk = duet__graph_walk_new(graph);
    for (size_t i = 0; i < duet__graph_count(graph); i++) {
        const struct duet__graph_task *task = duet__graph_task(graph, i);
        const double seconds = duet__graph_reference(graph, i);
        size_t count;
        const struct duet__graph_access *accesses = duet__graph_accesses(graph, i, &count);
        for (size_t k = 0; k < count; k++)
            g_assert_true(accesses[k].data < graph->data->len &&
                          duet__graph_mode_name(accesses[k].mode));
        g_assert_cmpuint(task->kernel, <, graph->kernels->len);
        g_assert_cmpuint(task->where, <, graph->wheres->len);
        g_assert_true(task->work >= 0 && task->work <= DUET__GRAPH_WORK_MAX);
        g_assert_true(isnan(seconds) || (seconds >= 0 && seconds <= DUET__GRAPH_SECONDS_MAX));
        const struct duet__graph_edge *edges = duet__graph_walk_next(walk, &count);
        for (size_t k = 0; k < count; k++)
            g_assert_cmpuint(edges[k].from, <, i);
    }
    duet__graph_walk_free(walk);
}

/* Reads a text, then reads back what is written of it. */
static bool try(const struct duet__graph_format *format, const char *text, size_t length)
{
    /* exactly this long, so that sanitizers see an overrun */
    const struct duet__graph_format *other =
        format->write ? format : duet__graph_format_find("json");
    g_autofree char *own = g_strndup(text, length), *written = NULL;
    struct duet__graph graph, back;
    int error;
    own = g_realloc(own, strlen(own) + 1);
    duet__graph_init(&graph);
    error = format->read(&graph, own, strlen(own), "fuzz", hear());
    g_assert_true(!error || (error == DUET_EPARSE && heard()[0]));
    if (!error) {
        check(&graph);
        if (!graph.name)
            graph.name = g_strdup("fuzz");
        written = testing_written(other->write, &graph);
        duet__graph_init(&back);
        if (graph.tasks->len && other->read(&back, written, strlen(written), "again", hear()))
            g_error("%s: %s\nfrom %s", heard(), written, own);
        duet__graph_fini(&back);
    }
    duet__graph_fini(&graph);
    return !error;
}

/* A task of a trace. */
#define TASK(number, accesses)                                                                     \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"pid\":1,\"tid\":1,\"ts\":" #number                         \
    ",\"dur\":1,\"name\":\"k\",\"args\":{\"task\":" #number                                        \
    ",\"bytes\":16,\"submitted_us\":0,\"ready_us\":0,\"where\":\"x\",\"priority\":-1,"             \
    "\"accesses\":[" accesses "]}},"

static void test_mutations(gconstpointer of)
{
    const struct duet__graph_format *format = of;
    static const char *const seeds[] = {
        "  4\n 0 0 0\n 1 3 1 0\n 2 4 2 0 1\n 3 5 1 2\n 4 1.5 1 1\n 5 0 2 3 4\n# end\n",
        "3\n0 0 0\n1 3 1 3 2\n2 0 1 0 0\n3 1 1 0 0\n4 0 2 1 1 2 1\n",
        "strict digraph \"g\" { node [cost=3, kernel=k] a -> {b; c:n} -> d [size=20];\n"
        "subgraph x { edge [bytes=7] e -> \"f\\\"\" /* x */ } g [label=<h<i>>, work=1e9, "
        "priority=-2, where=\"cpu,cuda\"] # j\n rankdir=LR }",
        "{\"otherData\":{\"producer\":\"duet\",\"architectures\":[\"x\",\"y\"],\"backends\":["
        "\"cpu\","
        "\"cuda\"],\"nodes\":[\"host\"],\"workers\":[{\"name\":\"c\",\"architecture\":\"x\","
        "\"node\":"
        "\"host\"}],\"workload\":\"w\"},\"traceEvents\":[{\"ph\":\"M\",\"name\":\"thread_name\","
        "\"pid\":1,"
        "\"tid\":1,\"args\":{\"worker\":\"c\"}}," TASK(1, "[2,8,\"w\",1,2],[5,8,\"rwx\",4,0]")
            TASK(2, "[1,16,\"rwc\"],[7,4,\"ws\"],[8,9,\"wt\"]")
                TASK(3, "[3,8,\"r\",1,2],[1,16,\"\"]],\"after\":[1") "{}]}",
    };
    const char *rounds_wanted = g_getenv("DUET_TEST_LONG");
    const guint64 most = rounds_wanted ? g_ascii_strtoull(rounds_wanted, NULL, 10) : 3000;
    g_autoptr(GRand) random = g_rand_new_with_seed(20021101);
    OWNED(duet__graph_fini) struct duet__graph graph;
    guint64 read = 0;
    testing_graph(&graph, 12, 3);
    for (size_t k = 0; k < duet__graph_count(&graph); k++)
        duet__graph_seconds(&graph, k)[0] = (double)k;
    g_autofree char *written = format->write ? testing_written(format->write, &graph)
                                             : g_strdup(seeds[G_N_ELEMENTS(seeds) - 1]);
    for (guint64 round = 0; round < most; round++) {
        const char *seed = round % 2 ? written : seeds[round / 2 % G_N_ELEMENTS(seeds)];
        g_autoptr(GString) text = g_string_new(
            round % 2 || format->is(seed + strspn(seed, " "), strlen(seed), "fuzz") ? seed
                                                                                    : written);
        testing_mutate(text, random);
        read += try(format, text->str, text->len);
    }
    g_test_message("%" PRIu64 " of %" PRIu64 " could be read", read, most);
    g_assert_cmpuint(read, >, 0);
    g_assert_cmpuint(read, <, most);
}

/* Short texts take little memory; the rest is of sanitizers, which keep freed memory. */
static void test_memory(void)
{
    enum { MOST_KIB = 1 << 20 };
    struct rusage usage;
    g_assert_cmpint(getrusage(RUSAGE_SELF, &usage), ==, 0);
    g_test_message("at most %ld KiB of memory", usage.ru_maxrss);
    g_assert_cmpint(usage.ru_maxrss, <=, MOST_KIB);
}

int main(int argc, char **argv)
{
    const struct duet__graph_format *format;
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; (format = duet__graph_format_at(i)); i++) {
        g_autofree char *path = g_strconcat("/fuzz/", format->name, NULL);
        if (strcmp(format->name, "starpu") != 0) /* it has tests of its own */
            g_test_add_data_func(path, format, test_mutations);
    }
    g_test_add_func("/fuzz/memory", test_memory);
    return g_test_run();
}
