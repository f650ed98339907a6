/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's threads: started together, working only when all are ready, ended together. */
#include <signal.h>
#include <stdio.h>

#include "real/internal.h"

int duet__threads_init(struct threads *threads)
{
    threads->state = THREADS_START;
    if (pthread_mutex_init(&threads->mutex, NULL))
        return DUET_ENOMEM;
    if (pthread_cond_init(&threads->changed, NULL)) {
        (void)pthread_mutex_destroy(&threads->mutex);
        return DUET_ENOMEM;
    }
    return DUET_OK;
}

void duet__threads_fini(struct threads *threads)
{
    (void)pthread_cond_destroy(&threads->changed);
    (void)pthread_mutex_destroy(&threads->mutex);
}

/* ------------------------------------------------------------------------------------------- */
/* Calls by its threads */

bool duet__threads_ready(struct real *real, int error, const struct duet_message *message)
{
    struct threads *threads = &real->threads;
    (void)pthread_mutex_lock(&threads->mutex);
    if (error && !threads->error) {
        threads->error = error;
        threads->message = *message;
    }
    threads->ready++;
    (void)pthread_cond_broadcast(&threads->changed);
    while (threads->state == THREADS_START)
        (void)pthread_cond_wait(&threads->changed, &threads->mutex);
    bool works = threads->state == THREADS_WORK;
    (void)pthread_mutex_unlock(&threads->mutex);
    return works;
}

void duet__threads_leave(struct real *real)
{
    struct threads *threads = &real->threads;
    (void)pthread_mutex_lock(&threads->mutex);
    threads->leaving++;
    (void)pthread_cond_broadcast(&threads->changed);
    while (threads->leaving < real->machine.worker_count - real->cpus)
        (void)pthread_cond_wait(&threads->changed, &threads->mutex);
    (void)pthread_mutex_unlock(&threads->mutex);
}

/* ------------------------------------------------------------------------------------------- */
/* Calls by its owner */

/* Returns the first worker that has a thread: not the first CPU worker. */
static unsigned first_thread(const struct real *real)
{
    return real->cpus ? 1 : 0;
}

/* Makes as many threads as possible. Returns false if some are missing. */
static bool make_threads(struct real *real)
{
    struct threads *threads = &real->threads;
    for (unsigned w = first_thread(real); w < real->machine.worker_count; w++) {
        struct worker *worker = &real->workers[w];
        if (pthread_create(&worker->thread, NULL,
                           worker->device ? duet__device_thread : duet__cpu_thread, worker))
            return false;
        threads->started++;
    }
    threads->has_spare =
        real->cpus && !pthread_create(&real->first.spare, NULL, duet__spare_thread, real);
    return threads->has_spare || !real->cpus;
}

/* Makes the threads with signals blocked: the application's handlers run on its own threads. */
static bool make_quietly(struct real *real)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool complete = make_threads(real);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return complete;
}

int duet__threads_start(struct real *real, struct duet_message *message)
{
    struct threads *threads = &real->threads;
    bool complete = make_quietly(real);
    unsigned count = threads->started + threads->has_spare;
    (void)pthread_mutex_lock(&threads->mutex);
    while (threads->ready < count)
        (void)pthread_cond_wait(&threads->changed, &threads->mutex);
    int error = threads->error;
    if (error)
        (void)duet_fail(message, error, "%s",
                        *threads->message.text ? threads->message.text : duet_strerror(error));
    else if (!complete)
        error = duet_fail(message, DUET_ENOMEM,
                          "the system allows no more than %u threads for this runtime: use fewer "
                          "CPUs, or raise the limit of processes",
                          count);
    threads->state = error ? THREADS_END : THREADS_WORK;
    (void)pthread_cond_broadcast(&threads->changed);
    (void)pthread_mutex_unlock(&threads->mutex);
    if (error)
        duet__threads_join(real);
    return error;
}

void duet__threads_join(struct real *real)
{
    struct threads *threads = &real->threads;
    for (unsigned i = 0; i < threads->started; i++)
        (void)pthread_join(real->workers[first_thread(real) + i].thread, NULL);
    if (threads->has_spare)
        (void)pthread_join(real->first.spare, NULL);
    threads->started = 0;
    threads->has_spare = false;
}
