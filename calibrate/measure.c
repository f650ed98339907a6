/* SPDX-License-Identifier: Apache-2.0 */
/* Measures all parts of a calibration, one after another, within its time; runs take turns. */
#include <math.h>
#include <string.h>

#include "calibrate/calibrate.h"
#include "runs/session.h"
#include "base/clock.h"

enum {
    TASKS_ENOUGH = 2000000, /* executions in kept records */
    RUNS_MOST = 3,          /* of a turn: later rounds make more */
};

/* Parts of the whole time. */
static const double costs_share = 0.15, bandwidth_share = 0.05, copies_share = 0.2;
/* Part of a group's time in a round for the longest run, alone and of cold data, which is sized by
 * it; the others are short. */
static const double longest_share = 0.4;

static double elapsed(const struct duet__calibrating *c)
{
    return duet__clock_s() - c->start_s;
}

void duet__calibrating_go_on(struct duet__calibrating *c)
{
    c->start_s = duet__clock_s() - c->paused_s;
}

void duet__calibrating_pause(struct duet__calibrating *c)
{
    c->paused_s = elapsed(c);
    duet__rounds_discard(&c->rounds);
}

static bool given_up(const struct duet__calibrating *c)
{
    return c->monitor && duet__monitor_signal(c->monitor) != 0;
}

/* Draws a bar of the elapsed time. */
static void draw_bar(struct duet__calibrating *c)
{
    duet__progress_say(&c->bar, elapsed(c) / c->request->budget_s, c->now.what);
}

static void G_GNUC_PRINTF(2, 3) begin(struct duet__calibrating *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)g_vsnprintf(c->now.what, sizeof c->now.what, format, args);
    va_end(args);
    c->now.message.text[0] = '\0';
    draw_bar(c);
}

/* Called between measurements. Returns true to give up. */
static bool stop(void *context)
{
    draw_bar(context);
    return given_up(context);
}

/* Notes the failure of the current measurement, unless it was given up. Failures with the same
 * words are noted once. */
static void note_failure(struct duet__calibrating *c, int error)
{
    if (!error || given_up(c))
        return;
    for (guint i = 0; i < c->failures->len; i++)
        if (!strcmp(g_array_index(c->failures, struct duet__failure, i).message.text,
                    c->now.message.text))
            return;
    c->now.error = error;
    g_array_append_val(c->failures, c->now);
}

/* ------------------------------------------------------------------------------------------- */
/* Measurements made once */

/* Returns the input of a measurement with this part of the time. */
static struct duet__measurement make_measurement(struct duet__calibrating *c, const char *what,
                                                 double part)
{
    begin(c, "%s", what);
    return (struct duet__measurement){.config = &c->request->runs->config,
                                      .end_s = duet__clock_s() + part * c->request->budget_s,
                                      .stop = stop,
                                      .context = c,
                                      .message = &c->now.message};
}

void duet__calibrating_once(struct duet__calibrating *c)
{
    const struct duet__calibrate_request *request = c->request;
    struct duet__measurement given;
    int error = 0;
    /* an emulated platform has its costs and memory in its description */
    if (!request->paced) {
        begin(c, "the speed of the cores");
        c->probe_s = duet__probe_seconds(c->cpus);
    }
    if (!request->paced && !request->no_costs) {
        given = make_measurement(c, "the runtime's own operations", costs_share);
        error = duet__costs_measure(&given, c->costs);
        c->has_costs = !error;
        note_failure(c, error);
    }
    if (!request->paced && !given_up(c)) {
        given = make_measurement(c, "memory's bandwidth", bandwidth_share);
        note_failure(c, duet__bandwidth_measure(&given, &c->bandwidth));
    }
    if (c->gpus && !request->no_copies && !given_up(c)) {
        given = make_measurement(c, "copies", copies_share);
        error = duet__copies_measure(&given, &c->copies);
        c->has_copies = !error;
        note_failure(c, error);
    }
}

/* ------------------------------------------------------------------------------------------- */
/* Rounds                                                                                       */

/* True if there is time for an optional setup, or it was requested. */
static bool affordable(const struct duet__calibrating *c, const struct duet__setup *setup)
{
    return !setup->optional || c->request->rounds ||
           elapsed(c) + duet__setup_seconds(c, setup) <= c->request->budget_s;
}

/* Policy of the next run: two alternate, so that the same operands come from different places. */
static const char *policy_of(const struct duet__calibrating *c)
{
    const char *given = c->request->runs->config.policy;
    return given ? given : c->rounds.round % 2 ? "eager" : "ws";
}

