/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seat of the first CPU worker. One thread at a time holds it and runs that worker's commands:
 * a thread of the application while it waits, so that submitting and running stay in one core's
 * cache, or a stand-in, while the worker has been woken and the application does something else.
 * The stand-in takes the seat when it has seen no submission for a while, gives it back between two
 * tasks to a thread of the application that waits, and leaves it when there is nothing to do: on
 * the seat it would be called by the next submission, and take the core from the one who submits.
 *
 * A free seat's worker is idle, as far as the core knows, or its park says that it has been called:
 * no wake is lost with the seat changing hands.
 */
#include <math.h>

#include "real/internal.h"

static const double LOOK_S = 1e-3; /* between two looks of the stand-in at a seat left waiting */

int duet__seat_init(struct seat *seat)
{
    atomic_init(&seat->holder, SEAT_FREE);
    if (pthread_mutex_init(&seat->mutex, NULL))
        return DUET_ENOMEM;
    if (duet__condition_init(&seat->changed))
        goto no_changed;
    if (duet__condition_init(&seat->stopped))
        goto no_stopped;
    if (duet__park_init(&seat->park))
        goto no_park;
    return DUET_OK;
no_park:
    (void)pthread_cond_destroy(&seat->stopped);
no_stopped:
    (void)pthread_cond_destroy(&seat->changed);
no_changed:
    (void)pthread_mutex_destroy(&seat->mutex);
    return DUET_ENOMEM;
}

void duet__seat_fini(struct seat *seat)
{
    duet__park_fini(&seat->park);
    (void)pthread_cond_destroy(&seat->stopped);
    (void)pthread_cond_destroy(&seat->changed);
    (void)pthread_mutex_destroy(&seat->mutex);
}

/* ------------------------------------------------------------------------------------------- */
/* Sitting down and rising; the seat's mutex is held                                            */

static bool is_free(const struct real *real)
{
    return real->cpus && atomic_load(&real->seat.holder) == SEAT_FREE;
}

static void sit(struct real *real, enum seat_holder who)
{
    atomic_store(&real->seat.holder, who);
}

/* The stand-in is called if there is something to do and nobody sits. */
static void rise(struct real *real)
{
    struct seat *seat = &real->seat;
    struct worker *worker = &real->workers[0];
    atomic_store(&seat->wanted, false);
    atomic_store(&seat->holder, SEAT_FREE);
    if (worker->owed)
        (void)duet__park_wake(&worker->park);
    worker->owed = false;
    if (duet__park_settle(&worker->park))
        (void)duet__park_wake(&seat->park);
    if (seat->standing)
        (void)pthread_cond_broadcast(&seat->changed);
}

/* ------------------------------------------------------------------------------------------- */
/* Calls by the core                                                                            */

void duet__real_wake(void *engine, unsigned index)
{
    struct real *real = engine;
    struct worker *worker = &real->workers[index];
    if (!duet__park_wake(&worker->park) || worker->index > 0 || worker->device)
        return;
    if (atomic_load(&real->seat.holder) == SEAT_FREE)
        (void)duet__park_wake(&real->seat.park);
}

void duet__real_notify(void *engine)
{
    struct real *real = engine;
    struct seat *seat = &real->seat;
    /* written, not only read: who comes to wait after this sees what the notice is about */
    if (atomic_fetch_add(&seat->waiting, 0) == 0)
        return;
    (void)pthread_mutex_lock(&seat->mutex);
    if (atomic_load(&seat->holder) == SEAT_APPLICATION)
        duet__park_nudge(&real->workers[0].park);
    if (seat->standing)
        (void)pthread_cond_broadcast(&seat->changed);
    (void)pthread_mutex_unlock(&seat->mutex);
}

/* ------------------------------------------------------------------------------------------- */
/* The application waits                                                                        */

/* Runs the worker's commands; the mutex is not held meanwhile. */
static int serve(struct real *real, const struct until *until)
{
    bool paced = real->options.scale > 0;
    sit(real, SEAT_APPLICATION);
    (void)pthread_mutex_unlock(&real->seat.mutex);
    /* on another worker's core, one of the two stood still, now or at the next submission */
    if (real->workers[0].place != UNBOUND)
        duet__places_move(real->places, (unsigned)real->workers[0].place);
    unsigned long slack = paced ? duet__thread_slack(SLACK_NS) : 0;
    enum served served = duet__serve(&real->workers[0], until);
    if (paced)
        (void)duet__thread_slack(slack);
    (void)pthread_mutex_lock(&real->seat.mutex);
    rise(real);
    return served == SERVED_ENOUGH ? DUET_OK : DUET_ESTUCK;
}

