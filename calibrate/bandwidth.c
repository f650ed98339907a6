/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bandwidth of the host's memory: vectors beyond all caches, in blocks that belong to one worker
 * each, which also has written them first, so that they lie in its socket's memory.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include <glib.h>

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
    size_t pairs;                 /* blocks of each vector */
    struct duet_handle **handles; /* x and y of each pair */
    double *memory;
};

/* y := y + a x */
static void add_multiple(size_t n, double a, const double *restrict x, double *restrict y)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

static int run_stream(const struct duet_call *call)
{
    add_multiple(ELEMENTS, 1.0 / 3, call->buffers[0].data, call->buffers[1].data);
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

static void make_vectors(struct streaming *streaming)
{
    size_t blocks = 2 * streaming->pairs;
    streaming->handles = g_new0(struct duet_handle *, blocks);
    streaming->memory = duet__pages_allocate(blocks * BLOCK_BYTES);
    if (!streaming->memory)
        duet__lab_note(&streaming->lab, DUET_ENOMEM);
    for (size_t i = 0; i < blocks; i++)
        streaming->handles[i] =
            duet__lab_vector(&streaming->lab, streaming->memory + i * ELEMENTS, BLOCK_BYTES);
}

/* ------------------------------------------------------------------------------------------- */

/* Seconds of once over everything, on the first so many workers. */
static double sweep(struct streaming *streaming, const struct duet_codelet *codelet,
                    enum duet_mode x, unsigned workers)
{
    double begin_s = duet__clock_s();
    for (size_t i = 0; i < streaming->pairs; i++) {
        const struct duet_access accesses[] = {{streaming->handles[2 * i], x},
                                               {streaming->handles[2 * i + 1], DUET_RW}};
        duet__lab_submit(&streaming->lab, codelet, (unsigned)(i % MAX(workers, 1)), accesses, 2);
    }
    duet__lab_wait(&streaming->lab);
    return duet__clock_s() - begin_s;
}

/* Bytes a second, the median of some sweeps. */
static double sweeps(struct streaming *streaming, const struct duet_codelet *codelet,
                     unsigned workers, double share, uint64_t *samples)
{
    double end_s = duet__budget_share(streaming->lab.budget, share), rates[SWEEPS];
    double bytes = (double)streaming->pairs * 2 * BLOCK_BYTES;
    size_t count = 0;
    while (count < SWEEPS && (count < SWEEPS_LEAST || duet__clock_s() < end_s) &&
           duet__lab_goes_on(&streaming->lab))
        rates[count++] = bytes / sweep(streaming, codelet, DUET_R, workers);
    *samples += count;
    return duet_median(rates, count);
}

static void measure(struct streaming *streaming, struct duet__bandwidth *out)
{
    struct duet__lab *lab = &streaming->lab;
    const struct duet_codelet *first = duet__lab_kernel(lab, "calibrate_first", run_first);
    const struct duet_codelet *stream = duet__lab_kernel(lab, "calibrate_stream", run_stream);
    unsigned workers = count_workers(lab);
    streaming->pairs = count_pairs(workers, lab->budget->end_s - duet__clock_s());
    make_vectors(streaming);
    (void)sweep(streaming, first, DUET_W, workers);
    out->one_Bps = sweeps(streaming, stream, 1, 0.5, &out->samples);
    out->all_Bps = sweeps(streaming, stream, workers, 1, &out->samples);
}

int duet__bandwidth_measure(const struct duet_config *config, double budget_s,
                            bool (*stop)(void *context), void *context, struct duet__bandwidth *out,
                            struct duet_message *message)
{
    const struct duet_config host = duet__lab_host(config, "pinned", 0);
    const struct duet__budget budget = duet__lab_budget(budget_s, stop, context);
    struct streaming streaming = {0};
    int error;
    *out = (struct duet__bandwidth){0};
    if (duet__lab_open(&streaming.lab, &host, &budget, message))
        measure(&streaming, out);
    error = duet__lab_close(&streaming.lab);
    g_free(streaming.handles);
    free(streaming.memory);
    if (error)
        *out = (struct duet__bandwidth){0};
    return error;
}