/* Counts a run, and keeps its records. */
static void keep_run(struct duet__calibrating *c, struct duet__setup *setup, struct duet__run *run)
{
    uint64_t place = (uint64_t)(setup - duet__setup_at(c, 0));
    const struct duet__recorded_run observation = {
        .recording = run->recording,
        .context = setup->workload->name,
        .repeats = 2 * place + 1 + (strcmp(policy_of(c), "eager") == 0),
        .problem = place + 1,
    };
    run->recording = (struct duet__recording){0};
    g_array_append_val(c->runs, observation);
    duet__setup_count(setup, run->stats.makespan_s);
    setup->tasks += run->stats.tasks;
}

/* Makes the request of a setup's runs. */
static void make_request(const struct duet__calibrating *c, const struct duet__setup *setup,
                         struct duet__request *request)
{
    duet__request_copy(request, c->request->runs);
    request->workload = setup->workload;
    request->records = DUET_RECORDS_ACCESSES;
    request->bounds = false;
    request->config.cpus = setup->cpus;
    request->config.gpus = setup->gpus;
    request->config.set_arch = setup->devices;
    request->config.context = setup->workload->name;
    if (!c->request->paced && !setup->gpus) /* the cores themselves, if nothing is emulated */
        request->config.emulate = NULL;
}

/* Makes the warm-up run, then the others, on data that later turns often need as well. */
static int run_all(struct duet__calibrating *c, struct duet__setup *setup,
                   struct duet__session *session, double slice_s)
{
    const struct duet__workload *workload = setup->workload;
    const bool computes = !c->request->paced && workload->generate; /* in this process */
    struct duet__problem warmup = setup->problem, problem = setup->problem;
    double start_s;
    int error = 0;
    warmup.n = setup->warmup_n;
    if (computes)
        error = duet__rounds_data(&c->rounds, 0, workload, &warmup, &c->now.message);
    if (computes && !error) /* one data set may serve for both */
        error = duet__rounds_data(&c->rounds, problem.n != warmup.n, workload, &problem,
                                  &c->now.message);
    session->problem = warmup;
    if (!error && !workload->program) /* a program's runs begin anew */
        error = duet__session_run(session, NULL, DUET_RECORDS_NONE, &c->now.message);
    session->problem = problem;
    start_s = duet__clock_s();
    for (int i = 0; i < RUNS_MOST && !error; i++) {
        struct duet__run run = {0};
        error = duet__session_run(session, &run, DUET_RECORDS_ACCESSES, &c->now.message);
        if (!error)
            keep_run(c, setup, &run);
        duet__run_fini(&run);
        if (duet__clock_s() - start_s >= slice_s)
            break;
    }
    return error;
}

/* Makes some recorded runs of the setup into c->runs, after one that is not measured, until
 * `slice_s` have passed. */
static void measure_setup(struct duet__calibrating *c, struct duet__setup *setup, double slice_s)
{
    struct duet__request request;
    struct duet__session session = {.request = &request,
                                    .policy = policy_of(c),
                                    .monitor = c->monitor,
                                    .quiet =
                                        duet__rounds_opened(&c->rounds, setup->cpus, setup->gpus)};
    double start_s = duet__clock_s();
    guint first = c->runs->len;
    int error;
    make_request(c, setup, &request);
    error = run_all(c, setup, &session, slice_s);
    duet__session_close(&session);
    duet__request_fini(&request);
    setup->turn_s = duet__clock_s() - start_s;
    setup->failed = error && !given_up(c);
    note_failure(c, error);
    if (duet__rounds_load(&c->rounds).disturbed)
        for (guint i = first; i < c->runs->len; i++)
            g_array_index(c->runs, struct duet__recorded_run, i).disturbed = true;
}

/* Gives the next setup its turn, in a round that is to take so long. */
static void take_turn(struct duet__calibrating *c, double round_s)
{
    struct duet__setup *setup = duet__setup_at(c, (guint)duet__rounds_begin(&c->rounds));
    const struct duet__problem *problem = &setup->problem;
    if (!setup->failed && affordable(c, setup)) {
        duet__setup_size(c, setup, longest_share * round_s / c->groups);
        if (setup->workload->program)
            begin(c, "%s, %s", setup->workload->name, duet__setup_workers(setup));
        else
            begin(c, "%s, n %llu, tile %llu, %c, %s", setup->workload->name,
                  (unsigned long long)problem->n, (unsigned long long)problem->tile,
                  problem->precision, duet__setup_workers(setup));
        measure_setup(c, setup, round_s / c->setups->len / 2);
    }
    (void)duet__rounds_next(&c->rounds);
}

/* True if there are to be more turns: until a whole round, or the requested ones, are done; else
 * until the slice ends, while their records can be kept. */
