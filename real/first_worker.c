/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first CPU worker, which has no thread of its own. One thread at a time runs its commands: a
 * thread of the application while it waits, so that submitting and running stay in one core's
 * cache, or a spare thread, while the worker has been woken and the application does something
 * else. The spare thread takes the worker when it has seen no submission for a while, gives it back
 * between two tasks to a thread of the application that waits, and leaves it when there is nothing
 * to do: otherwise the next submission would wake it, and it would take the core from the
 * submitting thread.
 *
 * While no thread runs the worker it is idle, as far as the core knows, or its park says that it
 * has been woken: no wake is lost when one thread takes over from another.
 */
#include <math.h>

#include "real/internal.h"

static const double LOOK_S =
    1e-3; /* interval in which the spare thread looks at a worker that no thread runs */

int duet__first_init(struct first_worker *first)
{
    atomic_init(&first->holder, FIRST_FREE);
    if (pthread_mutex_init(&first->mutex, NULL))
        return DUET_ENOMEM;
    if (duet__condition_init(&first->changed))
        goto no_changed;
    if (duet__condition_init(&first->stopped))
        goto no_stopped;
    if (duet__park_init(&first->park))
        goto no_park;
    return DUET_OK;
no_park:
    (void)pthread_cond_destroy(&first->stopped);
no_stopped:
    (void)pthread_cond_destroy(&first->changed);
no_changed:
    (void)pthread_mutex_destroy(&first->mutex);
    return DUET_ENOMEM;
}

void duet__first_fini(struct first_worker *first)
{
    duet__park_fini(&first->park);
    (void)pthread_cond_destroy(&first->stopped);
    (void)pthread_cond_destroy(&first->changed);
    (void)pthread_mutex_destroy(&first->mutex);
}

/* ------------------------------------------------------------------------------------------- */
/* Taking and leaving the worker; the mutex is held                                             */

static bool is_free(const struct real *real)
{
    return real->cpus && atomic_load(&real->first.holder) == FIRST_FREE;
}

static void first_take(struct real *real, enum first_holder who)
{
    atomic_store(&real->first.holder, who);
}

/* Leaves the worker; the spare thread is woken if there is something to do. */
static void first_leave(struct real *real)
{
    struct first_worker *first = &real->first;
    struct worker *worker = &real->workers[0];
    atomic_store(&first->wanted, false);
    atomic_store(&first->holder, FIRST_FREE);
    if (worker->owed)
        (void)duet__park_wake(&worker->park);
    worker->owed = false;
    if (duet__park_settle(&worker->park))
        (void)duet__park_wake(&first->park);
    if (first->aside)
        (void)pthread_cond_broadcast(&first->changed);
}

/* ------------------------------------------------------------------------------------------- */
/* Calls by the core                                                                            */

void duet__real_wake(void *engine, unsigned index)
{
    struct real *real = engine;
    struct worker *worker = &real->workers[index];
    int by = duet__inside(real);
    if (by >= 0)
        real->workers[by].woke = true;
    if (!duet__park_wake(&worker->park) || worker->index > 0 || worker->device)
        return;
    if (atomic_load(&real->first.holder) == FIRST_FREE)
        (void)duet__park_wake(&real->first.park);
}

void duet__real_notify(void *engine)
{
    struct real *real = engine;
    struct first_worker *first = &real->first;
    /*
     * written, not only read: a thread that comes to wait after this sees the change it is notified
     * of
     */
    if (atomic_fetch_add(&first->waiting, 0) == 0)
        return;
    (void)pthread_mutex_lock(&first->mutex);
    if (atomic_load(&first->holder) == FIRST_APPLICATION)
        duet__park_nudge(&real->workers[0].park);
    if (first->aside)
        (void)pthread_cond_broadcast(&first->changed);
    (void)pthread_mutex_unlock(&first->mutex);
}

/* ------------------------------------------------------------------------------------------- */
/* The application waits                                                                        */

/* Runs the worker's commands; the mutex is not held meanwhile. */
static int serve_first(struct real *real, const struct until *until)
{
    bool paced = real->pace.scale > 0;
    first_take(real, FIRST_APPLICATION);
    (void)pthread_mutex_unlock(&real->first.mutex);
    /* on another worker's core, one of the two would stand still, now or at the next submission */
    if (real->workers[0].place != UNBOUND)
        duet__places_move(real->places, (unsigned)real->workers[0].place);
    unsigned long slack = paced ? duet__thread_slack(SLACK_NS) : 0;
    struct kernel_threads before;
    duet__one_thread_enter(real, &before);
    enum served served = duet__serve(&real->workers[0], until);
    duet__one_thread_leave(real, &before);
    if (paced)
        (void)duet__thread_slack(slack);
    (void)pthread_mutex_lock(&real->first.mutex);
    first_leave(real);
    return served == SERVED_ENOUGH ? DUET_OK : DUET_ESTUCK;
}

