/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded runs made with a known model, for tests of the fit. */
#ifndef DUET_CALIBRATE_TESTING_MODEL_H
#define DUET_CALIBRATE_TESTING_MODEL_H

#include <math.h>
#include <string.h>

#include <glib.h>

#include "calibrate/model.h"
#include "platforms/model/effects.h"

enum { POTRF, TRSM, SYRK, GEMM, KERNELS, MIB = 1 << 20 };

static const char *kernel_names[KERNELS] = {"dpotrf", "dtrsm", "dsyrk", "dgemm"};

/* True times of the kernels, for tiles of 256; the busy ratio is the same for all. */
static const struct duet__point truth[KERNELS] = {
    {.base_s = 300e-6, .memory_s = 45e-6},
    {.base_s = 400e-6, .memory_s = 160e-6},
    {.base_s = 390e-6, .memory_s = 160e-6},
    {.base_s = 690e-6, .memory_s = 235e-6},
};

/* Parameters of a run. */
struct plan {
    unsigned workers, tiles, edge; /* edge of a tile; 0: 256 */
    struct duet_sharing sharing;   /* 0: 8 MiB, unknown bandwidth */
    double busy_ratio;             /* with more than one worker; 0: 1 */
    double noise;                  /* relative deviation */
    double outliers, factor;       /* share of executions, and the factor of their times */
    int poisoned;                  /* kernel with outliers, -1: all */
    double drift;                  /* part by which the last execution is slower than the first */
    double scale;                  /* factor of all true times; 0: 1 */
    uint32_t seed;
    const char *context;
};

/* A recorded run. */
struct made {
    struct duet_machine machine;
    GArray *events, *accesses; /* struct duet_event, struct duet_trace_access */
    struct duet__recorded_run observation;
    uint64_t outliers[KERNELS];
};

/* State while a run is made. */
struct maker {
    const struct plan *plan;
    struct made *made;
    struct duet__caches *caches;
    GRand *random;
    double *clock;    /* by worker */
    uint64_t bytes;   /* size of a tile */
    uint64_t all;     /* size of all tiles */
    uint64_t planned; /* tasks */
};

static double normal(GRand *random)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += g_rand_double(random);
    return sum;
}

/* True time of an execution: alone, or with one like it on each of the other workers. */
static double true_seconds(struct maker *maker, int kernel, const struct duet__operand *operands,
                           const double *missing, size_t count)
{
    const struct plan *plan = maker->plan;
    struct duet__point point = truth[kernel];
    struct duet__demand demand;
    struct duet__running running[16] = {{NULL}};
    point.busy_ratio = plan->busy_ratio;
    duet__demand(&point, operands, missing, count, DUET__EFFECTS, &demand);
    for (unsigned i = 0; i < plan->workers; i++)
        running[i].demand = &demand;
    duet__rates(&maker->made->machine, running, plan->workers, DUET__EFFECTS);
    return (demand.fixed_s + demand.memory_s) / running[0].rate;
}

static void make_task(struct maker *maker, int kernel, const struct duet__operand *operands,
                      size_t count)
{
    const struct plan *plan = maker->plan;
    struct made *made = maker->made;
    double missing[3];
    unsigned worker = 0;
    uint64_t id = made->events->len + 1;
    double progress = (double)id / (double)maker->planned, e = plan->edge;
    for (unsigned w = 1; w < plan->workers; w++)
        if (maker->clock[w] < maker->clock[worker])
            worker = w;
    g_assert_cmpint(duet__caches_touch(maker->caches, worker, operands, count, maker->all, missing),
                    ==, 0);
    double seconds = true_seconds(maker, kernel, operands, missing, count) *
                     (plan->scale > 0 ? plan->scale : 1) *
                     exp(plan->noise * normal(maker->random)) * (1 + plan->drift * progress);
    if (g_rand_double(maker->random) < plan->outliers &&
        (plan->poisoned < 0 || plan->poisoned == kernel)) {
        seconds *= plan->factor;
        made->outliers[kernel]++;
    }
    struct duet_event event = {.kind = DUET_EVENT_TASK,
                               .worker = (int)worker,
                               .kernel = (unsigned)kernel,
                               .id = id,
                               .start_s = maker->clock[worker],
                               .end_s = maker->clock[worker] + seconds,
                               .work = e * e * e * (kernel + 1)};
    maker->clock[worker] = event.end_s;
    g_array_append_val(made->events, event);
    for (unsigned i = 0; i < count; i++) {
        struct duet_trace_access access = {.task = id,
                                           .index = i,
                                           .handle = operands[i].handle,
                                           .bytes = operands[i].bytes,
                                           .reads = true,
                                           .writes = operands[i].writes};
        g_array_append_val(made->accesses, access);
    }
}

