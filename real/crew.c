/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's threads: started together, working only when all are ready, ended together. */
#include <signal.h>
#include <stdio.h>

#include "real/internal.h"

int duet__crew_init(struct crew *crew)
{
    crew->state = CREW_GATHERS;
    if (pthread_mutex_init(&crew->mutex, NULL))
        return DUET_ENOMEM;
    if (pthread_cond_init(&crew->changed, NULL)) {
        (void)pthread_mutex_destroy(&crew->mutex);
        return DUET_ENOMEM;
    }
    return DUET_OK;
}

void duet__crew_fini(struct crew *crew)
{
    (void)pthread_cond_destroy(&crew->changed);
    (void)pthread_mutex_destroy(&crew->mutex);
}

/* ------------------------------------------------------------------------------------------- */
/* What its threads call                                                                        */

bool duet__crew_ready(struct real *real, int error, const struct duet_message *message)
{
    struct crew *crew = &real->crew;
    (void)pthread_mutex_lock(&crew->mutex);
    if (error && !crew->error) {
        crew->error = error;
        crew->message = *message;
    }
    crew->ready++;
    (void)pthread_cond_broadcast(&crew->changed);
    while (crew->state == CREW_GATHERS)
        (void)pthread_cond_wait(&crew->changed, &crew->mutex);
    bool works = crew->state == CREW_WORKS;
    (void)pthread_mutex_unlock(&crew->mutex);
    return works;
}

void duet__crew_leave(struct real *real)
{
    struct crew *crew = &real->crew;
    (void)pthread_mutex_lock(&crew->mutex);
    crew->leaving++;
    (void)pthread_cond_broadcast(&crew->changed);
    while (crew->leaving < real->machine.worker_count - real->cpus)
        (void)pthread_cond_wait(&crew->changed, &crew->mutex);
    (void)pthread_mutex_unlock(&crew->mutex);
}

/* ------------------------------------------------------------------------------------------- */
/* What its owner calls                                                                         */

/* The first worker that has a thread: the first CPU worker has a seat. */
static unsigned first(const struct real *real)
{
    return real->cpus ? 1 : 0;
}

/* As many threads as can be made. false: not all. */
static bool make(struct real *real)
{
    struct crew *crew = &real->crew;
    for (unsigned w = first(real); w < real->machine.worker_count; w++) {
        struct worker *worker = &real->workers[w];
        if (pthread_create(&worker->thread, NULL,
                           worker->device ? duet__device_thread : duet__cpu_thread, worker))
            return false;
        crew->started++;
    }
    crew->has_stand_in =
        real->cpus && !pthread_create(&real->seat.stand_in, NULL, duet__stand_in, real);
    return crew->has_stand_in || !real->cpus;
}

/* The application's signal handlers run on its own threads. */
static bool make_quietly(struct real *real)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool complete = make(real);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return complete;
}

int duet__crew_start(struct real *real, struct duet_message *message)
{
    struct crew *crew = &real->crew;
    bool complete = make_quietly(real);
    unsigned count = crew->started + crew->has_stand_in;
    (void)pthread_mutex_lock(&crew->mutex);
    while (crew->ready < count)
        (void)pthread_cond_wait(&crew->changed, &crew->mutex);
    int error = crew->error;
    if (error)
        (void)duet_fail(message, error, "%s",
                        *crew->message.text ? crew->message.text : duet_strerror(error));
    else if (!complete)
        error = duet_fail(message, DUET_ENOMEM,
                          "the system allows no more than %u threads for this runtime: use fewer "
                          "CPUs, or raise the limit of processes",
                          count);
    crew->state = error ? CREW_DISBANDS : CREW_WORKS;
    (void)pthread_cond_broadcast(&crew->changed);
    (void)pthread_mutex_unlock(&crew->mutex);
    if (error)
        duet__crew_join(real);
    return error;
}

void duet__crew_join(struct real *real)
{
    struct crew *crew = &real->crew;
    for (unsigned i = 0; i < crew->started; i++)
        (void)pthread_join(real->workers[first(real) + i].thread, NULL);
    if (crew->has_stand_in)
        (void)pthread_join(real->seat.stand_in, NULL);
    crew->started = 0;
    crew->has_stand_in = false;
}
