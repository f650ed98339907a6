/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs of tasks on CPU workers. With one of them the application's thread submits and then runs
 * everything itself, so that both times are found without anybody beside it; with two, the second
 * one steals what the first one does not come to.
 */
#include <sched.h>
#include <stdatomic.h>

#include "calibrate/lab.h"

enum {
    BATCH = 2000, /* tasks */
    BATCHES = 20,
    BATCHES_LEAST = 3,
    HANDLES = 3,
};

static const double SHARE = 0.25; /* of the budget that is left */

/* Goes on measuring? At least some, at most so many, and not beyond the date. */
static bool more(size_t count, double end_s)
{
    return count < BATCHES_LEAST || (count < BATCHES && duet__clock_s() < end_s);
}

/* ------------------------------------------------------------------------------------------- */
/* One worker                                                                                   */

/* Seconds a task. */
struct batch {
    double submit_s, run_s;
};

/*
 * Tasks that read two handles and, in a chain, change the third one; else they read that too and
 * are all ready at once.
 */
static struct batch run_batch(struct duet__lab *lab, struct duet_handle *const *handles, bool chain)
{
    const struct duet_access accesses[HANDLES] = {{handles[0], DUET_R},
                                                  {handles[1], DUET_R},
                                                  {handles[2], chain ? DUET_RW : DUET_R}};
    double begin_s = duet__clock_s(), submitted_s;
    for (unsigned i = 0; i < BATCH; i++)
        duet__lab_submit(lab, lab->empty, 0, accesses, HANDLES);
    submitted_s = duet__clock_s();
    duet__lab_wait(lab);
    return (struct batch){(submitted_s - begin_s) / BATCH, (duet__clock_s() - submitted_s) / BATCH};
}

enum { OF_SUBMIT, OF_PUSH, OF_POP, OF_TASK, OF_ALL };

static void run_batches(struct duet__lab *lab, struct duet_handle *const *handles,
                        struct duet__values *samples)
{
    double end_s = duet__budget_share(lab->budget, SHARE);
    /* the first ones find no memory prepared and cold caches */
    (void)run_batch(lab, handles, true);
    (void)run_batch(lab, handles, false);
    for (size_t i = 0; more(i, end_s) && duet__lab_goes_on(lab); i++) {
        struct batch chain = run_batch(lab, handles, true);
        struct batch independent = run_batch(lab, handles, false);
        duet__values_add(&samples[OF_SUBMIT], chain.submit_s);
        duet__values_add(&samples[OF_PUSH], chain.run_s - independent.run_s);
        duet__values_add(&samples[OF_POP], independent.run_s);
        duet__values_add(&samples[OF_TASK], chain.submit_s + chain.run_s);
    }
}

