/* SPDX-License-Identifier: Apache-2.0 */
/* Measures all parts of a calibration, one after another, within its time. */
#include <math.h>
#include <string.h>

#include "calibrate/calibrate.h"
#include "base/clock.h"

enum { TASKS_ENOUGH = 2000000 /* executions in kept records */ };

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
    duet__kept_data_free(c);
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

/* Marks the runs from `first` on, and their round, if others computed meanwhile. */
static void note_load(struct duet__calibrating *c, const struct duet__load *before, guint first)
{
    const struct duet__load now = duet__load_now();
    uint64_t round = c->rounds + 1;
    GArray *rounds = c->disturbed_rounds;
    if (!duet__load_between(before, &now).disturbed)
        return;
    for (guint i = first; i < c->runs->len; i++)
        g_array_index(c->runs, struct duet__recorded_run, i).disturbed = true;
    if (!rounds->len || g_array_index(rounds, uint64_t, rounds->len - 1) != round)
        g_array_append_val(rounds, round);
}

/* True if there is time for an optional setup, or it was requested. */
static bool affordable(const struct duet__calibrating *c, const struct duet__setup *setup)
{
    return !setup->optional || c->request->rounds ||
           elapsed(c) + duet__setup_seconds(c, setup) <= c->request->budget_s;
}

/* Makes the next setup's turn, in a round that is to take so long. */
static void take_turn(struct duet__calibrating *c, double round_s)
{
    struct duet__setup *setup = duet__setup_at(c, c->next);
    const struct duet__problem *problem = &setup->problem;
    const struct duet__load before = duet__load_now();
    guint first = c->runs->len;
    if (!setup->failed && affordable(c, setup)) {
        duet__setup_size(c, setup, longest_share * round_s / c->groups);
        if (setup->workload->program)
            begin(c, "%s, %s", setup->workload->name, duet__setup_workers(setup));
        else
            begin(c, "%s, n %llu, tile %llu, %c, %s", setup->workload->name,
                  (unsigned long long)problem->n, (unsigned long long)problem->tile,
                  problem->precision, duet__setup_workers(setup));
        int error = duet__setup_measure(c, setup, round_s / c->setups->len / 2);
        setup->failed = error != 0;
        note_failure(c, error);
        note_load(c, &before, first);
    }
    c->next = (c->next + 1) % c->setups->len;
    c->rounds += c->next == 0;
}

/* True if there are to be more turns: until a whole round, or the requested ones, are done; else
 * until the slice ends, while their records can be kept. */
static bool has_more(const struct duet__calibrating *c, double end_s)
{
    uint64_t tasks = 0;
    if (!c->rounds || c->request->rounds)
        return !c->rounds || c->rounds < c->request->rounds;
    for (guint i = 0; i < c->setups->len; i++)
        tasks += duet__setup_at(c, i)->tasks;
    return elapsed(c) < end_s && tasks < TASKS_ENOUGH;
}

/* Goes round over all setups, so that a machine that changes does so for all of them. */
void duet__calibrating_slice(struct duet__calibrating *c, double seconds, double round_s)
{
    double begun = elapsed(c);
    guint idle = 0; /* turns in sequence without a run */
    while (!given_up(c) && idle < c->setups->len && has_more(c, begun + seconds)) {
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
        .task_overhead_s = c->has_costs ? c->costs[DUET__COST_POP].times.median : 0,
    };
    struct duet__recorded_run *runs = g_new(struct duet__recorded_run, c->runs->len + 1);
    size_t count = 0;
    /* shared bandwidth is modelled by itself, not as neighbours' effect, as in the simulation */
    options.sharing.bandwidth_Bps = c->bandwidth.all_Bps;
    duet__kept_data_free(c);
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
    c->disturbed_rounds = g_array_new(FALSE, FALSE, sizeof(uint64_t));
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
    duet__kept_data_free(c);
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
    duet__kept_data_free(c);
    for (guint i = 0; c->runs && i < c->runs->len; i++)
        duet__recording_fini(&g_array_index(c->runs, struct duet__recorded_run, i).recording);
    g_clear_pointer(&c->runs, g_array_unref);
    g_clear_pointer(&c->disturbed_rounds, g_array_unref);
    g_clear_pointer(&c->failures, g_array_unref);
    g_clear_pointer(&c->setups, g_array_unref);
    duet__copies_fini(&c->copies);
    duet__model_fini(&c->model);
    duet__info_fini(&c->info);
}
