/* SPDX-License-Identifier: Apache-2.0 */
/* The simulations of an experiment, trial after trial, each replication in a child process. */
#include "runs/monitor.h"
#include "runs/simulated.h"
#include "validate/experiment.h"

/* Makes `count` more simulations of a trial; a signal leaves none of them. */
static int simulate(struct duet__experiment *experiment, struct duet__trial *trial, size_t count,
                    struct duet__progress *progress, struct duet_message *message)
{
    struct duet__request *request = &trial->simulated;
    struct duet__series series = {0};
    int error;

    request->reps = count;
    request->seed = experiment->base.seed + duet__sample_count(&trial->predicted);
    request->records = DUET_RECORDS_ALL;
    error = duet__simulate(request, progress, &series, &experiment->number, message);
    if (!error && series.error)
        error = duet_fail(message, series.error, "%s", series.message.text);
    for (size_t i = 0; i < series.count && !error && !experiment->number; i++)
        error = duet__sample_put(&trial->predicted, &series.runs[i], message);
    duet__series_fini(&series);
    return error;
}

/*
 * Simulates in batches, until the median is known well enough: the number of simulations depends on
 * their results, and not on when they end.
 */
static int predict(struct duet__experiment *experiment, struct duet__trial *trial,
                   struct duet__progress *progress, struct duet_message *message)
{
    enum { BATCH = 5 };
    static const double narrow = 0.003;
    size_t made = 0, left;
    int error = 0;

    while (!error && !experiment->number && made < experiment->sim_reps) {
        size_t count = MIN(BATCH, experiment->sim_reps - made);

        error = simulate(experiment, trial, count, progress, message);
        made += count;
        if (duet__sample_width(&trial->predicted) <= narrow)
            break;
    }
    /* Simulations that are left out count as made. */
    left = experiment->sim_reps - made;
    progress->before_runs += left;
    progress->before_tasks += duet__request_tasks(&trial->simulated) * left;
    /* An interrupted simulation counts as none. */
    if (experiment->number) {
        duet__sample_fini(&trial->predicted);
        duet__sample_init(&trial->predicted, experiment->keep);
    }
    return error;
}

void duet__experiment_predict(struct duet__experiment *experiment, bool quiet)
{
    struct duet__progress progress = {0};
    uint64_t tasks = 0, runs = 0;

    for (size_t i = 0; i < experiment->trial_count; i++)
        if (!experiment->trials[i].failure) {
            tasks += duet__request_tasks(&experiment->trials[i].simulated) * experiment->sim_reps;
            runs += experiment->sim_reps;
        }
    duet__progress_init(&progress, !quiet, tasks, runs);
    for (size_t i = 0; i < experiment->trial_count && !experiment->number; i++) {
        struct duet__trial *trial = &experiment->trials[i];
        struct duet_message message = {""};
        int error = trial->failure ? 0 : predict(experiment, trial, &progress, &message);

        if (error)
            duet__trial_fail(trial, "simulated", error, &message);
    }
    duet__progress_clear(&progress);
}
