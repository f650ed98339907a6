/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the time of the runtime's own operations, as the simulation charges it, and the
 * bandwidth of memory. */
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "calibrate/microbench.h"
#include "runtime/open.h"
#include "workloads/data.h"

static const char one_worker[] = "there is one CPU worker, the application's own thread";
static const char no_device[] = "there is no device";

/* The costs before anything was measured. */
static const struct duet__measured none[DUET__COSTS] = {
    [DUET__COST_SUBMIT] = {"submit", "submitting a task of three accesses that waits for another"},
    [DUET__COST_PUSH] = {"push", "making a task ready when the one before it ends: the time of a "
                                 "task in a chain less that of an independent one"},
    [DUET__COST_POP] = {"pop", "an empty independent task, from its worker's own list until it is "
                               "reported done"},
    [DUET__COST_STEAL] = {"steal",
                          "an empty independent task, from another worker's list until it "
                          "is reported done; each attempt is charged what that takes "
                          "longer than pop",
                          .why = "there is one CPU worker, and nobody to steal from"},
    [DUET__COST_TASK] = {"task", "all of an empty task in a chain on one worker: submit, push, "
                                 "pop"},
    [DUET__COST_WAKE] = {"wake",
                         "from a task's submission until its kernel begins on a CPU worker "
                         "that sleeps, less submit",
                         .why = one_worker},
    [DUET__COST_SPIN] = {"spin",
                         "how long a CPU worker has had nothing to do when it sleeps: by "
                         "the runtime's own rule",
                         .why = one_worker},
    [DUET__COST_KERNEL_LAUNCH] = {"kernel_launch",
                                  "from when a task without copies is ready until "
                                  "its kernel starts on an idle device",
                                  .why = no_device},
    [DUET__COST_COPY_LAUNCH] = {"copy_launch",
                                "from the decision to copy to an idle device until "
                                "the copy starts",
                                .why = no_device},
    [DUET__COST_EVENT] = {"event", "from the end of a device's kernel until the runtime knows",
                          .why = no_device},
};

static const double SHARE = 0.25; /* of the time that is left, for one cost */

enum {
    BATCH = 2000, /* tasks */
    BATCHES = 20,
    BATCHES_LEAST = 3,
    HANDLES = 3,
};

/* ------------------------------------------------------------------------------------------- */
/* One worker: the application's thread submits, then runs all itself */

/* Times of a batch, in seconds a task. */
struct batch {
    double submit_s, run_s;
};

/* Runs tasks that read two handles and, in a chain, change the third one; else they read that too
 * and are all ready at once. */
static struct batch run_batch(struct duet__microbench *bench, struct duet_handle *const *handles,
                              bool chain)
{
    const struct duet_access accesses[HANDLES] = {{handles[0], DUET_R},
                                                  {handles[1], DUET_R},
                                                  {handles[2], chain ? DUET_RW : DUET_R}};
    double begin_s = duet__clock_s(), submitted_s;
    for (unsigned i = 0; i < BATCH; i++)
        duet__microbench_submit(bench, bench->empty, 0, accesses, HANDLES, NULL);
    submitted_s = duet__clock_s();
    duet__microbench_wait(bench);
    return (struct batch){(submitted_s - begin_s) / BATCH, (duet__clock_s() - submitted_s) / BATCH};
}

static void measure_tasks(struct duet__microbench *bench, struct duet__measured *costs)
{
    static const enum duet__cost measured[] = {DUET__COST_SUBMIT, DUET__COST_PUSH, DUET__COST_POP,
                                               DUET__COST_TASK};
    double end_s = duet__microbench_share(bench, SHARE), *cells = g_new0(double, HANDLES);
    struct duet_handle *handles[HANDLES];
    GArray *values[DUET__COSTS];
    bench->memory = cells;
    for (size_t i = 0; i < G_N_ELEMENTS(measured); i++)
        values[measured[i]] = g_array_new(FALSE, FALSE, sizeof(double));
    for (unsigned i = 0; i < HANDLES; i++)
        handles[i] = duet__microbench_vector(bench, &cells[i], sizeof cells[i]);
    /* the first ones find no memory prepared and cold caches */
    (void)run_batch(bench, handles, true);
    (void)run_batch(bench, handles, false);
    for (size_t i = 0; duet__microbench_more(bench, i, BATCHES_LEAST, BATCHES, end_s); i++) {
        struct batch chain = run_batch(bench, handles, true);
        struct batch independent = run_batch(bench, handles, false);
        double push_s = chain.run_s - independent.run_s, task_s = chain.submit_s + chain.run_s;
        g_array_append_val(values[DUET__COST_SUBMIT], chain.submit_s);
        g_array_append_val(values[DUET__COST_PUSH], push_s);
        g_array_append_val(values[DUET__COST_POP], independent.run_s);
        g_array_append_val(values[DUET__COST_TASK], task_s);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(measured); i++)
        duet__measured_set(&costs[measured[i]], values[measured[i]]);
}

