/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that `duet calibrate` measures, one after another, within the time it may take. */
#include "cli/calibrate.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "cli/command.h"
#include "cli/probe.h"

enum { TASKS_ENOUGH = 2000000 /* executions, whose records are kept until the end */ };

/* Parts of the whole time. */
static const double costs_share = 0.15, bandwidth_share = 0.05, copies_share = 0.2;
/* Of the time that the items of a group have in a round: the longest run, alone and of cold data,
   which is filled in, and beside which the others are short. */
static const double longest_share = 0.4;

/* All of it under way. */
struct measuring {
    const struct duet__wish *wish;
    struct duet__found *found;
    struct duet__attendant attendant;
    struct duet__progress bar;
    double start_s;
    char what[96]; /* what is being measured, for people */
    struct duet_message message;
};

static double wall_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double elapsed(const struct measuring *m)
{
    return wall_clock() - m->start_s;
}

static bool given_up(struct measuring *m)
{
    return duet__attendant_signal(&m->attendant) != 0;
}

/* Draws a bar of the time that has passed. */
static void draw(struct measuring *m)
{
    enum { WIDTH = 30 };
    double share = fmin(elapsed(m) / m->wish->budget_s, 1);
    char bar[WIDTH + 1];

    if (!m->bar.shown)
        return;
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < (int)(share * WIDTH) ? '#' : '.';
    bar[WIDTH] = 0;
    fprintf(stderr, "\r[%s] %3.0f %%  %s\033[K", bar, share * 100, m->what);
    fflush(stderr);
    m->bar.drawn = true;
}

static void G_GNUC_PRINTF(2, 3) begin(struct measuring *m, const char *format, ...)
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

static int measure_costs(struct measuring *m)
{
    const struct duet__wish *wish = m->wish;
    int error;

    /* at a platform's pace its costs are in its description */
    if (wish->no_costs || wish->paced)
        return 0;
    begin(m, "the runtime's own operations");
    error = duet__costs_measure(&wish->job.config, costs_share * wish->budget_s, stop, m,
                                m->found->costs, &m->message);
    m->found->has_costs = !error;
    return error;
}

static int measure_bandwidth(struct measuring *m)
{
    const struct duet__wish *wish = m->wish;

    if (wish->paced)
        return 0;
    begin(m, "memory's bandwidth");
    return duet__bandwidth_measure(&wish->job.config, bandwidth_share * wish->budget_s, stop, m,
                                   &m->found->bandwidth, &m->message);
}

