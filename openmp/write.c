/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a recording as a graph in duet's own format (docs/formats.md). */
#include "openmp/recording.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gzip.h"
#include "base/json.h"

static void write_piece(struct duet__json_writer *json, const struct duet__omp_graph *graph,
                        size_t index)
{
    const struct duet__omp_piece *piece =
        (const struct duet__omp_piece *)graph->pieces.items + index;
    const struct duet__omp_place *places = graph->kernels.items;
    const struct duet__piece_access *accesses = graph->accesses.items;
    const uint32_t *after = graph->after.items;

    duet__json_print(json, "\n  {kernel: %u, seconds: [%g]", places[piece->kernel].kernel,
                     piece->ns / 1e9);
    for (size_t i = piece->accesses; i < piece[1].accesses; i++)
        duet__json_print(json, i == piece->accesses ? "accesses: [[%u, %s]" : "[%u, %s]",
                         accesses[i].data, accesses[i].mode);
    if (piece->accesses < piece[1].accesses)
        duet__json_end(json, ']');
    for (size_t i = piece->after; i < piece[1].after; i++)
        duet__json_print(json, i == piece->after ? "after: [%u" : "%u", after[i]);
    if (piece->after < piece[1].after)
        duet__json_end(json, ']');
    if (!piece->is_task)
        duet__json_put_string(json, "where", "cpu");
    duet__json_end(json, '}');
}

static void write_graph(FILE *file, const void *data)
{
    const struct duet__omp_graph *graph = data;
    const struct duet__omp_recording *of = graph->of;
    struct duet__json_writer writer = {.stream = file, .dense = true}, *json = &writer;
    const struct duet__omp_place *places = graph->kernels.items;
    double seconds = (double)(of->end_ns - of->begin_ns) / 1e9;

    duet__json_print(json,
                     "{format: %s, schema: 1, name: %s, origin: %s"
                     "\n makespan_s: %g, architectures: [%s]\n kernels: [",
                     "duet-graph", program_invocation_short_name, of->runtime, seconds, "cpu");
    if (of->only_makespan)
        duet__json_put_string(json, NULL, "program");
    for (size_t i = 0; i < graph->kernels.count; i++)
        if (places[i].name)
            duet__json_put_string(json, NULL, places[i].name);
    duet__json_print(json, "]\n data: [");
    for (uint32_t i = 0; i < graph->data_count; i++)
        duet__json_print(json, "{bytes: %" PRIu64 "}", of->bytes);
    duet__json_print(json, "]\n tasks: [");
    for (size_t i = 0; i + 1 < graph->pieces.count; i++) /* the last piece only ends lists */
        write_piece(json, graph, i);
    if (of->only_makespan)
        duet__json_print(json, "{kernel: 0, seconds: [%g]}", seconds);
    duet__json_print(json, "]}");
    fputc('\n', file);
}

const char *duet__omp_write(const struct duet__omp_recording *recording, const char *path)
{
    struct duet__omp_graph graph = {.of = recording};
    const char *problem = NULL;
    char temporary[PATH_MAX];
    FILE *file;

    if ((size_t)snprintf(temporary, sizeof temporary, "%s.%ld.part", path, (long)getpid()) >=
        sizeof temporary)
        return strerror(ENAMETOOLONG);
    file = fopen(temporary, "w");
    if (!file)
        return strerror(errno);
    if (recording->initial && !duet__omp_graph_make(&graph))
        problem = "there is not enough memory for it";
    else if (!duet__omp_names(graph.kernels.items, graph.kernels.count, recording->of_gcc))
        problem = "there is not enough memory for its names";
    else if (!duet__gzip_write(path, file, write_graph, &graph) || fsync(fileno(file)))
        problem = strerror(errno);
    duet__omp_graph_fini(&graph);
    fclose(file);
    if (!problem && rename(temporary, path))
        problem = strerror(errno);
    if (problem)
        unlink(temporary);
    return problem;
}