/* ------------------------------------------------------------------------------------------- */
/* Two workers                                                                                  */

/*
 * Number of tasks to steal. Submitted tasks are on the first worker's list, which sleeps for at
 * least a millisecond while the application does not wait. The second worker is woken by the second
 * submission, steals the oldest task, which holds it until all are there, and then the others. Few
 * enough for that millisecond.
 */
enum { STOLEN = 500, ATTEMPTS = 100 };

static const double PATIENCE_S = 0.02; /* time that the application waits before it helps */

struct theft {
    _Atomic(bool) open;
    _Atomic(unsigned) held, stolen; /* begun tasks that hold the worker, and others */
    double first_s, last_s;
};

static int run_hold(const struct duet_call *call)
{
    struct theft *theft = *(struct theft *const *)call->args;
    atomic_fetch_add(&theft->held, 1);
    while (!atomic_load(&theft->open))
        (void)sched_yield();
    return DUET_OK;
}

static int run_stolen(const struct duet_call *call)
{
    struct theft *theft = *(struct theft *const *)call->args;
    unsigned number = atomic_fetch_add(&theft->stolen, 1);
    if (number == 0)
        theft->first_s = duet__clock_s();
    if (number == STOLEN - 1)
        theft->last_s = duet__clock_s();
    return DUET_OK;
}

static void wait_for(const _Atomic(unsigned) *count, unsigned wanted)
{
    double end_s = duet__clock_s() + PATIENCE_S;
    while (atomic_load(count) < wanted && duet__clock_s() < end_s)
        (void)sched_yield();
}

/* Seconds of a stolen task, 0 if the first worker has run any. */
static double steal_batch(struct duet__microbench *bench, const struct duet_codelet *hold,
                          const struct duet_codelet *stolen)
{
    struct theft theft = {0};
    uint64_t before = duet_worker_stats(bench->runtime, 0).tasks;
    duet__microbench_submit(bench, hold, 0, NULL, 0, &theft);
    for (unsigned i = 0; i < STOLEN; i++)
        duet__microbench_submit(bench, stolen, 0, NULL, 0, &theft);
    wait_for(&theft.held, 1);
    atomic_store(&theft.open, true);
    wait_for(&theft.stolen, STOLEN);
    duet__microbench_wait(bench); /* before `theft` goes out of scope */
    if (bench->error || duet_worker_stats(bench->runtime, 0).tasks != before)
        return 0;
    return (theft.last_s - theft.first_s) / (STOLEN - 1);
}

static void measure_steals(struct duet__microbench *bench, struct duet__measured *costs)
{
    const struct duet_codelet *hold =
        duet__microbench_kernel(bench, "calibrate_hold", run_hold, NULL);
    const struct duet_codelet *stolen =
        duet__microbench_kernel(bench, "calibrate_stolen", run_stolen, NULL);
    GArray *values = g_array_new(FALSE, FALSE, sizeof(double));
    double end_s = duet__microbench_share(bench, SHARE);
    if (bench->cpus > 1)
        costs[DUET__COST_STEAL].why = "the second worker was never left alone: other programs run?";
    for (unsigned i = 0; bench->cpus > 1 && i < ATTEMPTS &&
                         duet__microbench_more(bench, values->len, BATCHES_LEAST, BATCHES, end_s);
         i++) {
        double stolen_s = steal_batch(bench, hold, stolen);
        if (stolen_s > 0)
            g_array_append_val(values, stolen_s);
    }
    duet__measured_set(&costs[DUET__COST_STEAL], values);
}

/* ------------------------------------------------------------------------------------------- */
/* A worker that sleeps                                                                         */

enum { WAKES = 60, WAKES_LEAST = 5 };

static const double ASLEEP_S = 2e-3; /* a worker surely sleeps after this time */
static const double AWAKE_S = 2e-4;  /* this thread runs so long before it wakes the worker: a
                                        thread that has just slept is slow */
static const double WATCH_S = 1e-3;

struct waking {
    struct duet__microbench *bench;
    struct duet_codelet *stamp;
    _Atomic(double) began_s; /* of the last kernel; 0: not begun */
    _Atomic(int) processor;  /* number of the processor that it ran on */
};

static int run_stamp(const struct duet_call *call)
{
    struct waking *waking = *(struct waking *const *)call->args;
    atomic_store(&waking->processor, sched_getcpu());
    atomic_store(&waking->began_s, duet__clock_s());
    return DUET_OK;
}

/* Returns the seconds from submitting a task for the second worker, which sleeps, until it
 * begins. */
