/* SPDX-License-Identifier: Apache-2.0 */
/* Some recorded runs of one problem on certain workers, in a runtime of their own. */
#include "cli/calibrate.h"

#include <string.h>

#include "runs/real.h"
#include "world/clock.h"

enum { RUNS_MAX = 3 /* of a visit: rounds make more of them, at other times */ };

static bool given_up(const struct duet__visit *visit)
{
    return duet_monitor_signal(visit->monitor) != 0;
}

/* ------------------------------------------------------------------------------------------- */
/* What a run leaves                                                                            */

static void observation_free(gpointer pointer)
{
    struct duet__observation *observation = pointer;

    duet_recording_fini(&observation->recording);
    g_free(observation);
}

/* The order in which tasks run: two, so that the same operands come from different places. */
static const char *policy_of(const struct duet__visit *visit)
{
    const char *given = visit->wish->job.request.config.policy;

    return given ? given : visit->found->rounds % 2 ? "eager" : "ws";
}

/* The number of the item, from 0 on. */
static uint64_t place_of(const struct duet__visit *visit)
{
    const struct duet__item *items = (const struct duet__item *)(void *)visit->found->items->data;

    return (uint64_t)(visit->item - items);
}

/* The same number for runs that do the same. */
static uint64_t number_of(const struct duet__visit *visit)
{
    return 2 * place_of(visit) + 1 + (strcmp(policy_of(visit), "eager") == 0);
}

/* Counts a run, and keeps its records. */
static void keep(const struct duet__visit *visit, struct duet_run *run)
{
    struct duet__observation *observation = g_new0(struct duet__observation, 1);
    struct duet__item *item = visit->item;

    *observation = (struct duet__observation){
        .recording = run->recording,
        .accesses = run->recording.accesses,
        .access_count = run->recording.access_count,
        .context = item->workload->name,
        .repeats = number_of(visit),
        .problem = place_of(visit) + 1,
    };
    run->recording = (struct duet_recording){0};
    g_ptr_array_add(visit->found->taken, observation);
    item->run_s =
        (item->run_s * (double)item->runs + run->stats.makespan_s) / (double)(item->runs + 1);
    item->runs++;
    item->tasks += run->stats.tasks;
}

/* ------------------------------------------------------------------------------------------- */
/* Runs                                                                                         */

/* The warm-up, then the others, on data of their own. */
static int run_all(const struct duet__visit *visit, struct duet_session *session,
                   const struct duet_problem *warmup, void *first, void *data,
                   struct duet_message *message)
{
    double start;
    int error;

    session->problem = *warmup;
    session->problem.data = first;
    error = duet_session_run(session, NULL, DUET_RECORDS_NONE, message);
    session->problem = visit->item->problem;
    session->problem.data = data;
    start = duet__clock_s();
    for (int i = 0; i < RUNS_MAX && !error; i++) {
        struct duet_run run = {0};

        error = duet_session_run(session, &run, DUET_RECORDS_ACCESSES, message);
        if (!error)
            keep(visit, &run);
        duet_run_fini(&run);
        if (duet__clock_s() - start >= visit->slice_s)
            break;
    }
    return error;
}

/* Whether a runtime with as many workers has been opened, and has said what is to be said of it. */
static bool was_opened(const struct duet__visit *visit)
{
    const struct duet__item *item = visit->item;
    const GArray *items = visit->found->items;

    for (guint i = 0; i < items->len; i++) {
        const struct duet__item *other = &g_array_index(items, struct duet__item, i);

        if (other->visit_s > 0 && other->cpus == item->cpus && other->gpus == item->gpus)
            return true;
    }
    return false;
}

/* What a visit's runs are of, on which resources. */
static void make_request(const struct duet__visit *visit, struct duet_request *request)
{
    const struct duet__item *item = visit->item;

    duet_request_copy(request, &visit->wish->job.request);
    request->workload = item->workload;
    request->records = DUET_RECORDS_ACCESSES;
    request->bounds = false;
    request->config.cpus = item->cpus;
    request->config.gpus = item->gpus;
    request->config.set_arch = item->devices;
    request->config.context = item->workload->name;
    if (!visit->wish->paced && !item->gpus)
        request->config.emulate =
            NULL; /* cores are no other ones where no emulated GPU needs them */
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
    const struct duet__item *item = visit->item;
    struct duet__held *held = visit->found->held;
    struct duet_problem warmup = item->problem;
    struct duet_request request;
    struct duet_session session = {.request = &request,
                                   .policy = policy_of(visit),
                                   .monitor = visit->monitor,
                                   .quiet = was_opened(visit)};
    size_t at = item->problem.n != item->warmup_n; /* else one serves for both */
    double start = duet__clock_s();
    int error = 0;

    make_request(visit, &request);
    warmup.n = item->warmup_n;
    if (!visit->wish->paced)
        error = hold(&held[0], item->workload, &warmup, message);
    if (!error && !visit->wish->paced)
        error = hold(&held[at], item->workload, &item->problem, message);
    if (!error)
        error = run_all(visit, &session, &warmup, held[0].data, held[at].data, message);
    duet_session_close(&session);
    duet_request_fini(&request);
    visit->item->visit_s = duet__clock_s() - start;
    return given_up(visit) ? 0 : error;
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
        observation_free(found->taken->pdata[i]);
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
