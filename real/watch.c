/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watchdog for runs that do not go on. Waiting threads look now and then; working threads only
 * count, each for itself.
 */
#include <math.h>
#include <stdio.h>

#include "real/internal.h"

enum { LOOKS = 20 }; /* looks in the watchdog's time: it is late by one at most */

int duet__watch_init(struct watch *watch, double watchdog_s)
{
    watch->look_s = watchdog_s / LOOKS;
    return pthread_mutex_init(&watch->mutex, NULL) ? DUET_ENOMEM : DUET_OK;
}

void duet__watch_fini(struct watch *watch)
{
    (void)pthread_mutex_destroy(&watch->mutex);
}

/* Returns a number that grows with every event. */
static uint64_t count_steps(const struct real *real)
{
    uint64_t steps = atomic_load_explicit(&real->submissions, memory_order_relaxed) +
                     atomic_load_explicit(&real->waits, memory_order_relaxed);
    for (unsigned w = 0; w < real->machine.worker_count; w++)
        steps += atomic_load_explicit(&real->workers[w].steps, memory_order_relaxed);
    return steps;
}

/* True if the worker runs something, or has been woken and will. */
static bool is_busy(const struct worker *worker)
{
    return !atomic_load_explicit(&worker->resting, memory_order_relaxed) ||
           atomic_load_explicit(&worker->park.state, memory_order_relaxed) == PARK_WOKEN;
}

/* Returns the worker that has been running longest: a kernel, else anything. NULL: none. */
static const struct worker *busiest_worker(const struct real *real)
{
    const struct worker *found = NULL;
    double found_s = INFINITY;
    for (unsigned w = 0; w < real->machine.worker_count; w++) {
        const struct worker *worker = &real->workers[w];
        bool kernel = atomic_load_explicit(&worker->kernel, memory_order_relaxed);
        double since_s = atomic_load_explicit(&worker->since_s, memory_order_relaxed);
        if (!is_busy(worker))
            continue;
        if (!found || (kernel && since_s < found_s)) {
            found = worker;
            found_s = kernel ? since_s : INFINITY;
        }
    }
    return found;
}

/* Prints what a run waits for. Name and number are of one task, since nothing has happened for
   seconds. Without a worker the run waits for other processes. */
static void say_waiting(const struct real *real, const struct worker *worker, double now)
{
    const char *kernel =
        worker ? atomic_load_explicit(&worker->kernel, memory_order_relaxed) : NULL;
    const char *name = worker ? real->machine.workers[worker->index].name : "what is left";
    if (kernel)
        (void)fprintf(stderr,
                      "duet: task %llu (%s) has been running on %s for %.1f s and all else waits\n",
                      (unsigned long long)atomic_load_explicit(&worker->task, memory_order_relaxed),
                      kernel, name,
                      now - atomic_load_explicit(&worker->since_s, memory_order_relaxed));
    else
        (void)fprintf(stderr, "duet: nothing has ended for %.1f s: %s is %s\n",
                      now - real->watch.since_s, name,
                      !worker          ? "waiting for other nodes"
                      : worker->device ? "copying"
                                       : "busy without a kernel");
}

static bool look_at_run(struct real *real, double now)
{
    struct watch *watch = &real->watch;
    uint64_t steps = count_steps(real);
    if (steps != watch->steps) {
        watch->steps = steps;
        watch->since_s = now;
        return false;
    }
    /* once a run has failed nothing begins any more: idle workers stay so */
    double still_s = now - watch->since_s;
    if (still_s < (duet__failed(real->core) ? watch->look_s : real->config.watchdog_s))
        return false;
    const struct worker *worker = busiest_worker(real);
    if (!worker && !duet__awaits(real->core))
        return true;
    if (still_s < real->config.watchdog_s)
        return false;
    say_waiting(real, worker, now);
    watch->since_s = now; /* the next line in as long again */
    return false;
}

int duet__real_scheduling(void *engine, uint64_t *steps)
{
    const struct real *real = engine;
    *steps = busiest_worker(real) ? count_steps(real) : 0;
    for (unsigned w = 0; w < real->machine.worker_count; w++) {
        const struct worker *worker = &real->workers[w];
        bool scheduling = worker->device
                              ? atomic_load_explicit(&worker->asking, memory_order_relaxed)
                              : !atomic_load_explicit(&worker->resting, memory_order_relaxed) &&
                                    !atomic_load_explicit(&worker->kernel, memory_order_relaxed);
        if (scheduling)
            return (int)w;
    }
    return DUET_NO_WORKER;
}

bool duet__watch(struct real *real)
{
    (void)pthread_mutex_lock(&real->watch.mutex);
    bool stuck = look_at_run(real, duet__clock_now(&real->clock));
    duet__crowd_look(real);
    (void)pthread_mutex_unlock(&real->watch.mutex);
    return stuck;
}