static struct duet__operand tile(const struct maker *maker, unsigned i, unsigned j, bool writes)
{
    return (struct duet__operand){1 + i + (uint64_t)j * maker->plan->tiles, maker->bytes, writes};
}

/* The right-looking Cholesky factorization, its tasks in the order of the loops. */
static void make_cholesky(struct maker *maker)
{
    unsigned n = maker->plan->tiles;
    for (unsigned k = 0; k < n; k++) {
        make_task(maker, POTRF, (struct duet__operand[]){tile(maker, k, k, true)}, 1);
        for (unsigned i = k + 1; i < n; i++)
            make_task(maker, TRSM,
                      (struct duet__operand[]){tile(maker, k, k, false), tile(maker, i, k, true)},
                      2);
        for (unsigned j = k + 1; j < n; j++) {
            make_task(maker, SYRK,
                      (struct duet__operand[]){tile(maker, j, k, false), tile(maker, j, j, true)},
                      2);
            for (unsigned i = j + 1; i < n; i++)
                make_task(maker, GEMM,
                          (struct duet__operand[]){tile(maker, j, k, false),
                                                   tile(maker, i, k, false),
                                                   tile(maker, i, j, true)},
                          3);
        }
    }
}

static void made_free(struct made *made)
{
    g_array_free(made->events, TRUE);
    g_array_free(made->accesses, TRUE);
    duet_machine_fini(&made->machine);
}

/* Makes the recorded run, which borrows from `made`; that must not move. */
static void made_observe(struct made *made, const char *context)
{
    made->observation = (struct duet__recorded_run){
        .recording = {.machine = &made->machine,
                      .events = (struct duet_event *)(void *)made->events->data,
                      .event_count = made->events->len,
                      .kernels = kernel_names,
                      .kernel_count = KERNELS,
                      .accesses = (struct duet_trace_access *)(void *)made->accesses->data,
                      .access_count = made->accesses->len},
        .context = context,
    };
}

/* A machine of CPU workers, and a run without a task. */
static void made_init(struct made *made, unsigned workers, const struct duet_sharing *sharing)
{
    *made = (struct made){.events = g_array_new(FALSE, FALSE, sizeof(struct duet_event)),
                          .accesses = g_array_new(FALSE, FALSE, sizeof(struct duet_trace_access))};
    g_assert_cmpint(duet_machine_init(&made->machine, 2, 2, workers, 0), ==, 0);
    g_strlcpy(made->machine.archs[0].name, "core", DUET_NAME_MAX);
    g_strlcpy(made->machine.archs[1].name, "device", DUET_NAME_MAX);
    made->machine.sharing = *sharing;
}

