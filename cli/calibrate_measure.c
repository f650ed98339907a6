/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that `duet calibrate` measures, one after another, within the time it may take. */
#include "cli/calibrate.h"

#include <math.h>
#include <string.h>

#include "cli/command.h"
#include "cli/probe.h"
#include "world/clock.h"

enum { TASKS_ENOUGH = 2000000 /* executions, whose records are kept until the end */ };

/* Parts of the whole time. */
static const double costs_share = 0.15, bandwidth_share = 0.05, copies_share = 0.2;
/* Of the time that the items of a group have in a round: the longest run, alone and of cold data,
   which is filled in, and beside which the others are short. */
static const double longest_share = 0.4;

static double elapsed(const struct duet__measuring *m)
{
    return duet__clock_s() - m->start_s;
}

void duet__measuring_go_on(struct duet__measuring *m)
{
    m->start_s = duet__clock_s() - m->paused_s;
}

void duet__measuring_pause(struct duet__measuring *m)
{
    m->paused_s = elapsed(m);
    duet__held_free(m->found);
}

static bool given_up(const struct duet__measuring *m)
{
    return duet_monitor_signal(m->monitor) != 0;
}

/* Draws a bar of the time that has passed. */
static void draw(struct duet__measuring *m)
{
    duet_progress_say(&m->bar, elapsed(m) / m->wish->budget_s, m->what);
}

static void G_GNUC_PRINTF(2, 3) begin(struct duet__measuring *m, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)g_vsnprintf(m->what, sizeof m->what, format, args);
    va_end(args);
    draw(m);
}

/* Asked between measurements: whether to give up. */
static bool stop(void *context)
{
    draw(context);
    return given_up(context);
}

/* ------------------------------------------------------------------------------------------- */
/* What is measured once                                                                        */

static int measure_costs(struct duet__measuring *m)
{
    const struct duet__wish *wish = m->wish;
    int error;

    /* at a platform's pace its costs are in its description */
    if (wish->no_costs || wish->paced)
        return 0;
    begin(m, "the runtime's own operations");
    error = duet__costs_measure(&wish->job.request.config, costs_share * wish->budget_s, stop, m,
                                m->found->costs, &m->message);
    m->found->has_costs = !error;
    return error;
}

static int measure_bandwidth(struct duet__measuring *m)
{
    const struct duet__wish *wish = m->wish;

    if (wish->paced)
        return 0;
    begin(m, "memory's bandwidth");
    return duet__bandwidth_measure(&wish->job.request.config, bandwidth_share * wish->budget_s,
                                   stop, m, &m->found->bandwidth, &m->message);
}

