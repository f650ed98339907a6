/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a CPU worker that has nothing to do takes to begin a task, by how long it has had
 * nothing to do: at first it watches, then it sleeps.
 */
#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "calibrate/lab.h"
#include "validate/stats.h"

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
static const double SHARE = 0.25; /* of the budget that is left */

struct waking {
    struct duet__costing *costing;
    struct duet__lab lab;
    struct duet_codelet *stamp;
    _Atomic(double) began_s; /* of the last kernel; 0: not yet */
    _Atomic(int) processor;  /* that it ran on */
    double idle_since_s;
};

static int run_stamp(const struct duet_call *call)
{
    struct waking *waking = *(struct waking *const *)call->args;
    atomic_store(&waking->processor, duet__lab_processor());
    atomic_store(&waking->began_s, duet__clock_s());
    return DUET_OK;
}

static void pass_until(double date_s)
{
    double left_s;
    while ((left_s = date_s - duet__clock_s()) > 0) {
        if (left_s < NAP_S)
            continue;
        const struct timespec nap = {.tv_nsec = (long)((left_s - NAP_S / 2) * 1e9)};
        (void)nanosleep(&nap, NULL);
    }
}

/*
 * A wait would put this thread to sleep, too, and when it woke the other one would sleep again. One
 * that does not come to begin because this thread has its core is waited for in the end.
 */
static void watch(const struct waking *waking)
{
    double end_s = duet__clock_s() + WATCH_S;
    while (atomic_load(&waking->began_s) == 0 && duet__clock_s() < end_s)
        ;
}

/* Seconds until a task for the second worker begins, which has had nothing to do for `idle_s`. */
static double wake_once(struct waking *waking, double idle_s)
{
    double submit_s = waking->costing->costs[DUET__COST_SUBMIT].median_s, begin_s;
    pass_until(waking->idle_since_s + idle_s);
    atomic_store(&waking->began_s, 0);
    begin_s = duet__clock_s();
    duet__lab_submit_with(&waking->lab, waking->stamp, 1, NULL, 0, waking);
    watch(waking);
    duet__lab_wait(&waking->lab);
    waking->idle_since_s = atomic_load(&waking->began_s);
    return fmax(0, waking->idle_since_s - begin_s - submit_s);
}

static void measure_wakes(struct waking *waking)
{
    double end_s = duet__budget_share(waking->lab.budget, SHARE);
    struct duet__values samples = {0};
    (void)wake_once(waking, 0); /* the first one finds everything cold */
    while (samples.count < WAKES && (samples.count < WAKES_LEAST || duet__clock_s() < end_s) &&
           duet__lab_goes_on(&waking->lab))
        duet__values_add(&samples, wake_once(waking, ASLEEP_S));
    if (!waking->lab.error)
        duet__values_report(&samples, &waking->costing->costs[DUET__COST_WAKE]);
    duet__values_fini(&samples);
}

/* Of the latencies of some trials, the `rank`-th shortest. */
static double try_idle(struct waking *waking, double idle_s, unsigned rank)
{
    double latencies_s[TRIALS] = {0};
    for (unsigned i = 0; i < TRIALS && duet__lab_goes_on(&waking->lab); i++)
        latencies_s[i] = wake_once(waking, idle_s);
    duet_sort(latencies_s, TRIALS);
    return latencies_s[rank];
}

static void found_spin(struct waking *waking, double low_s, double high_s, unsigned tries)
{
    struct duet__measured *spin = &waking->costing->costs[DUET__COST_SPIN];
    spin->samples = (uint64_t)tries * TRIALS;
    spin->low_s = low_s;
    spin->high_s = high_s;
    spin->median_s = spin->mean_s = sqrt(low_s * high_s);
    spin->why[0] = '\0';
}

/*
 * Between times after which it begins at once and those after which it begins as late as when it
 * sleeps: the first that is nearer, by its logarithm, to the latter. Other programs make some later
 * and none earlier, so short ones count.
 */
static void search_spin(struct waking *waking)
{
    double idle_s = FIRST_S, short_s = try_idle(waking, FIRST_S, 0);
    double long_s = waking->costing->costs[DUET__COST_WAKE].low_s;
    duet__costing_why(waking->costing, DUET__COST_SPIN,
                      "workers do not watch before they sleep here, or waking one is as quick");
    if (!(long_s > CLEAR * short_s))
        return;
    for (unsigned tries = 1; idle_s < LAST_S && duet__lab_goes_on(&waking->lab); tries++) {
        double latency_s = try_idle(waking, idle_s * STEP, TRIALS / 4);
        if (latency_s * latency_s > short_s * long_s) {
            found_spin(waking, idle_s, idle_s * STEP, tries);
            return;
        }
        idle_s *= STEP;
    }
    duet__costing_why(waking->costing, DUET__COST_SPIN, "no such time below 1 ms was found");
}

/*
 * The worker is bound to its core, and the scheduler likes to run this thread there while that
 * sleeps: each would then take the core from the other.
 */
static void measure_aside(struct waking *waking)
{
    void *before;
    (void)wake_once(waking, 0);
    before = duet__lab_aside(atomic_load(&waking->processor));
    measure_wakes(waking);
    search_spin(waking);
    duet__lab_back(before);
}

int duet__costs_wakes(struct duet__costing *costing)
{
    const struct duet_config config = duet__lab_host(costing->config, "pinned", 2);
    struct waking waking = {.costing = costing};
    if (duet__lab_open(&waking.lab, &config, &costing->budget, costing->message)) {
        const char *why = "there is one CPU worker, the application's own thread";
        duet__costing_why(costing, DUET__COST_WAKE, why);
        duet__costing_why(costing, DUET__COST_SPIN, why);
        waking.stamp = duet__lab_kernel(&waking.lab, "calibrate_stamp", run_stamp);
        if (waking.lab.cpus > 1)
            measure_aside(&waking);
    }
    return duet__lab_close(&waking.lab);
}