static double wake_once(struct waking *waking)
{
    double begin_s, due_s = duet__clock_s() + ASLEEP_S;
    g_usleep((gulong)((ASLEEP_S - AWAKE_S) * G_USEC_PER_SEC));
    while (duet__clock_s() < due_s)
        ;
    atomic_store(&waking->began_s, 0);
    begin_s = duet__clock_s();
    duet__microbench_submit(waking->bench, waking->stamp, 1, NULL, 0, waking);
    /* A wait would put this thread to sleep, too, and let the other one sleep again meanwhile. If
     * the task does not begin because this thread has its core, it is waited for in the end. */
    while (atomic_load(&waking->began_s) == 0 && duet__clock_s() < begin_s + WATCH_S)
        ;
    duet__microbench_wait(waking->bench);
    return atomic_load(&waking->began_s) - begin_s;
}

static void wake_often(struct waking *waking, double submit_s, struct duet__measured *wake)
{
    double end_s = duet__microbench_share(waking->bench, SHARE);
    GArray *values = g_array_new(FALSE, FALSE, sizeof(double));
    (void)wake_once(waking); /* the first one finds everything cold */
    while (duet__microbench_more(waking->bench, values->len, WAKES_LEAST, WAKES, end_s)) {
        double wake_s = fmax(0, wake_once(waking) - submit_s);
        g_array_append_val(values, wake_s);
    }
    duet__measured_set(wake, values);
}

/* Keeps this thread off the worker's core, if allowed: the scheduler likes to run it there while
 * the worker sleeps, and each would take the core from the other. */
static void measure_wakes(struct duet__microbench *bench, struct duet__measured *costs)
{
    struct duet__measured *spin = &costs[DUET__COST_SPIN];
    struct waking waking = {.bench = bench};
    double spin_s = duet__spin_s();
    cpu_set_t before, others;
    bool known = sched_getaffinity(0, sizeof before, &before) == 0;
    int processor;
    if (bench->cpus < 2)
        return;
    /* the runtime itself decides so: there is nothing to measure */
    spin->why = "there are fewer cores than workers: none watches before it sleeps";
    if (duet__usable_cores() >= bench->cpus) {
        spin->times =
            (struct duet__summary){1, spin_s, spin_s, .quartile1 = spin_s, .quartile3 = spin_s};
        spin->why = NULL;
    }
    waking.stamp = duet__microbench_kernel(bench, "calibrate_stamp", run_stamp, NULL);
    (void)wake_once(&waking);
    processor = atomic_load(&waking.processor);
    others = before;
    if (known && processor >= 0 && processor < CPU_SETSIZE) {
        CPU_CLR((size_t)processor, &others);
        if (CPU_COUNT(&others))
            (void)sched_setaffinity(0, sizeof others, &others);
    }
    wake_often(&waking, costs[DUET__COST_SUBMIT].times.median, &costs[DUET__COST_WAKE]);
    if (known)
        (void)sched_setaffinity(0, sizeof before, &before);
}

/* ------------------------------------------------------------------------------------------- */
/* The thread that feeds the first device                                                       */

enum {
    CHAIN = 200, /* tasks */
    COPIES = 100,
    COPY_BYTES = 4096,
    BLOCK_BYTES = 65536, /* of data that kernels write without reading it */
};

/* Runs a chain of empty kernels on the device: adds the times of launches, and the times until the
 * ends of the kernels before them were known. */
static void run_chain(struct duet__microbench *bench, struct duet_handle *data,
                      struct duet_handle *block, GArray *launches, GArray *ends)
{
    const struct duet_access accesses[] = {{data, DUET_RW}, {block, DUET_W}};
    const struct duet_event *before = NULL;
    struct duet_event *events;
    size_t count;
    if (!duet__microbench_goes_on(bench))
        return;
    duet_stats_reset(bench->runtime);
    for (unsigned i = 0; i < CHAIN; i++)
        duet__microbench_submit(bench, bench->empty, bench->cpus, accesses, 2, NULL);
    count = duet__microbench_events(bench, &events);
    for (size_t i = 0; i < count; i++) {
        const struct duet_event *task = &events[i];
        if (task->kind != DUET_EVENT_TASK)
            continue;
        if (before) {
            double launch_s = task->start_s - task->ready_s;
            double end_s = task->ready_s - before->end_s;
            g_array_append_val(launches, launch_s);
            g_array_append_val(ends, end_s);
        }
        before = task;
    }
    free(events);
}

