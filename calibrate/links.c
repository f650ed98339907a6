/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices share a link to the host, out of what their copies get at the same time. */
#include <math.h>

#include <glib.h>

#include "calibrate/copies.h"
#include "validate/stats.h"

static const double SLOWER = 0.9; /* of what a pair gets alone: below it has been slowed down */

static bool both_leave(const struct duet__copies *copies, const struct duet__together *t)
{
    const struct duet__pair *a = &copies->pairs[t->first], *b = &copies->pairs[t->second];
    return a->source == DUET_HOST && b->source == DUET_HOST && a->destination != b->destination;
}

static bool both_come(const struct duet__copies *copies, const struct duet__together *t)
{
    const struct duet__pair *a = &copies->pairs[t->first], *b = &copies->pairs[t->second];
    return a->destination == DUET_HOST && b->destination == DUET_HOST && a->source != b->source;
}

/* Shared fairly, a link slows down only that one of two that could use more than half of it. */
static bool slowed(const struct duet__copies *copies, const struct duet__together *t)
{
    return t->first_Bps < SLOWER * copies->pairs[t->first].bandwidth_Bps ||
           t->second_Bps < SLOWER * copies->pairs[t->second].bandwidth_Bps;
}

static double sum(const struct duet__together *t)
{
    return t->first_Bps + t->second_Bps;
}

/*
 * Is it the host's memory? Then any two devices get the same together, however they are connected,
 * and that is more than a link gives that one of them fills. With two devices nothing tells one
 * from the other, and a link it is.
 */
static bool memory_bound(const struct duet__copies *copies)
{
    double least = INFINITY, most = 0, alone = 0;
    for (size_t i = 0; i < copies->together_count; i++) {
        const struct duet__together *t = &copies->together[i];
        if (!both_leave(copies, t))
            continue;
        if (!slowed(copies, t))
            return false;
        least = fmin(least, sum(t));
        most = fmax(most, sum(t));
        alone = fmax(alone, fmax(copies->pairs[t->first].bandwidth_Bps,
                                 copies->pairs[t->second].bandwidth_Bps));
    }
    return copies->node_count > 3 && least > SLOWER * most && SLOWER * least > alone;
}

/* Devices a and b are behind one switch, and so are all that either is with. */
static void join(unsigned *switches, unsigned devices, unsigned a, unsigned b)
{
    unsigned low = switches[a] < switches[b] ? switches[a] : switches[b];
    unsigned high = switches[a] < switches[b] ? switches[b] : switches[a];
    for (unsigned d = 0; d < devices; d++)
        if (switches[d] == high)
            switches[d] = low;
}

/* Numbers without gaps, in order of their first devices. Returns how many. */
static unsigned renumber(unsigned *switches, unsigned devices)
{
    unsigned count = 0;
    for (unsigned d = 0; d < devices; d++) {
        unsigned old = switches[d];
        if (old < count)
            continue;
        for (unsigned e = d; e < devices; e++)
            if (switches[e] == old)
                switches[e] = count;
        count++;
    }
    return count;
}

static void group(struct duet__copies *copies)
{
    unsigned devices = copies->node_count - 1;
    for (unsigned d = 0; d < devices; d++)
        copies->switches[d] = d;
    bool memory = memory_bound(copies);
    for (size_t i = 0; i < copies->together_count && !memory; i++) {
        const struct duet__together *t = &copies->together[i];
        if (both_leave(copies, t) && slowed(copies, t))
            join(copies->switches, devices, copies->pairs[t->first].destination - 1,
                 copies->pairs[t->second].destination - 1);
    }
    copies->switch_count = renumber(copies->switches, devices);
}

/* The device of a pair with the host. */
static unsigned device_of(const struct duet__pair *pair)
{
    return (pair->source == DUET_HOST ? pair->destination : pair->source) - 1;
}

/* The median of what two devices of this switch get together; 0 if it has one. */
static double get_together(const struct duet__copies *copies, unsigned number,
                           bool (*direction)(const struct duet__copies *,
                                             const struct duet__together *),
                           double *sums)
{
    size_t count = 0;
    for (size_t i = 0; i < copies->together_count; i++) {
        const struct duet__together *t = &copies->together[i];
        if (direction(copies, t) &&
            copies->switches[device_of(&copies->pairs[t->first])] == number &&
            copies->switches[device_of(&copies->pairs[t->second])] == number)
            sums[count++] = sum(t);
    }
    return duet_median(sums, count);
}

/* A link is at least as wide as what one device gets through it alone. */
static void measure_links(struct duet__copies *copies, double *sums)
{
    for (unsigned s = 0; s < copies->switch_count; s++) {
        copies->to_device_Bps[s] = get_together(copies, s, both_leave, sums);
        copies->to_host_Bps[s] = get_together(copies, s, both_come, sums);
    }
    for (size_t i = 0; i < copies->pair_count; i++) {
        const struct duet__pair *pair = &copies->pairs[i];
        if (pair->source != DUET_HOST && pair->destination != DUET_HOST)
            continue;
        double *links = pair->source == DUET_HOST ? copies->to_device_Bps : copies->to_host_Bps;
        double *link = &links[copies->switches[device_of(pair)]];
        *link = fmax(*link, pair->bandwidth_Bps);
    }
}

void duet__copies_infer(struct duet__copies *copies)
{
    unsigned devices = copies->node_count > 0 ? copies->node_count - 1 : 0;
    double *sums = g_new0(double, copies->together_count + 1);
    g_free(copies->switches);
    g_free(copies->to_device_Bps);
    g_free(copies->to_host_Bps);
    copies->switches = g_new0(unsigned, devices);
    copies->to_device_Bps = g_new0(double, devices);
    copies->to_host_Bps = g_new0(double, devices);
    copies->switch_count = 0;
    if (devices) {
        group(copies);
        measure_links(copies, sums);
    }
    g_free(sums);
}
