/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of a task in one runtime: times small task programs and verifies that each ran
 * as it should. One program per runtime; bench/overhead.py runs and compares them.
 *
 * Usage: PROGRAM BENCHMARK [WORKERS [REPEATS [SIZE]]] Prints a JSON object a line for each repeat
 * (after one more that warms up) and case.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "bench/overhead/overhead.h"
#include "bench/timing.h"

enum {
    STENCIL_WIDTH = 8,
    STENCIL_BYTES = 2 * STENCIL_WIDTH * CELL_BYTES,
    SWEEP = 64, /* width of the stencil that is swept again and again */
};

struct run {
    const char *benchmark;
    unsigned workers;
    size_t size;
    /* seconds of the same work in C, measured before the runtime starts its threads */
    double serial_s;
    double iteration_s; /* stencil: serial_s is then of one point with no iterations */
    bool quiet;         /* this repeat warms up */
    /* of the program that is timed */
    uint32_t *marks;
    struct sized *sized;
    size_t tasks, joins;
    uint64_t iterations;
};

static void print(const struct run *run, const char *unit, size_t which, double value)
{
    if (run->quiet)
        return;
    char text[32] = "null"; /* not a number, or infinite */
    if (isfinite(value))
        snprintf(text, sizeof text, "%.6g", value);
    printf("{\"runtime\": \"%s\", \"benchmark\": \"%s\", \"workers\": %u, \"size\": %zu, "
           "\"case\": %zu, \"unit\": \"%s\", \"value\": %s}\n",
           peer_name, run->benchmark, run->workers, run->size, which, unit, text);
}

static void expect(const struct run *run, bool right, const char *what)
{
    if (right)
        return;
    fprintf(stderr, "%s of %s with %u workers: %s\n", run->benchmark, peer_name, run->workers,
            what);
    exit(1);
}

/* ------------------------------------------------------------------------------------------- */

/* Seconds of a program that submits the tasks of a run and waits for them. */
static double timed(void (*program)(const void *run), const struct run *run)
{
    double start = seconds();
    peer_run(program, run);
    return seconds() - start;
}

/* Seconds of such a program on blocks of memory, which tasks name. */
static double timed_on(char *base, size_t count, void (*program)(const void *run),
                       const struct run *run)
{
    peer_blocks(base, count);
    double elapsed = timed(program, run);
    peer_drop();
    return elapsed;
}

/* `joins` times: one task for each mark, then a wait for all of them. */
static void fork_join(const void *context)
{
    const struct run *run = context;
    for (size_t j = 0; j < run->joins; j++) {
        for (size_t i = 0; i < run->tasks; i++)
            peer_submit(MARK, NULL, &run->marks[i]);
        peer_wait();
    }
}

/* Seconds of `joins` rounds of `tasks` tasks. */
static double time_fork_join(const struct run *run, size_t tasks, size_t joins)
{
    struct run one = *run;
    one.marks = zeroed(tasks * sizeof *one.marks);
    one.tasks = tasks;
    one.joins = joins;
    double elapsed = timed(fork_join, &one);
    for (size_t i = 0; i < tasks; i++)
        expect(run, one.marks[i] == joins, "a task did not run once");
    free(one.marks);
    return elapsed;
}

static void measure_independent(const struct run *run)
{
    print(run, "ns/task", 0, 1e9 * time_fork_join(run, run->size, 1) / (double)run->size);
}

/* Cases: tasks a join; `size` tasks in all. */
static void measure_fork_join(const struct run *run)
{
    for (size_t tasks = 1; tasks <= 1000; tasks *= 10) {
        size_t joins = run->size > tasks ? run->size / tasks : 1;
        print(run, "ns/join", tasks, 1e9 * time_fork_join(run, tasks, joins) / (double)joins);
    }
}

/* Submits tasks of one size, or of several that no earlier run had. */
static void sizes(const void *context)
{
    const struct run *run = context;
    for (size_t i = 0; i < run->tasks; i++)
        peer_submit(SIZED, NULL, &run->sized[i]);
    peer_wait();
}

static double time_sizes(const struct run *run, size_t different)
{
    static uint32_t used = 1;
    struct run one = *run;
    one.tasks = run->size;
    one.sized = zeroed(one.tasks * sizeof *one.sized);
    for (size_t i = 0; i < one.tasks; i++)
        one.sized[i].size = different == 1 ? 1 : used + 1 + (uint32_t)(i % different);
    used += (uint32_t)different;
    double elapsed = timed(sizes, &one);
    for (size_t i = 0; i < one.tasks; i++)
        expect(run, one.sized[i].mark == 1, "a task did not run once");
    free(one.sized);
    return elapsed;
}

