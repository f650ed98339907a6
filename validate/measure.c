/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the runs of an experiment: simulations of one side, and measured runs of the other. */
#include <math.h>

#include "base/clock.h"
#include "calibrate/microbench.h"
#include "runs/interval.h"
#include "runs/session.h"
#include "validate/experiment.h"

/* ------------------------------------------------------------------------------------------- */
/* Simulations, trial after trial                                                               */

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

/* Predicts the interval of the measured median, from simulations of drawn machines: each round
 * counts as one run of the median. */
static int predict_interval(struct duet__experiment *experiment, struct duet__trial *trial,
                            struct duet__progress *progress, struct duet_message *message)
{
    struct duet__request request = trial->simulated; /* borrows all of it */
    struct duet__series series = {0};
    g_autofree char *interval = g_strdup_printf("median:%zu", MAX(experiment->round_count, 1));
    int error;
    request.reps = experiment->intervals;
    request.seed = experiment->base.seed;
    request.records = DUET_RECORDS_NONE;
    request.bounds = false;
    request.config.interval = interval;
    error = duet__simulate(&request, progress, &series, &experiment->number, message);
    if (!error && series.error)
        error = duet_fail(message, series.error, "%s", series.message.text);
    if (!error && !experiment->number)
        duet__interval_find(&series, &trial->low_s, &trial->high_s);
    duet__series_fini(&series);
    return error;
}

void duet__experiment_predict(struct duet__experiment *experiment, bool quiet)
{
    struct duet__progress progress = {0};
    uint64_t tasks = 0, runs = 0;
    for (size_t i = 0; i < experiment->trial_count; i++)
        if (!experiment->trials[i].failure) {
            const size_t reps = experiment->sim_reps + experiment->intervals;
            tasks += duet__request_tasks(&experiment->trials[i].simulated) * reps;
            runs += reps;
        }
    duet__progress_init(&progress, !quiet, tasks, runs);
    for (size_t i = 0; i < experiment->trial_count && !experiment->number; i++) {
        struct duet__trial *trial = &experiment->trials[i];
        struct duet_message message = {""};
        int error = trial->failure ? 0 : predict(experiment, trial, &progress, &message);
        if (!error && !trial->failure && !experiment->number && experiment->intervals)
            error = predict_interval(experiment, trial, &progress, &message);
        if (error)
            duet__trial_fail(trial, "simulated", error, &message);
    }
    duet__progress_clear(&progress);
}

/* ------------------------------------------------------------------------------------------- */
/* Threads of this machine                                                                      */

static const double BUDGET_S = 1;

/* Returns the configuration with most GPUs, on which the threads have most to do. */
static const struct duet_config *largest(const struct duet__experiment *experiment)
{
    const struct duet__trial *most = NULL;
    for (size_t i = 0; i < experiment->trial_count; i++)
        if (!experiment->trials[i].failure && (!most || experiment->trials[i].gpus > most->gpus))
            most = &experiment->trials[i];
    return most ? &most->real.config : NULL;
}

/* True if the measurements shall end: asked between two of them. */
static bool stop(void *monitor)
{
    return duet__monitor_signal(monitor) != 0;
}

/*
 * Gives the platform a measured cost; its times are multiplied by the scale afterwards. A cost that
 * was not measured stays as the platform has it. Returns the seconds; 0: not measured.
 */
static double use_cost(const struct duet__experiment *experiment,
                       const struct duet__measured *measured, double *cost)
{
    if (!measured->times.count || !(measured->times.median > 0))
        return 0;
    *cost = measured->times.median / duet__request_scale(&experiment->base);
    return measured->times.median;
}

static void use_costs(struct duet__experiment *experiment, const struct duet__measured *measured)
{
    struct duet_costs *costs = &experiment->platform->costs;
    experiment->wake_s = use_cost(experiment, &measured[DUET__COST_WAKE], &costs->wake_s);
    experiment->event_s = use_cost(experiment, &measured[DUET__COST_EVENT], &costs->event_s);
    for (size_t i = 0; i < experiment->trial_count; i++)
        experiment->trials[i].simulated.config.jitter = true;
}

