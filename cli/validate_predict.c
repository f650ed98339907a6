/* SPDX-License-Identifier: Apache-2.0 */
/* The simulations of `duet validate`, pair after pair, each replication in a child process. */
#include <stdlib.h>
#include <string.h>

#include "cli/validate.h"

/* The child's records as a record of our own, with dates that count from the first submission. */
static int copy_record(const struct duet__outcome *outcome, struct duet__record *record,
                       struct duet_message *message)
{
    const struct duet_recording *from = &outcome->recording;
    double first_s = outcome->run.stats.first_submit_s;

    record->events = malloc((from->event_count + 1) * sizeof(*record->events));
    if (!record->events)
        return duet_fail(message, DUET_ENOMEM, "out of memory");
    if (from->event_count)
        memcpy(record->events, from->events, from->event_count * sizeof(*record->events));
    for (size_t i = 0; i < from->event_count; i++) {
        record->events[i].submit_s -= first_s;
        record->events[i].ready_s -= first_s;
        record->events[i].start_s -= first_s;
        record->events[i].end_s -= first_s;
    }
    record->kernels = g_new0(char *, from->kernel_count + 1);
    for (size_t i = 0; i < from->kernel_count; i++)
        record->kernels[i] = g_strdup(from->kernels[i]);
    record->recording = *from;
    record->recording.events = record->events;
    record->recording.kernels = (const char *const *)record->kernels;
    return 0;
}

/* A batch of simulations of a case. */
struct batch {
    struct duet__case_pair *pair;
    size_t first; /* of them, by its number among all of the case */
};

static int take(void *self, size_t policy, size_t rep, const struct duet__outcome *outcome,
                struct duet_message *message)
{
    struct batch *batch = self;
    struct duet__record record = {0};
    int error = copy_record(outcome, &record, message);

    (void)policy;
    if (!error)
        error = duet__side_put(&batch->pair->predicted, batch->first + rep,
                               outcome->run.stats.makespan_s, &record, message);
    return error;
}

static uint64_t tasks_of(const struct duet__case_pair *pair)
{
    return pair->simulation.job.workload->tasks(&pair->simulation.job.problem);
}

/*
 * Simulations in batches, until the median is known well enough: how many there are depends on what
 * they say, and not on when they end.
 */
static int predict(const struct duet__validate *validate, struct duet__case_pair *pair,
                   struct duet__sequence *sequence, struct duet_message *message)
{
    enum { BATCH = 5 };
    static const double narrow = 0.003;
    struct duet__simulation *simulation = &pair->simulation;
    struct batch batch = {pair, 0};
    int error = 0;

    simulation->each = take;
    simulation->self = &batch;
    while (!error && !sequence->number && batch.first < validate->sim_reps) {
        simulation->job.reps = MIN(BATCH, validate->sim_reps - batch.first);
        simulation->job.seed = validate->job.seed + batch.first;
        error = duet__simulation_go(simulation, sequence, message);
        batch.first += simulation->job.reps;
        if (duet__side_width(&pair->predicted) <= narrow)
            break;
    }
    /* those that are left out are as good as made */
    sequence->runs += validate->sim_reps - MIN(batch.first, validate->sim_reps);
    sequence->tasks += tasks_of(pair) * (validate->sim_reps - MIN(batch.first, validate->sim_reps));
    /* in what was interrupted there may be gaps */
    if (sequence->number)
        pair->predicted.count = 0;
    return error;
}

void duet__validate_predict(struct duet__validate *validate)
{
    struct duet__sequence sequence = {0};
    uint64_t tasks = 0, runs = 0;

    for (size_t i = 0; i < validate->pair_count; i++)
        if (!validate->pairs[i].failure) {
            tasks += tasks_of(&validate->pairs[i]) * validate->sim_reps;
            runs += validate->sim_reps;
        }
    duet__progress_init(&sequence.progress, !validate->job.quiet, tasks, runs);
    for (size_t i = 0; i < validate->pair_count && !sequence.number; i++) {
        struct duet__case_pair *pair = &validate->pairs[i];
        struct duet_message message = {""};
        int error;

        if (pair->failure)
            continue;
        error = predict(validate, pair, &sequence, &message);
        if (error)
            duet__pair_fail(pair, "simulated", error, &message);
    }
    duet__progress_clear(&sequence.progress);
    validate->number = sequence.number;
}