/* Cases: different sizes of `size` tasks. */
static void measure_sizes(const struct run *run)
{
    const size_t cases[] = {1, 10000, run->size};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        print(run, "ns/task", cases[i], 1e9 * time_sizes(run, cases[i]) / (double)run->size);
}

static void chain(const void *context)
{
    const struct run *run = context;
    for (size_t i = 0; i < run->size; i++)
        peer_submit(BUMP_1, (size_t[]){0}, NULL);
    peer_wait();
}

static void measure_chain(const struct run *run)
{
    char *base = zeroed(CELL_BYTES);
    double elapsed = timed_on(base, 1, chain, run);
    expect(run, *(uint64_t *)(void *)base == run->size, "tasks were lost, or ran at once");
    free(base);
    print(run, "ns/task", 0, 1e9 * elapsed / (double)run->size);
}

/* Tiled right-looking Cholesky in which a kernel bumps the tile it writes. */
static void cholesky(const void *context)
{
    size_t n = ((const struct run *)context)->size;
    for (size_t k = 0; k < n; k++) {
        peer_submit(BUMP_1, (size_t[]){k * n + k}, NULL); /* potrf */
        for (size_t i = k + 1; i < n; i++)                /* trsm */
            peer_submit(BUMP_2, (size_t[]){k * n + k, i * n + k}, NULL);
        for (size_t i = k + 1; i < n; i++) { /* syrk, gemm */
            peer_submit(BUMP_2, (size_t[]){i * n + k, i * n + i}, NULL);
            for (size_t j = k + 1; j < i; j++)
                peer_submit(BUMP_3, (size_t[]){i * n + k, j * n + k, i * n + j}, NULL);
        }
    }
    peer_wait();
}

static void measure_cholesky(const struct run *run)
{
    size_t n = run->size, tasks = n * (n + 1) * (n + 2) / 6;
    char *base = zeroed(n * n * CELL_BYTES);
    double elapsed = timed_on(base, n * n, cholesky, run);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) /* j updates, then potrf or trsm */
            expect(run, *(uint64_t *)(void *)(base + (i * n + j) * CELL_BYTES) == j + 1,
                   "tasks were lost, or ran at once");
    free(base);
    print(run, "ns/task", 0, 1e9 * elapsed / (double)tasks);
}

/* ------------------------------------------------------------------------------------------- */

/* Measures the seconds of one call, over many calls. */
static void serial_fibonacci(struct run *run)
{
    const double enough_s = 0.02;
    volatile unsigned n = (unsigned)run->size; /* volatile, so that the calls are not merged */
    uint64_t sum = 0;
    size_t calls = 0;
    double start = seconds(), elapsed;
    do {
        sum += kernel_fibonacci(n);
        calls++;
        elapsed = seconds() - start;
    } while (elapsed < enough_s);
    expect(run, sum == calls * kernel_fibonacci(n), "C says otherwise");
    run->serial_s = elapsed / (double)calls;
}

static void measure_fibonacci(const struct run *run)
{
    unsigned n = (unsigned)run->size;
    expect(run, n >= 2, "SIZE must be at least 2");
    size_t calls = frame_count(n);
    struct frame *frames = zeroed(calls * sizeof *frames);
    double start = seconds();
    uint64_t value = peer_fibonacci(n, frames);
    double elapsed = seconds() - start;
    free(frames);
    expect(run, value == kernel_fibonacci(n), "a wrong result");
    print(run, "ns/task", 0, 1e9 * elapsed / (double)calls);
    print(run, "Tp/Tserial", 0, elapsed / run->serial_s);
}

static void measure_fibonacci_wait(const struct run *run)
{
    unsigned n = (unsigned)run->size;
    expect(run, n >= 2, "SIZE must be at least 2");
    double start = seconds();
    uint64_t value = peer_fibonacci_wait(n);
    double elapsed = seconds() - start;
    expect(run, value > 0, "tasks of this runtime do not wait");
    expect(run, value == kernel_fibonacci(n), "a wrong result");
    print(run, "ns/task", 0, 1e9 * elapsed / (double)frame_count(n));
    print(run, "Tp/Tserial", 0, elapsed / run->serial_s);
}

/* ------------------------------------------------------------------------------------------- */

/* Cases: pieces, which are tasks if the runtime has such. */
static void measure_reduction(const struct run *run)
{
    const size_t pieces[] = {2, 16, 128}, repeats = 10;
    expect(run, run->size >= 128, "SIZE must be at least 128");
    double *numbers = zeroed(run->size * sizeof *numbers), expected = 0;
    for (size_t i = 0; i < run->size; i++) {
        numbers[i] = (double)(i % 1000); /* their sum is exact in any order */
        expected += numbers[i];
    }
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        bool right = true;
        peer_numbers(numbers, run->size, pieces[i]);
        double start = seconds();
        for (size_t r = 0; r < repeats; r++)
            right = peer_sum() == expected && right;
        double elapsed = seconds() - start;
        peer_drop();
        expect(run, right, "a wrong sum, or no reductions");
        print(run, "us/sum", pieces[i], 1e6 * elapsed / (double)repeats);
    }
    free(numbers);
}

