/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long a sleeping CPU worker takes to begin a task. */
#include <math.h>
#include <sched.h>
#include <stdatomic.h>

#include "calibrate/microbench.h"
#include "runtime/open.h"

enum { WAKES = 60, WAKES_LEAST = 5 };

static const double ASLEEP_S = 2e-3; /* a worker surely sleeps after this time */
static const double AWAKE_S = 2e-4;  /* this thread runs so long before it wakes the worker: a
                                        thread that has just slept is slow */
static const double WATCH_S = 1e-3;
static const double SHARE = 0.25; /* of the time that is left */

struct waking {
    struct duet__microbench *bench;
    struct duet_codelet *stamp;
    _Atomic(double) began_s; /* of the last kernel; 0: not begun */
    _Atomic(int) processor;  /* number of the processor that it ran on */
};

static int run_stamp(const struct duet_call *call)
{
    struct waking *waking = *(struct waking *const *)call->args;
    atomic_store(&waking->processor, sched_getcpu());
    atomic_store(&waking->began_s, duet__clock_s());
    return DUET_OK;
}

/* Returns the seconds from submitting a task for the second worker, which sleeps, until it
 * begins. */
static double wake_once(struct waking *waking)
{
    double begin_s, due_s = duet__clock_s() + ASLEEP_S;
    g_usleep((gulong)((ASLEEP_S - AWAKE_S) * G_USEC_PER_SEC));
    while (duet__clock_s() < due_s)
        ;
    atomic_store(&waking->began_s, 0);
    begin_s = duet__clock_s();
    duet__microbench_submit(waking->bench, waking->stamp, 1, NULL, 0, waking);
    /* A wait would put this thread to sleep, too, and let the other one sleep again meanwhile. If
     * the task does not begin because this thread has its core, it is waited for in the end. */
    while (atomic_load(&waking->began_s) == 0 && duet__clock_s() < begin_s + WATCH_S)
        ;
    duet__microbench_wait(waking->bench);
    return atomic_load(&waking->began_s) - begin_s;
}

static void measure(struct waking *waking, double submit_s, struct duet__measured *wake)
{
    double end_s = duet__microbench_share(waking->bench, SHARE);
    GArray *values = g_array_new(FALSE, FALSE, sizeof(double));
    (void)wake_once(waking); /* the first one finds everything cold */
    while (duet__microbench_more(waking->bench, values->len, WAKES_LEAST, WAKES, end_s)) {
        double wake_s = fmax(0, wake_once(waking) - submit_s);
        g_array_append_val(values, wake_s);
    }
    duet__measured_set(wake, values);
}

/* Keeps this thread off the worker's core, if allowed: the scheduler likes to run it there while
 * the worker sleeps, and each would take the core from the other. */
void duet__costs_wakes(struct duet__microbench *bench, struct duet__measured *costs)
{
    struct duet__measured *spin = &costs[DUET__COST_SPIN];
    struct waking waking = {.bench = bench};
    double spin_s = duet__spin_s();
    cpu_set_t before, others;
    bool known = sched_getaffinity(0, sizeof before, &before) == 0;
    int processor;
    if (bench->cpus < 2)
        return;
    /* the runtime itself decides so: there is nothing to measure */
    spin->why = "there are fewer cores than workers: none watches before it sleeps";
    if (duet__usable_cores() >= bench->cpus) {
        spin->times =
            (struct duet__summary){1, spin_s, spin_s, .quartile1 = spin_s, .quartile3 = spin_s};
        spin->why = NULL;
    }
    waking.stamp = duet__microbench_kernel(bench, "calibrate_stamp", run_stamp, NULL);
    (void)wake_once(&waking);
    processor = atomic_load(&waking.processor);
    others = before;
    if (known && processor >= 0 && processor < CPU_SETSIZE) {
        CPU_CLR((size_t)processor, &others);
        if (CPU_COUNT(&others))
            (void)sched_setaffinity(0, sizeof others, &others);
    }
    measure(&waking, costs[DUET__COST_SUBMIT].times.median, &costs[DUET__COST_WAKE]);
    if (known)
        (void)sched_setaffinity(0, sizeof before, &before);
}