/* Waits for a change, while another thread runs the first worker. */
static int wait_aside(struct real *real)
{
    struct first_worker *first = &real->first;
    if (atomic_load(&first->holder) == FIRST_SPARE) {
        atomic_store(&first->wanted, true);
        duet__park_nudge(&real->workers[0].park);
    }
    first->aside++;
    bool in_time = duet__condition_wait(&first->changed, &first->mutex, real->watch.look_s);
    first->aside--;
    return !in_time && duet__watch(real) ? DUET_ESTUCK : DUET_OK;
}

int duet__real_wait(void *engine, bool (*reached)(void *arg), void *arg)
{
    struct real *real = engine;
    struct first_worker *first = &real->first;
    const struct until until = {.reached = reached, .arg = arg, .watches = true};
    int error = DUET_OK;
    if (duet__inside(real) != DUET_OUTSIDE)
        return DUET_EINVAL;
    if (reached(arg))
        return DUET_OK;
    atomic_fetch_add_explicit(&real->waits, 1, memory_order_relaxed);
    atomic_fetch_add(&first->waiting, 1);
    (void)pthread_mutex_lock(&first->mutex);
    while (!reached(arg) && !error)
        error = is_free(real) ? serve_first(real, &until) : wait_aside(real);
    (void)pthread_mutex_unlock(&first->mutex);
    atomic_fetch_sub(&first->waiting, 1);
    return error && reached(arg) ? DUET_OK : error;
}

void duet__team_keep(void *engine, double spin_s)
{
    struct real *real = engine;
    (void)pthread_mutex_lock(&real->first.mutex);
    while (!is_free(real))
        (void)wait_aside(real);
    first_take(real, FIRST_APPLICATION);
    (void)pthread_mutex_unlock(&real->first.mutex);
    if (spin_s >= 0)
        atomic_store_explicit(&real->spin_s, spin_s, memory_order_relaxed);
    duet__one_thread_end(real);
    real->has_one_thread = false;
}

void duet__team_leave(void *engine)
{
    struct real *real = engine;
    (void)pthread_mutex_lock(&real->first.mutex);
    real->workers[0].owed = true;
    first_leave(real);
    (void)pthread_mutex_unlock(&real->first.mutex);
}

/* ------------------------------------------------------------------------------------------- */
/* The spare thread                                                                             */

static bool is_wanted(void *real)
{
    return atomic_load(&((struct real *)real)->first.wanted);
}

enum look { LOOK_NOTHING, LOOK_LATER, LOOK_TAKE };

/* Decides if the spare thread takes the worker. *submissions: their number at the last look. */
static enum look look_at_first(struct real *real, uint64_t *submissions)
{
    const struct first_worker *first = &real->first;
    uint64_t before = *submissions;
    *submissions = atomic_load_explicit(&real->submissions, memory_order_relaxed);
    if (!is_free(real) || atomic_load(&real->workers[0].park.state) != PARK_WOKEN)
        return LOOK_NOTHING;
    if (first->stopping)
        return LOOK_TAKE;
    const bool awaited = atomic_load(&first->waiting) || duet__about_to_wait(real->core);
    return awaited || *submissions != before ? LOOK_LATER : LOOK_TAKE;
}

/* Sleeps until there may be something to run. */
static void spare_sleep(struct real *real)
{
    struct first_worker *first = &real->first;
    (void)pthread_mutex_unlock(&first->mutex);
    /* also serves as watchdog for an application's thread that runs a long kernel */
    bool called = duet__park(&first->park, real->watch.look_s) != PARK_AWAKE;
    if (!called && atomic_load(&first->waiting))
        (void)duet__watch(real);
    (void)pthread_mutex_lock(&first->mutex);
}

static void run_spare(struct real *real)
{
    struct first_worker *first = &real->first;
    const struct until until = {.reached = is_wanted, .arg = real, .leaves = true};
    enum served served = SERVED_ENOUGH;
    uint64_t submissions = 0;
    (void)pthread_mutex_lock(&first->mutex);
    while (served != SERVED_EXIT) {
        switch (look_at_first(real, &submissions)) {
        case LOOK_NOTHING:
            spare_sleep(real);
            break;
        case LOOK_LATER:
            (void)duet__condition_wait(&first->stopped, &first->mutex, LOOK_S);
            break;
        case LOOK_TAKE:
            first_take(real, FIRST_SPARE);
            (void)pthread_mutex_unlock(&first->mutex);
            served = duet__serve(&real->workers[0], &until);
            (void)pthread_mutex_lock(&first->mutex);
            first_leave(real);
            break;
        }
    }
    (void)pthread_mutex_unlock(&first->mutex);
}

void *duet__spare_thread(void *engine)
{
    struct real *real = engine;
    duet__thread_begin(real, "spare", real->workers[0].place);
    duet__thread_patient(); /* submitting threads wake it, and should not lose their core */
    if (real->pace.scale > 0)
        (void)duet__thread_slack(SLACK_NS);
    if (duet__threads_ready(real, DUET_OK, NULL))
        run_spare(real);
    return NULL;
}

void duet__first_stop(struct real *real)
{
    struct first_worker *first = &real->first;
    (void)pthread_mutex_lock(&first->mutex);
    first->stopping = true;
    (void)pthread_cond_broadcast(&first->stopped);
    (void)pthread_mutex_unlock(&first->mutex);
    (void)duet__park_wake(&first->park);
}