int duet__experiment_measure_threads(struct duet__experiment *experiment,
                                     struct duet_message *message)
{
    const struct duet_config *config = largest(experiment);
    struct duet__monitor monitor = {0};
    struct duet__measured costs[DUET__COSTS];
    struct duet_config own;
    int error;
    if (!config)
        return 0;
    own = *config;
    own.nodes = NULL;
    own.cpus = -1; /* one thread wakes another, however many CPUs the cases have */
    duet__monitor_start(&monitor, false, 0, 0);
    error = duet__costs_measure(&(struct duet__measurement){.config = &own,
                                                            .end_s = duet__clock_s() + BUDGET_S,
                                                            .stop = stop,
                                                            .context = &monitor,
                                                            .message = message},
                                costs);
    duet__monitor_stop(&monitor);
    experiment->number = duet__monitor_signal(&monitor);
    if (experiment->number)
        return 0; /* interrupted measurements say nothing */
    if (!error)
        use_costs(experiment, costs);
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Measured runs                                                                                */

enum { RUNS_MOST = 1000 /* most measured runs of a case to know its median */ };

/* Seconds from the end of a probe on for which its result is used. */
static const double probe_holds_s = 2;

/* A turn: the runs of a trial in a round. */
struct turn {
    struct duet__experiment *experiment;
    struct duet__trial *trial;
    struct duet__monitor *monitor;
    size_t before, made;     /* runs before, and since then; counts also runs that only the first
                                node knows */
    size_t least, check;     /* least number of runs; number of runs at which to look again */
    double start_s, spent_s; /* date of the first measured run; seconds of the runs before */
};

/* Returns the least number of measured runs of a case in the round at hand. */
static size_t share(const struct duet__experiment *experiment)
{
    size_t reps = experiment->base.reps, rounds = experiment->round_count;
    return MAX(reps / rounds + (experiment->rounds.round < reps % rounds), 1);
}

/*
 * Returns the runs of a turn after which the median would be known well enough with as many in each
 * of the following rounds, if rounds did not differ: an interval narrows with the square root of
 * their number. More runs in one round cannot help against differences between rounds.
 */
static double wanted(const struct turn *turn)
{
    const struct duet__experiment *experiment = turn->experiment;
    double count = (double)duet__sample_count(&turn->trial->measured);
    double ratio = duet__sample_width_within(&turn->trial->measured) / experiment->until;
    double left = (double)(experiment->round_count - experiment->rounds.round);
    return (count * ratio * ratio - (double)turn->before) / left;
}

/* True if the runs of a turn are enough, and those of the rounds so far have had their time. */
static bool enough(struct turn *turn)
{
    const struct duet__experiment *experiment = turn->experiment;
    const struct duet__trial *trial = turn->trial;
    double part = (double)(experiment->rounds.round + 1) / (double)experiment->round_count;
    size_t made = turn->made;
    if (made < turn->least)
        return false;
    if (!(experiment->until > 0) || trial->spent_s >= part * experiment->case_time_s ||
        (double)duet__sample_count(&trial->measured) >= part * RUNS_MOST)
        return true;
    if (made < turn->check)
        return false;
    /* The test costs time: one after every run would disturb the next runs. */
    turn->check = made + made / 4 + 1;
    return (double)made >= wanted(turn);
}

/* Makes the warm-ups of a turn, then measured runs until they are enough. */
static int run_turn(struct turn *turn, struct duet__session *session, struct duet_message *message)
{
    struct duet__trial *trial = turn->trial;
    int error = duet__session_open(session, message);
    for (size_t i = 0; i < trial->real.warmups && !error; i++)
        error = duet__session_run(session, NULL, DUET_RECORDS_NONE, message);
    do {
        struct duet__run run = {0};
        if (!error)
            error = duet__session_run(session, &run, DUET_RECORDS_ALL, message);
        if (!error && turn->made++ == 0)
            turn->start_s = duet__clock_s() - run.wall_s;
        if (!error &&
            run.recording.machine) /* several processes: only the first one has the records */
            session->error = error = duet__sample_put(&trial->measured, &run, message);
        duet__run_fini(&run);
        trial->spent_s = turn->spent_s + duet__clock_s() - turn->start_s;
    } while (!error && !enough(turn));
    duet__session_close(session);
    return error;
}

/* Notes how fast the machine is, by duet calibrate's measurement: on all cores for computing. */
static void probe(struct duet__experiment *experiment, struct duet__trial *trial)
{
    unsigned cores = duet__platform_cores(experiment->platform);
    unsigned gpus = duet__platform_gpus(experiment->platform);
    if (!(experiment->probed_s > 0) || duet__clock_s() - experiment->probe_at_s > probe_holds_s) {
        experiment->probed_s = duet__probe_seconds(cores > gpus ? cores - gpus : 1);
        experiment->probe_at_s = duet__clock_s();
    }
    g_array_append_val(trial->probes, experiment->probed_s);
}

/* Draws the finished part of all rounds. */
static void draw(const struct duet__experiment *experiment, const struct duet__trial *trial,
                 struct duet__progress *progress)
{
    const struct duet__rounds *rounds = &experiment->rounds;
    const struct duet__request *real = &trial->real;
    double part = (double)rounds->turn / (double)rounds->cases;
    char sizes[48] = "", what[96];
    if (!real->workload->program)
        (void)g_snprintf(sizes, sizeof sizes, ", n %llu, tile %llu",
                         (unsigned long long)real->problem.n,
                         (unsigned long long)real->problem.tile);
    (void)g_snprintf(what, sizeof what, "round %zu/%zu: %s%s, %s", rounds->round + 1,
                     experiment->round_count, real->workload->name, sizes, real->policies[0]);
    duet__progress_say(progress, (part + (double)rounds->round) / (double)experiment->round_count,
                       what);
}

/* Measures one trial in a round, on data. Returns the signal that ended it, or 0. */
static int measure_trial(struct turn *turn, void *data)
{
    struct duet__experiment *experiment = turn->experiment;
    struct duet__trial *trial = turn->trial;
    struct duet__session session = {.request = &trial->real,
                                    .policy = trial->real.policies[0],
                                    .monitor = turn->monitor,
                                    .problem = trial->real.problem,
                                    .quiet =
                                        duet__rounds_opened(&experiment->rounds, (int)trial->cpus,
                                                            (int)trial->gpus)};
    struct duet_message message = {""};
    int error;
    turn->before = duet__sample_count(&trial->measured);
    turn->least = share(experiment);
    turn->spent_s = trial->spent_s;
    if (experiment->probe)
        probe(experiment, trial);
    session.problem.data = data;
    trial->real.seed = experiment->base.seed + experiment->rounds.round;
    trial->real.records = DUET_RECORDS_ALL;
    duet__sample_begin(&trial->measured);
    duet__rounds_look(&experiment->rounds);
    turn->start_s = duet__clock_s();
    error = run_turn(turn, &session, &message);
    /* one's own other nodes do not disturb */
    if (duet__request_nodes(&trial->real) == 1) {
        const struct duet__disturbance load = duet__rounds_load(&experiment->rounds);
        if (load.disturbed)
            duet__sample_disturb(&trial->measured);
        trial->quiet |= !load.by_processes;
    } else {
        trial->quiet = true;
    }
    error = duet__processes_agree(experiment->together, turn->monitor, error, &message);
    if (error < 0)
        duet__trial_fail(trial, "measured", error, &message);
    return error > 0 ? error : 0;
}

/* Gives a trial its turn, unless a process cannot make it. Returns the signal that ended it, or
   0. */
static int take_turn(struct turn *turn)
{
    struct duet__experiment *experiment = turn->experiment;
    struct duet__trial *trial = turn->trial;
    const struct duet__workload *workload = trial->real.workload;
    struct duet__problem problem = trial->real.problem;
    struct duet_message message = {""};
    int error = 0;
    if (trial->failure)
        error = duet_fail(&message, trial->error, "it %s", trial->failure);
    else if (workload->generate && !duet__request_paced(&experiment->base))
        error = duet__rounds_data(&experiment->rounds, 0, workload, &problem, &message);
    error = duet__processes_agree(experiment->together, turn->monitor, error, &message);
    if (error < 0)
        duet__trial_fail(trial, "measured", error, &message);
    return error ? MAX(error, 0) : measure_trial(turn, problem.data);
}

int duet__experiment_measure_round(struct duet__experiment *experiment,
                                   struct duet__monitor *monitor, struct duet__progress *progress)
{
    int ended;
    do {
        struct duet__trial *trial = &experiment->trials[duet__rounds_begin(&experiment->rounds)];
        struct turn turn = {.experiment = experiment, .trial = trial, .monitor = monitor};
        draw(experiment, trial, progress);
        ended = take_turn(&turn);
    } while (!ended && duet__rounds_next(&experiment->rounds));
    duet__rounds_discard(&experiment->rounds);
    return ended;
}

/* ------------------------------------------------------------------------------------------- */
/* Calibration between the rounds of an experiment: its slices, and the use of its results      */

/* Least time that is worth the name, if the runs of the cases take less. */
static const double least_s = 20;

void duet__recalibration_fini(struct duet__recalibration *recalibration)
{
    if (recalibration->timer) {
        duet__calibrating_fini(&recalibration->calibrating);
        duet__request_fini(&recalibration->runs);
        g_timer_destroy(recalibration->timer);
    }
    duet__calibrate_request_fini(&recalibration->request);
    *recalibration = (struct duet__recalibration){0};
}

/* Takes the calibrated platform to predict from. */
static void use_platform(const struct duet__recalibration *recalibration,
                         struct duet__experiment *experiment)
{
    duet__platform_free(experiment->platform);
    experiment->platform = g_new0(struct duet__platform, 1);
    duet__describe_machine(&recalibration->calibrating, experiment->platform);
    g_free(experiment->platform_name);
    experiment->platform_name = g_strdup(experiment->platform->name);
}

/* ------------------------------------------------------------------------------------------- */
/* Before anything is measured                                                                  */

/* Returns the most GPUs of any case; -1: none says how many. */
static int most_gpus(const struct duet__experiment *experiment)
{
    int most = -1;
    for (size_t i = 0; i < experiment->trial_count; i++)
        most = MAX(most, experiment->trials[i].real.config.gpus);
    return most;
}

int duet__recalibration_begin(struct duet__recalibration *recalibration,
                              struct duet__experiment *experiment, struct duet_message *message)
{
    struct duet__request *runs = &recalibration->runs;
    int error;
    recalibration->timer = g_timer_new();
    duet__request_copy(runs, &experiment->base);
    runs->config.seed = runs->seed;
    runs->config.extrapolate = false;
    runs->config.without = NULL;
    /* all existing GPUs, or as many emulated ones as any case has */
    if (runs->config.emulate)
        runs->config.gpus = most_gpus(experiment);
    recalibration->request.runs = runs;
    recalibration->request.subjects = g_array_new(FALSE, FALSE, sizeof(struct duet__setup));
    recalibration->calibrating.request = &recalibration->request;
    error = duet__calibrating_look(&recalibration->calibrating, message);
    if (!error)
        use_platform(recalibration, experiment);
    experiment->probe = true;
    return error;
}

static void add_subject(GArray *subjects, const struct duet__request *real)
{
    const struct duet__setup subject = {.workload = real->workload,
                                        .problem = {.tile = real->problem.tile,
                                                    .precision = real->problem.precision}};
    for (guint i = 0; i < subjects->len; i++) {
        const struct duet__setup *other = &g_array_index(subjects, struct duet__setup, i);
        if (other->workload == subject.workload && other->problem.tile == subject.problem.tile &&
            other->problem.precision == subject.problem.precision)
            return;
    }
    g_array_append_val(subjects, subject);
}

int duet__recalibration_plan(struct duet__recalibration *recalibration,
                             const struct duet__experiment *experiment,
                             struct duet_message *message)
{
    struct duet__calibrate_request *request = &recalibration->request;
    for (size_t i = 0; i < experiment->trial_count; i++)
        if (!experiment->trials[i].failure)
            add_subject(request->subjects, &experiment->trials[i].real);
    request->budget_s = recalibration->time_s > 0 ? recalibration->time_s : least_s;
    return duet__plan_make(&recalibration->calibrating, message);
}

/* ------------------------------------------------------------------------------------------- */
/* While the cases are measured                                                                 */

/* Returns the time for all slices up to this one. */
static double due(const struct duet__recalibration *recalibration,
                  const struct duet__experiment *experiment, double runs_s)
{
    double part = (double)(experiment->rounds.round + 1) / (double)(experiment->round_count + 1);
    return recalibration->time_s > 0 ? part * recalibration->time_s : fmax(part * least_s, runs_s);
}

/*
 * Returns the time of a round over all that is to be measured, so that it fits between two of the
 * cases: sizes of problems are chosen by that.
 */
static double round_time(const struct duet__recalibration *recalibration,
                         const struct duet__experiment *experiment)
{
    double time_s = recalibration->time_s, cases_s = 0;
    if (experiment->until > 0)
        cases_s = experiment->case_time_s * (double)experiment->trial_count / 2;
    if (!(time_s > 0))
        time_s = fmax(least_s, cases_s);
    return time_s / (double)(experiment->round_count + 1);
}

void duet__recalibration_slice(struct duet__recalibration *recalibration,
                               const struct duet__experiment *experiment, double runs_s,
                               struct duet__monitor *monitor)
{
    struct duet__calibrating *c = &recalibration->calibrating;
    double all_s = due(recalibration, experiment, runs_s);
    c->monitor = monitor;
    duet__calibrating_go_on(c);
    if (!experiment->rounds.round)
        duet__calibrating_once(c);
    duet__calibrating_slice(c, all_s - c->paused_s, round_time(recalibration, experiment));
    duet__calibrating_pause(c);
}

/* ------------------------------------------------------------------------------------------- */
/* After the cases were measured                                                                */

bool duet__recalibration_finish(struct duet__recalibration *recalibration,
                                struct duet__experiment *experiment)
{
    struct duet__calibrating *c = &recalibration->calibrating;
    double wall_s = g_timer_elapsed(recalibration->timer, NULL);
    bool minutes = wall_s >= 120;
    g_free(experiment->calibrated);
    experiment->calibrated =
        g_strdup_printf("calibrated in the same %.0f %s: %u runs", wall_s / (minutes ? 60 : 1),
                        minutes ? "minutes" : "seconds", c->runs->len);
    /* no monitor attends to signals any more */
    c->monitor = NULL;
    if (c->runs->len)
        duet__calibrating_fit(c);
    if (!c->model.quality_count)
        return false;
    use_platform(recalibration, experiment);
    duet__trials_rebuild(experiment);
    return true;
}
