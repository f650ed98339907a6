/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of x86-64: the time stamp counter, which costs half of clock_gettime, where it ticks at
 * one rate on all cores (Intel's manual, volume 3, 18.17.1: "invariant TSC") and Linux has not
 * found it wrong; elsewhere CLOCK_MONOTONIC.
 */
#include <cpuid.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <x86intrin.h>

#include "real/internal.h"

enum {
    TRIES = 16,          /* readings of both clocks, of which the closest pair counts */
    SPAN_NS = 3000000,   /* between two readings: an error of 50 ns in them is 2e-5 of the rate */
    INVARIANT = 1u << 8, /* bit of EDX of the leaf below */
    LEAF_POWER = 7,      /* number of an extended leaf */
};

static const unsigned EXTENDED = 0x80000000;

static uint64_t monotonic_ns(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

/*
 * True if Linux does not use the counter as its own clock, because cores disagree, or it stops when
 * they sleep.
 */
static bool is_given_up(void)
{
    char name[32] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
    if (!file)
        return false;
    bool known = fgets(name, sizeof name, file) != NULL;
    (void)fclose(file);
    return known && !strstr(name, "tsc") && strncmp(name, "kvm-clock", strlen("kvm-clock")) != 0;
}

static bool is_invariant(void)
{
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid_max(EXTENDED, NULL) < EXTENDED + LEAF_POWER)
        return false;
    __cpuid(EXTENDED + LEAF_POWER, eax, ebx, ecx, edx);
    return edx & INVARIANT;
}

/* Reads one moment on both clocks: of several pairs, the one with the least time between its
   readings of the counter. */
static void read_both(uint64_t *counter, uint64_t *ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = __rdtsc(), time = monotonic_ns(), after = __rdtsc();
        if (after - before < best) {
            best = after - before;
            *counter = before + best / 2;
            *ns = time;
        }
    }
}

void duet__clock_start(struct clock *clock)
{
    uint64_t now = monotonic_ns();
    *clock = (struct clock){.origin = now, .tick_s = 1e-9};
    if (!is_invariant() || is_given_up())
        return;
    uint64_t counter = 0, ns = 0, later_counter = 0, later_ns = 0;
    const struct timespec span = {.tv_nsec = SPAN_NS};
    read_both(&counter, &ns);
    (void)nanosleep(&span, NULL);
    read_both(&later_counter, &later_ns);
    if (later_counter <= counter || later_ns <= ns)
        return;
    clock->counter = true;
    clock->tick_s = (double)(later_ns - ns) * 1e-9 / (double)(later_counter - counter);
    clock->origin = later_counter;
}

inline __attribute__((always_inline)) double duet__clock_now(const struct clock *clock)
{
    uint64_t value = clock->counter ? __rdtsc() : monotonic_ns();
    /* another core may be some ticks behind the reading of the origin */
    int64_t passed = (int64_t)(value - clock->origin);
    return passed > 0 ? (double)passed * clock->tick_s : 0;
}

void duet__clock_rest(void)
{
    _mm_pause();
}
