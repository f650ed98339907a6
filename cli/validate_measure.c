/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of `duet validate`. Every case has some of its runs in each round, so that a machine
 * that becomes slower or faster meanwhile does so for all of them; neighbours that compute on the
 * same data share it.
 */

#include "runs/monitor.h"
#include "cli/command.h"
#include "cli/probe.h"
#include "cli/validate.h"
#include "runs/real.h"
#include "validate/stats.h"
#include "world/clock.h"

enum { RUNS_MOST = 1000 /* measured ones of a case that are made to know its median */ };

/* All of it under way. */
struct measuring {
    struct duet_monitor monitor;
    struct duet_progress bar;
    double runs_s; /* of the rounds so far */
};

static bool given_up(struct measuring *measuring)
{
    return duet_monitor_signal(&measuring->monitor) != 0;
}

/* Seconds from the end of a probe on for which it is taken to hold. */
static const double probe_holds_s = 2;

/* The runs of a pair in a round. */
struct turn {
    const struct duet__validate *validate;
    struct duet__case_pair *pair;
    size_t round, before, least, check; /* runs before; at least; at which to look again */
    double start_s, spent_s;            /* when the first measured run began; before */
};

/* Measured runs of a case in a round, at least. */
static size_t share(const struct duet__validate *validate, size_t round)
{
    size_t runs = validate->reps / validate->rounds + (round < validate->reps % validate->rounds);

    return MAX(runs, 1);
}

/*
 * The runs of a turn after which the median would be known well enough with as many in each of the
 * rounds that follow, if rounds did not differ: an interval narrows with the square root of their
 * number. That rounds do differ is nothing that more runs in one of them could help against.
 */
static double wanted(const struct turn *turn)
{
    double count = (double)turn->pair->measured.count;
    double ratio = duet__side_width_within(&turn->pair->measured) / turn->validate->until;
    double left = (double)(turn->validate->rounds - turn->round);

    return (count * ratio * ratio - (double)turn->before) / left;
}

/* Whether the runs of a turn are enough, and those of the rounds so far have had their time. */
static bool enough(struct turn *turn)
{
    const struct duet__validate *validate = turn->validate;
    struct duet__case_pair *pair = turn->pair;
    double part = (double)(turn->round + 1) / (double)validate->rounds;
    size_t made = pair->measured.count - turn->before;

    if (made < turn->least)
        return false;
    if (!(validate->until > 0) || pair->spent_s >= part * validate->case_time_s ||
        (double)pair->measured.count >= part * RUNS_MOST)
        return true;
    if (made < turn->check)
        return false;
    /* what is looked at after every run would disturb the next ones */
    turn->check = made + made / 4 + 1;
    return (double)made >= wanted(turn);
}

/* The warm-ups of a turn, then measured runs until they are enough. */
static int run_turn(struct turn *turn, struct duet_session *session, struct duet_message *message)
{
    struct duet__case_pair *pair = turn->pair;
    int error = duet_session_open(session, message);

    for (size_t i = 0; i < pair->real.warmups && !error; i++)
        error = duet_session_run(session, NULL, DUET_RECORDS_NONE, message);
    do {
        struct duet_run run = {0};

        if (!error)
            error = duet_session_run(session, &run, DUET_RECORDS_ALL, message);
        if (!error && pair->measured.count == turn->before)
            turn->start_s = duet__clock_s() - run.wall_s;
        if (!error)
            error = duet__side_put(&pair->measured, &run, message);
        duet_run_fini(&run);
        pair->spent_s = turn->spent_s + duet__clock_s() - turn->start_s;
    } while (!error && !enough(turn));
    duet_session_close(session);
    return duet_monitor_signal(session->monitor) ? 0 : error;
}

/* Notes how fast the machine is, measured as duet calibrate does: on all cores for computing. */
static void probe(struct duet__validate *validate, struct duet__case_pair *pair)
{
    unsigned cores = duet_platform_cores(validate->platform);
    unsigned gpus = duet_platform_gpus(validate->platform);

    if (!(validate->probed_s > 0) || duet__clock_s() - validate->probe_at_s > probe_holds_s) {
        validate->probed_s = duet__probe_seconds(cores > gpus ? cores - gpus : 1);
        validate->probe_at_s = duet__clock_s();
    }
    g_array_append_val(pair->probes, validate->probed_s);
}

/* Whether a runtime with as many workers has been opened, and has said what is to be said of it. */
static bool was_opened(const struct duet__validate *validate, const struct duet__case_pair *pair,
                       size_t round)
{
    for (const struct duet__case_pair *other = validate->pairs; other < pair; other++)
        if (!other->failure && other->cpus == pair->cpus && other->gpus == pair->gpus)
            return true;
    return round > 0;
}

