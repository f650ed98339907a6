/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that a calibration measures, one after another, within the time it may take. */
#include <math.h>
#include <string.h>

#include "calibrate/calibrate.h"
#include "calibrate/probe.h"
#include "world/clock.h"

enum { TASKS_ENOUGH = 2000000 /* executions, whose records are kept until the end */ };

/* Parts of the whole time. */
static const double costs_share = 0.15, bandwidth_share = 0.05, copies_share = 0.2;
/* Of the time that the setups of a group have in a round: the longest run, alone and of cold data,
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
    duet__kept_data_free(m->result);
}

static bool given_up(const struct duet__measuring *m)
{
    return duet_monitor_signal(m->monitor) != 0;
}

/* Draws a bar of the time that has passed. */
static void draw(struct duet__measuring *m)
{
    duet_progress_say(&m->bar, elapsed(m) / m->request->budget_s, m->what);
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
    const struct duet__calibrate_request *request = m->request;
    int error;

    /* at a platform's pace its costs are in its description */
    if (request->no_costs || request->paced)
        return 0;
    begin(m, "the runtime's own operations");
    error = duet__costs_measure(&request->runs->config, costs_share * request->budget_s, stop, m,
                                m->result->costs, &m->message);
    m->result->has_costs = !error;
    return error;
}

static int measure_bandwidth(struct duet__measuring *m)
{
    const struct duet__calibrate_request *request = m->request;

    if (request->paced)
        return 0;
    begin(m, "memory's bandwidth");
    return duet__bandwidth_measure(&request->runs->config, bandwidth_share * request->budget_s,
                                   stop, m, &m->result->bandwidth, &m->message);
}

