/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of `duet validate`. Every case has some of its runs in each round, so that a machine
 * that becomes slower or faster meanwhile does so for all of them; neighbours that compute on the
 * same data share it.
 */
#include <time.h>

#include "cli/attendant.h"
#include "cli/probe.h"
#include "cli/validate.h"
#include "validate/stats.h"

static double wall_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Measured runs of a case in a round. */
static size_t share(const struct duet__validate *validate, size_t round)
{
    return validate->reps / validate->rounds + (round < validate->reps % validate->rounds);
}

static int take(void *self, const struct duet_run *run, struct duet__record *record,
                struct duet_message *message)
{
    struct duet__pair *pair = self;

    return duet__side_put(&pair->measured, pair->measured.count, run->stats.makespan_s, record,
                          message);
}

/* Notes how fast the machine is, measured as duet calibrate does: on all cores for computing. */
static void probe(const struct duet__validate *validate, struct duet__pair *pair)
{
    unsigned cores = duet_platform_cores(validate->platform);
    unsigned gpus = duet_platform_gpus(validate->platform);
    double seconds = duet__probe_seconds(cores > gpus ? cores - gpus : 1);

    g_array_append_val(pair->probes, seconds);
}

/* The runs of a pair in a round. */
static void measure_pair(struct duet__validate *validate, struct duet__pair *pair, size_t round,
                         struct duet__attendant *attendant, void *data)
{
    struct duet__trial *trial = &pair->trial;
    struct duet__series series = {0};
    struct duet__findings findings = {.series = &series};
    struct duet_message message = {""};
    int error;

    if (duet_platform_probe(validate->platform) > 0 && !validate->paced)
        probe(validate, pair);
    trial->job.reps = share(validate, round);
    trial->job.seed = validate->job.seed + round;
    trial->each = take;
    trial->self = pair;
    error = duet__trial_go(trial, attendant, data, &findings, &message);
    if (error)
        duet__pair_fail(pair, "measured", error, &message);
    duet__series_fini(&series);
}

/* Those of the pairs from `first` on that share its data. Returns the one after them. */
static size_t measure_group(struct duet__validate *validate, size_t first, size_t round,
                            struct duet__attendant *attendant)
{
    size_t end = first;
    const struct duet__job *job = NULL;
    struct duet_message message = {""};
    void *data = NULL;
    int error = 0;

    for (; end < validate->pair_count && validate->pairs[end].group == validate->pairs[first].group;
         end++)
        if (!job && !validate->pairs[end].failure)
            job = &validate->pairs[end].trial.job;
    if (job && !validate->paced)
        error = job->workload->generate(&job->problem, &data, &message);
    for (size_t i = first; i < end && !duet__attendant_signal(attendant); i++) {
        struct duet__pair *pair = &validate->pairs[i];

        if (pair->failure)
            continue;
        if (error)
            duet__pair_fail(pair, "measured", error, &message);
        else
            measure_pair(validate, pair, round, attendant, data);
    }
    if (data)
        job->workload->discard(data);
    return end;
}

static void start_attendant(const struct duet__validate *validate,
                            struct duet__attendant *attendant)
{
    uint64_t tasks = 0, runs = 0, each = validate->rounds * validate->warmups + validate->reps;

    for (size_t i = 0; i < validate->pair_count; i++) {
        const struct duet__job *job = &validate->pairs[i].trial.job;

        if (validate->pairs[i].failure)
            continue;
        tasks += job->workload->tasks(&job->problem) * each;
        runs += each;
    }
    duet__attendant_start(attendant, !validate->job.quiet, tasks, runs);
}

void duet__validate_measure(struct duet__validate *validate)
{
    struct duet__attendant attendant = {0};
    double start_s = wall_clock();

    start_attendant(validate, &attendant);
    for (size_t round = 0; round < validate->rounds; round++) {
        if (round && validate->budget_s > 0 && wall_clock() - start_s >= validate->budget_s)
            break;
        for (size_t i = 0; i < validate->pair_count && !duet__attendant_signal(&attendant);)
            i = measure_group(validate, i, round, &attendant);
    }
    duet__attendant_stop(&attendant);
    validate->number = duet__attendant_signal(&attendant);
}

double duet__pair_speed(const struct duet__validate *validate, const struct duet__pair *pair)
{
    struct duet_summary summary;

    if (!pair->probes || !pair->probes->len ||
        duet_summarise((const double *)(void *)pair->probes->data, pair->probes->len, &summary,
                       NULL) ||
        !(summary.median > 0))
        return 0;
    return duet_platform_probe(validate->platform) / summary.median;
}
