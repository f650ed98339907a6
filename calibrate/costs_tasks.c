/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs of tasks on CPU workers. With one of them the application's thread submits and then runs
 * everything itself, so that both times are found without anybody beside it; with two, the second
 * one steals what the first one does not come to.
 */
#include <sched.h>
#include <stdatomic.h>

#include "calibrate/costs_parts.h"

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
static int run_batch(const struct duet__lab *lab, struct duet_handle *const *handles, bool chain,
                     struct batch *out)
{
    const struct duet_access accesses[HANDLES] = {{handles[0], DUET_R},
                                                  {handles[1], DUET_R},
                                                  {handles[2], chain ? DUET_RW : DUET_R}};
    int error = DUET_OK;
    double begin_s = duet__clock_s();
    for (unsigned i = 0; i < BATCH && !error; i++)
        error = duet__lab_submit(lab, lab->empty, 0, accesses, HANDLES, NULL, 0);
    double submitted_s = duet__clock_s();
    int waited = duet__lab_wait(lab);
    out->submit_s = (submitted_s - begin_s) / BATCH;
    out->run_s = (duet__clock_s() - submitted_s) / BATCH;
    return error ? error : waited;
}

enum { OF_SUBMIT, OF_PUSH, OF_POP, OF_TASK, OF_ALL };

static void add_batches(struct duet__values *samples, const struct batch *chain,
                        const struct batch *independent)
{
    duet__values_add(&samples[OF_SUBMIT], chain->submit_s);
    duet__values_add(&samples[OF_PUSH], chain->run_s - independent->run_s);
    duet__values_add(&samples[OF_POP], independent->run_s);
    duet__values_add(&samples[OF_TASK], chain->submit_s + chain->run_s);
}

static int run_batches(struct duet__costing *costing, const struct duet__lab *lab,
                       struct duet_handle *const *handles, struct duet__values *samples)
{
    double end_s = duet__lab_share(&costing->budget, SHARE);
    struct batch chain, independent;
    /* the first ones find no memory prepared and cold caches */
    int error = run_batch(lab, handles, true, &chain);
    if (!error)
        error = run_batch(lab, handles, false, &independent);
    for (size_t i = 0; more(i, end_s) && !error; i++) {
        error = duet__lab_stop(&costing->budget, costing->message);
        if (!error)
            error = run_batch(lab, handles, true, &chain);
        if (!error)
            error = run_batch(lab, handles, false, &independent);
        if (!error)
            add_batches(samples, &chain, &independent);
    }
    return error;
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
    int error = duet__lab_open(&lab, &config, costing->message);
    if (error)
        return error;
    for (unsigned i = 0; i < HANDLES && !error; i++) {
        error = duet_vector(lab.runtime, &cells[i], 1, sizeof cells[i], &handles[i]);
        error = error ? duet__lab_fail(&lab, error) : DUET_OK;
    }
    if (!error)
        error = run_batches(costing, &lab, handles, samples);
    error = duet__lab_close(&lab, error);
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

/* *stolen_s: seconds of a task, 0 if the first worker has run any. */
static int steal_batch(const struct duet__lab *lab, const struct duet_codelet *block,
                       const struct duet_codelet *stolen, double *stolen_s)
{
    struct theft theft = {0}, *argument = &theft;
    uint64_t before = duet_worker_tasks(lab->runtime, 0);
    int error = duet__lab_submit(lab, block, 0, NULL, 0, &argument, sizeof(struct theft *));
    if (error)
        return error;
    for (unsigned i = 0; i < STOLEN && !error; i++)
        error = duet__lab_submit(lab, stolen, 0, NULL, 0, &argument, sizeof(struct theft *));
    if (!error)
        wait_for_begin(&theft);
    atomic_store(&theft.open, true);
    if (!error)
        wait_for_count(&theft);
    int waited = duet__lab_wait(lab); /* before `theft` goes */
    if (error || waited)
        return error ? error : waited;
    bool all = duet_worker_tasks(lab->runtime, 0) == before;
    *stolen_s = all ? (theft.last_s - theft.first_s) / (STOLEN - 1) : 0;
    return DUET_OK;
}

static int steal_batches(struct duet__costing *costing, struct duet__lab *lab,
                         struct duet__values *samples)
{
    double end_s = duet__lab_share(&costing->budget, SHARE);
    struct duet_codelet *block = NULL, *stolen = NULL;
    int error = duet__lab_kernel(lab, "calibrate_block", run_block, &block);
    if (!error)
        error = duet__lab_kernel(lab, "calibrate_stolen", run_stolen, &stolen);
    for (unsigned i = 0; i < ATTEMPTS && more(samples->count, end_s) && !error; i++) {
        double stolen_s = 0;
        error = duet__lab_stop(&costing->budget, costing->message);
        if (!error)
            error = steal_batch(lab, block, stolen, &stolen_s);
        if (!error && stolen_s > 0)
            duet__values_add(samples, stolen_s);
    }
    return error;
}

int duet__costs_steals(struct duet__costing *costing)
{
    const struct duet_config config = duet__lab_host(costing->config, "ws", 2);
    struct duet__values samples = {0};
    struct duet__lab lab;
    duet__costing_why(costing, DUET__COST_ATTEMPT,
                      "it is contained in steal, and too short to be told apart from it");
    int error = duet__lab_open(&lab, &config, costing->message);
    if (error)
        return error;
    bool possible = lab.cpus > 1;
    if (possible)
        error = steal_batches(costing, &lab, &samples);
    error = duet__lab_close(&lab, error);
    if (!error && !samples.count)
        duet__costing_why(costing, DUET__COST_STEAL,
                          possible ? "the second worker was never left alone: other programs run?"
                                   : "there is one CPU worker, and nobody to steal from");
    else if (!error)
        duet__values_report(&samples, &costing->costs[DUET__COST_STEAL]);
    duet__values_fini(&samples);
    return error;
}
