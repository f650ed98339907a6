/* SPDX-License-Identifier: Apache-2.0 */
/* Infers which devices share a link to the host, from simultaneous copies. */
#include <math.h>

#include <glib.h>

#include "calibrate/copies.h"

static const double SLOWER = 0.9; /* by the bandwidth of a pair alone; below, the pair has been
                                     slowed down */

/* Returns the device of a pair with the host, counted from 0. */
static unsigned device_of(const struct duet__copy_pair *pair)
{
    return (pair->source == DUET_HOST ? pair->destination : pair->source) - 1;
}

/* True if both pairs come from the host, or both go there, with different devices. */
static bool is_like(const struct duet__copies *copies, const struct duet__together *t,
                    bool to_device)
{
    const struct duet__copy_pair *a = &copies->pairs[t->first], *b = &copies->pairs[t->second];
    if (to_device ? a->source != DUET_HOST || b->source != DUET_HOST
                  : a->destination != DUET_HOST || b->destination != DUET_HOST)
        return false;
    return device_of(a) != device_of(b);
}

/* True if one of two was slowed down. A fairly shared link slows down only one that could use more
 * than half of it. */
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
 * True if the host's memory is the limit: any two devices then get the same together, however they
 * are connected, and more than a link that one of them fills. Two devices alone cannot tell: that
 * is taken for a link.
 */
static bool memory_bound(const struct duet__copies *copies)
{
    double least = INFINITY, most = 0, alone = 0;
    for (size_t i = 0; i < copies->together_count; i++) {
        const struct duet__together *t = &copies->together[i];
        if (!is_like(copies, t, true))
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

/* Moves all devices of switch `old` to switch `new_`. */
static void merge_switches(struct duet__copies *copies, unsigned old, unsigned new_)
{
    for (unsigned d = 0; d + 1 < copies->node_count; d++)
        if (copies->switches[d] == old)
            copies->switches[d] = new_;
}

/* Finds the switches, numbered in order of their first devices. */
static void find_switches(struct duet__copies *copies)
{
    unsigned devices = copies->node_count - 1, *switches = copies->switches;
    bool memory = memory_bound(copies);
    for (unsigned d = 0; d < devices; d++)
        switches[d] = d;
    for (size_t i = 0; i < copies->together_count && !memory; i++) {
        const struct duet__together *t = &copies->together[i];
        unsigned a = switches[device_of(&copies->pairs[t->first])];
        unsigned b = switches[device_of(&copies->pairs[t->second])];
        if (is_like(copies, t, true) && slowed(copies, t))
            merge_switches(copies, MAX(a, b), MIN(a, b));
    }
    for (unsigned d = 0; d < devices; d++)
        if (switches[d] >= copies->switch_count)
            merge_switches(copies, switches[d], copies->switch_count++);
}

/* Median of the bandwidth that two devices of this switch share; 0 if it has one device. */
static double get_together(const struct duet__copies *copies, unsigned number, bool to_device,
                           double *room)
{
    size_t count = 0;
    for (size_t i = 0; i < copies->together_count; i++) {
        const struct duet__together *t = &copies->together[i];
        if (is_like(copies, t, to_device) &&
            copies->switches[device_of(&copies->pairs[t->first])] == number &&
            copies->switches[device_of(&copies->pairs[t->second])] == number)
            room[count++] = sum(t);
    }
    return duet__median(room, count);
}

/* Sets the links' bandwidths: at least that of one device alone. */
static void find_links(struct duet__copies *copies)
{
    double *room = g_new0(double, copies->together_count + 1);
    for (unsigned s = 0; s < copies->switch_count; s++) {
        copies->to_device_Bps[s] = get_together(copies, s, true, room);
        copies->to_host_Bps[s] = get_together(copies, s, false, room);
    }
    for (size_t i = 0; i < copies->pair_count; i++) {
        const struct duet__copy_pair *pair = &copies->pairs[i];
        if (pair->source != DUET_HOST && pair->destination != DUET_HOST)
            continue;
        double *links = pair->source == DUET_HOST ? copies->to_device_Bps : copies->to_host_Bps;
        double *link = &links[copies->switches[device_of(pair)]];
        *link = fmax(*link, pair->bandwidth_Bps);
    }
    g_free(room);
}

void duet__copies_infer(struct duet__copies *copies)
{
    if (copies->node_count < 2)
        return;
    copies->switches = g_renew(unsigned, copies->switches, copies->node_count);
    copies->to_device_Bps = g_renew(double, copies->to_device_Bps, copies->node_count);
    copies->to_host_Bps = g_renew(double, copies->to_host_Bps, copies->node_count);
    copies->switch_count = 0;
    find_switches(copies);
    find_links(copies);
}
