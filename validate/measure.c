/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the measured runs of an experiment. Neighbours that compute on the same data share it. */
#include "calibrate/load.h"
#include "runs/processes.h"
#include "runs/session.h"
#include "validate/experiment.h"
#include "base/stats.h"
#include "base/clock.h"

enum { RUNS_MOST = 1000 /* most measured runs of a case to know its median */ };

/* Seconds from the end of a probe on for which its result is used. */
static const double probe_holds_s = 2;

/* A round under way. */
struct round {
    struct duet__experiment *experiment;
    size_t number;
    struct duet__monitor *monitor;
    struct duet__progress *progress;
};

/* A turn: the runs of a trial in a round. */
struct turn {
    const struct round *round;
    struct duet__trial *trial;
    size_t before, made;     /* runs before, and since then; counts also runs that only the first
                                node knows */
    size_t least, check;     /* least number of runs; number of runs at which to look again */
    double start_s, spent_s; /* date of the first measured run; seconds of the runs before */
};

/* Returns the least number of measured runs of a case in a round. */
static size_t share(const struct round *round)
{
    size_t reps = round->experiment->base.reps, rounds = round->experiment->rounds;

    return MAX(reps / rounds + (round->number < reps % rounds), 1);
}

/*
 * Returns the runs of a turn after which the median would be known well enough with as many in each
 * of the following rounds, if rounds did not differ: an interval narrows with the square root of
 * their number. More runs in one round cannot help against differences between rounds.
 */
static double wanted(const struct turn *turn)
{
    const struct duet__experiment *experiment = turn->round->experiment;
    double count = (double)duet__sample_count(&turn->trial->measured);
    double ratio = duet__sample_width_within(&turn->trial->measured) / experiment->until;
    double left = (double)(experiment->rounds - turn->round->number);

    return (count * ratio * ratio - (double)turn->before) / left;
}

