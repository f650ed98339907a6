/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to be preloaded (LD_PRELOAD): threads and processes sleep at random moments where they
 * hand over to others, for microseconds mostly. Orders that are rare without it come often with it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Finds the next definition of the function in which this stands: the real one. */
#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (real == NULL) {                                                                            \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
    }

static _Thread_local uint64_t state;

/* Returns random bits (xorshift64, Marsaglia 2003), of another sequence in each thread and
   process. */
static uint64_t random_bits(void)
{
    if (state == 0) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = ((uint64_t)now.tv_nsec << 32 ^ (uint64_t)(uintptr_t)&state) | 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Sleeps once in `rarity` calls, below 0.25 ms, and once in 64 of these below 16 ms. */
static void delay(unsigned rarity)
{
    uint64_t bits = random_bits() >> 8;
    if (bits % rarity == 0) {
        uint64_t longest_ns = bits / rarity % 64 == 0 ? 16000000 : 250000;
        struct timespec time = {.tv_nsec = (long)(random_bits() % longest_ns)};
        nanosleep(&time, NULL);
    }
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    REAL(pthread_mutex_lock)
    delay(128);
    return real(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    REAL(pthread_mutex_unlock)
    int result = real(mutex);
    delay(128);
    return result;
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): glibc has names of its own */
int sem_post(sem_t *semaphore)
{
    REAL(sem_post)
    int result = real(semaphore);
    delay(16);
    return result;
}

int sched_yield(void)
{
    REAL(sched_yield)
    delay(128);
    return real();
}

struct start {
    void *(*routine)(void *);
    void *argument;
};

static void *start_late(void *at)
{
    struct start start = *(struct start *)at;
    free(at);
    delay(2);
    return start.routine(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
                   void *argument)
{
    REAL(pthread_create)
    struct start *start = malloc(sizeof *start);
    if (start == NULL) {
        return real(thread, attributes, routine, argument);
    }
    *start = (struct start){routine, argument};
    int result = real(thread, attributes, start_late, start);
    if (result != 0) {
        free(start);
    }
    delay(2);
    return result;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

pid_t fork(void)
{
    REAL(fork)
    pid_t pid = real();
    state ^= pid == 0 ? (uint64_t)getpid() << 20 : 0;
    delay(2);
    return pid;
}

__attribute__((constructor)) static void begin_late(void)
{
    delay(2);
}
