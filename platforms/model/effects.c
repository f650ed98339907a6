/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of executions that run at the same time. */
#include <math.h>

#include "platforms/model/effects.h"

/* ------------------------------------------------------------------------------------------- */
/* Effects on the time of an execution: their names; the time itself, from a calibrated point and
   the missing data. */

/* Names by bit of enum duet__effect. */
static const char *const names[] = {"caches", "bandwidth", "neighbours",
                                    "cores",  "wake-ups",  "start"};

int duet__effects_parse(const char *what, const char *list, unsigned *bits,
                        struct duet_message *message)
{
    unsigned found = 0;
    for (const char *at = list; at && *at;) {
        size_t length = strcspn(at, ",");
        unsigned bit = 0;
        for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strlen(names[i]) == length && !strncmp(names[i], at, length))
                bit = 1U << i;
        if (!bit)
            return duet_fail(message, DUET_EINVAL,
                             "%s: unknown cause '%.*s': known are caches, bandwidth, neighbours, "
                             "cores, wake-ups, start",
                             what, (int)(length < 64 ? length : 64), at);
        found |= bit;
        at += length + (at[length] == ',');
    }
    *bits = found;
    return DUET_OK;
}

static const double NOTHING_S = 1e-12; /* shorter waits for memory count as none */

void duet__demand(const struct duet__point *point, const struct duet__operand *operands,
                  const double *missing, size_t count, unsigned effects, struct duet__demand *out)
{
    double bytes = 0;
    *out = (struct duet__demand){
        .fixed_s = point->mean_s,
        .busy_ratio = point->busy_ratio > 0 ? point->busy_ratio : 1,
    };
    if (!(point->base_s > 0) || !missing)
        return;
    out->fixed_s = point->base_s;
    if (!(effects & DUET__EFFECT_CACHES))
        return;
    for (size_t i = 0; i < count; i++) {
        bytes += (double)operands[i].bytes;
        out->bytes += (double)operands[i].bytes * missing[i];
    }
    if (point->memory_s * out->bytes >= NOTHING_S * bytes && bytes > 0)
        out->memory_s = point->memory_s * out->bytes / bytes;
}

double duet__normal(double u, double v)
{
    const double pi = 3.14159265358979323846;
    return sqrt(-2 * log1p(-u)) * cos(2 * pi * v);
}

double duet__factor(const struct duet__point *point, double u, double v)
{
    double ratio = point->noise;
    if (!(ratio > 0) && point->mean_s > 0)
        ratio = point->deviation_s / point->mean_s;
    double variance = log1p(ratio * ratio), sigma = sqrt(variance);
    return ratio > 0 ? exp(sigma * duet__normal(u, v) - variance / 2) : 1;
}

/* ------------------------------------------------------------------------------------------- */
/* Rates                                                                                        */

enum { STEPS = 60 }; /* most steps of Newton's method; it takes four to six */

/* Returns the number of CPU workers of a socket. */
static unsigned workers_of(const struct duet_machine *machine, unsigned socket)
{
    unsigned count = 0;
    for (unsigned w = 0; w < machine->worker_count; w++)
        count += machine->workers[w].node == DUET_HOST && machine->workers[w].socket == socket;
    return count;
}

/* Returns the factor of an execution's time beside `others` on a socket of `workers`. */
static double busy_factor(const struct duet__demand *demand, unsigned others, unsigned workers)
{
    if (others == 0 || workers < 2)
        return 1;
    double share = others < workers ? (double)others / (workers - 1) : 1;
    return 1 + (demand->busy_ratio - 1) * share;
}

/* Returns the seconds of an execution whose memory part is stretched by x. */
static double stretched(const struct duet__demand *demand, double x)
{
    return demand->fixed_s + demand->memory_s * x;
}

/* Returns the bytes a second that the socket's executions ask of memory with the stretch x; *slope:
 * its derivative. `slow`: share of a core that each has. The rates hold 1 / beside meanwhile. */
static double asked(const struct duet__running *running, size_t count, unsigned socket, double x,
                    double slow, double *slope)
{
    double sum = 0;
    *slope = 0;
    for (size_t i = 0; i < count; i++) {
        const struct duet__demand *demand = running[i].demand;
        if (running[i].socket != socket || !(demand->memory_s > 0))
            continue;
        double time = stretched(demand, x), flow = demand->bytes * running[i].rate * slow / time;
        sum += flow;
        *slope -= flow * demand->memory_s / time;
    }
    return sum;
}

/* Returns the stretch, at least 1, with which the socket's executions get the bandwidth there is.
 * Demand is convex and falls with it: Newton's method comes from below and never overshoots. */
static double stretch_of(const struct duet__running *running, size_t count, unsigned socket,
                         double slow, double bandwidth_Bps)
{
    double x = 1, slope;
    if (!(bandwidth_Bps > 0))
        return 1;
    for (int i = 0; i < STEPS; i++) {
        double over = asked(running, count, socket, x, slow, &slope) - bandwidth_Bps;
        if (!(over > 1e-13 * bandwidth_Bps) || !(slope < 0))
            break;
        x -= over / slope;
    }
    return x;
}

/* Sets all rates of one socket. */
static void rate_socket(const struct duet_machine *machine, struct duet__running *running,
                        size_t count, unsigned socket, unsigned effects, double slow)
{
    unsigned workers = workers_of(machine, socket), here = 0;
    for (size_t i = 0; i < count; i++)
        here += running[i].socket == socket;
    for (size_t i = 0; i < count; i++)
        if (running[i].socket == socket)
            running[i].rate = effects & DUET__EFFECT_NEIGHBOURS
                                  ? 1 / busy_factor(running[i].demand, here - 1, workers)
                                  : 1;
    double x = 1;
    if (effects & DUET__EFFECT_BANDWIDTH)
        x = stretch_of(running, count, socket, slow, machine->sharing.bandwidth_Bps);
    for (size_t i = 0; i < count; i++) {
        if (running[i].socket != socket)
            continue;
        const struct duet__demand *demand = running[i].demand;
        if (x > 1)
            running[i].rate *= stretched(demand, 1) / stretched(demand, x);
        running[i].rate *= slow;
    }
}

void duet__rates(const struct duet_machine *machine, struct duet__running *running, size_t count,
                 unsigned effects)
{
    double slow = effects & DUET__EFFECT_CORES ? duet__core_share(machine, count) : 1;
    for (size_t i = 0; i < count; i++)
        running[i].rate = 0; /* not known yet */
    for (size_t i = 0; i < count; i++)
        if (running[i].rate == 0)
            rate_socket(machine, running, count, running[i].socket, effects, slow);
}
