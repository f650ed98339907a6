/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark of the core alone: which graph, on how many threads, and what is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/contention/contention.h"

/* Tasks without data. */
static void independent(const struct work *work)
{
    for (size_t i = 0; i < work->size; i++)
        engine_submit(NULL, 0);
}

/* Again and again four tasks a thread, then a wait. */
static void fork_join(const struct work *work)
{
    for (size_t i = 1; i <= work->size; i++) {
        engine_submit(NULL, 0);
        if (i % (4 * (size_t)work->threads) == 0)
            engine_wait();
    }
}

/* Tiled right-looking Cholesky, `size` tiles a side. */
static void cholesky(const struct work *work)
{
    size_t n = work->size;
    for (size_t k = 0; k < n; k++) {
        engine_submit((size_t[]){k * n + k}, 1);
        for (size_t i = k + 1; i < n; i++)
            engine_submit((size_t[]){k * n + k, i * n + k}, 2);
        for (size_t i = k + 1; i < n; i++) {
            engine_submit((size_t[]){i * n + k, i * n + i}, 2);
            for (size_t j = k + 1; j < i; j++)
                engine_submit((size_t[]){i * n + k, j * n + k, i * n + j}, 3);
        }
    }
}

/* A binary tree of tasks submitted inside tasks, `size` deep. */
static void nested(const struct work *work)
{
    engine_submit_tree((unsigned)work->size);
}

static const struct {
    const char *name;
    void (*submit)(const struct work *work);
    size_t size;
} graphs[] = {
    {"independent", independent, 10000},
    {"fork_join", fork_join, 10000},
    {"cholesky", cholesky, 38},
    {"nested", nested, 13},
};

enum { GRAPHS = sizeof graphs / sizeof graphs[0] };

static uint64_t ran_before, tasks;

static void begin(int pass)
{
    tasks = engine_ran() - ran_before;
    ran_before = engine_ran();
    if (pass == 1)
        lines_reset();
    if (pass == 2)
        lines_stop();
}

static int usage(void)
{
    (void)fprintf(stderr, "usage: PROGRAM GRAPH [--threads N] [--policy NAME] [--size N]\n"
                          "  [--kernel NANOSECONDS] [--real] [--sites] [--costs ACCESS,ATOMIC,MOVE]"
                          "\ngraphs:");
    for (size_t i = 0; i < GRAPHS; i++)
        (void)fprintf(stderr, " %s (%zu)", graphs[i].name, graphs[i].size);
    (void)fprintf(stderr, "\n");
    return 2;
}

static bool read_costs(const char *text)
{
    double *costs[] = {&lines_access_ns, &lines_atomic_ns, &lines_move_ns};
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        char *end;
        *costs[i] = strtod(text, &end);
        if (end == text || *end != (i < 2 ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

/* Reads an option, and its value if it has one. Returns the number of words; 0: unknown. */
static int read_option(struct work *work, const char *name, const char *value)
{
    if (!strcmp(name, "--threads"))
        work->threads = (unsigned)strtoul(value, NULL, 10);
    else if (!strcmp(name, "--policy"))
        work->policy = value;
    else if (!strcmp(name, "--size"))
        work->size = strtoul(value, NULL, 10);
    else if (!strcmp(name, "--kernel"))
        work->kernel_s = strtod(value, NULL) * 1e-9;
    else if (strcmp(name, "--costs") != 0 || !read_costs(value))
        return 0;
    return 2;
}

static void print(const struct work *work, const char *graph, double elapsed_s)
{
    struct lines_sum sum = {0};
    double count = (double)tasks;
    if (COUNTS)
        sum = lines_sum(tasks);
    printf("{\"graph\": \"%s\", \"policy\": \"%s\", \"threads\": %u, \"kernel_ns\": %.0f, "
           "\"tasks\": %.0f, \"ns\": %.1f, \"efficiency\": %.4f",
           graph, work->policy, work->threads, work->kernel_s * 1e9, count,
           elapsed_s * 1e9 * work->threads / count,
           work->kernel_s * count / (elapsed_s * work->threads));
    if (COUNTS)
        printf(", \"accesses\": %.2f, \"atomics\": %.2f, \"moves\": %.3f, \"contended\": %.3f, "
               "\"waits\": %.3f",
               (double)sum.accesses / count, (double)sum.atomics / count, (double)sum.moves / count,
               (double)sum.contended / count, (double)sum.waits / count);
    printf("}\n");
}

int main(int argc, char **argv)
{
    size_t g = 0;
    if (argc == 2 && !strcmp(argv[1], "costs")) {
        costs_print();
        return 0;
    }
    while (g < GRAPHS && (argc < 2 || strcmp(graphs[g].name, argv[1]) != 0))
        g++;
    if (g == GRAPHS)
        return usage();
    struct work work = {.threads = 1,
                        .policy = "ws",
                        .size = graphs[g].size,
                        .begin = begin,
                        .submit = graphs[g].submit};
    bool real = !COUNTS, sites = false;
    for (int i = 2, words = 1; i < argc; i += words) {
        words = 1;
        if (COUNTS && !strcmp(argv[i], "--real"))
            real = true;
        else if (COUNTS && !strcmp(argv[i], "--sites"))
            sites = true;
        else if (i + 1 == argc || !(words = read_option(&work, argv[i], argv[i + 1])))
            return usage();
    }
    if (!work.threads || work.threads > CREW_MAX || !work.size)
        return usage();
    engine_open(real ? &crew_real : &crew_logical, &work);
    if (work.submit == cholesky)
        engine_handles(work.size * work.size);
    double elapsed_s = engine_run();
    print(&work, graphs[g].name, elapsed_s);
    if (sites)
        lines_print(tasks);
    engine_close();
    return 0;
}
