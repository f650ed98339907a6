/* SPDX-License-Identifier: Apache-2.0 */
/* A recording as a file: a graph in duet's own format (docs/formats.md). */
#include "openmp/recording.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_text(FILE *file, const char *text)
{
    putc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            fprintf(file, "\\u%04x", (unsigned)*text);
        else
            putc(*text, file);
    }
    putc('"', file);
}

/* Whatever the program's locale is, whose decimal point may be a comma. */
static void write_seconds(FILE *file, double seconds)
{
    unsigned long long ns = (unsigned long long)(seconds > 0 ? 1e9 * seconds + 0.5 : 0);

    fprintf(file, "%llu.%09llu", ns / 1000000000, ns % 1000000000);
}

static void write_piece(FILE *file, const struct duet__omp_graph *graph, size_t index)
{
    const struct duet__piece *piece = (const struct duet__piece *)graph->pieces.items + index;
    const struct duet__piece_access *accesses = graph->accesses.items;
    const uint32_t *after = graph->after.items;

    fprintf(file, "%s{\"kernel\": %u", index ? ",\n  " : "\n  ", (unsigned)piece->kernel);
    for (size_t i = piece->accesses; i < piece[1].accesses; i++)
        fprintf(file, "%s[%u, \"%s\"]%s", i == piece->accesses ? ", \"accesses\": [" : ", ",
                (unsigned)accesses[i].data, accesses[i].mode,
                i + 1 == piece[1].accesses ? "]" : "");
    for (size_t i = piece->after; i < piece[1].after; i++)
        fprintf(file, "%s%u%s", i == piece->after ? ", \"after\": [" : ", ", (unsigned)after[i],
                i + 1 == piece[1].after ? "]" : "");
    fputs(", \"seconds\": [", file);
    write_seconds(file, piece->seconds);
    fputs(piece->is_task ? "]}" : "], \"where\": \"cpu\"}", file);
}

static bool write_graph(FILE *file, const struct duet__omp_recording *of,
                        const struct duet__omp_graph *graph)
{
    size_t kernels = graph->kernels.count, count = graph->pieces.count;
    char **names = kernels ? duet__omp_names(graph->kernels.items, kernels) : NULL;
    double seconds = 1e-9 * (double)(of->end_ns - of->begin_ns);
    bool made = names || !kernels;

    if (made) {
        fputs("{\"format\": \"duet-graph\", \"schema\": 1, \"name\": ", file);
        write_text(file, program_invocation_short_name);
        fputs(", \"origin\": ", file);
        write_text(file, of->runtime);
        fputs(",\n\"makespan_s\": ", file);
        write_seconds(file, seconds);
        fputs(", \"architectures\": [\"cpu\"],\n\"kernels\": [", file);
        if (of->only_makespan)
            fputs("\"program\"", file);
        for (size_t i = 0; i < kernels; i++) {
            if (i)
                fputs(", ", file);
            write_text(file, names[i]);
        }
        fputs("],\n\"data\": [", file);
        for (uint32_t i = 0; i < graph->data_count; i++)
            fprintf(file, "%s{\"bytes\": %llu}", i ? ", " : "", (unsigned long long)of->bytes);
        fputs("],\n\"tasks\": [", file);
        for (size_t i = 0; i + 1 < count; i++) /* the last one ends lists */
            write_piece(file, graph, i);
        if (of->only_makespan) {
            fputs("{\"kernel\": 0, \"seconds\": [", file);
            write_seconds(file, seconds);
            fputs("]}", file);
        }
        fputs("]}\n", file);
    }
    for (size_t i = 0; names && i < kernels; i++)
        free(names[i]);
    free(names);
    return made;
}

const char *duet__omp_write(const struct duet__omp_recording *recording, const char *path)
{
    struct duet__omp_graph graph = {0};
    const char *problem = NULL;
    char temporary[PATH_MAX];
    FILE *file;

    if ((size_t)snprintf(temporary, sizeof temporary, "%s.%ld.part", path, (long)getpid()) >=
        sizeof temporary)
        return strerror(ENAMETOOLONG);
    file = fopen(temporary, "w");
    if (!file)
        return strerror(errno);
    if (recording->initial && !duet__omp_graph_make(&graph, recording))
        problem = "there is not enough memory for it";
    else if (!write_graph(file, recording, &graph))
        problem = "there is not enough memory for its names";
    duet__omp_graph_fini(&graph);
    if (fflush(file) || ferror(file) || fsync(fileno(file)))
        problem = problem ? problem : strerror(errno);
    fclose(file);
    if (!problem && rename(temporary, path))
        problem = strerror(errno);
    if (problem)
        unlink(temporary);
    return problem;
}
