/* SPDX-License-Identifier: Apache-2.0 */
/* Parking and the clock: no call is lost, and time is that of the operating system. */
#include <glib.h>

#include <math.h>
#include <time.h>
#include <unistd.h>

#include "real/internal.h"

enum { ROUNDS = 20000, ALARM_S = 600 };

static void test_states(void)
{
    OWNED(duet__park_fini) struct park park;
    g_assert_cmpint(duet__park_init(&park), ==, 0);
    g_assert_false(park_called(&park));
    g_assert_true(duet__park_wake(&park));
    g_assert_false(duet__park_wake(&park));
    duet__park_nudge(&park); /* forgotten beside a wake */
    g_assert_cmpint(duet__park(&park, INFINITY), ==, PARK_WOKEN);
    g_assert_cmpint(duet__park(&park, 1e-3), ==, PARK_AWAKE);
    duet__park_nudge(&park);
    g_assert_true(park_called(&park));
    g_assert_cmpint(duet__park(&park, INFINITY), ==, PARK_NUDGED);
    duet__park_nudge(&park);
    g_assert_true(duet__park_wake(&park)); /* the first real call */
    g_assert_true(duet__park_settle(&park));
    g_assert_cmpint(park_take(&park), ==, PARK_WOKEN);
    duet__park_nudge(&park);
    g_assert_false(duet__park_settle(&park));
    g_assert_cmpint(park_take(&park), ==, PARK_AWAKE);
}

struct player {
    struct park *own, *other;
    unsigned left;
    bool nudges;
};

/* Every call is answered by one. */
static void *play(void *argument)
{
    struct player *self = argument;
    while (self->left--) {
        enum park_state call = duet__park(self->own, self->left % 16 ? INFINITY : ALARM_S);
        g_assert_cmpint(call, ==, self->nudges ? PARK_NUDGED : PARK_WOKEN);
        if (self->nudges)
            duet__park_nudge(self->other);
        else
            (void)duet__park_wake(self->other);
    }
    return NULL;
}

static void test_ping_pong(void)
{
    for (unsigned nudges = 0; nudges < 2; nudges++) {
        struct park parks[2];
        pthread_t threads[2];
        struct player players[2] = {{&parks[0], &parks[1], ROUNDS, nudges},
                                    {&parks[1], &parks[0], ROUNDS, nudges}};
        for (unsigned i = 0; i < 2; i++)
            g_assert_cmpint(duet__park_init(&parks[i]), ==, 0);
        if (nudges)
            duet__park_nudge(&parks[0]);
        else
            (void)duet__park_wake(&parks[0]);
        for (unsigned i = 0; i < 2; i++)
            g_assert_cmpint(pthread_create(&threads[i], NULL, play, &players[i]), ==, 0);
        for (unsigned i = 0; i < 2; i++)
            g_assert_cmpint(pthread_join(threads[i], NULL), ==, 0);
        for (unsigned i = 0; i < 2; i++)
            duet__park_fini(&parks[i]);
    }
}

static double monotonic(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Between readings of the other clock, however long these are held up. */
static void test_clock(void)
{
    struct clock clock;
    const struct timespec pause = {.tv_nsec = 50000000};
    duet__clock_start(&clock);
    double last = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        double now = duet__clock_now(&clock);
        g_assert_cmpfloat(now, >=, last);
        last = now;
    }
    double a = monotonic(), begin = duet__clock_now(&clock), b = monotonic();
    (void)nanosleep(&pause, NULL);
    double c = monotonic(), end = duet__clock_now(&clock), d = monotonic();
    g_assert_cmpfloat(end - begin, >=, (c - b) * 0.999);
    g_assert_cmpfloat(end - begin, <=, (d - a) * 1.001);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    (void)alarm(ALARM_S);
    g_test_add_func("/park/states", test_states);
    g_test_add_func("/park/ping_pong", test_ping_pong);
    g_test_add_func("/park/clock", test_clock);
    return g_test_run();
}