/* Runs tasks with data that the host changes and the device reads, in turn. */
static void run_copies(struct duet__microbench *bench, struct duet_handle *data, GArray *launches)
{
    const struct duet_access change = {data, DUET_RW}, read = {data, DUET_R};
    struct duet_event *events;
    size_t count;
    if (!duet__microbench_goes_on(bench))
        return;
    duet_stats_reset(bench->runtime);
    for (unsigned i = 0; i < COPIES; i++) {
        duet__microbench_submit(bench, bench->empty, 0, &change, 1, NULL);
        duet__microbench_submit(bench, bench->empty, bench->cpus, &read, 1, NULL);
    }
    count = duet__microbench_events(bench, &events);
    for (size_t i = 0; i < count; i++) {
        double launch_s = events[i].start_s - events[i].submit_s;
        if (events[i].kind == DUET_EVENT_COPY && events[i].source == DUET_HOST)
            g_array_append_val(launches, launch_s);
    }
    free(events);
}

static void measure_devices(struct duet__microbench *bench, struct duet__measured *costs)
{
    static const enum duet__cost measured[] = {DUET__COST_KERNEL_LAUNCH, DUET__COST_EVENT,
                                               DUET__COST_COPY_LAUNCH};
    GArray *values[G_N_ELEMENTS(measured)];
    struct duet_handle *data, *block;
    if (bench->machine->node_count < 2)
        return;
    for (size_t i = 0; i < G_N_ELEMENTS(measured); i++)
        values[i] = g_array_new(FALSE, FALSE, sizeof(double));
    bench->memory = g_malloc0(COPY_BYTES + BLOCK_BYTES);
    data = duet__microbench_vector(bench, bench->memory, COPY_BYTES);
    block = duet__microbench_vector(bench, (char *)bench->memory + COPY_BYTES, BLOCK_BYTES);
    run_chain(bench, data, block, values[0], values[1]); /* the first chain finds no memory
                                                            prepared */
    g_array_set_size(values[0], 0);
    g_array_set_size(values[1], 0);
    run_chain(bench, data, block, values[0], values[1]);
    run_copies(bench, data, values[2]);
    for (size_t i = 0; i < G_N_ELEMENTS(measured); i++)
        duet__measured_set(&costs[measured[i]], values[i]);
}

/* ------------------------------------------------------------------------------------------- */

/* The benches, and the costs that each measures. */
static const struct {
    const char *policy;
    int cpus, gpus;
    void (*measure)(struct duet__microbench *bench, struct duet__measured *costs);
} parts[] = {
    {"ws", 1, 0, measure_tasks},
    {"ws", 2, 0, measure_steals},
    {"pinned", 2, 0, measure_wakes},
    {"pinned", 1, 1, measure_devices},
};

int duet__costs_measure(const struct duet__measurement *given,
                        struct duet__measured costs[DUET__COSTS])
{
    int error = DUET_OK;
    for (unsigned i = 0; i < DUET__COSTS; i++)
        costs[i] = none[i];
    for (size_t i = 0; i < G_N_ELEMENTS(parts) && !error; i++) {
        struct duet__microbench bench;
        if (parts[i].gpus && given->config->gpus == 0)
            continue;
        if (duet__microbench_open(&bench, given, parts[i].policy, parts[i].cpus, parts[i].gpus))
            parts[i].measure(&bench, costs);
        error = duet__microbench_close(&bench);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Measures the bandwidth of the host's memory: vectors beyond all caches, in blocks that one worker
 * each has written first, so that they lie in its socket's memory. */

enum {
    STREAM_ELEMENTS = 1 << 19, /* doubles of a block: 4 MiB */
    STREAM_BYTES = STREAM_ELEMENTS * sizeof(double),
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
    add_multiple(STREAM_ELEMENTS, 1.0 / 3, call->buffers[0].data, call->buffers[1].data);
    return DUET_OK;
}

/* Small, so that sums of many sweeps stay finite. */
static int run_first(const struct duet_call *call)
{
    double *x = call->buffers[0].data, *y = call->buffers[1].data;
    for (size_t i = 0; i < STREAM_ELEMENTS; i++) {
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
    return (size_t)fmax(1, bytes / (2.0 * STREAM_BYTES * workers)) * workers;
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
            (double)self->pairs * 2 * STREAM_BYTES / sweep(self, codelet, DUET_R, workers);
    *samples += count;
    return duet__median(rates, count);
}

static void measure_bandwidth(struct duet__microbench *bench, struct duet__bandwidth *out)
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
    bench->memory = memory = duet__pages_allocate(2 * self.pairs * STREAM_BYTES);
    if (!memory)
        duet__microbench_note(bench, DUET_ENOMEM);
    for (size_t i = 0; memory && i < 2 * self.pairs; i++)
        self.handles[i] =
            duet__microbench_vector(bench, memory + i * STREAM_ELEMENTS, STREAM_BYTES);
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
        measure_bandwidth(&bench, out);
    error = duet__microbench_close(&bench);
    if (error)
        *out = (struct duet__bandwidth){0};
    return error;
}