static int measure_copies(struct measuring *m)
{
    const struct duet__wish *wish = m->wish;
    int error;

    if (wish->no_copies || !m->found->gpus)
        return 0;
    begin(m, "copies");
    error = duet__copies_measure(&wish->job.config, copies_share * wish->budget_s, stop, m,
                                 &m->found->copies, &m->message);
    m->found->has_copies = !error;
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* Rounds                                                                                       */

static int visit(struct measuring *m, struct duet__item *item, double fair_s, double slice_s)
{
    const struct duet__visit visit = {
        .wish = m->wish,
        .found = m->found,
        .item = item,
        .attendant = &m->attendant,
        .slice_s = slice_s,
    };
    const struct duet_problem *problem = &item->problem;

    duet__item_size(m->found, item, fair_s);
    begin(m, "%s, n %llu, tile %llu, %c, %s", item->workload->name, (unsigned long long)problem->n,
          (unsigned long long)problem->tile, problem->precision, duet__item_workers(item));
    return duet__visit_make(&visit, &m->message);
}

/* Executions that are in the records. */
static uint64_t tasks(const struct duet__found *found)
{
    uint64_t sum = 0;

    for (guint i = 0; i < found->items->len; i++)
        sum += g_array_index(found->items, struct duet__item, i).tasks;
    return sum;
}

/* Whether there is to be one more round, if it takes as long as the last one. */
static bool another(const struct measuring *m, double last_s)
{
    const struct duet__found *found = m->found;

    if (m->wish->rounds)
        return found->rounds < m->wish->rounds;
    return found->rounds == 0 ||
           (elapsed(m) + last_s <= m->wish->budget_s && tasks(found) < TASKS_ENOUGH);
}

/* Round after round over all items, so that a machine that changes changes for all of them. */
static int make_rounds(struct measuring *m)
{
    struct duet__found *found = m->found;
    double begun = elapsed(m), last_s = 0;
    double round_s = fmax(m->wish->budget_s - begun, 0.1) / DUET__ROUNDS;
    int error = 0;

    while (!error && !given_up(m) && another(m, last_s)) {
        double start = elapsed(m);

        for (guint i = 0; i < found->items->len && !error && !given_up(m); i++)
            error = visit(m, &g_array_index(found->items, struct duet__item, i),
                          longest_share * round_s / found->groups, round_s / found->items->len / 2);
        last_s = elapsed(m) - start;
        found->rounds++;
    }
    found->runs_s = elapsed(m) - begun;
    return error;
}

/* ------------------------------------------------------------------------------------------- */
/* All of it                                                                                    */

static int fit(struct measuring *m)
{
    struct duet__found *found = m->found;
    const struct duet__measured *task = &found->costs[DUET__COST_POP];
    const struct duet__model_options options = {
        .sharing = found->known,
        .task_overhead_s = found->has_costs && task->samples ? task->median_s : 0,
    };
    struct duet__observation *runs = g_new0(struct duet__observation, found->taken->len);
    int error;

    begin(m, "fitting");
    for (guint i = 0; i < found->taken->len; i++)
        runs[i] = ((const struct duet__taken *)found->taken->pdata[i])->observation;
    error = duet__model_fit(runs, found->taken->len, &options, &found->model, &m->message);
    g_free(runs);
    return error;
}

static int measure_all(struct measuring *m)
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
    if (!error && !given_up(m))
        error = make_rounds(m);
    if (!error && !given_up(m))
        error = fit(m);
    return error;
}

/* What there is to be measured on. Exit status. */
static int look(const struct duet__wish *wish, struct duet__found *found)
{
    struct duet_message message = {""};
    int error = duet__info_open(&found->info, &wish->job.config, &message);

    if (!error && found->info.error)
        error = duet_fail(&message, found->info.error, "%s", found->info.why.text);
    if (error)
        return duet__job_refuse(error, &message);
    found->pace = wish->paced && wish->job.config.scale > 0 ? wish->job.config.scale : 1;
    for (unsigned w = 0; w < found->info.machine.worker_count; w++) {
        found->cpus += found->info.machine.workers[w].node == DUET_HOST;
        found->gpus += found->info.machine.workers[w].node != DUET_HOST;
    }
    if (!found->cpus)
        return duet__complain(DUET__MISUSED, "no CPU computes on this machine, all of them feed "
                                             "GPUs: use fewer (--gpus)");
    if (!wish->paced)
        duet__caches_find(&found->known);
    error = duet__plan_make(wish, found, &message);
    return error ? duet__job_refuse(error, &message) : DUET__DONE;
}

int duet__measure(const struct duet__wish *wish, struct duet__found *found)
{
    struct measuring m = {.wish = wish, .found = found, .start_s = wall_clock()};
    struct duet__stolen before = duet__stolen_now();
    int status = look(wish, found), error;

    if (status != DUET__DONE)
        return status;
    found->taken = g_ptr_array_new();
    duet__attendant_start(&m.attendant, false, 0, 0);
    duet__progress_init(&m.bar, !wish->job.quiet, 0, 0);
    error = measure_all(&m);
    duet__progress_clear(&m.bar);
    duet__attendant_stop(&m.attendant);
    found->number = duet__attendant_signal(&m.attendant);
    found->wall_s = elapsed(&m);
    found->steal_share = duet__stolen_share(before, duet__stolen_now());
    /* what a cancelled measurement says of itself is no news */
    if (!error || found->number)
        return DUET__DONE;
    return duet__job_complain(m.what, error, &m.message);
}
