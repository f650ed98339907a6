/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures costs of tasks on CPU workers. With one worker the application's thread submits and then
 * runs everything itself, so both times are found undisturbed; with two, the second one steals the
 * tasks that the first one does not come to.
 */
#include <sched.h>
#include <stdatomic.h>

#include "calibrate/microbench.h"

enum {
    BATCH = 2000, /* tasks */
    BATCHES = 20,
    BATCHES_LEAST = 3,
    HANDLES = 3,
};

static const double SHARE = 0.25; /* of the time that is left */

/* ------------------------------------------------------------------------------------------- */
/* One worker                                                                                   */

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

void duet__costs_tasks(struct duet__microbench *bench, struct duet__measured *costs)
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

static const double PATIENCE_S = 0.02; /* until the application helps */

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

void duet__costs_steals(struct duet__microbench *bench, struct duet__measured *costs)
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
