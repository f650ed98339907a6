/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of others: graphs come back as far as these can express them, and bad files are
 * refused. */
#include "workloads/files/testing.h"

/* At most 64 tasks, for the masks below. */
enum { COUNT = 60 };

static void parse(const struct duet__graph_format *format, const char *text,
                  struct duet__graph *graph)
{
    duet__graph_init(graph);
    g_assert_true(format->is(text + strspn(text, " "), strlen(text), "a file"));
    if (format->read(graph, text, strlen(text), "a file", hear()))
        g_error("%s: %s", heard(), text);
}

/* Finds the tasks before each task, as bits. */
static void find_earlier(const struct duet__graph *graph, uint64_t earlier[COUNT])
{
    struct duet__graph_walk *walk = duet__graph_walk_new(graph);
    for (size_t i = 0; i < duet__graph_count(graph); i++) {
        size_t count;
        const struct duet__graph_edge *edges = duet__graph_walk_next(walk, &count);
        earlier[i] = 0;
        for (size_t k = 0; k < count; k++) {
            g_assert_cmpuint(edges[k].from, <, i);
            earlier[i] |= earlier[edges[k].from] | UINT64_C(1) << edges[k].from;
        }
    }
    duet__graph_walk_free(walk);
}

static void check(const struct duet__graph_format *format, const struct duet__graph *graph)
{
    g_autofree char *text = testing_written(format->write, graph), *again = NULL, *third = NULL;
    struct duet__graph back, twice;
    uint64_t before[COUNT], after[COUNT];
    parse(format, text, &back);
    g_assert_cmpuint(back.tasks->len, ==, graph->tasks->len);
    find_earlier(graph, before);
    find_earlier(&back, after);
    for (size_t i = 0; i < duet__graph_count(graph); i++) {
        const struct duet__graph_task *task = duet__graph_task(graph, i),
                                      *other = duet__graph_task(&back, i);
        const double seconds = duet__graph_reference(graph, i),
                     back_s = duet__graph_reference(&back, i);
        g_assert_cmpuint(after[i], ==, before[i]);
        g_assert_true(seconds == back_s || (isnan(seconds) && isnan(back_s)));
        if (strcmp(format->name, "stg") == 0)
            continue;
        g_assert_cmpstr(duet__graph_kernel_name(&back, other->kernel), ==,
                        duet__graph_kernel_name(graph, task->kernel));
        g_assert_cmpint(other->priority, ==, task->priority);
        if (strcmp(format->name, "wfformat") == 0)
            continue;
        g_assert_cmpfloat(other->work, ==, task->work);
        g_assert_cmpstr(back.wheres->pdata[other->where], ==, graph->wheres->pdata[task->where]);
        if (task->name) { /* a backslash is special in Graphviz */
            g_autofree char *name = g_strdup(task->name);
            if (strcmp(format->name, "dot") == 0)
                g_strdelimit(name, "\\", '/');
            g_assert_cmpstr(other->name, ==, name);
        }
    }
    /* reading and writing once more changes nothing */
    again = testing_written(format->write, &back);
    parse(format, again, &twice);
    third = testing_written(format->write, &twice);
    if (strcmp(format->name, "wfformat") != 0)
        g_assert_cmpstr(third, ==, again);
    duet__graph_fini(&back);
    duet__graph_fini(&twice);
}

static void test_round_trips(void)
{
    const struct duet__graph_format *format;
    for (guint32 seed = 0; seed < 40; seed++)
        for (size_t i = 0; (format = duet__graph_format_at(i)); i++) {
            OWNED(duet__graph_fini) struct duet__graph graph;
            testing_graph(&graph, 1 + (7 * seed) % COUNT, seed);
            /* WfFormat has no other modes */
            for (guint k = 0; k < graph.accesses->len && strcmp(format->name, "wfformat") == 0; k++)
                g_array_index(graph.accesses, struct duet__graph_access, k).mode &= DUET_RW;
            for (size_t k = 0; k < duet__graph_count(&graph) && format->needs_times; k++)
                duet__graph_seconds(&graph, k)[0] = 0.1 * (double)(k + 1);
            if (format->write)
                check(format, &graph);
        }
}