/* ------------------------------------------------------------------------------------------- */

static uint64_t *cell(char *base, size_t index)
{
    return (uint64_t *)(void *)(base + index * CELL_BYTES);
}

/* Computes the stencil benchmark in C. Returns its seconds. */
static double compute_stencil(char *base, size_t steps, uint64_t iterations)
{
    double start = seconds();
    for (size_t t = 1; t <= steps; t++) {
        size_t before = (t - 1) % 2 * STENCIL_WIDTH, now = t % 2 * STENCIL_WIDTH;
        for (size_t i = 0; i < STENCIL_WIDTH; i++)
            kernel_stencil(cell(base, now + i), cell(base, before + (i ? i - 1 : 0)),
                           cell(base, before + i),
                           cell(base, before + (i + 1 < STENCIL_WIDTH ? i + 1 : i)), iterations);
    }
    return seconds() - start;
}

/* Fits the time of a point, linear in its iterations, each of which waits for the one before. */
static void serial_stencil(struct run *run)
{
    const int attempts = 5;
    const uint64_t few = 16, many = 4096;
    const double points = (double)(run->size * STENCIL_WIDTH);
    double few_s = INFINITY, many_s = INFINITY;
    char *base = zeroed(STENCIL_BYTES);
    for (int i = 0; i < attempts; i++) {
        few_s = fmin(few_s, compute_stencil(base, run->size, few) / points);
        many_s = fmin(many_s, compute_stencil(base, run->size, many) / points);
    }
    free(base);
    run->iteration_s = (many_s - few_s) / (double)(many - few);
    run->serial_s = fmax(0, few_s - run->iteration_s * (double)few);
}

/* Submits the stencil as tasks: block t % 2 * width + i is point i of step t. */
static void stencil(const void *context)
{
    const struct run *run = context;
    uint64_t iterations = run->iterations;
    for (size_t t = 1; t <= run->size; t++) {
        size_t before = (t - 1) % 2 * STENCIL_WIDTH, now = t % 2 * STENCIL_WIDTH;
        for (size_t i = 0; i < STENCIL_WIDTH; i++)
            peer_submit(STENCIL,
                        (size_t[]){before + (i ? i - 1 : 0), before + i,
                                   before + (i + 1 < STENCIL_WIDTH ? i + 1 : i), now + i},
                        &iterations);
    }
    peer_wait();
}

/* Efficiency of the stencil with tasks of so many iterations, the best of a few; *granularity_s:
 * time of all workers by tasks. */
static double efficiency(const struct run *run, uint64_t iterations, double *granularity_s)
{
    const int attempts = 3;
    double elapsed = INFINITY;
    struct run one = *run;
    one.iterations = iterations;
    char *right = zeroed(STENCIL_BYTES);
    compute_stencil(right, run->size, iterations);
    for (int i = 0; i < attempts; i++) {
        char *base = zeroed(STENCIL_BYTES);
        elapsed = fmin(elapsed, timed_on(base, 2 * STENCIL_WIDTH, stencil, &one));
        expect(run, memcmp(right, base, STENCIL_BYTES) == 0, "another result than C");
        free(base);
    }
    free(right);
    *granularity_s = elapsed * run->workers / (double)(run->size * STENCIL_WIDTH);
    return (run->serial_s + run->iteration_s * (double)iterations) / *granularity_s;
}

/*
 * METG(50 %) of Task Bench (Slaughter et al., SC 2020): the smallest granularity, that is time of
 * all workers over tasks, at which half of the workers' time is the tasks' own. Iterations grow by
 * a factor of 1.5 until it is, up to a millisecond or so; between the last two points interpolated
 * in logarithms.
 */
static void measure_stencil(const struct run *run)
{
    const double goal = 0.5;
    const uint64_t most_iterations = 1000000;
    double before_e = 0, before_s = 0;
    for (uint64_t iterations = 16; iterations < most_iterations; iterations += iterations / 2) {
        double granularity_s;
        double e = efficiency(run, iterations, &granularity_s);
        if (e >= goal) {
            double share = before_e > 0 ? log(goal / before_e) / log(e / before_e) : 1;
            double metg_s =
                before_e > 0 ? before_s * pow(granularity_s / before_s, share) : granularity_s;
            print(run, "ns", 0, 1e9 * metg_s);
            return;
        }
        before_e = e;
        before_s = granularity_s;
    }
    print(run, "ns", 0, INFINITY);
}

/* ------------------------------------------------------------------------------------------- */