static int measure_copies(struct duet__measuring *m)
{
    const struct duet__calibrate_request *request = m->request;
    int error;

    if (request->no_copies || !m->result->gpus)
        return 0;
    begin(m, "copies");
    error = duet__copies_measure(&request->runs->config, copies_share * request->budget_s, stop, m,
                                 &m->result->copies, &m->message);
    m->result->has_copies = !error;
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Rounds                                                                                       */

static struct duet__setup *setup_at(const struct duet__calibrate_result *result, guint place)
{
    return &g_array_index(result->setups, struct duet__setup, place);
}

static const struct duet__observation *run_at(const struct duet__calibrate_result *result,
                                              guint place)
{
    return &g_array_index(result->runs, struct duet__observation, place);
}

/* Marks the runs from `first` on, and their round, if others computed meanwhile. */
static void note_load(struct duet__calibrate_result *result, const struct duet__load *before,
                      guint first)
{
    const struct duet__load now = duet__load_now();
    gboolean disturbed = duet__load_between(before, &now).disturbed;
    uint64_t round = result->rounds + 1;
    GArray *rounds = result->disturbed_rounds;

    for (guint i = first; i < result->runs->len; i++)
        g_array_append_val(result->disturbed, disturbed);
    if (disturbed && (!rounds->len || g_array_index(rounds, uint64_t, rounds->len - 1) != round))
        g_array_append_val(rounds, round);
}

static int measure_setup(struct duet__measuring *m, struct duet__setup *setup, double fair_s,
                         double slice_s)
{
    const struct duet_problem *problem = &setup->problem;
    guint first = m->result->runs->len;
    struct duet__load before;
    int error;

    duet__setup_size(m->result, setup, fair_s);
    begin(m, "%s, n %llu, tile %llu, %c, %s", setup->workload->name, (unsigned long long)problem->n,
          (unsigned long long)problem->tile, problem->precision, duet__setup_workers(setup));
    before = duet__load_now();
    error = duet__setup_measure(m, setup, slice_s);
    note_load(m->result, &before, first);
    return error;
}

/* Executions that are in the records. */
static uint64_t tasks(const struct duet__calibrate_result *result)
{
    uint64_t sum = 0;

    for (guint i = 0; i < result->setups->len; i++)
        sum += setup_at(result, i)->tasks;
    return sum;
}

/* Whether there is time for a setup, if it has not been asked for. */
static bool affordable(const struct duet__measuring *m, const struct duet__setup *setup)
{
    return !setup->optional || m->request->rounds ||
           elapsed(m) + duet__setup_seconds(m->result, setup) <= m->request->budget_s;
}

/* The next setup's turn, in a round that is to take so long. */
static int turn(struct duet__measuring *m, double round_s)
{
    struct duet__calibrate_result *result = m->result;
    struct duet__setup *setup = setup_at(result, m->next);
    int error = 0;

    if (affordable(m, setup))
        error = measure_setup(m, setup, longest_share * round_s / result->groups,
                              round_s / result->setups->len / 2);
    m->next = (m->next + 1) % result->setups->len;
    result->rounds += m->next == 0;
    return error;
}

int duet__measure_slice(struct duet__measuring *m, double seconds, double round_s)
{
    double begun = elapsed(m);
    int error = 0;

    while (
        !error && !given_up(m) &&
        (!m->result->rounds || (elapsed(m) - begun < seconds && tasks(m->result) < TASKS_ENOUGH)))
        error = turn(m, round_s);
    m->result->runs_s += elapsed(m) - begun;
    return given_up(m) ? 0 : error;
}

/* Whether there is to be one more round, if it takes as long as the last one. */
static bool another(const struct duet__measuring *m, double last_s)
{
    const struct duet__calibrate_result *result = m->result;

    if (m->request->rounds)
        return result->rounds < m->request->rounds;
    return result->rounds == 0 ||
           (elapsed(m) + last_s <= m->request->budget_s && tasks(m->result) < TASKS_ENOUGH);
}

/* Round after round over all setups, so that a machine that changes changes for all of them. */
static int make_rounds(struct duet__measuring *m)
{
    struct duet__calibrate_result *result = m->result;
    double begun = elapsed(m), last_s = 0;
    double round_s = fmax(m->request->budget_s - begun, 0.1) / DUET__ROUNDS;
    int error = 0;

    while (!error && !given_up(m) && another(m, last_s)) {
        double start = elapsed(m);

        do
            error = turn(m, round_s);
        while (!error && !given_up(m) && m->next);
        last_s = elapsed(m) - start;
    }
    result->runs_s = elapsed(m) - begun;
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

/* Whether a run is to be left out: it was disturbed, and others of its problem were not. */
static bool leave_out(const struct duet__calibrate_result *result, guint place)
{
    if (!g_array_index(result->disturbed, gboolean, place))
        return false;
    for (guint i = 0; i < result->runs->len; i++)
        if (run_at(result, i)->problem == run_at(result, place)->problem &&
            !g_array_index(result->disturbed, gboolean, i))
            return true;
    return false;
}

int duet__measure_fit(struct duet__measuring *m)
{
    struct duet__calibrate_result *result = m->result;
    const struct duet__measured *task = &result->costs[DUET__COST_POP];
    struct duet__model_options options = {
        .sharing = result->known,
        .compare = m->request->compare_models,
        .task_overhead_s = result->has_costs && task->samples ? task->median_s : 0,
    };
    struct duet__observation *runs = g_new0(struct duet__observation, result->runs->len);
    size_t count = 0;
    int error;

    /* what sharing memory takes is no neighbour's doing: as the simulation has it */
    options.sharing.bandwidth_Bps = result->bandwidth.all_Bps;
    duet__kept_data_free(result);
    if (result->probe_s > 0) /* the speed at which the machine was measured, not that of a moment */
        result->probe_s = fmin(result->probe_s, duet__probe_seconds(result->cpus));
    begin(m, "fitting");
    for (guint i = 0; i < result->runs->len; i++)
        if (!leave_out(result, i))
            runs[count++] = *run_at(result, i);
    result->left_out = result->runs->len - count;
    error = duet__model_fit(runs, count, &options, &result->model, &m->message);
    g_free(runs);
    return error;
}

int duet__measure_once(struct duet__measuring *m)
{
    int error;

    begin(m, "the speed of the cores");
    if (!m->request->paced)
        m->result->probe_s = duet__probe_seconds(m->result->cpus);
    error = measure_costs(m);
    if (!error && !given_up(m))
        error = measure_bandwidth(m);
    if (!error && !given_up(m))
        error = measure_copies(m);
    /* what a cancelled measurement says of itself is no news */
    return given_up(m) ? 0 : error;
}

int duet__measure_look(const struct duet__calibrate_request *request,
                       struct duet__calibrate_result *result, struct duet_message *message)
{
    int error = duet__info_open(&result->info, &request->runs->config, message);

    if (!error && result->info.error)
        error = duet_fail(message, result->info.error, "%s", result->info.why.text);
    if (error)
        return error;
    result->runs = g_array_new(FALSE, FALSE, sizeof(struct duet__observation));
    result->disturbed = g_array_new(FALSE, FALSE, sizeof(gboolean));
    result->disturbed_rounds = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    result->pace =
        request->paced && request->runs->config.scale > 0 ? request->runs->config.scale : 1;
    for (unsigned w = 0; w < result->info.machine.worker_count; w++) {
        result->cpus += result->info.machine.workers[w].node == DUET_HOST;
        result->gpus += result->info.machine.workers[w].node != DUET_HOST;
    }
    if (!result->cpus)
        return duet_fail(message, DUET_EINVAL,
                         "no CPU computes on this machine, all of them feed GPUs: use fewer "
                         "(--gpus)");
    if (!request->paced)
        duet__caches_find(&result->known);
    return 0;
}

int duet__measure_all(struct duet__measuring *m)
{
    const struct duet__load before = duet__load_now();
    struct duet__load after;
    int error = duet__measure_once(m);

    if (!error && !given_up(m))
        error = make_rounds(m);
    if (!error && !given_up(m))
        error = duet__measure_fit(m);
    after = duet__load_now();
    m->result->load = duet__load_between(&before, &after);
    m->result->wall_s = elapsed(m);
    return given_up(m) ? 0 : error;
}

/* ------------------------------------------------------------------------------------------- */

void duet__calibrate_request_init(struct duet__calibrate_request *request,
                                  const struct duet_request *runs)
{
    *request = (struct duet__calibrate_request){
        .runs = runs,
        .workloads = g_array_new(FALSE, FALSE, sizeof(const struct duet_workload *)),
        .sizes = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
        .tiles = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
    };
}

void duet__calibrate_request_fini(struct duet__calibrate_request *request)
{
    g_clear_pointer(&request->workloads, g_array_unref);
    g_clear_pointer(&request->sizes, g_array_unref);
    g_clear_pointer(&request->tiles, g_array_unref);
    g_clear_pointer(&request->subjects, g_array_unref);
    g_clear_pointer(&request->name, g_free);
}

void duet__calibrate_result_fini(struct duet__calibrate_result *result)
{
    duet__kept_data_free(result);
    for (guint i = 0; result->runs && i < result->runs->len; i++)
        duet_recording_fini(&g_array_index(result->runs, struct duet__observation, i).recording);
    g_clear_pointer(&result->runs, g_array_unref);
    g_clear_pointer(&result->disturbed, g_array_unref);
    g_clear_pointer(&result->disturbed_rounds, g_array_unref);
    g_clear_pointer(&result->setups, g_array_unref);
    duet__copies_fini(&result->copies);
    duet__model_fini(&result->model);
    duet__info_fini(&result->info);
    *result = (struct duet__calibrate_result){0};
}