static int measure_copies(struct duet__measuring *m)
{
    const struct duet__wish *wish = m->wish;
    int error;

    if (wish->no_copies || !m->found->gpus)
        return 0;
    begin(m, "copies");
    error = duet__copies_measure(&wish->job.request.config, copies_share * wish->budget_s, stop, m,
                                 &m->found->copies, &m->message);
    m->found->has_copies = !error;
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Rounds                                                                                       */

/* Marks the runs from `first` on, and their round, if others computed meanwhile. */
static void note_load(struct duet__found *found, const struct duet__load *before, guint first)
{
    const struct duet__load now = duet__load_now();
    gboolean disturbed = duet__load_between(before, &now).disturbed;
    uint64_t round = found->rounds + 1;
    GArray *rounds = found->disturbed_rounds;

    for (guint i = first; i < found->taken->len; i++)
        g_array_append_val(found->disturbed, disturbed);
    if (disturbed && (!rounds->len || g_array_index(rounds, uint64_t, rounds->len - 1) != round))
        g_array_append_val(rounds, round);
}

static int visit(struct duet__measuring *m, struct duet__item *item, double fair_s, double slice_s)
{
    const struct duet__visit visit = {
        .wish = m->wish,
        .found = m->found,
        .item = item,
        .monitor = m->monitor,
        .slice_s = slice_s,
    };
    const struct duet_problem *problem = &item->problem;
    struct duet__load before;
    guint first = m->found->taken->len;
    int error;

    duet__item_size(m->found, item, fair_s);
    begin(m, "%s, n %llu, tile %llu, %c, %s", item->workload->name, (unsigned long long)problem->n,
          (unsigned long long)problem->tile, problem->precision, duet__item_workers(item));
    before = duet__load_now();
    error = duet__visit_make(&visit, &m->message);
    note_load(m->found, &before, first);
    return error;
}

/* Executions that are in the records. */
static uint64_t tasks(const struct duet__found *found)
{
    uint64_t sum = 0;

    for (guint i = 0; i < found->items->len; i++)
        sum += g_array_index(found->items, struct duet__item, i).tasks;
    return sum;
}

/* Whether there is time for an item, if it has not been asked for. */
static bool affordable(const struct duet__measuring *m, const struct duet__item *item)
{
    return !item->optional || m->wish->rounds ||
           elapsed(m) + duet__item_seconds(m->found, item) <= m->wish->budget_s;
}

/* The next item's turn, in a round that is to take so long. */
static int turn(struct duet__measuring *m, double round_s)
{
    struct duet__found *found = m->found;
    struct duet__item *item = &g_array_index(found->items, struct duet__item, m->next);
    int error = 0;

    if (affordable(m, item))
        error = visit(m, item, longest_share * round_s / found->groups,
                      round_s / found->items->len / 2);
    m->next = (m->next + 1) % found->items->len;
    found->rounds += m->next == 0;
    return error;
}

int duet__measure_slice(struct duet__measuring *m, double seconds, double round_s)
{
    double begun = elapsed(m);
    int error = 0;

    while (!error && !given_up(m) &&
           (!m->found->rounds || (elapsed(m) - begun < seconds && tasks(m->found) < TASKS_ENOUGH)))
        error = turn(m, round_s);
    m->found->runs_s += elapsed(m) - begun;
    return given_up(m) ? 0 : error;
}

/* Whether there is to be one more round, if it takes as long as the last one. */
static bool another(const struct duet__measuring *m, double last_s)
{
    const struct duet__found *found = m->found;

    if (m->wish->rounds)
        return found->rounds < m->wish->rounds;
    return found->rounds == 0 ||
           (elapsed(m) + last_s <= m->wish->budget_s && tasks(found) < TASKS_ENOUGH);
}

/* Round after round over all items, so that a machine that changes changes for all of them. */
static int make_rounds(struct duet__measuring *m)
{
    struct duet__found *found = m->found;
    double begun = elapsed(m), last_s = 0;
    double round_s = fmax(m->wish->budget_s - begun, 0.1) / DUET__ROUNDS;
    int error = 0;

    while (!error && !given_up(m) && another(m, last_s)) {
        double start = elapsed(m);

        do
            error = turn(m, round_s);
        while (!error && !given_up(m) && m->next);
        last_s = elapsed(m) - start;
    }
    found->runs_s = elapsed(m) - begun;
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

static const struct duet__observation *taken_at(const struct duet__found *found, guint index)
{
    return found->taken->pdata[index];
}

/* Whether a run is to be left out: it was disturbed, and others of its problem were not. */
static bool leave_out(const struct duet__found *found, guint index)
{
    uint64_t problem = taken_at(found, index)->problem;

    if (!g_array_index(found->disturbed, gboolean, index))
        return false;
    for (guint i = 0; i < found->taken->len; i++)
        if (taken_at(found, i)->problem == problem && !g_array_index(found->disturbed, gboolean, i))
            return true;
    return false;
}

int duet__measure_fit(struct duet__measuring *m)
{
    struct duet__found *found = m->found;
    const struct duet__measured *task = &found->costs[DUET__COST_POP];
    struct duet__model_options options = {
        .sharing = found->known,
        .compare = m->wish->compare_models,
        .task_overhead_s = found->has_costs && task->samples ? task->median_s : 0,
    };
    struct duet__observation *runs = g_new0(struct duet__observation, found->taken->len);
    size_t count = 0;
    int error;

    /* what sharing memory takes is no neighbour's doing: as the simulation has it */
    options.sharing.bandwidth_Bps = found->bandwidth.all_Bps;
    duet__held_free(found);
    if (found->probe_s > 0) /* the speed at which the machine was measured, not that of a moment */
        found->probe_s = fmin(found->probe_s, duet__probe_seconds(found->cpus));
    begin(m, "fitting");
    for (guint i = 0; i < found->taken->len; i++)
        if (!leave_out(found, i))
            runs[count++] = *taken_at(found, i);
    found->left_out = found->taken->len - count;
    error = duet__model_fit(runs, count, &options, &found->model, &m->message);
    g_free(runs);
    return error;
}

int duet__measure_once(struct duet__measuring *m)
{
    int error;

    begin(m, "the speed of the cores");
    if (!m->wish->paced)
        m->found->probe_s = duet__probe_seconds(m->found->cpus);
    error = measure_costs(m);
    if (!error && !given_up(m))
        error = measure_bandwidth(m);
    if (!error && !given_up(m))
        error = measure_copies(m);
    /* what a cancelled measurement says of itself is no news */
    return given_up(m) ? 0 : error;
}

int duet__measure_look(const struct duet__wish *wish, struct duet__found *found,
                       struct duet_message *message)
{
    int error = duet__info_open(&found->info, &wish->job.request.config, message);

    if (!error && found->info.error)
        error = duet_fail(message, found->info.error, "%s", found->info.why.text);
    if (error)
        return error;
    found->taken = g_ptr_array_new();
    found->disturbed = g_array_new(FALSE, FALSE, sizeof(gboolean));
    found->disturbed_rounds = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    found->pace =
        wish->paced && wish->job.request.config.scale > 0 ? wish->job.request.config.scale : 1;
    for (unsigned w = 0; w < found->info.machine.worker_count; w++) {
        found->cpus += found->info.machine.workers[w].node == DUET_HOST;
        found->gpus += found->info.machine.workers[w].node != DUET_HOST;
    }
    if (!found->cpus)
        return duet_fail(message, DUET_EINVAL,
                         "no CPU computes on this machine, all of them feed GPUs: use fewer "
                         "(--gpus)");
    if (!wish->paced)
        duet__caches_find(&found->known);
    return 0;
}

static int measure_all(struct duet__measuring *m)
{
    int error = duet__measure_once(m);

    if (!error && !given_up(m))
        error = make_rounds(m);
    if (!error && !given_up(m))
        error = duet__measure_fit(m);
    return given_up(m) ? 0 : error;
}

/* Before minutes of measuring: whether the machine has something else to do. */
static void warn_of_load(void)
{
    struct duet__disturbance load = duet__load_look();
    char *text = duet__load_text(&load);

    if (load.disturbed)
        (void)duet__complain(DUET__DONE, "%s: what is measured now is slower than the machine is",
                             text);
    g_free(text);
}

int duet__measure(const struct duet__wish *wish, struct duet__found *found)
{
    struct duet_monitor monitor = {0};
    struct duet__measuring m = {.wish = wish, .found = found, .monitor = &monitor};
    struct duet__load before, after;
    int error;

    duet__measuring_go_on(&m);
    error = duet__measure_look(wish, found, &m.message);
    if (!error)
        error = duet__plan_make(wish, found, &m.message);
    if (error)
        return duet__job_refuse(error, &m.message);
    warn_of_load();
    before = duet__load_now();
    duet_monitor_start(&monitor, false, 0, 0);
    duet_progress_init(&m.bar, !wish->job.quiet, 0, 0);
    error = measure_all(&m);
    duet_progress_clear(&m.bar);
    duet_monitor_stop(&monitor);
    found->number = duet_monitor_signal(&monitor);
    found->wall_s = elapsed(&m);
    after = duet__load_now();
    found->load = duet__load_between(&before, &after);
    return error ? duet__job_complain(m.what, error, m.message.text) : DUET__DONE;
}
