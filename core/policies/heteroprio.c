/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heteroprio: ready tasks wait in buckets by speed-up, the shortest expected time on CPUs over the
 * shortest on devices. Devices take from the bucket of the highest, CPUs from that of the lowest,
 * and in a bucket by priority. A CPU leaves a bucket to faster devices that would end all of it
 * before the CPU one task: StarPU's slow factor, here from expected times. Devices leave nothing,
 * so that each task is taken, however expected times change meanwhile.
 *
 * The paper has a bucket for each kind of task, in an order given for each kind of worker. Here the
 * order follows from the speed-up, as in StarPU's newer versions: speed-ups that differ by less
 * than a fifth share a bucket. With nod=1 the task that releases most is first in a bucket (one of
 * the heuristics of Flint, Paillat, Bramas, PeerJ Computer Science 2022). Beaumont, Eyraud-Dubois
 * and Kumar (IPDPS 2017) prove bounds for a version that restarts begun tasks on an idle worker
 * that ends them earlier (spoliation). Kernels cannot be stopped: here only tasks that were taken
 * and not begun move.
 */
#include <math.h>

#include <duet/policy.h>

enum { BUCKETS = 64, EVEN = 16 }; /* EVEN: bucket of a speed-up of 1 */
enum { SLOW, NOD, REVOKE };

struct buckets {
    struct duet_list *lists[BUCKETS];
};

static int heteroprio_init(void *self, struct duet_view *view)
{
    struct buckets *buckets = self;
    for (unsigned i = 0; i < BUCKETS; i++) {
        buckets->lists[i] = duet_view_new_list(view, DUET_SORTED);
        if (!buckets->lists[i])
            return DUET_ENOMEM;
    }
    return DUET_OK;
}

/*
 * Returns the bucket of a task: the first is for tasks of CPUs alone, the last for those of devices
 * alone.
 */
static unsigned heteroprio_bucket(const struct duet_view *view, const struct duet_task *task)
{
    double best[2] = {INFINITY, INFINITY};
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        double *own = &best[duet_view_is_device(view, w)];
        if (duet_view_can_run(view, w, task))
            *own = fmin(*own, duet_view_seconds(view, w, task));
    }
    if (isinf(best[0]) || isinf(best[1]))
        return isinf(best[1]) ? 0 : BUCKETS - 1;
    double speedup = best[0] > 0 && best[1] > 0 ? best[0] / best[1] : 1;
    double place = EVEN + round(log(speedup) / log(1.2));
    return (unsigned)fmin(fmax(place, 1), BUCKETS - 2);
}

static void heteroprio_push(void *self, struct duet_view *view, struct duet_task **batch,
                            size_t count, int by, double now)
{
    const struct buckets *buckets = self;
    bool nod = duet_view_parameter(view, NOD) > 0;
    for (size_t i = 0; i < count; i++)
        duet_push_sorted(view, buckets->lists[heteroprio_bucket(view, batch[i])], batch[i],
                         nod ? duet_task_successors(batch[i]).normalised
                             : duet_task_priority(batch[i]));
}

/* The bucket in which a CPU worker searches. */
struct offer {
    unsigned worker;
    size_t waiting;
};

/*
 * Scores a task: INFINITY: the worker takes the first task; NAN: it leaves all that the same
 * workers can run.
 */
static double heteroprio_score(void *context, const struct duet_view *view,
                               const struct duet_task *task)
{
    const struct offer *offer = context;
    double own = duet_view_seconds(view, offer->worker, task), best = INFINITY;
    unsigned devices = 0;
    for (unsigned w = 0; w < duet_view_workers(view); w++) {
        if (!duet_view_is_device(view, w) || !duet_view_can_run(view, w, task))
            continue;
        devices++;
        best = fmin(best, duet_view_seconds(view, w, task));
    }
    if (!devices || best >= own)
        return INFINITY;
    double through = (double)offer->waiting / devices * best;
    return through >= duet_view_parameter(view, SLOW) * own ? INFINITY : NAN;
}

static struct duet_task *heteroprio_pop(void *self, struct duet_view *view, unsigned worker,
                                        double now)
{
    const struct buckets *buckets = self;
    bool device = duet_view_is_device(view, worker);
    struct duet_task *task = duet_pop_head(view, duet_view_list(view, worker), worker);
    for (unsigned i = 0; i < BUCKETS && !task; i++) {
        struct duet_list *list = buckets->lists[device ? BUCKETS - 1 - i : i];
        struct offer offer = {worker, duet_list_length(list)};
        if (device)
            task = duet_pop_head(view, list, worker);
        else if (offer.waiting)
            task = duet_pop_best(view, list, worker, heteroprio_score, &offer);
    }
    return task;
}

/*
 * Revokes only for a worker that is no slower with the task: data that CPUs take from devices has
 * to come back.
 */
static int heteroprio_revoke(void *self, struct duet_view *view, const struct duet_task *task,
                             unsigned victim, double begin_s, double now)
{
    int thief =
        duet_view_sooner(view, task, victim, begin_s - now, duet_view_parameter(view, REVOKE));
    bool slower = thief >= 0 && duet_view_seconds(view, (unsigned)thief, task) >
                                    duet_view_seconds(view, victim, task);
    return slower ? -1 : thief;
}

static const struct duet_policy_parameter parameters[] = {
    [SLOW] = {"slow", 1, 0, 1000,
              "CPUs: how long devices must have with a bucket, in own times; 0: any"},
    [NOD] = {"nod", 0, 0, 1, "1: in a bucket by what tasks release, not by priority"},
    [REVOKE] =
        {"revoke", 2, 0, 1000,
         "own times of an idle worker in which it must end what another has taken; 0: never"},
    {NULL},
};

const struct duet_policy duet__policy_heteroprio = {
    .name = "heteroprio",
    .description = "buckets by speed-up: devices take the highest, CPUs the lowest",
    .source = "Agullo, Bramas, Coulaud, Darve, Messner, Takahashi, CCPE 2016 (HeteroPrio)",
    .order = DUET_DEQUE,
    .may_decline = true,
    .state_size = sizeof(struct buckets),
    .parameters = parameters,
    .init = heteroprio_init,
    .push = heteroprio_push,
    .pop = heteroprio_pop,
    .revoke = heteroprio_revoke,
};