/* Bytes that flow from task to task, which DOT keeps. */
static void test_walk(void)
{
    static const char text[] = "digraph { a -> b [size=5]; a -> c; b -> c [size=\"7\"]; a -> c }";
    OWNED(duet__graph_fini) struct duet__graph graph;
    struct duet__graph_walk *walk;
    const struct duet__graph_edge *edges;
    size_t count;
    parse(duet__graph_format_find("dot"), text, &graph);
    walk = duet__graph_walk_new(&graph);
    (void)duet__graph_walk_next(walk, &count);
    g_assert_cmpuint(count, ==, 0);
    edges = duet__graph_walk_next(walk, &count);
    g_assert_cmpuint(count, ==, 1);
    g_assert_cmpuint(edges[0].bytes, ==, 5);
    edges = duet__graph_walk_next(walk, &count);
    g_assert_cmpuint(count, ==, 2);
    g_assert_cmpuint(edges[0].from, ==, 1);
    g_assert_cmpuint(edges[0].bytes, ==, 7);
    g_assert_cmpuint(edges[1].bytes, ==, 0);
    duet__graph_walk_free(walk);
}

/* Each of many commuting tasks comes after each reader, by as many edges as there are tasks. */
static void test_turns(void)
{
    enum { READERS = 1000 };
    OWNED(duet__graph_fini) struct duet__graph graph;
    struct duet__graph_walk *walk;
    size_t edges = 0, count;
    duet__graph_init(&graph);
    duet__graph_add_data(&graph, 8, NULL, true);
    for (uint32_t i = 0; i < 2 * READERS; i++) {
        duet__graph_add(&graph, duet__graph_kernel(&graph, "k"));
        duet__graph_add_access(&graph, 0, i < READERS ? DUET_R : DUET_COMMUTE);
    }
    walk = duet__graph_walk_new(&graph);
    for (uint32_t i = 0; i < 2 * READERS; i++, edges += count) {
        const struct duet__graph_edge *edge = duet__graph_walk_next(walk, &count);
        g_assert_cmpuint(count, ==, i < READERS ? 0 : i == READERS ? READERS : 1);
        g_assert_true(i <= READERS || edge->from == i - 1);
    }
    g_assert_cmpuint(edges, ==, 2 * READERS - 1);
    duet__graph_walk_free(walk);
}

/* Names become one line, whatever the file has, and stay different. */
static void test_names(void)
{
    struct duet__graph graph;
    parse(duet__graph_format_find("dot"), "digraph \"x\ny\" { a [kernel=\"k\033l\"] }", &graph);
    g_assert_cmpstr(graph.name, ==, "x?y");
    g_assert_cmpstr(duet__graph_kernel_name(&graph, duet__graph_task(&graph, 0)->kernel), ==,
                    "k?l");
    duet__graph_fini(&graph);
    parse(duet__graph_format_find("wfformat"),
          "{\"workflow\": {\"specification\": {\"tasks\": [{\"id\": \"7\", "
          "\"name\": \"blast_ID0000012\"}]}}}",
          &graph); /* the file names no program */
    g_assert_cmpstr(duet__graph_kernel_name(&graph, duet__graph_task(&graph, 0)->kernel), ==,
                    "blast");
    duet__graph_fini(&graph);
}

