/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bandwidth of the host's memory: vectors beyond all caches, in blocks that belong to one worker
 * each, which also has written them first, so that they lie in its socket's memory.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "calibrate/lab.h"
#include "validate/stats.h"
#include "workloads/data.h"

enum {
    ELEMENTS = 1 << 19, /* of a block: 4 MiB of doubles */
    BLOCK_BYTES = ELEMENTS * sizeof(double),
    MIB = 1 << 20,
    LEAST_MIB = 128,    /* of both vectors, for each worker: caches may be larger than is told */
    A_WORKER_MIB = 256, /* at most */
    A_SECOND_MIB = 512, /* of the budget, at most: for writing them once and reading them often */
    CACHES = 8,         /* as many times the largest cache */
    MEMORY_SHARE = 4,   /* at most a quarter of what is free */
    SWEEPS = 15,
    SWEEPS_LEAST = 3,
};

struct streaming {
    struct duet__lab lab;
    struct duet__budget budget;
    struct duet_codelet *first, *stream;
    unsigned workers;             /* those of the first socket */
    size_t pairs;                 /* blocks of each vector */
    struct duet_handle **handles; /* x and y of each pair */
    double *memory;
};

/* y := y + a x */
static void stream(size_t n, double a, const double *restrict x, double *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

static int run_stream(const struct duet_call *call)
{
    stream(ELEMENTS, 1.0 / 3, call->buffers[0].data, call->buffers[1].data);
    return DUET_OK;
}

/* Small enough that sums of many sweeps stay ordinary numbers. */
static int run_first(const struct duet_call *call)
{
    double *x = call->buffers[0].data, *y = call->buffers[1].data;
    for (size_t i = 0; i < ELEMENTS; i++) {
        x[i] = 1;
        y[i] = 0;
    }
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */
/* How much                                                                                     */

/* Pairs of blocks for so many workers: the same number for each, at least one. */
static size_t count_pairs(unsigned workers, double budget_s)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE), pages = sysconf(_SC_AVPHYS_PAGES);
    double bytes = (double)workers * A_WORKER_MIB * MIB;
    if (cache > 0)
        bytes = fmin(bytes, CACHES * (double)cache);
    bytes = fmin(bytes, budget_s * A_SECOND_MIB * MIB);
    bytes = fmax(bytes, (double)workers * LEAST_MIB * MIB);
    if (pages > 0)
        bytes = fmin(bytes, (double)pages * (double)sysconf(_SC_PAGESIZE) / MEMORY_SHARE);
    return (size_t)fmax(1, bytes / (2.0 * BLOCK_BYTES * workers)) * workers;
}

static unsigned count_workers(const struct duet__lab *lab)
{
    unsigned count = 0;
    while (count < lab->cpus &&
           lab->machine->workers[count].socket == lab->machine->workers[0].socket)
        count++;
    return count;
}

static int make_vectors(struct streaming *streaming)
{
    size_t blocks = 2 * streaming->pairs;
    streaming->handles = calloc(blocks, sizeof(struct duet_handle *));
    streaming->memory = duet__pages_allocate(blocks * BLOCK_BYTES);
    if (!streaming->handles || !streaming->memory)
        return DUET_ENOMEM;
    for (size_t i = 0; i < blocks; i++) {
        int error = duet_vector(streaming->lab.runtime, streaming->memory + i * ELEMENTS, ELEMENTS,
                                sizeof(double), &streaming->handles[i]);
        if (error)
            return duet__lab_fail(&streaming->lab, error);
    }
    return DUET_OK;
}

/* ------------------------------------------------------------------------------------------- */

/* Once over everything, on the first so many workers. */
static int sweep(const struct streaming *streaming, const struct duet_codelet *codelet,
                 enum duet_mode x, unsigned workers, double *seconds)
{
    int error = DUET_OK;
    double begin_s = duet__clock_s();
    for (size_t i = 0; i < streaming->pairs && !error; i++) {
        const struct duet_access accesses[] = {{streaming->handles[2 * i], x},
                                               {streaming->handles[2 * i + 1], DUET_RW}};
        error = duet__lab_submit(&streaming->lab, codelet, (unsigned)(i % workers), accesses, 2,
                                 NULL, 0);
    }
    int waited = duet__lab_wait(&streaming->lab);
    *seconds = duet__clock_s() - begin_s;
    return error ? error : waited;
}

static int sweeps(struct streaming *streaming, unsigned workers, double share,
                  struct duet__values *values)
{
    double end_s = duet__lab_share(&streaming->budget, share), seconds = 0;
    double bytes = (double)streaming->pairs * 2 * BLOCK_BYTES;
    int error = DUET_OK;
    while (!error && values->count < SWEEPS &&
           (values->count < SWEEPS_LEAST || duet__clock_s() < end_s)) {
        error = duet__lab_stop(&streaming->budget, streaming->lab.message);
        if (!error)
            error = sweep(streaming, streaming->stream, DUET_R, workers, &seconds);
        if (!error)
            duet__values_add(values, bytes / seconds);
    }
    return error;
}

static int measure(struct streaming *streaming, struct duet__values *one, struct duet__values *all)
{
    struct duet__lab *lab = &streaming->lab;
    double seconds = 0;
    streaming->workers = count_workers(lab);
    streaming->pairs = count_pairs(streaming->workers, streaming->budget.end_s - duet__clock_s());
    int error = duet__lab_kernel(lab, "calibrate_first", run_first, &streaming->first);
    if (!error)
        error = duet__lab_kernel(lab, "calibrate_stream", run_stream, &streaming->stream);
    if (!error)
        error = make_vectors(streaming);
    if (!error)
        error = sweep(streaming, streaming->first, DUET_W, streaming->workers, &seconds);
    if (!error)
        error = sweeps(streaming, 1, 0.5, one);
    if (!error)
        error = sweeps(streaming, streaming->workers, 1, all);
    return error;
}

int duet__bandwidth_measure(const struct duet_config *config, double budget_s,
                            bool (*stop)(void *context), void *context, struct duet__bandwidth *out,
                            struct duet_message *message)
{
    const struct duet_config host = duet__lab_host(config, "pinned", 0);
    struct streaming streaming = {.budget = duet__lab_budget(budget_s, stop, context)};
    struct duet__values one = {0}, all = {0};
    *out = (struct duet__bandwidth){0};
    int error = duet__lab_stop(&streaming.budget, message);
    if (!error)
        error = duet__lab_open(&streaming.lab, &host, message);
    if (!error)
        error = duet__lab_close(&streaming.lab, measure(&streaming, &one, &all));
    free(streaming.handles);
    free(streaming.memory);
    if (error == DUET_ENOMEM)
        (void)duet_fail(message, error, "no memory left to measure its bandwidth");
    if (!error)
        *out = (struct duet__bandwidth){.one_Bps = duet_median(one.values, one.count),
                                        .all_Bps = duet_median(all.values, all.count),
                                        .samples = one.count + all.count};
    duet__values_fini(&one);
    duet__values_fini(&all);
    return error;
}