int duet__costs_tasks(struct duet__costing *costing)
{
    static const enum duet__cost costs[OF_ALL] = {DUET__COST_SUBMIT, DUET__COST_PUSH,
                                                  DUET__COST_POP, DUET__COST_TASK};
    const struct duet_config config = duet__lab_host(costing->config, "ws", 1);
    struct duet__values samples[OF_ALL] = {{0}};
    struct duet_handle *handles[HANDLES];
    double cells[HANDLES] = {0};
    struct duet__lab lab;
    int error;
    if (duet__lab_open(&lab, &config, &costing->budget, costing->message)) {
        for (unsigned i = 0; i < HANDLES; i++)
            handles[i] = duet__lab_vector(&lab, &cells[i], sizeof cells[i]);
        run_batches(&lab, handles, samples);
    }
    error = duet__lab_close(&lab);
    for (unsigned i = 0; i < OF_ALL; i++) {
        if (!error)
            duet__values_report(&samples[i], &costing->costs[costs[i]]);
        duet__values_fini(&samples[i]);
    }
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Two workers                                                                                  */

/*
 * Submitted tasks are on the first worker's list. While the application does not wait that worker
 * is asleep for a millisecond at least. The second one is called by the second submission, steals
 * the oldest task, which holds it until all are there, and then the others one after the other. Few
 * enough for that millisecond.
 */
enum { STOLEN = 500, ATTEMPTS = 100 };

static const double PATIENCE_S = 0.02; /* until the application helps */

struct theft {
    _Atomic(bool) begun, open;
    _Atomic(unsigned) started, ended;
    double first_s, last_s;
};

static int run_block(const struct duet_call *call)
{
    struct theft *theft = *(struct theft *const *)call->args;
    atomic_store(&theft->begun, true);
    while (!atomic_load(&theft->open))
        (void)sched_yield();
    return DUET_OK;
}

static int run_stolen(const struct duet_call *call)
{
    struct theft *theft = *(struct theft *const *)call->args;
    unsigned number = atomic_fetch_add(&theft->started, 1);
    if (number == 0)
        theft->first_s = duet__clock_s();
    if (number == STOLEN - 1)
        theft->last_s = duet__clock_s();
    atomic_fetch_add(&theft->ended, 1);
    return DUET_OK;
}

static void wait_for_begin(struct theft *theft)
{
    double end_s = duet__clock_s() + PATIENCE_S;
    while (!atomic_load(&theft->begun) && duet__clock_s() < end_s)
        (void)sched_yield();
}

static void wait_for_count(struct theft *theft)
{
    double end_s = duet__clock_s() + PATIENCE_S;
    while (atomic_load(&theft->ended) < STOLEN && duet__clock_s() < end_s)
        (void)sched_yield();
}

/* Seconds of a task, 0 if the first worker has run any. */
static double steal_batch(struct duet__lab *lab, const struct duet_codelet *block,
                          const struct duet_codelet *stolen)
{
    struct theft theft = {0};
    uint64_t before = duet_worker_tasks(lab->runtime, 0);
    duet__lab_submit_with(lab, block, 0, NULL, 0, &theft);
    for (unsigned i = 0; i < STOLEN; i++)
        duet__lab_submit_with(lab, stolen, 0, NULL, 0, &theft);
    wait_for_begin(&theft);
    atomic_store(&theft.open, true);
    wait_for_count(&theft);
    duet__lab_wait(lab); /* before `theft` goes */
    if (lab->error || duet_worker_tasks(lab->runtime, 0) != before)
        return 0;
    return (theft.last_s - theft.first_s) / (STOLEN - 1);
}

static void steal_batches(struct duet__lab *lab, struct duet__values *samples)
{
    double end_s = duet__budget_share(lab->budget, SHARE);
    const struct duet_codelet *block = duet__lab_kernel(lab, "calibrate_block", run_block);
    const struct duet_codelet *stolen = duet__lab_kernel(lab, "calibrate_stolen", run_stolen);
    for (unsigned i = 0; i < ATTEMPTS && more(samples->count, end_s) && duet__lab_goes_on(lab);
         i++) {
        double stolen_s = steal_batch(lab, block, stolen);
        if (stolen_s > 0)
            duet__values_add(samples, stolen_s);
    }
}

int duet__costs_steals(struct duet__costing *costing)
{
    const struct duet_config config = duet__lab_host(costing->config, "ws", 2);
    struct duet__values samples = {0};
    struct duet__lab lab;
    bool possible = false;
    int error;
    duet__costing_why(costing, DUET__COST_ATTEMPT,
                      "it is contained in steal, and too short to be told apart from it");
    if (duet__lab_open(&lab, &config, &costing->budget, costing->message)) {
        possible = lab.cpus > 1;
        if (possible)
            steal_batches(&lab, &samples);
    }
    error = duet__lab_close(&lab);
    if (!error && !samples.count)
        duet__costing_why(costing, DUET__COST_STEAL,
                          possible ? "the second worker was never left alone: other programs run?"
                                   : "there is one CPU worker, and nobody to steal from");
    else if (!error)
        duet__values_report(&samples, &costing->costs[DUET__COST_STEAL]);
    duet__values_fini(&samples);
    return error;
}