/* Texts, and the graphs that they become: "a", its seconds, its predecessors, and so on. */
static void test_examples(void)
{
    static const struct {
        const char *format, *text, *graph;
    } cases[] = {
        {"stg", "  2\n 0 0 0\n 1 3 1 0\n 2 4 1 1\n 3 0 1 2\n# end\n", "1 3\n2 4 after 1\n"},
        {"stg", "2 5\n1 3 0\n2 4.5 1 1", "1 3\n2 4.5 after 1\n"},
        {"stg", "2\n1 3 0\n2 4 1 1\n3 0 1 2\n", "1 3\n2 4 after 1\n"},
        /* costs are data of as many GB; order; a task without time in the middle stays */
        {"stg", "3\n0 0 0\n1 3 1 3 2\n2 0 1 0 0\n3 1 1 0 0\n4 0 2 1 1 2 1\n",
         "3 1\n1 3 after 3: 2000000000\n2 0\n"},
        {"dot", "digraph{a[cost=1];b[time=2]a->b}", "a 1\nb 2 after a\n"},
        {"dot", "digraph{node[label=\"\\N\"];a[cost=1 x=-.5];b[cost=2 label=\"c\\\nd\"]}",
         "a 1\ncd 2\n"},
        {"dot", "digraph{a[cost=1 label=\"c:\\\\\"]}", "c:\\\\ 1\n"},
        {"dot", "digraph G{node[label=\"\\N of \\G\"];a[cost=1]b[cost=2. label=\"\\N\"]}",
         "a of G 1\nb 2\n"},
        {"dot", "digraph{graph[size=\"2,3\"]\"a\"+\"b\\\r\nc\"[cost=.5 size=\"2,3!\"]}",
         "abc 0.5\n"},
        {"dot", "strict digraph{a->b[size=3]b[cost=1]a->b;a->b}", "a nan\nb 1 after a: 3\n"},
        {"dot", "// made by hand\n# 1 \"x\"\n/* digraph */ digraph{a[cost=1]}", "a 1\n"},
        {"dot", "strict Digraph \"g\" {/*x*/node[weight=3] b->{c d}->a[size=2]}",
         "b 3\nc 3 after b: 2\nd 3 after b: 2\na 3 after c: 2 after d: 2\n"},
        {"dot",
         "digraph{subgraph x{node[cost=1] \"a \\\"b\"} c [label=<d<e>>,cost=2];# f\n//g\n "
         "c:n:sw->e "
         "rank=same; \"x\"+\"y\"}",
         "a \"b 1\nd<e> 2\ne nan after d<e>\nxy nan\n"},
        {"wfformat",
         "{\"workflow\": {\"tasks\": ["
         "{\"name\": \"b_2\", \"parents\": [\"a_1\"], \"runtimeInSeconds\": 2,"
         " \"files\": [{\"link\": \"input\", \"name\": \"f\", \"sizeInBytes\": 8}]},"
         "{\"name\": \"a_1\", \"children\": [\"b_2\"], \"runtime\": 1, \"files\":"
         " [{\"link\": \"output\", \"name\": \"f\", \"size\": 8}]}]}}",
         "a_1 1\nb_2 2 after a_1: 8\n"},
        {"wfformat",
         "{\"workflow\": {\"specification\": {\"tasks\": ["
         "{\"id\": \"b\", \"inputFiles\": [\"f\"]}, {\"id\": \"a\", \"outputFiles\": [\"f\"]}],"
         " \"files\": [{\"id\": \"f\", \"sizeInBytes\": 4}]}, \"execution\": {\"tasks\": ["
         "{\"id\": \"a\", \"runtimeInSeconds\": 0.5}]}}}",
         "a 0.5\nb nan after a: 4\n"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) found = g_string_new(NULL);
        OWNED(duet__graph_fini) struct duet__graph graph;
        struct duet__graph_walk *walk;
        parse(duet__graph_format_find(cases[i].format), cases[i].text, &graph);
        walk = duet__graph_walk_new(&graph);
        for (size_t k = 0; k < duet__graph_count(&graph); k++) {
            size_t count;
            const struct duet__graph_edge *edges = duet__graph_walk_next(walk, &count);
            g_string_append_printf(found, "%s %g", duet__graph_task(&graph, k)->name,
                                   duet__graph_reference(&graph, k));
            for (size_t e = 0; e < count; e++) {
                g_string_append_printf(found, " after %s",
                                       duet__graph_task(&graph, edges[e].from)->name);
                if (edges[e].bytes)
                    g_string_append_printf(found, ": %" PRIu64, edges[e].bytes);
            }
            g_string_append_c(found, '\n');
        }
        g_assert_cmpstr(found->str, ==, cases[i].graph);
        duet__graph_walk_free(walk);
    }
}

#define TRACE_TASK(after)                                                                          \
    "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1,\"cat\":\"kernel\",\"name\":\"k\","      \
    "\"args\":"                                                                                    \
    "{\"task\":1,\"bytes\":0,\"submitted_us\":0,\"ready_us\":0,\"after\":" after "}}"
#define TRACE(after)                                                                               \
    "{\"otherData\":{\"producer\":\"duet\",\"nodes\":[\"host\"],\"workers\":[{\"name\":\"w\","     \
    "\"architecture\":\"a\",\"node\":\"host\"}]},\"traceEvents\":[{\"ph\":\"M\",\"pid\":1,"        \
    "\"tid\":1,"                                                                                   \
    "\"name\":\"thread_name\",\"args\":{\"worker\":\"w\"}}," TRACE_TASK(after)

