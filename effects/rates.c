/* SPDX-License-Identifier: Apache-2.0 */
/* How fast executions go that run at the same time. */
#include "effects/effects.h"

enum { HALVINGS = 60 }; /* of the interval in which a stretch is looked for: all bits of a double */

/* CPU workers of a socket. */
static unsigned workers_of(const struct duet_machine *machine, unsigned socket)
{
    unsigned count = 0;
    for (unsigned w = 0; w < machine->worker_count; w++)
        count += machine->workers[w].node == DUET_HOST && machine->workers[w].socket == socket;
    return count;
}

/* How many times as long an execution takes beside `others` on a socket of `workers`. */
static double beside(const struct duet__demand *demand, unsigned others, unsigned workers)
{
    if (others == 0 || workers < 2)
        return 1;
    double share = others < workers ? (double)others / (workers - 1) : 1;
    return 1 + (demand->busy_ratio - 1) * share;
}

/* Seconds of an execution whose memory part is stretched by x. */
static double stretched(const struct duet__demand *demand, double x)
{
    return demand->fixed_s + demand->memory_s * x;
}

/*
 * Bytes a second that the socket's executions ask of memory with that stretch; `slow`: share of a
 * core that each has. The rates hold 1 / beside meanwhile.
 */
static double asked(const struct duet__running *running, size_t count, unsigned socket, double x,
                    double slow)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        if (running[i].socket == socket && running[i].demand->memory_s > 0)
            sum +=
                running[i].demand->bytes * running[i].rate * slow / stretched(running[i].demand, x);
    return sum;
}

/* The stretch by which the socket's executions get what there is: at least 1. */
static double stretch_of(const struct duet__running *running, size_t count, unsigned socket,
                         double slow, double bandwidth_Bps)
{
    double low = 1, high = 2;
    if (!(bandwidth_Bps > 0) || asked(running, count, socket, 1, slow) <= bandwidth_Bps)
        return 1;
    while (asked(running, count, socket, high, slow) > bandwidth_Bps)
        high *= 2;
    for (int i = 0; i < HALVINGS; i++) {
        double middle = (low + high) / 2;
        if (asked(running, count, socket, middle, slow) > bandwidth_Bps)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static bool first_of_socket(const struct duet__running *running, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (running[i].socket == running[index].socket)
            return false;
    return true;
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
                                  ? 1 / beside(running[i].demand, here - 1, workers)
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
    double slow = 1;
    if ((effects & DUET__EFFECT_CORES) && machine->cores && count > machine->cores)
        slow = (double)machine->cores / (double)count;
    for (size_t i = 0; i < count; i++)
        if (first_of_socket(running, i))
            rate_socket(machine, running, count, running[i].socket, effects, slow);
}