static void make_run(struct made *made, struct plan plan)
{
    uint64_t n = plan.tiles;
    if (plan.edge == 0)
        plan.edge = 256;
    if (plan.sharing.shared_bytes == 0)
        plan.sharing.shared_bytes = 8 * MIB;
    made_init(made, plan.workers, &plan.sharing);
    struct maker maker = {.plan = &plan,
                          .made = made,
                          .random = g_rand_new_with_seed(plan.seed),
                          .clock = g_new0(double, plan.workers),
                          .bytes = 8 * (uint64_t)plan.edge * plan.edge,
                          .planned = n * (n + 1) * (n + 2) / 6};
    maker.all = n * (n + 1) / 2 * maker.bytes;
    g_assert_cmpint(duet__caches_new(&maker.caches, &made->machine), ==, 0);
    make_cholesky(&maker);
    g_assert_cmpuint(made->events->len, ==, maker.planned);
    duet__caches_free(maker.caches);
    g_free(maker.clock);
    g_rand_free(maker.random);
    made_observe(made, plan.context ? plan.context : "cholesky");
}

/* Fits `count` runs, with these sizes of caches as the first guess. */
static void fit_runs(struct made *made, size_t count, const struct duet_sharing *sharing,
                     struct duet__model *model)
{
    struct duet__recorded_run runs[24];
    g_assert_cmpuint(count, <=, G_N_ELEMENTS(runs));
    for (size_t i = 0; i < count; i++)
        runs[i] = made[i].observation;
    int error = duet__model_fit(runs, count, &(struct duet__model_options){.sharing = *sharing},
                                model, hear());
    g_assert_cmpstr(heard(), ==, "");
    g_assert_cmpint(error, ==, DUET_OK);
}

static const struct duet__point *point_of(const struct duet__model *model, int kernel)
{
    const struct duet__curve *curve =
        duet__calibration_find(&model->calibration, kernel_names[kernel], "core");
    g_assert_nonnull(curve);
    g_assert_cmpuint(curve->count, ==, 1);
    return &curve->points[0];
}

/*
 * Sets ratios by kernel: sum of expected times, as the simulation computes them, by that of the
 * measured ones. The run is one of one worker, or all of its workers are taken to compute all the
 * time.
 */
static void predict(const struct duet__model *model, const struct made *made, double ratio[KERNELS])
{
    struct duet_machine machine = made->machine;
    struct duet__caches *caches;
    const struct duet__recorded_run *run = &made->observation;
    double expected[KERNELS] = {0}, measured[KERNELS] = {0};
    uint64_t all = 0;
    size_t at = 0;
    machine.sharing = model->sharing;
    for (size_t i = 0; i < run->recording.access_count; i++)
        all = MAX(all, run->recording.accesses[i].handle);
    /* handles are numbers of tiles of the whole matrix, one triangle of which is used */
    unsigned n = (unsigned)lround(sqrt((double)all));
    all = (uint64_t)n * (n + 1) / 2 * run->recording.accesses[0].bytes;
    g_assert_cmpint(duet__caches_new(&caches, &machine), ==, 0);
    for (size_t i = 0; i < run->recording.event_count; i++) {
        const struct duet_event *event = &run->recording.events[i];
        struct duet__operand operands[3];
        double missing[3];
        struct duet__demand demand;
        struct duet__running running[16] = {{NULL}};
        size_t count = 0;
        for (; at < run->recording.access_count && run->recording.accesses[at].task == event->id;
             at++)
            operands[count++] = (struct duet__operand){run->recording.accesses[at].handle,
                                                       run->recording.accesses[at].bytes,
                                                       run->recording.accesses[at].writes};
        g_assert_cmpint(duet__caches_touch(caches, (unsigned)event->worker, operands, count, all,
                                           missing),
                        ==, 0);
        duet__demand(point_of(model, (int)event->kernel), operands, missing, count, DUET__EFFECTS,
                     &demand);
        for (unsigned w = 0; w < machine.worker_count; w++)
            running[w].demand = &demand;
        duet__rates(&machine, running, machine.worker_count, DUET__EFFECTS);
        expected[event->kernel] += (demand.fixed_s + demand.memory_s) / running[0].rate;
        measured[event->kernel] += event->end_s - event->start_s;
    }
    duet__caches_free(caches);
    for (int k = 0; k < KERNELS; k++)
        ratio[k] = expected[k] / measured[k];
}

#endif