static void test_messages(void)
{
    static const struct {
        const char *format, *text, *message;
    } cases[] = {
        {"stg", "x", "f:1: expected a number, not 'x'"},
        {"stg", "3\n1 2 0\n2 2 1 1\n1e9 3 0", "f:4: 1e+09 is out of range"},
        {"stg", "2\n1 2 0\n3 2 1 1\n", "f:3: task 3, where 2 comes next"},
        {"stg", "2\n1 2 2 0\n", "f:2: task 1 comes after 2 others, but 1 numbers follow"},
        {"stg", "2\n1 -2 0\n", "f:2: -2 is out of range, expected a number from 0"},
        {"stg", "2\n1\n", "f:2: expected another number, but the line ends"},
        {"stg", "2\n1 2.5x 0\n", "f:2: expected a number, not '2.5x'"},
        {"stg", "5\n1 2 0\n2 1 1 1\n", "the first line announces 5 tasks, but there are 2"},
        {"stg", "2\n1 2 0\n2 1 1 7\n", "f: task 2 comes after task 7, which is not there"},
        {"stg", "2\n1 2 0\n2 1 1 0\n", "f:3: there is no task 0: the first one is 1"},
        {"stg", "2\n1 2 1 2\n2 1 1 1\n", "f: a cycle, no order of these is possible: task '"},
        {"dot", "graph { a -- b }", "f:1: a graph without directions"},
        {"dot", "digraph { a --\nb }", "f:1: '--' has no direction"},
        {"dot", "digraph {\na [cost=x] }", "f:2: cost 'x' is no number of seconds from 0 to 1e+15"},
        {"dot", "digraph { a -> b [size=\"5MB\"] }", "size '5MB' is no number of bytes from 0"},
        {"dot", "digraph { a [cost=-1] }", "f:1: cost '-1' is no number"},
        {"dot", "digraph { -> a }", "f:1: expected a node, not '->'"},
        {"dot", "digraph { a -> [cost=1] }", "f:1: expected a node, not '['"},
        {"dot", "digraph { a [cost= }", "f:1: expected a value of cost, not '}'"},
        {"dot", "digraph { a [cost=1", "f:1: expected ']', not 'the end of the text'"},
        {"dot", "digraph { \"a", "f:1: the text ends before \""},
        {"dot", "digraph { a -> b", "f:1: expected '}', not 'the end of the text'"},
        {"dot", "digraph { a -> b } c", "f:1: expected one graph and nothing behind it"},
        {"dot", "digraph { a -> b -> a }", "f: a cycle"},
        {"dot", "digraph {\nload-data -> compute }", "f:2: a name with a hyphen stands between"},
        {"dot", "digraph { stage-1 -> stage-2 }", "f:1: a name with a hyphen stands between"},
        {"dot", "digraph { a [kernel=b-c] }", "f:1: a name with a hyphen stands between"},
        {"dot", "digraph { a [cost=1e6] }", "f:1: '1e' is no name and no number"},
        {"dot", "digraph { 2nd }", "f:1: '2n' is no name and no number"},
        {"dot", "digraph { a.b }", "f:1: 'a.' is no name and no number"},
        {"dot", "digraph { \"a\" + b }", "f:1: expected a quote behind '+'"},
        {"json", "{\"format\": \"duet-graph\", \"kernels\": [\"a\\nb\"]}",
         "f:1: a name has no control characters"},
        {"wfformat", "{\"workflow\": []}", "f:1: expected an object"},
        {"wfformat", "{\"workflow\": {\"tasks\": [{}]}}", "f:1: name: missing"},
        {"wfformat", "{\"workflow\": {\"tasks\": [{\"name\": \"a\", \"parents\": [\"b\"]}]}}",
         "f: task 'a' has the parent 'b', which is not there"},
        {"wfformat", "{\"workflow\": {\"tasks\": [{\"name\": \"a\", \"children\": [\"b\"]}]}}",
         "f: task 'a' has the child 'b', which is not there"},
        {"wfformat", "{\"workflow\": {\"tasks\": [{\"name\": \"a\"}, {\"name\": \"a\"}]}}",
         "f:1: there are two tasks 'a'"},
        {"wfformat", "{\"workflow\": {\"tasks\": [{\"name\": \"a\", \"runtime\": -1}]}}",
         "f:1: runtime: -1 is out of range"},
        {"wfformat", "{\"workflow\": {\"execution\": {\"tasks\": [{\"id\": \"a\"}]}}}",
         "there is no task 'a' in the specification"},
        {"wfformat", "{\"workflow\": {\"tasks\": [{\"name\": \"a\", \"parents\": [\"a\"]}]}}",
         "f: a cycle, no order of these is possible: task 'a'"},
        {"wfformat",
         "{\"workflow\": {\"specification\": {\"files\": [{\"id\": \"f\", \"sizeInBytes\": 4},\n"
         "{\"id\": \"f\", \"sizeInBytes\": 5}]}}}",
         "f:2: file 'f' has 5 bytes here, and 4 before"},
        {"trace", TRACE("[]") "," TRACE_TASK("[]") "]}", "f: task 1 is there twice"},
        {"trace", TRACE("[1]") "]}", "f: task 1 comes after task 1, which is none before it"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        testing_refused(cases[i].format, cases[i].text, "f", cases[i].message);
}

TEST_MAIN(test_round_trips, test_walk, test_turns, test_names, test_examples, test_messages)