/* Draws how much of all rounds is done. */
static void draw(const struct duet__validate *validate, const struct duet__case_pair *pair,
                 size_t round, struct duet_progress *bar)
{
    const struct duet_request *real = &pair->real;
    double done = (double)(pair - validate->pairs) / (double)validate->pair_count + (double)round;
    char what[96];

    (void)g_snprintf(what, sizeof what, "round %zu/%zu: %s, n %llu, tile %llu, %s", round + 1,
                     validate->rounds, real->workload->name, (unsigned long long)real->problem.n,
                     (unsigned long long)real->problem.tile, real->policies[0]);
    duet_progress_say(bar, done / (double)validate->rounds, what);
}

static void measure_pair(struct duet__validate *validate, struct duet__case_pair *pair,
                         size_t round, struct measuring *measuring, void *data)
{
    struct turn turn = {.validate = validate,
                        .pair = pair,
                        .round = round,
                        .before = pair->measured.count,
                        .least = share(validate, round),
                        .spent_s = pair->spent_s,
                        .start_s = duet__clock_s()};
    struct duet_session session = {.request = &pair->real,
                                   .policy = pair->real.policies[0],
                                   .monitor = &measuring->monitor,
                                   .problem = pair->real.problem,
                                   .quiet = was_opened(validate, pair, round)};
    struct duet_message message = {""};
    int error;

    draw(validate, pair, round, &measuring->bar);
    if (!validate->paced && (validate->calibrating || validate->platform->probe_s > 0))
        probe(validate, pair);
    session.problem.data = data;
    pair->real.seed = validate->job.request.seed + round;
    pair->real.records = DUET_RECORDS_ALL;
    duet__side_begin(&pair->measured);
    error = run_turn(&turn, &session, &message);
    if (error)
        duet__pair_fail(pair, "measured", error, &message);
}

/* Those of the pairs from `first` on that share its data. Returns the one after them. */
static size_t measure_group(struct duet__validate *validate, size_t first, size_t round,
                            struct measuring *measuring)
{
    size_t end = first;
    const struct duet_request *real = NULL;
    struct duet_message message = {""};
    void *data = NULL;
    int error = 0;

    for (; end < validate->pair_count && validate->pairs[end].group == validate->pairs[first].group;
         end++)
        if (!real && !validate->pairs[end].failure)
            real = &validate->pairs[end].real;
    if (real && !validate->paced)
        error = real->workload->generate(&real->problem, &data, &message);
    for (size_t i = first; i < end && !duet_monitor_signal(&measuring->monitor); i++) {
        struct duet__case_pair *pair = &validate->pairs[i];

        if (pair->failure)
            continue;
        if (error)
            duet__pair_fail(pair, "measured", error, &message);
        else
            measure_pair(validate, pair, round, measuring, data);
    }
    if (data)
        real->workload->discard(data);
    return end;
}

static void measure_round(struct duet__validate *validate, size_t round,
                          struct measuring *measuring)
{
    double start_s = duet__clock_s();

    for (size_t i = 0; i < validate->pair_count && !given_up(measuring);)
        i = measure_group(validate, i, round, measuring);
    measuring->runs_s += duet__clock_s() - start_s;
}

/* Calibrates, where that is to be done in between. Exit status. */
static int calibrate(struct duet__validate *validate, size_t round, struct measuring *measuring)
{
    if (!validate->calibrating || given_up(measuring))
        return DUET__DONE;
    duet_progress_say(&measuring->bar, (double)round / (double)validate->rounds, "calibrating");
    return duet__calibrating_slice(validate, round, measuring->runs_s, &measuring->monitor);
}

int duet__validate_measure(struct duet__validate *validate)
{
    struct measuring measuring = {.runs_s = 0};
    double start_s = duet__clock_s();
    int status;

    duet_monitor_start(&measuring.monitor, false, 0, 0);
    duet_progress_init(&measuring.bar, !validate->job.quiet, 0, 0);
    status = calibrate(validate, 0, &measuring);
    for (size_t round = 0; round < validate->rounds && status == DUET__DONE; round++) {
        if (given_up(&measuring) ||
            (round && validate->budget_s > 0 && duet__clock_s() - start_s >= validate->budget_s))
            break;
        measure_round(validate, round, &measuring);
        status = calibrate(validate, round + 1, &measuring);
    }
    duet_progress_clear(&measuring.bar);
    duet_monitor_stop(&measuring.monitor);
    validate->number = duet_monitor_signal(&measuring.monitor);
    return status;
}

double duet__pair_speed(const struct duet__validate *validate, const struct duet__case_pair *pair)
{
    struct duet_summary summary;

    if (!pair->probes || !pair->probes->len ||
        duet_summarise((const double *)(void *)pair->probes->data, pair->probes->len, &summary,
                       NULL) ||
        !(summary.median > 0))
        return 0;
    return validate->platform->probe_s / summary.median;
}
