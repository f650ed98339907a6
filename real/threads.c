/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's threads: started together, working only when all are ready, ended together. */
#include <signal.h>
#include <stdio.h>
#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>
#include <dirent.h>
#include <string.h>

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

/* Makes the threads with signals blocked, but for those of faults in what they run: the
 * application's handlers run on its own threads. */
static bool make_quietly(struct real *real)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t all, before;
    (void)sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        (void)sigdelset(&all, faults[i]);
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

/* ------------------------------------------------------------------------------------------- */
/* Functions of the operating system for a thread: name, core, exact sleep. */

static const double SHORT_S = 5e-6; /* sleeping less costs more than it saves */

void duet__thread_begin(const struct real *real, const char *name, int place)
{
    char text[DUET_NAME_MAX + sizeof "duet "];
    (void)snprintf(text, sizeof text, "duet %s", name);
    (void)prctl(PR_SET_NAME, text); /* as many bytes as there is room for */
    if (place != UNBOUND)
        duet__places_bind(real->places, (unsigned)place);
    struct kernel_threads before; /* unused: the thread is the engine's */
    duet__one_thread_enter(real, &before);
}

unsigned long duet__thread_slack(unsigned long ns)
{
    int before = prctl(PR_GET_TIMERSLACK);
    (void)prctl(PR_SET_TIMERSLACK, ns);
    return before > 0 ? (unsigned long)before : 0;
}

void duet__thread_patient(void)
{
    const struct sched_param none = {0};
    /* another class was chosen on purpose; if refused, waking costs as much as before */
    if (sched_getscheduler(0) == SCHED_OTHER)
        (void)sched_setscheduler(0, SCHED_BATCH, &none);
}

size_t duet__thread_stack(const char **lowest)
{
    pthread_attr_t attributes;
    void *address = NULL;
    size_t bytes = 0;
    if (!pthread_getattr_np(pthread_self(), &attributes)) {
        (void)pthread_attr_getstack(&attributes, &address, &bytes);
        (void)pthread_attr_destroy(&attributes);
    }
    *lowest = address;
    return bytes;
}

void duet__thread_rest(unsigned tries)
{
    enum { PAUSES = 16, LONGEST = 6, SLEEPS = 6 }; /* rounds; 2^6 pauses; up to 20 us * 2^6 */
    if (tries < PAUSES) {
        for (unsigned i = 0; i < 1u << (tries < LONGEST ? tries : LONGEST); i++)
            duet__clock_rest();
        return;
    }
    /* the holder was preempted; yielding does not help if its priority is lower */
    unsigned doublings = tries - PAUSES < SLEEPS ? tries - PAUSES : SLEEPS;
    const struct timespec span = {.tv_nsec = 20000L << doublings};
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL);
}

static void sleep_for(double seconds)
{
    const long second_ns = 1000000000;
    struct timespec date;
    time_t whole = (time_t)seconds;
    (void)clock_gettime(CLOCK_MONOTONIC, &date);
    date.tv_sec += whole;
    date.tv_nsec += (long)((seconds - (double)whole) * (double)second_ns);
    if (date.tv_nsec >= second_ns) {
        date.tv_nsec -= second_ns;
        date.tv_sec++;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &date, NULL) == EINTR)
        ;
}

void duet__sleep_until(const struct real *real, double date_s)
{
    double left_s;
    /* again if the two clocks differ a little */
    while ((left_s = date_s - duet__clock_now(&real->clock)) > 0) {
        if (real->spin && left_s < SHORT_S)
            duet__clock_rest();
        else
            sleep_for(left_s);
    }
}

/* ------------------------------------------------------------------------------------------- */
/*
 * More runnable threads of the process than cores: kernels start threads of their own, or the
 * program computes beside the runtime. Both make a run slow without a sign.
 */

enum { LOOKS_IN_A_ROW = 3 };

/* True if this thread of the process runs, or waits for a core. Linux: proc(5). */
static bool is_running(const char *thread)
{
    char path[64], line[1024];
    (void)snprintf(path, sizeof path, "/proc/self/task/%.16s/stat", thread);
    const char *name_end = duet__read_line(path, line, sizeof line) ? strrchr(line, ')') : NULL;
    return name_end && !strncmp(name_end, ") R", 3);
}

/* Returns the number of runnable threads of the process, except the calling one. */
static unsigned count_running(void)
{
    DIR *folder = opendir("/proc/self/task");
    unsigned count = 0;
    if (!folder)
        return 0;
    for (const struct dirent *entry; (entry = readdir(folder));)
        count += *entry->d_name != '.' && is_running(entry->d_name);
    (void)closedir(folder);
    return count ? count - 1 : 0;
}

void duet__crowd_look(struct real *real)
{
    struct watch *watch = &real->watch;
    unsigned cores = duet__places_cores(real->places);
    /* emulated devices have more threads than they compute with */
    if (watch->crowd_said || real->config.emulate || real->config.quiet)
        return;
    unsigned running = count_running();
    watch->crowded = running > cores ? watch->crowded + 1 : 0;
    if (watch->crowded < LOOKS_IN_A_ROW)
        return;
    char line[256];
    (void)snprintf(
        line, sizeof line,
        "%u threads of this program want to run on %u core%s: kernels that start "
        "threads of their own slow each other down (their library's number of threads "
        "should be 1), and what computes beside them needs cores of its own: fewer workers",
        running, cores, cores == 1 ? "" : "s");
    watch->crowd_said = true;
    duet__say(real, line);
}