static bool has_more(const struct duet__calibrating *c, double end_s)
{
    uint64_t tasks = 0;
    if (!c->rounds.round || c->request->rounds)
        return !c->rounds.round || c->rounds.round < c->request->rounds;
    for (guint i = 0; i < c->setups->len; i++)
        tasks += duet__setup_at(c, i)->tasks;
    return elapsed(c) < end_s && tasks < TASKS_ENOUGH;
}

/* Goes round over all setups, so that a machine that changes does so for all of them. */
void duet__calibrating_slice(struct duet__calibrating *c, double seconds, double round_s)
{
    double begun = elapsed(c);
    /* Turns in a row without a run. Setups that fail at the end of a round come first in the next
       one, which goes backward: only two whole rounds of such turns mean that no setup can run. */
    guint idle = 0;
    c->rounds.cases = c->setups->len;
    while (!given_up(c) && idle < 2 * c->setups->len && has_more(c, begun + seconds)) {
        guint before = c->runs->len;
        take_turn(c, round_s);
        idle = c->runs->len > before ? 0 : idle + 1;
    }
    c->runs_s += elapsed(c) - begun;
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

/* True if a run is to be left out: it was disturbed, and others of its problem were not. */
static bool is_left_out(const struct duet__calibrating *c, const struct duet__recorded_run *run)
{
    for (guint i = 0; run->disturbed && i < c->runs->len; i++) {
        const struct duet__recorded_run *other =
            &g_array_index(c->runs, struct duet__recorded_run, i);
        if (other->problem == run->problem && !other->disturbed)
            return true;
    }
    return false;
}

void duet__calibrating_fit(struct duet__calibrating *c)
{
    struct duet__model_options options = {
        .sharing = c->known,
        .cores = c->cpus,
        .task_overhead_s = c->has_costs ? c->costs[DUET__COST_POP].times.median : 0,
    };
    struct duet__recorded_run *runs = g_new(struct duet__recorded_run, c->runs->len + 1);
    size_t count = 0;
    /* shared bandwidth is modelled by itself, not as neighbours' effect, as in the simulation */
    options.sharing.bandwidth_Bps = c->bandwidth.all_Bps;
    duet__rounds_discard(&c->rounds);
    if (c->probe_s > 0) /* the speed at which the machine was measured */
        c->probe_s = fmin(c->probe_s, duet__probe_seconds(c->cpus));
    begin(c, "fitting");
    for (guint i = 0; i < c->runs->len; i++) {
        const struct duet__recorded_run *run =
            &g_array_index(c->runs, struct duet__recorded_run, i);
        if (!is_left_out(c, run))
            runs[count++] = *run;
    }
    c->left_out = c->runs->len - count;
    note_failure(c, duet__model_fit(runs, count, &options, &c->model, &c->now.message));
    g_free(runs);
}

int duet__calibrating_look(struct duet__calibrating *c, struct duet_message *message)
{
    c->runs = g_array_new(FALSE, FALSE, sizeof(struct duet__recorded_run));
    duet__rounds_init(&c->rounds);
    c->failures = g_array_new(FALSE, FALSE, sizeof(struct duet__failure));
    return duet__machine_look(c, message);
}

void duet__calibrating_all(struct duet__calibrating *c)
{
    const struct duet__load before = duet__load_now();
    struct duet__load after;
    double left_s;
    duet__calibrating_go_on(c);
    duet__calibrating_once(c);
    left_s = fmax(c->request->budget_s - elapsed(c), 0.1);
    duet__calibrating_slice(c, left_s, left_s / DUET__LEAST_ROUNDS);
    if (c->runs->len && !given_up(c))
        duet__calibrating_fit(c);
    after = duet__load_now();
    c->load = duet__load_between(&before, &after);
    c->wall_s = elapsed(c);
    duet__rounds_discard(&c->rounds);
}

/* ------------------------------------------------------------------------------------------- */

void duet__calibrate_request_fini(struct duet__calibrate_request *request)
{
    g_clear_pointer(&request->workloads, g_ptr_array_unref);
    g_clear_pointer(&request->traces, g_ptr_array_unref);
    g_clear_pointer(&request->subjects, g_array_unref);
    g_clear_pointer(&request->name, g_free);
}

void duet__calibrating_fini(struct duet__calibrating *c)
{
    duet__rounds_fini(&c->rounds);
    for (guint i = 0; c->runs && i < c->runs->len; i++)
        duet__recording_fini(&g_array_index(c->runs, struct duet__recorded_run, i).recording);
    g_clear_pointer(&c->runs, g_array_unref);
    g_clear_pointer(&c->failures, g_array_unref);
    g_clear_pointer(&c->setups, g_array_unref);
    duet__copies_fini(&c->copies);
    duet__model_fini(&c->model);
    duet__info_fini(&c->info);
}
