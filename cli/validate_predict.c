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

static int take(void *self, size_t policy, size_t rep, const struct duet__outcome *outcome,
                struct duet_message *message)
{
    struct duet__pair *pair = self;
    struct duet__record record = {0};
    int error = copy_record(outcome, &record, message);

    (void)policy;
    if (!error)
        error =
            duet__side_put(&pair->predicted, rep, outcome->run.stats.makespan_s, &record, message);
    return error;
}

static uint64_t tasks_of(const struct duet__pair *pair)
{
    return pair->simulation.job.workload->tasks(&pair->simulation.job.problem);
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
        struct duet__pair *pair = &validate->pairs[i];
        struct duet_message message = {""};
        int error;

        if (pair->failure)
            continue;
        pair->simulation.each = take;
        pair->simulation.self = pair;
        error = duet__simulation_go(&pair->simulation, &sequence, &message);
        if (error)
            duet__pair_fail(pair, "simulated", error, &message);
    }
    duet__progress_clear(&sequence.progress);
    validate->number = sequence.number;
}
