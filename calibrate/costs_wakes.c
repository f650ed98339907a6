/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a CPU worker that has nothing to do takes to begin a task, by how long it has had
 * nothing to do: at first it watches, then it sleeps.
 */
#include <math.h>
#include <sched.h>
#include <stdatomic.h>

#include "calibrate/lab.h"

enum {
    WAKES = 60,
    WAKES_LEAST = 5,
    TRIALS = 9, /* for each time of having nothing to do */
};

static const double ASLEEP_S = 2e-3; /* after so long it sleeps for sure */
static const double FIRST_S = 5e-6;  /* of the search for when it falls asleep */
static const double LAST_S = 1e-3, STEP = 1.25;
static const double NAP_S = 2e-4; /* shorter times are passed without sleeping */
static const double WATCH_S = 1e-3;
static const double CLEAR = 4;    /* times longer is clearly longer: a change of threads is not */
static const double SHARE = 0.25; /* of the time that is left */

struct waking {
    struct duet__lab *lab;
    struct duet_codelet *stamp;
    double submit_s;
    _Atomic(double) began_s; /* of the last kernel; 0: not yet */
    _Atomic(int) processor;  /* that it ran on */
    double idle_since_s;
};

static int run_stamp(const struct duet_call *call)
{
    struct waking *waking = *(struct waking *const *)call->args;
    atomic_store(&waking->processor, sched_getcpu());
    atomic_store(&waking->began_s, duet__clock_s());
    return DUET_OK;
}

static void pass_until(double date_s)
{
    double left_s;
    while ((left_s = date_s - duet__clock_s()) > 0)
        if (left_s >= NAP_S)
            g_usleep((gulong)((left_s - NAP_S / 2) * G_USEC_PER_SEC));
}

/* Seconds until a task for the second worker begins, which has had nothing to do for `idle_s`. */
static double wake_once(struct waking *waking, double idle_s)
{
    double begin_s;
    pass_until(waking->idle_since_s + idle_s);
    atomic_store(&waking->began_s, 0);
    begin_s = duet__clock_s();
    duet__lab_submit(waking->lab, waking->stamp, 1, NULL, 0, waking);
    /* a wait would put this thread to sleep, too, and when it woke the other one would sleep again;
       one that does not come to begin because this thread has its core is waited for in the end */
    while (atomic_load(&waking->began_s) == 0 && duet__clock_s() < begin_s + WATCH_S)
        ;
    duet__lab_wait(waking->lab);
    waking->idle_since_s = atomic_load(&waking->began_s);
    return fmax(0, waking->idle_since_s - begin_s - waking->submit_s);
}

static void measure_wakes(struct waking *waking, struct duet__measured *wake)
{
    double end_s = duet__lab_share(waking->lab, SHARE);
    GArray *values = g_array_new(FALSE, FALSE, sizeof(double));
    (void)wake_once(waking, 0); /* the first one finds everything cold */
    while (duet__lab_more(waking->lab, values->len, WAKES_LEAST, WAKES, end_s)) {
        double wake_s = wake_once(waking, ASLEEP_S);
        g_array_append_val(values, wake_s);
    }
    duet__measured_set(wake, values);
}

/* Of the latencies of some trials, the `rank`-th shortest. */
static double try_idle(struct waking *waking, double idle_s, unsigned rank)
{
    double latencies_s[TRIALS] = {0};
    for (unsigned i = 0; i < TRIALS && duet__lab_goes_on(waking->lab); i++)
        latencies_s[i] = wake_once(waking, idle_s);
    duet_sort(latencies_s, TRIALS);
    return latencies_s[rank];
}

/*
 * Between times after which it begins at once and those after which it begins as late as when it
 * sleeps: the first that is nearer, by its logarithm, to the latter. Other programs make some later
 * and none earlier, so short ones count.
 */
static void search_spin(struct waking *waking, double long_s, struct duet__measured *spin)
{
    double short_s = try_idle(waking, FIRST_S, 0), idle_s = FIRST_S;
    spin->why = "workers do not watch before they sleep here, or waking one is as quick";
    if (!(long_s > CLEAR * short_s))
        return;
    spin->why = "no such time below 1 ms was found";
    for (size_t tries = 1; idle_s < LAST_S && duet__lab_goes_on(waking->lab); tries++) {
        double latency_s = try_idle(waking, idle_s * STEP, TRIALS / 4);
        if (latency_s * latency_s > short_s * long_s) {
            double middle_s = idle_s * sqrt(STEP);
            spin->times = (struct duet_summary){.count = tries * TRIALS,
                                                .quartile1 = idle_s,
                                                .median = middle_s,
                                                .mean = middle_s,
                                                .quartile3 = idle_s * STEP};
            spin->why = NULL;
            return;
        }
        idle_s *= STEP;
    }
}

/*
 * The worker is bound to its core, and the scheduler likes to run this thread there while that
 * sleeps: each would then take the core from the other, so this thread keeps off it, if it may.
 */
void duet__costs_wakes(struct duet__lab *lab, struct duet__measured *costs)
{
    struct waking waking = {.lab = lab, .submit_s = costs[DUET__COST_SUBMIT].times.median};
    cpu_set_t before, others;
    bool known = sched_getaffinity(0, sizeof before, &before) == 0;
    int processor;
    if (lab->cpus < 2)
        return;
    waking.stamp = duet__lab_kernel(lab, "calibrate_stamp", run_stamp);
    (void)wake_once(&waking, 0);
    processor = atomic_load(&waking.processor);
    others = before;
    if (known && processor >= 0 && processor < CPU_SETSIZE) {
        CPU_CLR((size_t)processor, &others);
        if (CPU_COUNT(&others))
            (void)sched_setaffinity(0, sizeof others, &others);
    }
    measure_wakes(&waking, &costs[DUET__COST_WAKE]);
    search_spin(&waking, costs[DUET__COST_WAKE].times.quartile1, &costs[DUET__COST_SPIN]);
    if (known)
        (void)sched_setaffinity(0, sizeof before, &before);
}
