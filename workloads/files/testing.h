/* SPDX-License-Identifier: Apache-2.0 */
/* Task graphs for tests: made from a number, and compared. */
#ifndef DUET_WORKLOADS_FILES_TESTING_H
#define DUET_WORKLOADS_FILES_TESTING_H

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "workloads/files/graph.h"
#include "report/testing_mutate.h"

/* Makes a graph that uses every property of graphs. */
static inline void testing_graph(struct duet__graph *graph, unsigned count, guint32 seed)
{
    static const enum duet_mode modes[] = {DUET_R,       DUET_W,      DUET_RW,
                                           DUET_COMMUTE, DUET_REDUCE, DUET_SCRATCH};
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    g_autofree char *name = NULL;
    duet__graph_init(graph);
    graph->name = g_strdup("of \"numbers\"");
    graph->origin = g_strdup("a test");
    graph->makespan_s = 12.5;
    (void)duet__graph_arch(graph, "cpu");
    (void)duet__graph_arch(graph, "c2050");
    for (unsigned i = 0; i < count / 2; i++) {
        g_free(name);
        name = testing_text(random, 1, 60);
        duet__graph_add_data(graph, g_rand_int(random), i % 3 ? name : NULL, i % 2);
    }
    for (unsigned i = 0; i < count; i++) {
        struct duet__graph_task *task =
            duet__graph_add(graph, duet__graph_kernel(graph, i % 3 ? "gemm" : "potrf"));
        task->work = g_rand_double(random) * 1e9;
        task->priority = g_rand_int_range(random, -3, 4);
        g_free(name);
        name = testing_text(random, 1, 60);
        task->name = duet__graph_text(graph, i % 4 ? name : NULL);
        g_assert_true(duet__graph_where(graph, i % 5 ? "" : "cpu,c2050", &task->where));
        if (i % 7)
            duet__graph_seconds(graph, i)[i % 2] = i % 5 ? g_rand_double(random) : 0;
        for (int k = g_rand_int_range(random, 0, 4); k > 0 && graph->data->len; k--)
            duet__graph_add_access(graph, g_rand_int(random) % graph->data->len,
                                   modes[g_rand_int(random) % G_N_ELEMENTS(modes)]);
        for (int k = i ? g_rand_int_range(random, 0, 3) : 0; k > 0; k--) {
            const uint32_t before = g_rand_int(random) % i;
            g_array_append_val(graph->after, before);
        }
    }
}

/* Returns what a writer writes; for g_free. */
static inline char *testing_written(void (*write)(FILE *stream, const void *graph),
                                    const struct duet__graph *graph)
{
    char *text = NULL, *own;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    write(stream, graph);
    g_assert_cmpint(fclose(stream), ==, 0);
    own = g_strdup(text);
    free(text);
    return own;
}

/* Checks that a text is refused with a message that contains `says`. */
static inline void testing_refused(const char *format, const char *text, const char *path,
                                   const char *says)
{
    OWNED(duet__graph_fini) struct duet__graph graph;
    duet__graph_init(&graph);
    FAILS(duet__graph_format_find(format)->read(&graph, text, strlen(text), path, hear()),
          DUET_EPARSE, says);
}

#endif
