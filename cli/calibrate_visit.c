/* SPDX-License-Identifier: Apache-2.0 */
/* Some recorded runs of one problem on certain workers, in a runtime of their own. */
#include "cli/calibrate.h"

#include <stdlib.h>
#include <string.h>

#include "world/clock.h"

enum { RUNS_MAX = 3 /* of a visit: rounds make more of them, at other times */ };

/* A visit under way. */
struct session {
    const struct duet__visit *visit;
    struct duet_runtime *runtime;
    void *state; /* the workload's, of the run at hand */
    struct duet_message *message;
};

static bool given_up(const struct session *session)
{
    return duet__attendant_signal(session->visit->attendant) != 0;
}

/* ------------------------------------------------------------------------------------------- */
/* What a run leaves                                                                            */

static void taken_free(gpointer pointer)
{
    struct duet__taken *taken = pointer;

    duet_machine_fini(&taken->machine);
    free(taken->events);
    free(taken->accesses);
    g_strfreev(taken->kernels);
    g_free(taken);
}

/* Dates count from the first submission. */
static void shift(struct duet_event *events, size_t count, double by_s)
{
    for (size_t i = 0; i < count; i++) {
        events[i].submit_s -= by_s;
        events[i].ready_s -= by_s;
        events[i].start_s -= by_s;
        events[i].end_s -= by_s;
    }
}

/* The order in which tasks run: two, so that the same operands come from different places. */
static const char *policy_of(const struct session *session)
{
    const char *given = session->visit->wish->job.config.policy;

    return given ? given : session->visit->found->rounds % 2 ? "eager" : "ws";
}

/* The number of the item, from 0 on. */
static uint64_t place_of(const struct session *session)
{
    const struct duet__found *found = session->visit->found;
    const struct duet__item *items = (const struct duet__item *)(void *)found->items->data;

    return (uint64_t)(session->visit->item - items);
}

/* The same number for runs that do the same. */
static uint64_t number_of(const struct session *session)
{
    return 2 * place_of(session) + 1 + (strcmp(policy_of(session), "eager") == 0);
}

/* Takes the records of the run at hand. */
static int take(struct session *session, const struct duet_stats *stats)
{
    struct duet__taken *taken = g_new0(struct duet__taken, 1);
    struct duet_runtime *runtime = session->runtime;
    size_t events = 0, accesses = 0, kernels = duet_kernel_count(runtime);
    int error = duet_trace_events(runtime, &taken->events, &events);

    if (!error)
        error = duet_trace_accesses(runtime, &taken->accesses, &accesses);
    if (!error)
        error = duet_machine_copy(&taken->machine, duet_runtime_machine(runtime));
    if (error) {
        taken_free(taken);
        return error;
    }
    shift(taken->events, events, stats->first_submit_s);
    taken->kernels = g_new0(char *, kernels + 1);
    for (size_t i = 0; i < kernels; i++)
        taken->kernels[i] = g_strdup(duet_kernel_name(runtime, i));
    taken->observation = (struct duet__observation){
        .recording = {.machine = &taken->machine,
                      .events = taken->events,
                      .event_count = events,
                      .kernels = (const char *const *)taken->kernels,
                      .kernel_count = kernels,
                      .makespan_s = stats->makespan_s},
        .accesses = taken->accesses,
        .access_count = accesses,
        .context = session->visit->item->workload->name,
        .repeats = number_of(session),
        .problem = place_of(session) + 1,
    };
    g_ptr_array_add(session->visit->found->taken, taken);
    return 0;
}

/* Counts the run at hand, and keeps its records. */
static int measure(struct session *session)
{
    struct duet__item *item = session->visit->item;
    struct duet_stats stats;
    int error;

    duet_stats(session->runtime, &stats);
    error = take(session, &stats);
    if (error)
        return error;
    item->run_s = (item->run_s * (double)item->runs + stats.makespan_s) / (double)(item->runs + 1);
    item->runs++;
    item->tasks += stats.tasks;
    return 0;
}

/* ------------------------------------------------------------------------------------------- */
/* Runs                                                                                         */

/* One run on data that is there (NULL: nothing is computed); recorded, or a warm-up. */
static int run_once(struct session *session, const struct duet_problem *problem, void *data,
                    bool recorded)
{
    const struct duet_workload *workload = session->visit->item->workload;
    struct duet_problem with_data = *problem;
    int error, waited;

    if (data)
        workload->fill(data);
    duet_stats_reset(session->runtime);
    with_data.data = data;
    error = workload->build(session->runtime, &with_data, &session->state, session->message);
    duet__job_explain(session->message, session->runtime, error);
    waited = duet_wait(session->runtime);
    if (waited)
        session->message->text[0] = 0;
    if (!error || waited)
        error = duet__job_explain(session->message, session->runtime, waited);
    if (!error && recorded && !given_up(session))
        error = measure(session);
    if (!error)
        error = duet__job_explain(session->message, session->runtime,
                                  workload->retrieve(session->runtime, session->state));
    /* after an error, it is in use until the runtime is closed */
    if (error)
        return error;
    workload->fini(session->state);
    session->state = NULL;
    return 0;
}

