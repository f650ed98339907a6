/* SPDX-License-Identifier: Apache-2.0 */
/* Our own format: a graph comes back whole, and errors are reported with their place. */
#include <malloc.h>

#include "workloads/files/testing.h"

static int parse(const char *text, struct duet__graph *graph, struct duet_message *message)
{
    duet__graph_init(graph);
    return duet__graph_read_json(graph, text, strlen(text), "g.json", message);
}

static void test_round_trip(void)
{
    for (guint32 seed = 0; seed < 20; seed++) {
        struct duet__graph graph, back;
        g_autofree char *text = NULL, *again = NULL;
        testing_graph(&graph, 3 * seed + 1, seed);
        text = testing_written(duet__graph_write_json, &graph);
        WORKS(parse(text, &back, hear()));
        again = testing_written(duet__graph_write_json, &back);
        g_assert_cmpstr(again, ==, text);
        /* members that the text does not show as they are */
        g_assert_cmpuint(back.tasks->len, ==, graph.tasks->len);
        g_assert_cmpuint(back.accesses->len, ==, graph.accesses->len);
        g_assert_cmpuint(back.after->len, ==, graph.after->len);
        for (size_t i = 0; i < duet__graph_count(&graph); i++) {
            g_assert_cmpfloat(duet__graph_task(&back, i)->work, ==,
                              duet__graph_task(&graph, i)->work);
            g_assert_cmpint(isnan(duet__graph_seconds(&back, i)[0]), ==,
                            isnan(duet__graph_seconds(&graph, i)[0]));
        }
        duet__graph_fini(&graph);
        duet__graph_fini(&back);
    }
}

/* A long graph takes less than 400 bytes a task, by all that was allocated. */
static void test_memory(void)
{
    enum { TASKS = 100000, MOST_BYTES = 400 };
    g_autoptr(GString) text =
        g_string_new("{\"format\": \"duet-graph\", \"schema\": 1, \"kernels\": "
                     "[\"k\"], \"architectures\": [\"cpu\"], \"data\": [");
    OWNED(duet__graph_fini) struct duet__graph graph;
    struct mallinfo2 before, after;
    for (int i = 0; i < TASKS; i++)
        g_string_append_printf(text, "%s{\"bytes\": %d}", i ? "," : "", i);
    g_string_append(text, "], \"tasks\": [");
    for (int i = 0; i < TASKS; i++)
        g_string_append_printf(text,
                               "%s{\"kernel\": 0, \"accesses\": [[%d, \"rw\"], [%d, \"r\"]], "
                               "\"after\": [%s], \"seconds\": [1], \"name\": \"task %d\"}",
                               i ? "," : "", i, i / 2, i ? "0" : "", i);
    g_string_append(text, "]}");
    before = mallinfo2();
    WORKS(parse(text->str, &graph, hear()));
    after = mallinfo2();
    if (!before.uordblks) /* another allocator counts nothing */
        g_test_skip("nothing is counted");
    g_assert_cmpuint(after.uordblks + after.hblkhd, <=,
                     before.uordblks + before.hblkhd + (size_t)TASKS * MOST_BYTES);
    g_assert_cmpuint(graph.tasks->len, ==, TASKS);
}

#define HEAD "{\"format\": \"duet-graph\", \"schema\": 1,\n"
#define TASKS                                                                                      \
    HEAD "\"architectures\": [\"cpu\"], \"kernels\": [\"k\"], \"data\": [{}], \"tasks\": [\n"

static void test_messages(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"{}", "g.json: no task graph of duet's"},
        {"{\"format\": \"duet-graph\"}", "g.json: no task graph of duet's"},
        {"{\"format\": \"duet-graph\", \"schema\": 2}", "g.json:1: 2 is out of range"},
        {HEAD "\"fish\": 1}", "g.json:2: unknown key \"fish\""},
        {HEAD "\"kernels\": [\"a\", \"a\"]}", "g.json:2: the name 'a' is there twice"},
        {HEAD "\"kernels\": [\"0123456789012345678901234567890123\"]}", "has 1 to 31 bytes"},
        {HEAD "\"tasks\": [{\"kernel\": 0}]}", "there is no kernel yet"},
        {TASKS "{}]}", "g.json:3: kernel: missing"},
        {TASKS "{\"kernel\": 1}]}", "g.json:3: kernel: 1 is out of range, expected 0 to 0"},
        {TASKS "{\"kernel\": 0, \"after\": [0]}]}", "nothing stands before the first task"},
        {TASKS "{\"kernel\": 0},\n{\"kernel\": 0, \"after\": [1]}]}",
         "g.json:4: after[0]: 1 is out of range, expected 0 to 0"},
        {TASKS "{\"kernel\": 0, \"accesses\": [[1, \"r\"]]}]}",
         "accesses[0][0]: 1 is out of range"},
        {TASKS "{\"kernel\": 0, \"accesses\": [[0, \"x\"]]}]}", "is one of r, w, rw, commute"},
        {TASKS "{\"kernel\": 0, \"accesses\": [[0]]}]}", "has 1 elements, expected 2"},
        {TASKS "{\"kernel\": 0, \"seconds\": [1, 2]}]}", "has 2 elements, expected 1 to 1"},
        {TASKS "{\"kernel\": 0, \"seconds\": [-1]}]}", "seconds[0]: -1 is out of range"},
        {TASKS "{\"kernel\": 0, \"priority\": 1.5}]}", "priority: 1.5 is no whole number"},
        {TASKS "{\"kernel\": 0, \"work\": \"1\"}]}", "work: expected a number"},
        {TASKS "{\"kernel\": 0}], \"architectures\": [\"gpu\"]}", "the key \"architectures\" is"},
        {TASKS "{\"kernel\": 0}", "expected ',' or ']', but the text ends"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        testing_refused("json", cases[i].text, "g.json", cases[i].message);
}

TEST_MAIN(test_round_trip, test_memory, test_messages)