/* Waits without the seat, until something has changed. */
static int stand(struct real *real)
{
    struct seat *seat = &real->seat;
    if (atomic_load(&seat->holder) == SEAT_STAND_IN) {
        atomic_store(&seat->wanted, true);
        duet__park_nudge(&real->workers[0].park);
    }
    seat->standing++;
    bool in_time = duet__condition_wait(&seat->changed, &seat->mutex, real->watch.look_s);
    seat->standing--;
    return !in_time && duet__watch(real) ? DUET_ESTUCK : DUET_OK;
}

int duet__real_wait(void *engine, bool (*reached)(void *arg), void *arg)
{
    struct real *real = engine;
    struct seat *seat = &real->seat;
    const struct until until = {.reached = reached, .arg = arg, .watches = true};
    int error = DUET_OK;
    if (duet__inside(real) != DUET_OUTSIDE)
        return DUET_EINVAL;
    if (reached(arg))
        return DUET_OK;
    atomic_fetch_add_explicit(&real->waits, 1, memory_order_relaxed);
    atomic_fetch_add(&seat->waiting, 1);
    (void)pthread_mutex_lock(&seat->mutex);
    while (!reached(arg) && !error)
        error = is_free(real) ? serve(real, &until) : stand(real);
    (void)pthread_mutex_unlock(&seat->mutex);
    atomic_fetch_sub(&seat->waiting, 1);
    return error && reached(arg) ? DUET_OK : error;
}

/* ------------------------------------------------------------------------------------------- */
/* The stand-in                                                                                 */

static bool wanted(void *real)
{
    return atomic_load(&((struct real *)real)->seat.wanted);
}

enum look { LOOK_NOTHING, LOOK_LATER, LOOK_SIT };

/* Should the stand-in sit down? *submissions: as it was at the last look. */
static enum look look(struct real *real, uint64_t *submissions)
{
    const struct seat *seat = &real->seat;
    uint64_t before = *submissions;
    *submissions = atomic_load_explicit(&real->submissions, memory_order_relaxed);
    if (!is_free(real) || atomic_load(&real->workers[0].park.state) != PARK_WOKEN)
        return LOOK_NOTHING;
    if (seat->stopping)
        return LOOK_SIT;
    return atomic_load(&seat->waiting) || *submissions != before ? LOOK_LATER : LOOK_SIT;
}

/* Sleeps until there may be a seat to take. */
static void sleep_out(struct real *real)
{
    struct seat *seat = &real->seat;
    (void)pthread_mutex_unlock(&seat->mutex);
    /* also looks after an application's thread that runs a long kernel on the seat */
    bool called = duet__park(&seat->park, real->watch.look_s) != PARK_AWAKE;
    if (!called && atomic_load(&seat->waiting))
        (void)duet__watch(real);
    (void)pthread_mutex_lock(&seat->mutex);
}

static void stand_in(struct real *real)
{
    struct seat *seat = &real->seat;
    const struct until until = {.reached = wanted, .arg = real, .leaves = true};
    enum served served = SERVED_ENOUGH;
    uint64_t submissions = 0;
    (void)pthread_mutex_lock(&seat->mutex);
    while (served != SERVED_EXIT) {
        switch (look(real, &submissions)) {
        case LOOK_NOTHING:
            sleep_out(real);
            break;
        case LOOK_LATER:
            (void)duet__condition_wait(&seat->stopped, &seat->mutex, LOOK_S);
            break;
        case LOOK_SIT:
            sit(real, SEAT_STAND_IN);
            (void)pthread_mutex_unlock(&seat->mutex);
            served = duet__serve(&real->workers[0], &until);
            (void)pthread_mutex_lock(&seat->mutex);
            rise(real);
            break;
        }
    }
    (void)pthread_mutex_unlock(&seat->mutex);
}

void *duet__stand_in(void *engine)
{
    struct real *real = engine;
    duet__thread_begin(real, "stand-in", real->workers[0].place);
    duet__thread_patient(); /* called by whoever submits, which is what it is to leave alone */
    if (real->options.scale > 0)
        (void)duet__thread_slack(SLACK_NS);
    if (duet__crew_ready(real, DUET_OK, NULL))
        stand_in(real);
    return NULL;
}

void duet__seat_stop(struct real *real)
{
    struct seat *seat = &real->seat;
    (void)pthread_mutex_lock(&seat->mutex);
    seat->stopping = true;
    (void)pthread_cond_broadcast(&seat->stopped);
    (void)pthread_mutex_unlock(&seat->mutex);
    (void)duet__park_wake(&seat->park);
}
