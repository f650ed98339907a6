/* SPDX-License-Identifier: Apache-2.0 */
/* The simulations of `duet validate`, pair after pair, each replication in a child process. */
#include "cli/validate.h"
#include "runs/simulated.h"

/* Makes `count` more of the simulations of a case; a signal leaves none of them. */
static int simulate(const struct duet__validate *validate, struct duet__case_pair *pair,
                    size_t count, struct duet_progress *progress, int *number,
                    struct duet_message *message)
{
    struct duet_request *request = &pair->simulated;
    struct duet_run *runs = duet_runs_new(count);
    int error;

    request->reps = count;
    request->seed = validate->job.request.seed + pair->predicted.count;
    request->records = DUET_RECORDS_ALL;
    error = duet_simulate(request, progress, runs, number, message);
    for (size_t i = 0; i < count && !error && !*number; i++) {
        if (runs[i].error)
            error = duet_fail(message, runs[i].error, "%s", runs[i].message);
        duet_recording_shift(&runs[i].recording, -runs[i].stats.first_submit_s);
        if (!error)
            error = duet__side_put(&pair->predicted, &runs[i], message);
    }
    duet_runs_free(runs, count);
    return error;
}

static uint64_t tasks_of(const struct duet__case_pair *pair)
{
    return duet_request_tasks(&pair->simulated);
}

/*
 * Simulations in batches, until the median is known well enough: how many there are depends on what
 * they say, and not on when they end.
 */
static int predict(const struct duet__validate *validate, struct duet__case_pair *pair,
                   struct duet_progress *progress, int *number, struct duet_message *message)
{
    enum { BATCH = 5 };
    static const double narrow = 0.003;
    size_t made = 0, left;
    int error = 0;

    while (!error && !*number && made < validate->sim_reps) {
        size_t count = MIN(BATCH, validate->sim_reps - made);

        error = simulate(validate, pair, count, progress, number, message);
        made += count;
        if (duet__side_width(&pair->predicted) <= narrow)
            break;
    }
    /* those that are left out are as good as made */
    left = validate->sim_reps - made;
    progress->before_runs += left;
    progress->before_tasks += tasks_of(pair) * left;
    /* what was interrupted is not as good as the others */
    if (*number)
        pair->predicted.count = 0;
    return error;
}

void duet__validate_predict(struct duet__validate *validate)
{
    struct duet_progress progress;
    int number = 0;
    uint64_t tasks = 0, runs = 0;

    for (size_t i = 0; i < validate->pair_count; i++)
        if (!validate->pairs[i].failure) {
            tasks += tasks_of(&validate->pairs[i]) * validate->sim_reps;
            runs += validate->sim_reps;
        }
    duet_progress_init(&progress, !validate->job.quiet, tasks, runs);
    for (size_t i = 0; i < validate->pair_count && !number; i++) {
        struct duet__case_pair *pair = &validate->pairs[i];
        struct duet_message message = {""};
        int error;

        if (pair->failure)
            continue;
        error = predict(validate, pair, &progress, &number, &message);
        if (error)
            duet__pair_fail(pair, "simulated", error, &message);
    }
    duet_progress_clear(&progress);
    validate->number = number;
}