/* Calls a function for two steps of a stencil, from one half of the blocks to the other and back.
 */
static void sweep_by(void (*point)(void *context, const size_t *blocks), void *context)
{
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0, before = t * SWEEP; i < SWEEP; i++)
            point(context, (size_t[]){before + (i ? i - 1 : 0), before + i,
                                      before + (i + 1 < SWEEP ? i + 1 : i), SWEEP - before + i});
}

static void submit_point(void *context, const size_t *blocks)
{
    peer_submit(STENCIL, blocks, &((struct run *)context)->iterations);
}

static void compute_point(void *base, const size_t *blocks)
{
    kernel_stencil(cell(base, blocks[3]), cell(base, blocks[0]), cell(base, blocks[1]),
                   cell(base, blocks[2]), 1);
}

static void sweep(const void *run)
{
    sweep_by(submit_point, (void *)(uintptr_t)run);
}

static void sweeps(const void *context)
{
    const struct run *run = context;
    for (size_t i = 1; i <= run->size; i++) {
        sweep(run);
        if (i % AGAIN_WAIT == 0)
            peer_wait();
    }
    peer_wait();
}

static void graph(const void *context)
{
    peer_again(sweep, context, ((const struct run *)context)->size);
    peer_wait();
}

static void measure_sweeps(const struct run *run, void (*program)(const void *run))
{
    const size_t bytes = 2 * SWEEP * CELL_BYTES;
    struct run one = *run;
    char *base = zeroed(bytes), *right = zeroed(bytes);
    one.iterations = 1;
    double elapsed = timed_on(base, 2 * SWEEP, program, &one);
    for (size_t i = 0; i < run->size; i++)
        sweep_by(compute_point, right);
    expect(run, !memcmp(base, right, bytes), "wrong results");
    free(base);
    free(right);
    print(run, "ns/task", 0, 1e9 * elapsed / (2.0 * SWEEP * (double)run->size));
}

static void measure_again(const struct run *run)
{
    measure_sweeps(run, sweeps);
}

static void measure_graph(const struct run *run)
{
    expect(run, peer_again, "this runtime has no graphs");
    measure_sweeps(run, graph);
}

/* ------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*measure)(const struct run *run);
    void (*serial)(struct run *run); /* called first; NULL: no comparison with C */
    size_t size;                     /* default; in the words of the usage: */
    const char *meaning;
} benchmarks[] = {
    {"independent", measure_independent, NULL, 50000, "tasks without data"},
    {"fork_join", measure_fork_join, NULL, 20000, "tasks"},
    {"sizes", measure_sizes, NULL, 200000, "tasks of 1, 10,000 and so many sizes"},
    {"chain", measure_chain, NULL, 50000, "tasks that change one block"},
    {"cholesky", measure_cholesky, NULL, 40, "tiles a side"},
    {"fibonacci", measure_fibonacci, serial_fibonacci, 20, "number"},
    {"fibonacci_wait", measure_fibonacci_wait, serial_fibonacci, 20, "number"},
    {"reduction", measure_reduction, NULL, 1000000, "numbers whose sum it is"},
    {"stencil", measure_stencil, serial_stencil, 200, "steps of 8 points"},
    {"again", measure_again, NULL, 500, "times that the same 128 tasks are submitted"},
    {"graph", measure_graph, NULL, 500, "the same, as a graph"},
};

enum { BENCHMARKS = sizeof benchmarks / sizeof benchmarks[0] };

static int usage(void)
{
    fprintf(stderr, "usage: PROGRAM BENCHMARK [WORKERS [REPEATS [SIZE]]]\n");
    for (size_t i = 0; i < BENCHMARKS; i++)
        fprintf(stderr, "  %-12s SIZE: %s (%zu)\n", benchmarks[i].name, benchmarks[i].meaning,
                benchmarks[i].size);
    return 2;
}

static size_t number(int argc, char **argv, int index, size_t otherwise)
{
    return argc > index ? strtoul(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    size_t b = 0;
    while (b < BENCHMARKS && (argc < 2 || strcmp(benchmarks[b].name, argv[1]) != 0))
        b++;
    if (b == BENCHMARKS)
        return usage();
    struct run run = {
        .benchmark = benchmarks[b].name,
        .workers = (unsigned)number(argc, argv, 2, 1),
        .size = number(argc, argv, 4, benchmarks[b].size),
    };
    size_t repeats = number(argc, argv, 3, 1);
    if (!run.workers || !repeats || !run.size || argc > 5)
        return usage();
    if (benchmarks[b].serial)
        benchmarks[b].serial(&run);
    peer_open(run.workers);
    for (size_t i = 0; i <= repeats; i++) {
        run.quiet = i == 0;
        benchmarks[b].measure(&run);
    }
    peer_close();
    return 0;
}
