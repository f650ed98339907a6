/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the operating system for a thread: name, core, exact sleep. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#include "real/internal.h"

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
