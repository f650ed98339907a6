/* SPDX-License-Identifier: Apache-2.0 */
/* The thread beside runs: progress, signals. */
#include "cli/attendant.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <duet/trace.h>

enum { STUCK_LOOKS = 10 }; /* a tenth of a second apart */

static const int signals[DUET__SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

/*
 * A signal for the process goes to any thread that does not block it, and libraries have threads
 * that were there before us. There it is handed on, and blocked from then on.
 */
static void hand_on(int number, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;
    int error = errno;

    (void)info;
    sigaddset(&interrupted->uc_sigmask, number);
    kill(getpid(), number);
    errno = error;
}

/* Takes the runtime out, or gives NULL where it is not there. */
static struct duet_runtime *borrow(struct duet__attendant *attendant)
{
    return atomic_exchange(&attendant->runtime, NULL);
}

static void draw(struct duet__attendant *attendant)
{
    uint64_t done = atomic_load(&attendant->closed_tasks);
    struct duet_runtime *runtime = borrow(attendant);

    if (runtime) {
        done += duet_tasks_done(runtime);
        atomic_store(&attendant->runtime, runtime);
    }
    duet__progress_draw(&attendant->progress, done, atomic_load(&attendant->finished_runs));
}

/* The process ends by the signal, as if nobody had attended to it. */
static void die(struct duet__attendant *attendant, int number)
{
    sigset_t one;

    duet__progress_clear(&attendant->progress);
    signal(number, SIG_DFL);
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
}

static void give_up(struct duet__attendant *attendant, int number)
{
    struct duet_runtime *runtime;

    if (atomic_exchange(&attendant->number, number))
        die(attendant, number);
    runtime = borrow(attendant);
    if (runtime) {
        duet_cancel(runtime);
        atomic_store(&attendant->runtime, runtime);
    }
}

/*
 * After a signal: the run ends when its kernels have ended, but a worker that does not come back
 * from the policy never lets it end. Then the process does, after a second in which nothing else
 * has happened.
 */
static void end_if_stuck(struct duet__attendant *attendant)
{
    struct duet_runtime *runtime = borrow(attendant);
    uint64_t steps = 0;
    int worker;

    if (!runtime)
        return;
    worker = duet_worker_scheduling(runtime, &steps);
    if (worker == DUET_NO_WORKER || worker != attendant->stuck_worker ||
        steps != attendant->stuck_steps)
        attendant->stuck_looks = 0;
    attendant->stuck_worker = worker;
    attendant->stuck_steps = steps;
    if (worker != DUET_NO_WORKER && ++attendant->stuck_looks > STUCK_LOOKS) {
        duet__progress_clear(&attendant->progress);
        fprintf(stderr,
                "duet: the scheduling policy does not return on %s: the run ends without a report "
                "of what was finished\n",
                duet_runtime_machine(runtime)->workers[worker].name);
        die(attendant, atomic_load(&attendant->number));
    }
    atomic_store(&attendant->runtime, runtime);
}

static void *attend(void *argument)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
    struct duet__attendant *attendant = argument;

    while (!atomic_load(&attendant->over)) {
        int number = sigtimedwait(&attendant->watched, NULL, &pause);

        if (number > 0)
            give_up(attendant, number);
        else
            draw(attendant);
        if (atomic_load(&attendant->number))
            end_if_stuck(attendant);
    }
    return NULL;
}

void duet__attendant_start(struct duet__attendant *attendant, bool bar, uint64_t tasks,
                           uint64_t runs)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};

    duet__progress_init(&attendant->progress, bar, tasks, runs);
    action.sa_sigaction = hand_on;
    sigemptyset(&action.sa_mask);
    sigemptyset(&attendant->watched);
    for (size_t i = 0; i < DUET__SIGNALS; i++) {
        if (sigaction(signals[i], NULL, &attendant->actions[i]) == 0 &&
            attendant->actions[i].sa_handler != SIG_IGN)
            sigaddset(&attendant->watched, signals[i]);
    }
    pthread_sigmask(SIG_BLOCK, &attendant->watched, &attendant->mask);
    for (size_t i = 0; i < DUET__SIGNALS; i++)
        if (sigismember(&attendant->watched, signals[i]))
            sigaction(signals[i], &action, NULL);
    attendant->thread = g_thread_new("attendant", attend, attendant);
}

void duet__attendant_stop(struct duet__attendant *attendant)
{
    atomic_store(&attendant->over, true);
    g_thread_join(attendant->thread);
    duet__progress_clear(&attendant->progress);
    for (size_t i = 0; i < DUET__SIGNALS; i++)
        if (sigismember(&attendant->watched, signals[i]))
            sigaction(signals[i], &attendant->actions[i], NULL);
    pthread_sigmask(SIG_SETMASK, &attendant->mask, NULL);
}

void duet__attendant_watch(struct duet__attendant *attendant, struct duet_runtime *runtime)
{
    atomic_store(&attendant->runtime, runtime);
    /* a signal that came before had no runtime to cancel */
    if (atomic_load(&attendant->number))
        duet_cancel(runtime);
}

void duet__attendant_leave(struct duet__attendant *attendant)
{
    struct duet_runtime *runtime;

    while (!(runtime = borrow(attendant)))
        g_usleep(100); /* it is in the attendant's hands for a moment */
    atomic_fetch_add(&attendant->closed_tasks, duet_tasks_done(runtime));
}

void duet__attendant_count(struct duet__attendant *attendant)
{
    atomic_fetch_add(&attendant->finished_runs, 1);
}

int duet__attendant_signal(struct duet__attendant *attendant)
{
    return atomic_load(&attendant->number);
}
