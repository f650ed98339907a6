/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the bandwidth of the host's memory: vectors beyond all caches, in blocks that one worker
 * each has written first, so that they lie in its socket's memory. */
#include <math.h>
#include <unistd.h>

#include "calibrate/microbench.h"
#include "workloads/data.h"

enum {
    ELEMENTS = 1 << 19, /* of a block: 4 MiB of doubles */
    BLOCK_BYTES = ELEMENTS * sizeof(double),
    MIB = 1 << 20,
    LEAST_MIB = 128,    /* of both vectors, for each worker: real caches may be larger than the
                           system says */
    A_WORKER_MIB = 256, /* at most */
    A_SECOND_MIB = 512, /* at most, for each second: blocks are written once and read often */
    CACHES = 8,         /* times the largest cache */
    MEMORY_SHARE = 4,   /* at most a quarter of the free memory */
    SWEEPS = 15,
    SWEEPS_LEAST = 3,
};

struct streaming {
    struct duet__microbench *bench;
    size_t pairs;                 /* blocks of each vector */
    struct duet_handle **handles; /* x and y of each pair */
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

/* Small, so that sums of many sweeps stay finite. */
static int run_first(const struct duet_call *call)
{
    double *x = call->buffers[0].data, *y = call->buffers[1].data;
    for (size_t i = 0; i < ELEMENTS; i++) {
        x[i] = 1;
        y[i] = 0;
    }
    return DUET_OK;
}

/* Returns the pairs of blocks for this many workers: the same number for each, at least one. */
static size_t count_pairs(unsigned workers, double left_s)
{
    long cache = sysconf(_SC_LEVEL3_CACHE_SIZE), pages = sysconf(_SC_AVPHYS_PAGES);
    double bytes = (double)workers * A_WORKER_MIB * MIB;
    if (cache > 0)
        bytes = fmin(bytes, CACHES * (double)cache);
    bytes = fmin(bytes, left_s * A_SECOND_MIB * MIB);
    bytes = fmax(bytes, (double)workers * LEAST_MIB * MIB);
    if (pages > 0)
        bytes = fmin(bytes, (double)pages * (double)sysconf(_SC_PAGESIZE) / MEMORY_SHARE);
    return (size_t)fmax(1, bytes / (2.0 * BLOCK_BYTES * workers)) * workers;
}

/* Seconds of one sweep over all blocks, on the first `workers` workers. */
static double sweep(const struct streaming *self, const struct duet_codelet *codelet,
                    enum duet_mode x, unsigned workers)
{
    double begin_s = duet__clock_s();
    for (size_t i = 0; i < self->pairs; i++) {
        const struct duet_access accesses[] = {{self->handles[2 * i], x},
                                               {self->handles[2 * i + 1], DUET_RW}};
        duet__microbench_submit(self->bench, codelet, (unsigned)(i % workers), accesses, 2, NULL);
    }
    duet__microbench_wait(self->bench);
    return duet__clock_s() - begin_s;
}

/* Bytes a second, the median of some sweeps. */
static double sweeps(const struct streaming *self, const struct duet_codelet *codelet,
                     unsigned workers, double part, uint64_t *samples)
{
    double end_s = duet__microbench_share(self->bench, part), rates[SWEEPS];
    size_t count = 0;
    while (duet__microbench_more(self->bench, count, SWEEPS_LEAST, SWEEPS, end_s))
        rates[count++] =
            (double)self->pairs * 2 * BLOCK_BYTES / sweep(self, codelet, DUET_R, workers);
    *samples += count;
    return duet__median(rates, count);
}

static void measure(struct duet__microbench *bench, struct duet__bandwidth *out)
{
    const struct duet_codelet *first =
        duet__microbench_kernel(bench, "calibrate_first", run_first, NULL);
    const struct duet_codelet *stream =
        duet__microbench_kernel(bench, "calibrate_stream", run_stream, NULL);
    const struct duet_worker *of = bench->machine->workers;
    struct streaming self = {.bench = bench};
    unsigned workers = 1;
    double *memory;
    while (workers < bench->cpus && of[workers].socket == of[0].socket)
        workers++;
    self.pairs = count_pairs(workers, bench->given->end_s - duet__clock_s());
    self.handles = g_new0(struct duet_handle *, 2 * self.pairs);
    bench->memory = memory = duet__pages_allocate(2 * self.pairs * BLOCK_BYTES);
    if (!memory)
        duet__microbench_note(bench, DUET_ENOMEM);
    for (size_t i = 0; memory && i < 2 * self.pairs; i++)
        self.handles[i] = duet__microbench_vector(bench, memory + i * ELEMENTS, BLOCK_BYTES);
    (void)sweep(&self, first, DUET_W, workers);
    out->one_Bps = sweeps(&self, stream, 1, 0.5, &out->samples);
    out->all_Bps = sweeps(&self, stream, workers, 1, &out->samples);
    g_free(self.handles);
}

int duet__bandwidth_measure(const struct duet__measurement *given, struct duet__bandwidth *out)
{
    struct duet__microbench bench;
    int error;
    *out = (struct duet__bandwidth){0};
    if (duet__microbench_open(&bench, given, "pinned", 0, 0))
        measure(&bench, out);
    error = duet__microbench_close(&bench);
    if (error)
        *out = (struct duet__bandwidth){0};
    return error;
}