/* True if the runs of a turn are enough, and those of the rounds so far have had their time. */
static bool enough(struct turn *turn)
{
    const struct duet__experiment *experiment = turn->round->experiment;
    const struct duet__trial *trial = turn->trial;
    double part = (double)(turn->round->number + 1) / (double)experiment->rounds;
    size_t made = turn->made;

    if (made < turn->least)
        return false;
    if (!(experiment->until > 0) || trial->spent_s >= part * experiment->case_time_s ||
        (double)duet__sample_count(&trial->measured) >= part * RUNS_MOST)
        return true;
    if (made < turn->check)
        return false;
    /* Looking after every run would disturb the next ones. */
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
        if (!error && run.recording.machine) /* the first of several processes has it */
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

/* True if a runtime with as many workers was opened before, and has printed its remarks. */
static bool was_opened(const struct round *round, const struct duet__trial *trial)
{
    for (const struct duet__trial *other = round->experiment->trials; other < trial; other++)
        if (!other->failure && other->cpus == trial->cpus && other->gpus == trial->gpus)
            return true;
    return round->number > 0;
}

/*
 * True in every other round, which goes through the cases backward (ABBA): a machine that becomes
 * steadily slower or faster, or an effect that lasts from one case to the next, is alike for all.
 */
static bool backward(const struct round *round)
{
    return round->number % 2 == 1;
}

/* Draws the finished part of all rounds. */
static void draw(const struct round *round, const struct duet__trial *trial)
{
    const struct duet__experiment *experiment = round->experiment;
    const struct duet__request *real = &trial->real;
    double part = (double)(trial - experiment->trials) / (double)experiment->trial_count;
    double done = backward(round) ? 1 - part : part;
    char sizes[48] = "", what[96];

    if (!real->workload->program)
        (void)g_snprintf(sizes, sizeof sizes, ", n %llu, tile %llu",
                         (unsigned long long)real->problem.n,
                         (unsigned long long)real->problem.tile);
    (void)g_snprintf(what, sizeof what, "round %zu/%zu: %s%s, %s", round->number + 1,
                     experiment->rounds, real->workload->name, sizes, real->policies[0]);
    duet__progress_say(round->progress, (done + (double)round->number) / (double)experiment->rounds,
                       what);
}

/* Notes if others used the cores since `before`, while runs of the trial were made. */
static void note_load(const struct round *round, struct duet__trial *trial,
                      const struct duet__load *before)
{
    const struct duet__load now = duet__load_now();
    GArray *rounds = round->experiment->disturbed;
    size_t number = round->number + 1;

    /* one's own other nodes do not disturb */
    if (duet__request_nodes(&trial->real) > 1 || !duet__load_between(before, &now).disturbed)
        return;
    duet__sample_disturb(&trial->measured);
    if (!rounds->len || g_array_index(rounds, size_t, rounds->len - 1) != number)
        g_array_append_val(rounds, number);
}

/* Measures one trial in a round. Returns the signal that ended it, or 0. */
static int measure_trial(const struct round *round, struct duet__trial *trial, void *data)
{
    struct duet__experiment *experiment = round->experiment;
    struct turn turn = {.round = round,
                        .trial = trial,
                        .before = duet__sample_count(&trial->measured),
                        .least = share(round),
                        .spent_s = trial->spent_s,
                        .start_s = duet__clock_s()};
    struct duet__session session = {.request = &trial->real,
                                    .policy = trial->real.policies[0],
                                    .monitor = round->monitor,
                                    .problem = trial->real.problem,
                                    .quiet = was_opened(round, trial)};
    struct duet_message message = {""};
    struct duet__load before;
    int error;

    draw(round, trial);
    if (experiment->probe)
        probe(experiment, trial);
    session.problem.data = data;
    trial->real.seed = experiment->base.seed + round->number;
    trial->real.records = DUET_RECORDS_ALL;
    duet__sample_begin(&trial->measured);
    before = duet__load_now();
    error = run_turn(&turn, &session, &message);
    note_load(round, trial, &before);
    error = duet__processes_agree(experiment->together, round->monitor, error, &message);
    if (error < 0)
        duet__trial_fail(trial, "measured", error, &message);
    return error > 0 ? error : 0;
}

/* Measures the trials from `first` on, to `*end`, that share its data. Returns the signal that
   ended it, or 0. */
static int measure_group(const struct round *round, size_t first, size_t *end)
{
    const struct duet__experiment *experiment = round->experiment;
    struct duet__trial *trials = experiment->trials;
    const struct duet__request *real = NULL;
    struct duet_message generating = {""};
    void *data = NULL;
    int error = 0, number = 0;

    for (*end = first; *end < experiment->trial_count && trials[*end].group == trials[first].group;
         ++*end)
        if (!real && !trials[*end].failure)
            real = &trials[*end].real;
    if (real && real->workload->generate && !duet__request_paced(&experiment->base))
        error = real->workload->generate(real->workload, &real->problem, &data, &generating);
    for (size_t i = first; i < *end && !number; i++) {
        struct duet__trial *trial = &trials[backward(round) ? first + *end - 1 - i : i];
        struct duet_message message = generating;
        int own = error, of_all;

        if (trial->failure)
            own = duet_fail(&message, trial->error, "it %s", trial->failure);
        /* a trial that one process cannot make is left out by all */
        of_all = duet__processes_agree(experiment->together, round->monitor, own, &message);
        if (of_all < 0)
            duet__trial_fail(trial, "measured", of_all, &message);
        else
            number = of_all ? of_all : measure_trial(round, trial, data);
    }
    if (data)
        real->workload->discard(data);
    return number;
}

static size_t first_of_group(const struct duet__experiment *experiment, size_t trial)
{
    while (trial && experiment->trials[trial - 1].group == experiment->trials[trial].group)
        trial--;
    return trial;
}

int duet__experiment_measure_round(struct duet__experiment *experiment, size_t number,
                                   struct duet__monitor *monitor, struct duet__progress *progress)
{
    const struct round round = {experiment, number, monitor, progress};
    int ended = 0;

    for (size_t made = 0; made < experiment->trial_count && !ended;) {
        size_t first = made, end;

        if (backward(&round))
            first = first_of_group(experiment, experiment->trial_count - made - 1);
        ended = measure_group(&round, first, &end);
        made += end - first;
    }
    return ended;
}