/* The warm-up, then the others, on data of their own. */
static int run_all(struct session *session, const struct duet_problem *warmup, void *first,
                   void *data)
{
    const struct duet__visit *visit = session->visit;
    double start;
    int error = run_once(session, warmup, first, false);

    start = duet__clock_s();
    for (int i = 0; i < RUNS_MAX && !error && !given_up(session); i++) {
        error = run_once(session, &visit->item->problem, data, true);
        if (duet__clock_s() - start >= visit->slice_s)
            break;
    }
    return error;
}

/* Whether a runtime with as many workers has been opened, and has said what is to be said of it. */
static bool was_opened(const struct session *session)
{
    const struct duet__item *item = session->visit->item;
    const GArray *items = session->visit->found->items;

    for (guint i = 0; i < items->len; i++) {
        const struct duet__item *other = &g_array_index(items, struct duet__item, i);

        if (other->visit_s > 0 && other->cpus == item->cpus && other->gpus == item->gpus)
            return true;
    }
    return false;
}

static int open_runtime(struct session *session)
{
    const struct duet__item *item = session->visit->item;
    struct duet_config config = session->visit->wish->job.config;
    int error;

    config.cpus = item->cpus;
    config.gpus = item->gpus;
    config.set_arch = item->devices;
    config.context = item->workload->name;
    config.policy = policy_of(session);
    config.record = true;
    config.record_accesses = true;
    config.quiet = was_opened(session);
    if (!session->visit->wish->paced && !item->gpus)
        config.emulate = NULL; /* cores are no other ones where no emulated GPU needs them */
    error = duet_open(&session->runtime, &config, session->message);
    if (session->runtime)
        duet__attendant_watch(session->visit->attendant, session->runtime);
    return error;
}

static void close_runtime(struct session *session, int error)
{
    if (!session->runtime)
        return;
    duet__attendant_leave(session->visit->attendant);
    if (error || given_up(session))
        duet_cancel(session->runtime);
    duet_close(session->runtime);
    session->visit->item->workload->fini(session->state);
}

/* The data of a problem, as it was kept or else in its place. Errors of generate. */
static int hold(struct duet__held *held, const struct duet_workload *workload,
                const struct duet_problem *problem, struct duet_message *message)
{
    const struct duet_problem *old = &held->problem;
    int error;

    if (held->data && held->workload == workload && old->n == problem->n &&
        old->tile == problem->tile && old->precision == problem->precision &&
        old->seed == problem->seed && old->settings == problem->settings &&
        old->setting_count == problem->setting_count)
        return 0;
    if (held->data)
        held->workload->discard(held->data);
    *held = (struct duet__held){.workload = workload, .problem = *problem};
    error = workload->generate(problem, &held->data, message);
    if (error)
        held->data = NULL;
    return error;
}

int duet__visit_make(const struct duet__visit *visit, struct duet_message *message)
{
    struct session session = {.visit = visit, .message = message};
    const struct duet__item *item = visit->item;
    struct duet__held *held = visit->found->held;
    struct duet_problem warmup = item->problem;
    size_t at = item->problem.n != item->warmup_n; /* else one serves for both */
    double start = duet__clock_s();
    int error = 0;

    warmup.n = item->warmup_n;
    if (!visit->wish->paced)
        error = hold(&held[0], item->workload, &warmup, message);
    if (!error && !visit->wish->paced)
        error = hold(&held[at], item->workload, &item->problem, message);
    if (!error)
        error = open_runtime(&session);
    if (!error)
        error = run_all(&session, &warmup, held[0].data, held[at].data);
    close_runtime(&session, error);
    visit->item->visit_s = duet__clock_s() - start;
    return given_up(&session) ? 0 : error;
}

void duet__held_free(struct duet__found *found)
{
    for (size_t i = 0; i < G_N_ELEMENTS(found->held); i++) {
        if (found->held[i].data)
            found->held[i].workload->discard(found->held[i].data);
        found->held[i] = (struct duet__held){0};
    }
}

/* ------------------------------------------------------------------------------------------- */

void duet__found_fini(struct duet__found *found)
{
    duet__held_free(found);
    for (guint i = 0; found->taken && i < found->taken->len; i++)
        taken_free(found->taken->pdata[i]);
    if (found->taken)
        g_ptr_array_free(found->taken, TRUE);
    g_clear_pointer(&found->disturbed, g_array_unref);
    g_clear_pointer(&found->disturbed_rounds, g_array_unref);
    if (found->items)
        g_array_free(found->items, TRUE);
    duet__copies_fini(&found->copies);
    duet__model_fini(&found->model);
    duet__info_fini(&found->info);
    *found = (struct duet__found){0};
}
